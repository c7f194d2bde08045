//! The door's settings: address, users, TLS and limits, each with a default, a unit and a reason.

use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

use filbert_listen::GuessLimits;

/// How the door behaves. All fields have defaults that suit a member with a few thousand clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresConfig {
    /// The address to listen on; port 0 takes any free port. Default 127.0.0.1:5432: PostgreSQL's port, and nobody but this machine
    /// until the operator says otherwise.
    pub listen: SocketAddr,
    /// Whether to try the next port when one is taken. Default true: a PostgreSQL on the same machine has the usual one.
    pub port_auto_increment: bool,
    /// How many ports to try, from that of `listen` on. Default 100, as for Hazelcast's clients.
    pub port_count: u16,
    /// Who may come in, by SCRAM-SHA-256. Default none: everybody may, under any name.
    pub users: Vec<PostgresUser>,
    /// The certificate for connections within TLS. Default none: clients that ask for TLS are told that there is none.
    pub tls: Option<PostgresTls>,
    /// Bytes of one message. Default 256 MiB: more than rows and parameters have in practice, and a member's memory should not
    /// depend on one client's message.
    pub message_bytes_max: usize,
    /// Bytes of requests that all connections together hold until they are handled, a share of the member's budget of buffers; whoever
    /// sends more than there is room for is disconnected. Default 1 GiB: four of the largest messages at once, and no more however many
    /// clients there are.
    pub requests_bytes_max: usize,
    /// Bytes of one message before authentication. Default 10,000, as in PostgreSQL.
    pub unauthenticated_message_bytes_max: usize,
    /// Bytes of rows that are made before they are written. Default 64 KiB: enough for one system call to be worth it, little beside
    /// what the socket itself holds.
    pub write_buffer_bytes: usize,
    /// Bytes of requests that are read ahead while a statement runs. Default 1 MiB: a pipeline of some thousand small statements.
    pub read_ahead_bytes_max: usize,
    /// Connections at a time; more are turned away with SQLSTATE 53300. Default 10,000: a hundred times what PostgreSQL allows, as an
    /// idle connection takes some kilobytes and no process.
    pub connections_max: usize,
    /// Prepared statements of one connection. Default 10,000: drivers keep some hundreds at most.
    pub statements_max: usize,
    /// Portals and cursors of one connection. Default 1,000: each may hold the state of a query.
    pub portals_max: usize,
    /// Bytes of texts and parameters that the prepared statements and portals of one connection keep. Default 64 MiB; one statement
    /// alone may have more.
    pub kept_bytes_max: usize,
    /// Bytes of settings and savepoints that a session keeps. Default 1 MiB, as [`filbert_grid::query::SESSION_BYTES_MAX`].
    pub session_bytes_max: usize,
    /// How often somebody may be wrong about a password.
    pub guesses: GuessLimits,
    /// How often somebody may be wrong about the key by which a session's statement is cancelled. Default 100 at once: a pool that gives
    /// all of its connections up cancels what they run, which may be over by then.
    pub key_guesses: GuessLimits,
    /// Rows that are asked of a result at a time. Default 1,024: a page for one write, while the next one is not made before that
    /// is over.
    pub page_rows: usize,
    /// Bytes of one row of a COPY. Default 64 MiB: a quote that is never closed must not collect all that follows.
    pub copy_row_bytes_max: usize,
    /// How long a connection may take to authenticate. Default 60 s, as in PostgreSQL.
    pub authentication_timeout: Duration,
    /// How long what runs may take to end, and a client to read its last replies, when the member stops. Default 5 s.
    pub close_timeout: Duration,
    /// The version of the program, which is told within `server_version`. Default empty.
    pub program_version: String,
}

impl Default for PostgresConfig {
    fn default() -> Self {
        PostgresConfig {
            listen: SocketAddr::from(([127, 0, 0, 1], 5432)),
            port_auto_increment: true,
            port_count: 100,
            users: Vec::new(),
            tls: None,
            message_bytes_max: 256 << 20,
            requests_bytes_max: 1 << 30,
            unauthenticated_message_bytes_max: 10_000,
            write_buffer_bytes: 64 << 10,
            read_ahead_bytes_max: 1 << 20,
            connections_max: 10_000,
            statements_max: 10_000,
            portals_max: 1_000,
            kept_bytes_max: 64 << 20,
            session_bytes_max: filbert_grid::query::SESSION_BYTES_MAX,
            guesses: GuessLimits::default(),
            key_guesses: GuessLimits { free: 100, ..GuessLimits::default() },
            page_rows: 1_024,
            copy_row_bytes_max: 64 << 20,
            authentication_timeout: Duration::from_secs(60),
            close_timeout: Duration::from_secs(5),
            program_version: String::new(),
        }
    }
}

/// Somebody who may come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresUser {
    /// The name, as clients give it.
    pub name: String,
    /// What proves it.
    pub secret: PostgresSecret,
}

/// What a client must know.
#[derive(Clone, PartialEq, Eq)]
pub enum PostgresSecret {
    /// A password.
    Password(String),
    /// What `pg_authid.rolpassword` has for a password: `SCRAM-SHA-256$4096:salt$stored key:server key`, in base64.
    Verifier(String),
}

/// Shows the kind and never the secret, which would otherwise end in a log.
impl fmt::Debug for PostgresSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PostgresSecret::Password(_) => "Password",
            PostgresSecret::Verifier(_) => "Verifier",
        })
    }
}

/// TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresTls {
    /// A PEM file with the certificate, and those that vouch for it behind it.
    pub certificate: PathBuf,
    /// A PEM file with the certificate's private key.
    pub key: PathBuf,
    /// Whether connections without TLS are refused. Default, where a configuration does not say: no.
    pub required: bool,
}

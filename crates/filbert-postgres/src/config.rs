//! The door's settings: address, users, TLS and limits, each with a default, a unit and a reason.

use std::{fmt, net::SocketAddr, path::PathBuf, time::Duration};

use filbert_listen::GuessLimits;

/// The settings of a door. The defaults of all fields suit a member with a few thousand clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresConfig {
    /// The address to listen on. Port 0 takes any free port. Default 127.0.0.1:5432: PostgreSQL's
    /// port, reachable only from this machine until the operator changes it.
    pub listen: SocketAddr,
    /// Whether to try the next port when a port is taken. Default true: a PostgreSQL server on the
    /// same machine has the usual port.
    pub port_auto_increment: bool,
    /// The number of ports to try, beginning with the port of `listen`. Default 100, as for
    /// Hazelcast's clients.
    pub port_count: u16,
    /// The users that may connect, by SCRAM-SHA-256. Default none: every client may connect, under
    /// any name.
    pub users: Vec<PostgresUser>,
    /// The certificate for TLS connections. Default none: a request for TLS is declined.
    pub tls: Option<PostgresTls>,
    /// The maximum size of one message in bytes. Default 256 MiB: more than rows and parameters
    /// have in practice. The limit keeps a member's memory independent of a single client's
    /// message.
    pub message_bytes_max: usize,
    /// The maximum number of bytes of unhandled requests in all connections together, a share of
    /// the member's budget of buffers. The client of a request that does not fit is disconnected.
    /// Default 1 GiB: four of the largest messages at once, whatever the number of clients.
    pub requests_bytes_max: usize,
    /// The maximum size of one message before authentication, in bytes. Default 10,000, as in
    /// PostgreSQL.
    pub unauthenticated_message_bytes_max: usize,
    /// The number of bytes of rows that are buffered before they are written. Default 64 KiB:
    /// enough to be worth one system call, and little compared with the buffer of the socket.
    pub write_buffer_bytes: usize,
    /// The number of bytes of requests that are read ahead while a statement runs. Default 1 MiB: a
    /// pipeline of some thousand small statements.
    pub read_ahead_bytes_max: usize,
    /// The maximum number of open connections. Further connections are refused with SQLSTATE 53300.
    /// Default 10,000: a hundred times PostgreSQL's default, since an idle connection takes some
    /// kilobytes and no process.
    pub connections_max: usize,
    /// The maximum number of prepared statements of one connection. Default 10,000: drivers keep
    /// some hundreds at most.
    pub statements_max: usize,
    /// The maximum number of portals and cursors of one connection. Default 1,000: each may hold
    /// the state of a query.
    pub portals_max: usize,
    /// The maximum number of bytes of texts and parameters in the prepared statements of one
    /// connection, and the same for its portals. Default 64 MiB. A single statement may have more.
    pub kept_bytes_max: usize,
    /// The maximum number of bytes of settings and savepoints of a session. Default 1 MiB, as
    /// [`filbert_grid::query::SESSION_BYTES_MAX`].
    pub session_bytes_max: usize,
    /// The limits on wrong passwords.
    pub guesses: GuessLimits,
    /// The limits on wrong keys in requests that cancel a session's statement. Default 100 at once:
    /// a pool that closes all of its connections cancels their statements, and these sessions may
    /// have ended by then.
    pub key_guesses: GuessLimits,
    /// The number of rows that are requested from a result at a time. Default 1,024: a page is
    /// about one write, and the next page is not produced before that write is done.
    pub page_rows: usize,
    /// The maximum size of one row of a COPY, in bytes. Default 64 MiB: a quote that is never
    /// closed must not buffer all of the following data.
    pub copy_row_bytes_max: usize,
    /// The maximum duration of the authentication. Default 60 s, as in PostgreSQL.
    pub authentication_timeout: Duration,
    /// The time that running statements have to finish, and clients have to read their last
    /// replies, when the member stops. Default 5 s.
    pub close_timeout: Duration,
    /// The version of the program, which is reported as part of `server_version`. Default empty.
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

/// A user that may connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresUser {
    /// The name, as clients send it.
    pub name: String,
    /// The secret that proves the user's identity.
    pub secret: PostgresSecret,
}

/// The secret of a user.
#[derive(Clone, PartialEq, Eq)]
pub enum PostgresSecret {
    /// A password.
    Password(String),
    /// A verifier of a password, as in `pg_authid.rolpassword`: `SCRAM-SHA-256$4096:salt$stored
    /// key:server key`, in base64.
    Verifier(String),
}

/// Shows the kind and never the secret, which would otherwise appear in a log.
impl fmt::Debug for PostgresSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PostgresSecret::Password(_) => "Password",
            PostgresSecret::Verifier(_) => "Verifier",
        })
    }
}

/// The TLS settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresTls {
    /// A PEM file with the certificate, followed by the certificates of its issuers.
    pub certificate: PathBuf,
    /// A PEM file with the certificate's private key.
    pub key: PathBuf,
    /// Whether connections without TLS are refused. The default of a configuration is false.
    pub required: bool,
}

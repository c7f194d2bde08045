//! The door's settings: address, users, limits and timeouts, each with a default, a unit and a reason.

use std::{fmt, net::SocketAddr, time::Duration};

use filbert_listen::GuessLimits;

/// How the door behaves. All fields have defaults that suit a member with a few thousand clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// The address to listen on; port 0 takes any free port. Default 127.0.0.1:4200: CrateDB's port, and nobody but this
    /// machine until the operator says otherwise.
    pub listen: SocketAddr,
    /// Whether to try the next port when one is taken. Default true, as in CrateDB.
    pub port_auto_increment: bool,
    /// How many ports to try with `port_auto_increment`. Default 100, as in CrateDB.
    pub port_count: u16,
    /// Who may come in. Default nobody in particular: everybody, as the user whom they name or else `crate`.
    pub users: Vec<HttpUser>,
    /// Pages of other servers that may send statements, as browsers name them, such as `https://dashboard.example`. Default none:
    /// only the console, and whatever is no page.
    pub origins: Vec<String>,
    /// Names by which this server is called, beside addresses and names that nobody can own (without a dot, or under `local`, `internal`,
    /// `svc` and the like); `*.example.com` are all names under one. Default none. It is asked for where there are no users: a page of
    /// any other name may be a stranger's whose name leads here.
    pub hosts: Vec<String>,
    /// How often somebody may be wrong about a password.
    pub guesses: GuessLimits,
    /// The node's name, as tools show it. Default none: the member's UUID.
    pub node_name: Option<String>,
    /// Bytes of one body, unpacked if it came packed. Default 256 MiB: more than twice what CrateDB takes (100 MB), far more
    /// than bulk requests need to be fast, and little enough that a few of them fit into any member.
    pub body_bytes_max: usize,
    /// Bytes of all bodies that are being received or worked on, and of what is made of them; more are refused with 429. They are a share of
    /// the member's budget of buffers. Default 1 GiB: four of the largest, thousands of common ones.
    pub bodies_bytes_max: usize,
    /// Values of one statement, and of each row of `bulk_args` where every row is a statement. Default 10,000, as the engine takes them:
    /// what it would refuse is not even parsed.
    pub parameters_max: usize,
    /// Bytes of settings that a connection keeps. Default 1 MiB, as [`filbert_grid::query::SESSION_BYTES_MAX`].
    pub session_bytes_max: usize,
    /// Bytes of a request's head. Default 16 KiB: heads have some hundred bytes, and those of browsers with many cookies some thousand.
    pub head_bytes_max: usize,
    /// Bytes of one connection's read buffer. Default 64 KiB: larger reads make bulk requests hardly faster.
    pub buffer_bytes_max: usize,
    /// Connections at a time; more are turned away. Default 20,000: as for Hazelcast's clients, and at some kilobytes each no
    /// burden.
    pub connections_max: usize,
    /// How long a connection may be idle between requests, the next one's head included. Default 300 s: longer than pools keep
    /// idle connections, short enough that forgotten ones do not pile up.
    pub idle_timeout: Duration,
    /// How long a new connection may take until the head of its first request is there. Default 30 s: clients connect when they have
    /// something to ask.
    pub head_timeout: Duration,
    /// How long to wait for the next bytes of a body. Default 30 s: longer than any pause of a network that works.
    pub body_timeout: Duration,
    /// Bytes of a body that must come in a second, taken over all of it and after `body_timeout`. Default 1,024: far below any network that
    /// works, and enough that nobody holds a large body's memory for long by sending it bit by bit.
    pub body_rate_min: usize,
    /// How long a client may leave its answer unread; then it is cut off and its statement ended. Default 120 s: longer than a
    /// program works on what one read brought.
    pub write_timeout: Duration,
    /// How long requests may take to finish at shutdown. Default 5 s, as for Hazelcast's clients.
    pub close_timeout: Duration,
    /// Rows that are asked of a result at a time. Default 4,096: enough to keep the costs of a page per row small, few enough
    /// that a network task is not held up by them.
    pub page_rows: usize,
    /// Rows of one bulk request whose errors are told with a text; the others have only `-2` as their count, as in CrateDB.
    /// Default 1,000: enough to see what is wrong, where CrateDB tells 10 of each shard.
    pub bulk_errors_max: usize,
    /// Maps whose figures are among the metrics, the largest if there are more. Default 1,000: each has a dozen figures, and
    /// Prometheus keeps all of them.
    pub metrics_maps_max: usize,
}

impl Default for HttpConfig {
    fn default() -> Self {
        HttpConfig {
            listen: SocketAddr::from(([127, 0, 0, 1], 4200)),
            port_auto_increment: true,
            port_count: 100,
            users: Vec::new(),
            origins: Vec::new(),
            hosts: Vec::new(),
            guesses: GuessLimits::default(),
            node_name: None,
            body_bytes_max: 256 << 20,
            bodies_bytes_max: 1 << 30,
            parameters_max: 10_000,
            session_bytes_max: filbert_grid::query::SESSION_BYTES_MAX,
            head_bytes_max: 16 << 10,
            buffer_bytes_max: 64 << 10,
            connections_max: 20_000,
            idle_timeout: Duration::from_secs(300),
            head_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(30),
            body_rate_min: 1_024,
            write_timeout: Duration::from_secs(120),
            close_timeout: Duration::from_secs(5),
            page_rows: 4096,
            bulk_errors_max: 1000,
            metrics_maps_max: 1000,
        }
    }
}

/// Somebody who may come in.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpUser {
    /// The name.
    pub name: String,
    /// The password.
    pub password: String,
}

/// Shows the name and never the password, which would otherwise end in a log.
impl fmt::Debug for HttpUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpUser").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let users = vec![HttpUser { name: "ann".into(), password: "hush".into() }];
        assert!(!format!("{:?}", HttpConfig { users, ..HttpConfig::default() }).contains("hush"));
    }
}

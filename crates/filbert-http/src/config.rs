//! The door's settings: address, users, limits and timeouts, each with a default, a unit and a
//! reason.

use std::{fmt, net::SocketAddr, time::Duration};

use filbert_listen::GuessLimits;

/// The settings of a door. The defaults of all fields suit a member with a few thousand clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// The address to listen on. Port 0 takes any free port. Default 127.0.0.1:4200: CrateDB's
    /// port, reachable only from this machine until the operator changes it.
    pub listen: SocketAddr,
    /// Whether to try the next port when a port is taken. Default true, as in CrateDB.
    pub port_auto_increment: bool,
    /// The number of ports to try with `port_auto_increment`. Default 100, as in CrateDB.
    pub port_count: u16,
    /// The users that may send requests. Default none: every client may, as the user that it names,
    /// or else as `crate`.
    pub users: Vec<HttpUser>,
    /// The origins of other servers' pages that may send statements, as browsers send them, such as
    /// `https://dashboard.example`. Default none: only the console, and clients that are not pages.
    pub origins: Vec<String>,
    /// The host names of this server, in addition to IP addresses and to names that cannot be
    /// registered (names without a dot, or names under `local`, `internal`, `svc` and the like).
    /// `*.example.com` stands for all names under `example.com`. Default none. Without users the
    /// name of a request is checked: the page of any other name may belong to a stranger who lets
    /// the name resolve to this server.
    pub hosts: Vec<String>,
    /// The limits on wrong passwords.
    pub guesses: GuessLimits,
    /// The node's name, as tools show it. Default none: the member's UUID.
    pub node_name: Option<String>,
    /// The maximum size of one body in bytes, after decompression. Default 256 MiB: more than twice
    /// CrateDB's limit (100 MB), far more than fast bulk requests need, and little enough that
    /// several bodies fit into any member.
    pub body_bytes_max: usize,
    /// The maximum number of bytes of all bodies that are being received or processed, and of their
    /// parsed values. Further requests are refused with status 429. The bytes are a share of the
    /// member's budget of buffers. Default 1 GiB: four of the largest bodies, thousands of common
    /// ones.
    pub bodies_bytes_max: usize,
    /// The maximum number of values of one statement, and of each row of `bulk_args` if every row
    /// runs as a statement. Default 65,535, as in the engine: values beyond its limit are not even
    /// parsed.
    pub parameters_max: usize,
    /// The maximum number of bytes of settings that a connection keeps. Default 1 MiB, as
    /// [`filbert_grid::query::SESSION_BYTES_MAX`].
    pub session_bytes_max: usize,
    /// The maximum size of a request's head in bytes. Default 16 KiB: heads have some hundred
    /// bytes, and heads of browsers with many cookies some thousand.
    pub head_bytes_max: usize,
    /// The maximum size of one connection's read buffer in bytes. Default 64 KiB: larger reads make
    /// bulk requests hardly faster.
    pub buffer_bytes_max: usize,
    /// The maximum number of open connections. Further connections are refused. Default 20,000, as
    /// for Hazelcast's clients: at some kilobytes each, this is no burden.
    pub connections_max: usize,
    /// The maximum time between the end of a request and the end of the next request's head.
    /// Default 300 s: longer than pools keep idle connections, and short enough that abandoned
    /// connections do not accumulate.
    pub idle_timeout: Duration,
    /// The maximum time from the start of a connection to the end of its first request's head.
    /// Default 30 s: clients connect when they have a request to send.
    pub head_timeout: Duration,
    /// The maximum wait for the next bytes of a body. Default 30 s: longer than any pause of a
    /// working network.
    pub body_timeout: Duration,
    /// The minimum rate of a body in bytes per second, averaged over the whole body. It applies
    /// after `body_timeout`. Default 1,024: far below any working network, and enough that no
    /// client can hold the memory of a large body for long by sending it slowly.
    pub body_rate_min: usize,
    /// The maximum time that a client may leave its response unread. Then the connection is closed
    /// and the statement is cancelled. Default 120 s: longer than a program takes to process the
    /// data of one read.
    pub write_timeout: Duration,
    /// The time that requests have to finish at shutdown. Default 5 s, as for Hazelcast's clients.
    pub close_timeout: Duration,
    /// The number of rows that are requested from a result at a time. Default 4,096: enough to keep
    /// the cost of a page per row small, and few enough not to block a network task.
    pub page_rows: usize,
    /// The maximum number of rows of one bulk request that get an error text. Further failed rows
    /// have only `-2` as their count, as in CrateDB. Default 1,000: enough to find the cause, where
    /// CrateDB reports 10 for each shard.
    pub bulk_errors_max: usize,
    /// The maximum number of maps with metrics. If there are more, the largest maps are chosen.
    /// Default 1,000: each map has a dozen metrics, and Prometheus stores all of them.
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
            parameters_max: 65_535,
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

/// A user that may send requests.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpUser {
    /// The name.
    pub name: String,
    /// The password.
    pub password: String,
}

/// Shows the name and never the password, which would otherwise appear in a log.
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

//! The settings of the door: addresses, credentials, limits and timeouts, each with a default, a
//! unit and a reason.

use std::{fmt, net::SocketAddr, time::Duration};

use filbert_listen::GuessLimits;

/// An address of the member for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberAddress {
    /// A host name, or an IP address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl MemberAddress {
    /// Parses a host name or an IP address, with or without a port. `None` if the text is neither.
    pub fn parse(text: &str, default_port: u16) -> Option<MemberAddress> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Some(address.into());
        }
        if let Ok(ip) = text.parse::<std::net::IpAddr>() {
            return Some(SocketAddr::from((ip, default_port)).into());
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (text, default_port),
        };
        let is_label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
                && !label.starts_with('-')
                && !label.ends_with('-')
        };
        let name = host.strip_suffix('.').unwrap_or(host);
        // A text that looks like an IP address and is not valid as one is not a host name either.
        let is_name = name.len() <= 253
            && name.split('.').all(is_label)
            && !name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
        is_name.then(|| MemberAddress { host: host.to_owned(), port })
    }
}

impl From<SocketAddr> for MemberAddress {
    /// An IPv4 address that is mapped into an IPv6 address is reported as an IPv4 address: a client
    /// that connected over IPv4 to a socket for both may not support IPv6.
    fn from(address: SocketAddr) -> Self {
        MemberAddress { host: address.ip().to_canonical().to_string(), port: address.port() }
    }
}

impl fmt::Display for MemberAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// The settings of a door. All fields have defaults that suit a member with a few thousand clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoorConfig {
    /// The address to listen on. Port 0 means any free port. Default 127.0.0.1:5701: Hazelcast's
    /// port, reachable only from this machine until the operator sets another address.
    pub listen: SocketAddr,
    /// Whether to try the next port when a port is taken. Default true, as in Hazelcast.
    pub port_auto_increment: bool,
    /// The number of ports to try with `port_auto_increment`. Default 100, as in Hazelcast.
    pub port_count: u16,
    /// The address reported to clients, if it differs from the listening address (a proxy, a
    /// container). Default none: each client receives the address that it has connected to.
    pub public_address: Option<MemberAddress>,
    /// The credentials that a client must present besides the cluster's name.
    pub authentication: Authentication,
    /// The maximum size of a message from a client, in bytes. Default 1 GiB: above any value that a
    /// map should hold, with room for a bulk load, and far below the claim of a broken length
    /// field. Memory is allocated only for bytes that have arrived.
    pub message_bytes_max: usize,
    /// The maximum size of a message from a client that is not authenticated yet, in bytes. Default
    /// 64 KiB: an authentication takes a few hundred bytes, and strangers must not be able to fill
    /// the member's memory.
    pub unauthenticated_message_bytes_max: usize,
    /// The maximum number of bytes per read from a connection. Default 64 KiB: some hundred small
    /// requests for one system call. An idle connection holds no such buffer.
    pub read_buffer_bytes: usize,
    /// The limit of a connection's unread replies and of its changes in flight through a log,
    /// together, in bytes. Above it no more requests of the client are accepted. A single reply or
    /// change may be larger. Default 1 MiB: more than a socket accepts at once, and little enough
    /// for many slow readers.
    pub write_buffer_bytes_max: usize,
    /// The maximum size of a reply that lists entries (`keySet`, `values`, `entrySet`, `getAll`, a
    /// batch of an iteration), in bytes. A longer reply is refused. Default 1 GiB, as for messages
    /// from clients: a client that needs more should iterate, and the member's memory should not
    /// depend on whether it does.
    pub reply_bytes_max: usize,
    /// The limit of a client's unread events, in bytes. Above it the client is disconnected: events
    /// cannot be held back, and a client that has lost events would be wrong forever. Default
    /// 16 MiB: a pause of some seconds at the rate of a busy map.
    pub event_buffer_bytes_max: usize,
    /// The limit of the unread events of all clients together, in bytes. It is a share of the
    /// member's budget for buffers, and at most half of that budget. A client is disconnected if
    /// its events exceed the share; a small amount of events needs no reservation. Default 256 MiB:
    /// sixteen clients at the limit of one client.
    pub events_bytes_max: usize,
    /// The limits of wrong passwords and tokens.
    pub guesses: GuessLimits,
    /// The maximum number of listeners to query caches, of all clients together. Default 100,000,
    /// as for listeners to maps.
    pub query_cache_listeners_max: usize,
    /// The maximum number of connections. More are refused. Default 20,000: twice as many as a
    /// large installation opens, and no burden at some kilobytes each.
    pub connections_max: usize,
    /// The maximum number of map handles that a connection caches. At the limit the cache is
    /// emptied. Default 256: clients use a few maps, and a client that uses thousands must not make
    /// its connection grow without end.
    pub handles_max: usize,
    /// The maximum number of a connection's requests that wait at other members, for locks or for
    /// events of journals. They do not count in `write_buffer_bytes_max`, because their end depends
    /// on other clients. Default 10,000: far more than a client has threads.
    pub relayed_waits_max: usize,
    /// The timeout for opening a connection to another member, on which a client's requests are
    /// forwarded. After it the client is asked to retry. Default 5 s: longer than a bad network
    /// needs.
    pub relay_connect_timeout: Duration,
    /// The total time for which a request waits in a cluster until the leader of its partition is
    /// known. After it the client is asked to retry. Waiting requests count in
    /// `write_buffer_bytes_max`. Default 5 s: several times as long as a change of leaders takes.
    pub relay_hold_max: Duration,
    /// The maximum number of a connection's reads of event journals that wait for events. Default
    /// 1,024: one per partition of a few maps.
    pub journal_waits_max: usize,
    /// The maximum number of concurrent queries and statements of a connection, without statements
    /// that are answered in place. Default 1,024: more than a client has waiting threads, and few
    /// enough that their results fit.
    pub queries_max: usize,
    /// The maximum number of a connection's open results and running statements together. Default
    /// 1,000: each holds the state of its query, which may be large.
    pub cursors_max: usize,
    /// The time after which a result is closed if the client does not request its rows. Default
    /// 600 s: longer than a program works on one page, and short enough that forgotten results do
    /// not accumulate.
    pub cursor_idle_timeout: Duration,
    /// The maximum number of rows in a page of a result, even if the client requests more. Default
    /// 65,536: sixteen times the default of the clients.
    pub page_rows_max: usize,
    /// The limit of the texts and objects in one page of a result, in bytes. The remaining rows
    /// come with the next page. A page has at least one row. Default 4 MiB: enough to keep a socket
    /// busy, and little compared with the rows that an operator of a query holds.
    pub page_bytes_max: usize,
    /// The maximum number of query caches of a client. Default 1,000: each keeps some changes of
    /// every partition.
    pub query_caches_max: usize,
    /// The limit of the changes kept for one query cache, in bytes. Above it the oldest changes are
    /// lost, and the client notices the loss. Default 16 MiB, as for unread events of a client.
    pub query_cache_bytes_max: usize,
    /// The time for which a query cache is kept after its client has disconnected. Default 600 s,
    /// as in Hazelcast.
    pub query_cache_orphan_timeout: Duration,
    /// The time after which a silent client is disconnected. Default 300 s, as in Hazelcast.
    /// Hazelcast's clients send a ping every 5 s.
    pub heartbeat_timeout: Duration,
    /// The timeout for the authentication of a connection. Default 30 s: stock clients authenticate
    /// with their first bytes.
    pub unauthenticated_timeout: Duration,
    /// The time for which a change waits for a key that is locked by another thread or client.
    /// After it the change fails with `OperationTimeoutException`. Default 60 s, as Hazelcast's
    /// `hazelcast.operation.call.timeout.millis`. It does not limit lock requests.
    pub call_timeout: Duration,
    /// The time for a client to read its last replies while its connection is being closed. Default
    /// 5 s: longer than a retransmission on a bad network, and shorter than an operator's patience
    /// at shutdown.
    pub close_timeout: Duration,
}

impl Default for DoorConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 5701)),
            port_auto_increment: true,
            port_count: 100,
            public_address: None,
            authentication: Authentication::None,
            message_bytes_max: 1 << 30,
            unauthenticated_message_bytes_max: 64 << 10,
            read_buffer_bytes: 64 << 10,
            write_buffer_bytes_max: 1 << 20,
            reply_bytes_max: 1 << 30,
            event_buffer_bytes_max: 16 << 20,
            events_bytes_max: 256 << 20,
            guesses: GuessLimits::default(),
            query_cache_listeners_max: 100_000,
            connections_max: 20_000,
            handles_max: 256,
            relayed_waits_max: 10_000,
            relay_connect_timeout: Duration::from_secs(5),
            relay_hold_max: Duration::from_secs(5),
            journal_waits_max: 1024,
            queries_max: 1024,
            cursors_max: 1000,
            cursor_idle_timeout: Duration::from_secs(600),
            page_rows_max: 65_536,
            page_bytes_max: 4 << 20,
            query_caches_max: 1000,
            query_cache_bytes_max: 16 << 20,
            query_cache_orphan_timeout: Duration::from_secs(600),
            heartbeat_timeout: Duration::from_secs(300),
            unauthenticated_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(60),
            close_timeout: Duration::from_secs(5),
        }
    }
}

/// The credentials that a client must present besides the cluster's name.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum Authentication {
    /// None. A client that presents credentials nevertheless is refused, as in Hazelcast: it
    /// expects that they are checked.
    #[default]
    None,
    /// The name and the password of one of these users.
    Users(Vec<(String, String)>),
    /// This token.
    Token(Vec<u8>),
}

/// Prints the method and never the secrets, which would otherwise end up in a log.
impl std::fmt::Debug for Authentication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Authentication::None => f.write_str("None"),
            Authentication::Users(users) => write!(f, "Users({})", users.len()),
            Authentication::Token(_) => f.write_str("Token"),
        }
    }
}

impl Authentication {
    /// Whether a client with this user name and password is accepted.
    pub(crate) fn accepts_password(&self, name: Option<&str>, password: Option<&str>) -> bool {
        match (self, name, password) {
            (Authentication::None, None, None) => true,
            (Authentication::Users(users), Some(name), Some(password)) => {
                // All users are compared, so the time does not reveal which names exist.
                users.iter().fold(false, |found, (user, secret)| {
                    found | (same(user.as_bytes(), name.as_bytes()) & same(secret.as_bytes(), password.as_bytes()))
                })
            }
            _ => false,
        }
    }

    /// Whether a client with this token is accepted.
    pub(crate) fn accepts_token(&self, token: &[u8]) -> bool {
        matches!(self, Authentication::Token(expected) if same(expected, token))
    }
}

/// Compares secrets. The time depends only on their lengths.
fn same(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b));
    a.len() == b.len() && std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_secret_is_accepted() {
        let users = Authentication::Users(vec![("ann".into(), "a".into()), ("bob".into(), "b".into())]);
        assert!(users.accepts_password(Some("bob"), Some("b")));
        assert!(!users.accepts_password(Some("bob"), Some("a")));
        assert!(!users.accepts_password(Some("bob"), Some("bb")));
        assert!(!users.accepts_password(None, None));
        assert!(!users.accepts_token(b"b"));
        assert!(Authentication::None.accepts_password(None, None));
        assert!(!Authentication::None.accepts_password(Some("bob"), Some("b")));
        assert!(Authentication::Token(b"t".to_vec()).accepts_token(b"t"));
        assert!(!Authentication::Token(b"t".to_vec()).accepts_token(b""));
    }

    #[test]
    fn secrets_are_not_shown() {
        let users = Authentication::Users(vec![("ann".into(), "hush".into())]);
        assert_eq!(format!("{users:?}"), "Users(1)");
    }
}

#[cfg(test)]
mod address_tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_name_or_an_address_with_a_port_or_without() {
        for (text, expected) in [
            ("192.0.2.7:6001", Some("192.0.2.7:6001")),
            ("192.0.2.7", Some("192.0.2.7:5701")),
            ("[2001:db8::1]:6001", Some("[2001:db8::1]:6001")),
            ("2001:db8::1", Some("[2001:db8::1]:5701")),
            ("grid.example.com:6001", Some("grid.example.com:6001")),
            ("grid-0", Some("grid-0:5701")),
            ("", None),
            ("192.0.2.700", None),
            ("grid.example.com:port", None),
            ("a host", None),
            ("-a.example", None),
        ] {
            let found = MemberAddress::parse(text, 5701).map(|address| address.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}

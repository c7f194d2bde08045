//! The door's settings: addresses, credentials, limits and timeouts, each with a default, a unit and a reason.

use std::{fmt, net::SocketAddr, time::Duration};

use filbert_listen::GuessLimits;

/// An address by which clients reach the member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberAddress {
    /// A host name, or an address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl MemberAddress {
    /// Reads a host name or an address, with a port or without; `None` if it is neither.
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
        // What looks like an address and is none is no name either.
        let is_name = name.len() <= 253
            && name.split('.').all(is_label)
            && !name.rsplit('.').next().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
        is_name.then(|| MemberAddress { host: host.to_owned(), port })
    }
}

impl From<SocketAddr> for MemberAddress {
    /// An IPv4 address within an IPv6 one is told as the former: a client that came by IPv4 to a socket for both may not speak
    /// IPv6.
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

/// How the door behaves. All fields have defaults that suit a member with a few thousand clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoorConfig {
    /// The address to listen on; port 0 takes any free port. Default 127.0.0.1:5701: Hazelcast's port, and nobody but
    /// this machine until the operator says otherwise.
    pub listen: SocketAddr,
    /// Whether to try the next port when one is taken. Default true, as in Hazelcast.
    pub port_auto_increment: bool,
    /// How many ports to try with `port_auto_increment`. Default 100, as in Hazelcast.
    pub port_count: u16,
    /// The address that clients are told to connect to, where it differs from the one listened on (a proxy, a
    /// container). Default none: each client is told the address by which it came.
    pub public_address: Option<MemberAddress>,
    /// What a client must show besides the cluster's name.
    pub authentication: Authentication,
    /// Bytes of one message from a client. Default 1 GiB: above any value that a map should hold, with room for a bulk
    /// load, and far below what a broken length field claims. Memory is taken only for bytes that have arrived.
    pub message_bytes_max: usize,
    /// Bytes of one message from a client that is not authenticated yet. Default 64 KiB: an authentication takes a few
    /// hundred bytes, and strangers should not be able to fill the member's memory.
    pub unauthenticated_message_bytes_max: usize,
    /// Bytes read from a connection at once. Default 64 KiB: some hundred small requests for one system call. A
    /// connection that is idle holds no such buffer.
    pub read_buffer_bytes: usize,
    /// Bytes of replies that wait for a client to read them, and of its changes on their way through a log, above which no more of
    /// its requests are taken. One reply, or change, may be larger than that. Default 1 MiB: more than a socket takes at once, little enough for many slow readers.
    pub write_buffer_bytes_max: usize,
    /// Bytes of one reply that lists entries (`keySet`, `values`, `entrySet`, `getAll`, a batch of an iteration); a longer
    /// one is refused. Default 1 GiB, as for messages from clients: a client that wants more than that should iterate,
    /// and the member's memory should not depend on whether it does.
    pub reply_bytes_max: usize,
    /// Bytes of events that wait for a client to read them, above which it is disconnected: events cannot be held
    /// back, and a client that lost some would be wrong for ever. Default 16 MiB: a pause of some seconds at the rate
    /// of a busy map.
    pub event_buffer_bytes_max: usize,
    /// Bytes of events that wait for all clients together, a share of the member's budget of buffers, of which it is half at most. A client
    /// for whose events there is no room is disconnected; few of them need none. Default 256 MiB: sixteen clients as far behind as
    /// they may be.
    pub events_bytes_max: usize,
    /// How often somebody may be wrong about a password or a token.
    pub guesses: GuessLimits,
    /// Listeners to query caches of all clients. Default 100,000, as of maps.
    pub query_cache_listeners_max: usize,
    /// Connections at a time; more are turned away. Default 20,000: twice what a large installation opens, and at some
    /// kilobytes each no burden.
    pub connections_max: usize,
    /// Map handles that a connection keeps at hand; beyond that it looks them up again. Default 256: clients use a
    /// few maps, and a client that uses thousands must not make its connection grow without end.
    pub handles_max: usize,
    /// Requests for locks and for events of journals that wait at other members, per connection. They are not counted among what
    /// `write_buffer_bytes_max` bounds, as their end is up to others. Default 10,000: far more than a client has threads.
    pub relayed_waits_max: usize,
    /// How long a connection to another member, on which a client's requests are sent on to it, may take to open. Default 5 s:
    /// longer than a bad network needs, and the client is told to try again after it.
    pub relay_connect_timeout: Duration,
    /// How long a request waits in a cluster until it is known who leads its partition, in all; then the client is told to try again.
    /// Such requests count in `write_buffer_bytes_max`. Default 5 s: several times as long as it takes until another member leads.
    pub relay_hold_max: Duration,
    /// Reads of event journals that may wait for events, per connection. Default 1,024: one per partition of a few maps.
    pub journal_waits_max: usize,
    /// Queries and statements that may run at a time for one connection, beyond those that are done at once. Default 1,024:
    /// more than a client has threads that wait, and few enough that their results fit.
    pub queries_max: usize,
    /// Results of statements that a connection may keep open, and statements that run for it. Default 1,000: each holds the
    /// state of its query, which may be large.
    pub cursors_max: usize,
    /// How long the rows of a result may wait to be asked for; then the result is closed. Default 600 s: longer than a program
    /// works on one page, short enough that forgotten results do not pile up.
    pub cursor_idle_timeout: Duration,
    /// Rows of one page of a result, whatever the client asks for. Default 65,536: sixteen times what clients ask for.
    pub page_rows_max: usize,
    /// Bytes of texts and objects in one page of a result; what is beyond comes with the next page. A page has one row at
    /// least. Default 4 MiB: enough to keep a socket busy, and little beside the rows that an operator holds.
    pub page_bytes_max: usize,
    /// Query caches of one client. Default 1,000: each keeps some changes of every partition.
    pub query_caches_max: usize,
    /// Bytes of changes that are kept for one query cache; the oldest are lost first, which its client sees. Default 16 MiB,
    /// as for events that wait for a client.
    pub query_cache_bytes_max: usize,
    /// How long a query cache is kept for a client that went. Default 600 s, as in Hazelcast.
    pub query_cache_orphan_timeout: Duration,
    /// How long a client may be silent. Default 300 s, as in Hazelcast: its clients send a ping every 5 s.
    pub heartbeat_timeout: Duration,
    /// How long a connection may take to authenticate. Default 30 s: stock clients do it with their first bytes.
    pub unauthenticated_timeout: Duration,
    /// How long a change waits for a key that someone else has locked before it fails with
    /// `OperationTimeoutException`. Default 60 s, as Hazelcast's `hazelcast.operation.call.timeout.millis`. Lock
    /// requests are not bounded by it.
    pub call_timeout: Duration,
    /// How long a connection that is being closed may take to read its last replies. Default 5 s: longer than a
    /// retransmission on a bad network, shorter than an operator's patience at shutdown.
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

/// What a client must show besides the cluster's name.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum Authentication {
    /// Nothing. A client that shows credentials nevertheless is refused, as Hazelcast does: it was told that they
    /// count.
    #[default]
    None,
    /// The name of one of these users and the user's password.
    Users(Vec<(String, String)>),
    /// These bytes.
    Token(Vec<u8>),
}

/// Shows the method and never the secrets, which would otherwise end in a log.
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
    /// Whether a client with this name and password may come in.
    pub(crate) fn accepts_password(&self, name: Option<&str>, password: Option<&str>) -> bool {
        match (self, name, password) {
            (Authentication::None, None, None) => true,
            (Authentication::Users(users), Some(name), Some(password)) => {
                // Every user is compared, so that the time taken tells nothing about which names exist.
                users.iter().fold(false, |found, (user, secret)| {
                    found | (same(user.as_bytes(), name.as_bytes()) & same(secret.as_bytes(), password.as_bytes()))
                })
            }
            _ => false,
        }
    }

    /// Whether a client with this token may come in.
    pub(crate) fn accepts_token(&self, token: &[u8]) -> bool {
        matches!(self, Authentication::Token(expected) if same(expected, token))
    }
}

/// Compares secrets in a time that depends on their lengths only.
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

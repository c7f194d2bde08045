//! The configuration of a client: addresses, credentials, timeouts, retries and limits.

use std::time::Duration;

/// The configuration of a client. Every setting has a default; `ClientConfig::default()` connects
/// to a member on this machine.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The addresses of the first members, as `host` or `host:port`. The client learns the other
    /// members from them. Default: `127.0.0.1:5701`.
    pub addresses: Vec<String>,
    /// The name of the cluster, checked by the members. Default: `dev`, the default of the members.
    pub cluster_name: String,
    /// The credentials of the client. Default: none.
    pub credentials: Credentials,
    /// The client's name in the members' logs. Default: derived from the client's UUID.
    pub name: Option<String>,
    /// The labels that members show with the name. Default: none.
    pub labels: Vec<String>,
    /// The members that the client connects to. Default: all.
    pub routing: Routing,
    /// The time limit of one attempt to connect to a member, authentication included. Default: 5 s,
    /// longer than any round trip, but short enough for an interactive user.
    pub connect_timeout: Duration,
    /// The time for which [`Client::connect`](crate::Client::connect) retries the addresses.
    /// Default: 30 s, long enough for a member that starts together with the client.
    pub cluster_connect_timeout: Duration,
    /// The time for which a call is retried after transient failures. It does not limit the wait
    /// for a response: the wait for a lock may take as long as its owner holds it. Default: 120 s,
    /// as in Hazelcast's own clients.
    pub invocation_timeout: Duration,
    /// The pauses between attempts to connect to a member.
    pub reconnect: Backoff,
    /// The pauses before retries of a failed call.
    pub retry: Backoff,
    /// Whether calls that change data are retried after the connection was lost before the response
    /// arrived. Such a call may be applied twice. Default: false.
    pub redo_operation: bool,
    /// The interval of pings on a connection without requests. A ping shows the member that the
    /// client is alive. Default: 5 s.
    pub heartbeat_interval: Duration,
    /// The time without a byte from the member after which a connection is closed. Default: 60 s.
    pub heartbeat_timeout: Duration,
    /// The time for which [`Client::shutdown`](crate::Client::shutdown) waits for calls in flight.
    /// Default: 2 s.
    pub shutdown_timeout: Duration,
    /// The memory limits of the client.
    pub limits: ClientLimits,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            addresses: vec!["127.0.0.1:5701".to_owned()],
            cluster_name: "dev".to_owned(),
            credentials: Credentials::None,
            name: None,
            labels: Vec::new(),
            routing: Routing::AllMembers,
            connect_timeout: Duration::from_secs(5),
            cluster_connect_timeout: Duration::from_secs(30),
            invocation_timeout: Duration::from_secs(120),
            reconnect: Backoff::default(),
            retry: Backoff { initial: Duration::from_millis(5), ..Backoff::default() },
            redo_operation: false,
            heartbeat_interval: Duration::from_secs(5),
            heartbeat_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(2),
            limits: ClientLimits::default(),
        }
    }
}

/// The credentials of a client.
#[derive(Clone, Default)]
pub enum Credentials {
    /// No credentials. Sufficient for a cluster without security.
    #[default]
    None,
    /// A user name and a password.
    Password {
        /// The user name.
        user: String,
        /// The password.
        password: String,
    },
    /// A token that the members check.
    Token(Vec<u8>),
}

/// Omits the secret.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Credentials::None => f.write_str("None"),
            Credentials::Password { user, .. } => write!(f, "Password {{ user: {user:?}, .. }}"),
            Credentials::Token(_) => f.write_str("Token(..)"),
        }
    }
}

/// The members that a client connects to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// All members. A call goes directly to the owner of its key.
    #[default]
    AllMembers,
    /// One member, which forwards calls to the owners. For clusters with only one reachable
    /// address.
    SingleMember,
}

/// Exponential backoff: growing pauses between attempts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The first pause. Default: 20 ms.
    pub initial: Duration,
    /// The longest pause before jitter is applied. Default: 1 s, so that a client reconnects soon
    /// after its member is back.
    pub max: Duration,
    /// The factor from one pause to the next, at least 1. Default: 2.
    pub multiplier: f64,
    /// The maximum random change of a pause, as a fraction of the pause from 0 to 1. It prevents
    /// many clients from reconnecting at the same time. Default: 0.2.
    pub jitter: f64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { initial: Duration::from_millis(20), max: Duration::from_secs(1), multiplier: 2.0, jitter: 0.2 }
    }
}

impl Backoff {
    /// Returns the pause before a retry; `attempt` is 0 for the first retry. `random` selects the
    /// value within the jitter.
    pub fn pause(&self, attempt: u32, random: u64) -> Duration {
        let exponent = i32::try_from(attempt).unwrap_or(i32::MAX);
        let grown = self.initial.as_secs_f64() * self.multiplier.max(1.0).powi(exponent);
        let capped = grown.min(self.max.as_secs_f64());
        // Maps the upper 32 bits to a number from -1 to 1.
        let place = (random >> 32) as f64 / f64::from(u32::MAX) * 2.0 - 1.0;
        let jittered = capped * (1.0 + self.jitter.clamp(0.0, 1.0) * place);
        Duration::try_from_secs_f64(jittered).unwrap_or(self.max)
    }
}

/// The memory limits of a client.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// The maximum size of a message from a member, in bytes. Default: 1 GiB, the default of the
    /// members.
    pub message_bytes_max: usize,
    /// The maximum size of a sent key or value, in bytes. Default: 512 MiB, half of the default
    /// message limit of the members.
    pub value_bytes_max: usize,
    /// The maximum size of the requests that wait for the socket of one member, in bytes. Further
    /// calls wait before they are sent. Default: 64 MiB, more than a fast network transmits in a
    /// tenth of a second.
    pub outbox_bytes_max: usize,
    /// The maximum number of calls to one member that wait for responses. Further calls wait before
    /// they are sent. Default: 100,000, a thousand pipelines of depth 100.
    pub calls_in_flight_max: usize,
    /// The maximum number of events that a listener buffers. Further events are dropped and
    /// counted. Default: 16,384.
    pub events_waiting_max: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            message_bytes_max: 1 << 30,
            value_bytes_max: 512 << 20,
            outbox_bytes_max: 64 << 20,
            calls_in_flight_max: 100_000,
            events_waiting_max: 16_384,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_limit() {
        let backoff = Backoff { jitter: 0.0, ..Backoff::default() };
        let pauses: Vec<u128> = (0..8).map(|attempt| backoff.pause(attempt, 0).as_millis()).collect();
        assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!(backoff.pause(u32::MAX, 0), backoff.max);
    }

    #[test]
    fn jitter_moves_a_pause_both_ways_and_no_further_than_its_share() {
        let backoff = Backoff { initial: Duration::from_millis(100), jitter: 0.5, ..Backoff::default() };
        assert_eq!(backoff.pause(0, 0).as_millis(), 50);
        assert_eq!(backoff.pause(0, u64::MAX).as_millis(), 150);
    }

    #[test]
    fn secrets_stay_out_of_logs() {
        let config = ClientConfig {
            credentials: Credentials::Password { user: "ann".into(), password: "hunter2".into() },
            ..ClientConfig::default()
        };
        let shown = format!("{config:?}");
        assert!(shown.contains("ann") && !shown.contains("hunter2"), "{shown}");
    }
}

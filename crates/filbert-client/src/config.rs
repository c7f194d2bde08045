//! What a client can be told: whom to connect to, as whom, and with which limits and patience.

use std::time::Duration;

/// Where and how a client connects. Every setting has a default; `ClientConfig::default()` connects to a member on
/// this machine.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Members to ask first, as `host` or `host:port`; the others are learned from them. Default: `127.0.0.1:5701`.
    pub addresses: Vec<String>,
    /// The cluster's name, which the members check. Default: `dev`, as the members'.
    pub cluster_name: String,
    /// Who the client says it is. Default: nobody.
    pub credentials: Credentials,
    /// The client's name in the members' logs. Default: made from the client's UUID.
    pub name: Option<String>,
    /// Labels that the members show beside the name. Default: none.
    pub labels: Vec<String>,
    /// Which members the client connects to. Default: all.
    pub routing: Routing,
    /// How long one attempt to connect to a member may take, authentication included. Default: 5 s, above any round
    /// trip and below a person's patience.
    pub connect_timeout: Duration,
    /// How long [`Client::connect`](crate::Client::connect) goes on trying the addresses. Default: 30 s, time for a
    /// member that is being started beside the client.
    pub cluster_connect_timeout: Duration,
    /// How long a call is tried again after failures that may pass. Calls that wait for an answer are not cut off:
    /// a lock may be waited for as long as its owner likes. Default: 120 s, as the stock clients'.
    pub invocation_timeout: Duration,
    /// Pauses between attempts to reach a member.
    pub reconnect: Backoff,
    /// Pauses before a failed call is sent again.
    pub retry: Backoff,
    /// Whether calls that change something are sent again when the connection was lost before the answer came, though
    /// they may then be applied twice. Default: false.
    pub redo_operation: bool,
    /// How often a connection without requests is pinged, so that the member sees that the client lives. Default: 5 s.
    pub heartbeat_interval: Duration,
    /// After how long without a byte from a member its connection is given up. Default: 60 s.
    pub heartbeat_timeout: Duration,
    /// How long [`Client::shutdown`](crate::Client::shutdown) waits for calls in flight. Default: 2 s.
    pub shutdown_timeout: Duration,
    /// What the client may hold in memory.
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

/// Who a client says it is.
#[derive(Clone, Default)]
pub enum Credentials {
    /// Nobody; enough for a cluster without security.
    #[default]
    None,
    /// A user's name and password.
    Password {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// A token that the members check.
    Token(Vec<u8>),
}

/// Leaves the secret out.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Credentials::None => f.write_str("None"),
            Credentials::Password { user, .. } => write!(f, "Password {{ user: {user:?}, .. }}"),
            Credentials::Token(_) => f.write_str("Token(..)"),
        }
    }
}

/// Which members a client connects to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// All of them; a call goes straight to the member that owns its key.
    #[default]
    AllMembers,
    /// One of the addresses, which passes calls on. For clusters of which only one address is reachable.
    SingleMember,
}

/// Growing pauses between attempts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The first pause. Default: 20 ms.
    pub initial: Duration,
    /// No pause is longer. Default: 1 s, so that a client is back soon after its member is.
    pub max: Duration,
    /// Each pause is this many times the one before. Default: 2.
    pub multiplier: f64,
    /// The share by which a pause is made shorter or longer at random, so that many clients do not come back in step:
    /// 0 to 1. Default: 0.2.
    pub jitter: f64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { initial: Duration::from_millis(20), max: Duration::from_secs(1), multiplier: 2.0, jitter: 0.2 }
    }
}

impl Backoff {
    /// The pause before attempt `attempt` (the first retry is 0). `random` decides where within the jitter it lies.
    pub fn pause(&self, attempt: u32, random: u64) -> Duration {
        let exponent = i32::try_from(attempt).unwrap_or(i32::MAX);
        let grown = self.initial.as_secs_f64() * self.multiplier.max(1.0).powi(exponent);
        let capped = grown.min(self.max.as_secs_f64());
        // The upper 32 bits as a number from -1 to 1.
        let place = (random >> 32) as f64 / f64::from(u32::MAX) * 2.0 - 1.0;
        let jittered = capped * (1.0 + self.jitter.clamp(0.0, 1.0) * place);
        Duration::try_from_secs_f64(jittered).unwrap_or(self.max)
    }
}

/// What a client may hold in memory.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// Bytes of one message from a member. Default: 1 GiB, as the members'.
    pub message_bytes_max: usize,
    /// Bytes of one key or value that is sent. Default: 512 MiB; a member would refuse far less.
    pub value_bytes_max: usize,
    /// Bytes of requests that may wait for one member's socket. Above it a call waits before it is sent. Default:
    /// 64 MiB, more than a fast network takes in a tenth of a second.
    pub outbox_bytes_max: usize,
    /// Calls to one member that may wait for their answers; above it a call waits before it is sent. Default:
    /// 100,000, a thousand pipelines of depth 100.
    pub calls_in_flight_max: usize,
    /// Events that a listener's receiver may hold before the oldest are waited for no longer: further ones are counted
    /// and dropped. Default: 16,384.
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

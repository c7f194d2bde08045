//! Helpers of the tests of members: members in one process that listen and join over real links,
//! and waits with a time limit.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests, and each uses a part of it"
)]

pub(crate) mod data;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use filbert_grid::{Environment, GridConfig, SystemClock};
use filbert_member::{Member, MemberError, MemberSettings, Starting};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use uuid::Uuid;

/// The time limit of each wait, far longer than needed on a busy machine. A hanging test fails, and
/// names the condition that it waited for.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// An environment with its own clock and its own random seed.
fn environment() -> Environment {
    Environment { clock: Arc::new(SystemClock::new()), random_seed: Uuid::new_v4().as_u64_pair().0 }
}

/// Enables logs of members if `FILBERT_LOG` is set, for debugging a single test.
fn log() {
    if std::env::var_os("FILBERT_LOG").is_some() {
        let log = tracing_subscriber::fmt().with_max_level(tracing::Level::INFO).with_test_writer();
        let _first = log.try_init();
    }
}

/// Starts a member that listens for other members, and is in no cluster yet.
pub(crate) async fn listen(settings: MemberSettings, grid: GridConfig) -> Result<Starting, MemberError> {
    listen_in(environment(), settings, grid).await
}

/// Like [`listen`], with a given clock and random seed.
pub(crate) async fn listen_in(
    environment: Environment,
    settings: MemberSettings,
    grid: GridConfig,
) -> Result<Starting, MemberError> {
    log();
    Starting::listen(settings, grid, environment, Uuid::new_v4()).await
}

/// Starts `members` members that listen. Returns the members and their addresses.
pub(crate) async fn listen_all(
    members: usize,
    settings: &MemberSettings,
    grid: &GridConfig,
) -> (Vec<Starting>, Vec<String>) {
    let mut starting = Vec::new();
    for _ in 0..members {
        starting.push(listen(settings.clone(), grid.clone()).await.unwrap());
    }
    let addresses = starting.iter().map(|member| member.address().to_owned()).collect();
    (starting, addresses)
}

/// Has a listening member join or found a cluster.
pub(crate) async fn join(mut starting: Starting, addresses: &[String]) -> Member {
    starting.set_addresses(addresses.to_vec());
    within("a member joins", starting.join()).await.unwrap()
}

/// Has listening members join or found a cluster, all at the same time.
pub(crate) async fn join_all(mut starting: Vec<Starting>, addresses: &[String]) -> Vec<Member> {
    starting.iter_mut().for_each(|member| member.set_addresses(addresses.to_vec()));
    let joining: Vec<_> = starting.into_iter().map(|member| tokio::spawn(member.join())).collect();
    let mut joined = Vec::new();
    for member in joining {
        joined.push(within("all members join", member).await.unwrap().unwrap());
    }
    joined
}

/// Stops a member at once, even if it leads groups.
pub(crate) async fn stop(member: Member) {
    within("a member ends", member.stop()).await;
}

/// Stops members, one after the other.
pub(crate) async fn stop_all(members: Vec<Member>) {
    for member in members {
        stop(member).await;
    }
}

/// Waits until a condition is true.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(begin.elapsed() < LIMIT, "waited in vain: {what}");
    }
}

/// Waits for a future.
pub(crate) async fn within<T>(what: &str, comes: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, comes).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

/// A proxy that forwards connections to a member, until they are cut.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    is_cut: Arc<watch::Sender<bool>>,
}

impl Proxy {
    /// Starts a proxy. Its target address is sent later.
    pub(crate) async fn start() -> (Proxy, watch::Sender<Option<SocketAddr>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (to, whereto) = watch::channel(None);
        let is_cut = Arc::new(watch::Sender::new(false));
        let cutting = is_cut.clone();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (whereto, mut cut): (Option<SocketAddr>, _) = (*whereto.borrow(), cutting.subscribe());
                let Some(whereto) = whereto.filter(|_| !*cut.borrow()) else { continue };
                tokio::spawn(async move {
                    let Ok(mut member) = TcpStream::connect(whereto).await else { return };
                    tokio::select! {
                        _ended = tokio::io::copy_bidirectional(&mut stream, &mut member) => {}
                        _cut = cut.wait_for(|cut| *cut) => {}
                    }
                });
            }
        });
        (Proxy { address, is_cut }, to)
    }

    /// Cuts all existing and new connections, or lets new connections through again.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.is_cut.send_replace(is_cut);
    }
}

/// Starts `members` members that are reachable only through proxies. Returns the members, the
/// proxies and their addresses.
pub(crate) async fn listen_behind_proxies(
    members: usize,
    settings: &MemberSettings,
    grid: &GridConfig,
) -> (Vec<Starting>, Vec<Proxy>, Vec<String>) {
    let (mut starting, mut proxies) = (Vec::new(), Vec::new());
    for _ in 0..members {
        let (proxy, to) = Proxy::start().await;
        let public_address = Some(proxy.address.to_string());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = listener.local_addr().unwrap();
        drop(listener);
        let settings = MemberSettings { listen, public_address, ..settings.clone() };
        starting.push(crate::common::listen(settings, grid.clone()).await.unwrap());
        to.send_replace(Some(listen));
        // The sender lives until the end of the test.
        std::mem::forget(to);
        proxies.push(proxy);
    }
    let addresses = proxies.iter().map(|proxy| proxy.address.to_string()).collect();
    (starting, proxies, addresses)
}

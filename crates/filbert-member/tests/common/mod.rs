//! What the tests of members share: members in one process that listen and join over real links, and waits that have a limit.

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

/// A test waits so long for anything, far longer than it takes on a busy machine: what hangs fails, and says what was awaited.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// A clock of its own, and randomness that no other member has.
fn environment() -> Environment {
    Environment { clock: Arc::new(SystemClock::new()), random_seed: Uuid::new_v4().as_u64_pair().0 }
}

/// Has members log, for whoever runs one test with `FILBERT_LOG` set.
fn log() {
    if std::env::var_os("FILBERT_LOG").is_some() {
        let log = tracing_subscriber::fmt().with_max_level(tracing::Level::INFO).with_test_writer();
        let _first = log.try_init();
    }
}

/// A member that others reach, and that is in no cluster yet.
pub(crate) async fn listen(settings: MemberSettings, grid: GridConfig) -> Result<Starting, MemberError> {
    listen_in(environment(), settings, grid).await
}

/// As [`listen`], with a clock of the test's.
pub(crate) async fn listen_in(
    environment: Environment,
    settings: MemberSettings,
    grid: GridConfig,
) -> Result<Starting, MemberError> {
    log();
    Starting::listen(settings, grid, environment, Uuid::new_v4()).await
}

/// So many members that others reach, and their addresses.
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

/// Has a member that listens come into a cluster.
pub(crate) async fn join(mut starting: Starting, addresses: &[String]) -> Member {
    starting.set_addresses(addresses.to_vec());
    within("a member joins", starting.join()).await.unwrap()
}

/// Has members that listen come into a cluster, all at once.
pub(crate) async fn join_all(mut starting: Vec<Starting>, addresses: &[String]) -> Vec<Member> {
    starting.iter_mut().for_each(|member| member.set_addresses(addresses.to_vec()));
    let joining: Vec<_> = starting.into_iter().map(|member| tokio::spawn(member.join())).collect();
    let mut joined = Vec::new();
    for member in joining {
        joined.push(within("all members join", member).await.unwrap().unwrap());
    }
    joined
}

/// Ends a member at once, whatever it leads.
pub(crate) async fn stop(member: Member) {
    within("a member ends", member.stop()).await;
}

/// Ends members, one after the other.
pub(crate) async fn stop_all(members: Vec<Member>) {
    for member in members {
        stop(member).await;
    }
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert!(begin.elapsed() < LIMIT, "waited in vain: {what}");
    }
}

/// Waits for what comes by itself.
pub(crate) async fn within<T>(what: &str, comes: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, comes).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

/// Gives connections on to a member, until they are cut off.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    is_cut: Arc<watch::Sender<bool>>,
}

impl Proxy {
    /// Where others reach whoever listens at an address that is said later.
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

    /// Cuts all connections, and those that come; or lets them through again.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.is_cut.send_replace(is_cut);
    }
}

/// So many members that others reach by proxies alone, and the addresses of these.
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
        // It ends with the test.
        std::mem::forget(to);
        proxies.push(proxy);
    }
    let addresses = proxies.iter().map(|proxy| proxy.address.to_string()).collect();
    (starting, proxies, addresses)
}

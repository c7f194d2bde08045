//! What the tests of members share: members in one process that listen and join over real links, and waits that have a limit.

#![allow(dead_code, clippy::unwrap_used, clippy::panic, reason = "tests, and each uses a part of it")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use filbert_grid::{Environment, GridConfig, SystemClock};
use filbert_member::{Member, MemberError, MemberSettings, Starting};
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
    log();
    Starting::listen(settings, grid, environment(), Uuid::new_v4()).await
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

//! Members that start in any order, and with any member missing, found one cluster and not two.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::common::{LIMIT, join_all, stop, stop_all, until, within};
use filbert_grid::GridConfig;
use filbert_member::{Member, MemberError, MemberSettings, Starting};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use uuid::Uuid;

async fn listen_at(listen: SocketAddr) -> Result<Starting, MemberError> {
    crate::common::listen(MemberSettings { listen, ..MemberSettings::default() }, GridConfig::default()).await
}

async fn listen_all(members: usize) -> (Vec<Starting>, Vec<String>) {
    crate::common::listen_all(members, &MemberSettings::default(), &GridConfig::default()).await
}

async fn are_one(members: Vec<Member>) {
    let clusters: BTreeSet<Uuid> = members.iter().map(|member| member.grid().cluster_id()).collect();
    let ids: BTreeSet<_> = members.iter().map(Member::id).collect();
    assert_eq!((clusters.len(), ids.len()), (1, members.len()), "one cluster, and an id for each member");
    stop_all(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn members_that_start_at_once_found_one_cluster_each_time() {
    for _ in 0..3 {
        let (starting, addresses) = listen_all(5).await;
        are_one(join_all(starting, &addresses).await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn most_of_them_are_enough_whichever_is_missing() {
    for missing in 0..3 {
        let (mut starting, addresses) = listen_all(3).await;
        // No member listens at this address any more.
        drop(starting.remove(missing));
        are_one(join_all(starting, &addresses).await).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hosts_that_are_not_known_are_members_that_are_not_there() {
    let (starting, mut addresses) = listen_all(2).await;
    addresses.insert(0, "no-such-host.invalid:5801".to_owned());
    are_one(join_all(starting, &addresses).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_member_that_is_named_twice_is_one() {
    let (starting, mut addresses) = listen_all(1).await;
    let port = addresses[0].rsplit_once(':').unwrap().1.to_owned();
    addresses.extend([addresses[0].clone(), format!("localhost:{port}")]);
    are_one(join_all(starting, &addresses).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn members_that_know_of_different_ones_say_so() {
    let (mut starting, addresses) = listen_all(2).await;
    let mut other = starting.remove(1);
    other.set_addresses(vec![addresses[1].clone(), addresses[0].clone(), "127.0.0.1:1".to_owned()]);
    let mut first = starting.remove(0);
    first.set_addresses(addresses.clone());
    // The first member that sees the difference reports it. The other one may find no member any
    // more.
    let (first, other) = (first.join(), other.join());
    let refused = within("one of them is refused", async {
        tokio::select! {
            refused = first => refused.err().unwrap(),
            refused = other => refused.err().unwrap(),
        }
    })
    .await;
    assert!(
        matches!(&refused, MemberError::Settings(text) if text.contains("is configured with the members")),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_address_is_no_cluster() {
    let (mut starting, _) = listen_all(1).await;
    let refused = within("it is refused", starting.remove(0).join()).await.err().unwrap();
    assert!(refused.to_string().contains("no address of a member is given"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_member_that_is_not_among_those_that_found_joins_them() {
    let (mut starting, addresses) = listen_all(4).await;
    let mut fourth = starting.remove(3);
    let three = addresses[..3].to_vec();
    fourth.set_addresses(three.clone());
    let joins = tokio::spawn(fourth.join());
    let mut members = join_all(starting, &three).await;
    members.push(within("the fourth one joins", joins).await.unwrap().unwrap());
    are_one(members).await;
}

/// A member that can be killed: all its tasks run in a runtime of its own.
struct Process {
    address: String,
    joined: JoinHandle<Result<Member, MemberError>>,
    runtime: Runtime,
}

impl Process {
    /// Starts a member. Restarts it if its cluster has failed.
    fn start(address: &str, addresses: &[String]) -> Process {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (listen, addresses) = (address.parse().unwrap(), addresses.to_vec());
        let joined = runtime.spawn(async move {
            let begin = Instant::now();
            loop {
                let mut starting = match listen_at(listen).await {
                    Ok(starting) => starting,
                    // The previous member may not have closed its port yet.
                    Err(error) => {
                        assert!(begin.elapsed() < LIMIT, "waited in vain: its port is free, {error}");
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        continue;
                    }
                };
                starting.set_addresses(addresses.clone());
                match starting.join().await {
                    Err(MemberError::FoundingFailed) => {}
                    joined => return joined,
                }
            }
        });
        Process { address: address.to_owned(), joined, runtime }
    }

    fn kill(self) -> String {
        self.runtime.shutdown_background();
        self.address
    }

    fn joined(self) -> (Runtime, Member) {
        let member = self.runtime.block_on(within("it is in a cluster", self.joined)).unwrap().unwrap();
        (self.runtime, member)
    }
}

/// Addresses at which no member listens.
fn free(members: usize) -> Vec<String> {
    let listeners: Vec<_> = (0..members).map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect()
}

fn are_one_cluster(processes: Vec<Process>) {
    let joined: Vec<_> = processes.into_iter().map(Process::joined).collect();
    let clusters: BTreeSet<Uuid> = joined.iter().map(|(_, member)| member.grid().cluster_id()).collect();
    assert_eq!(clusters.len(), 1);
    for (runtime, member) in joined {
        runtime.block_on(stop(member));
        runtime.shutdown_background();
    }
}

#[test]
fn members_that_start_one_after_the_other_found_one_cluster() {
    let addresses = free(5);
    let mut processes = Vec::new();
    for address in &addresses {
        let process = Process::start(address, &addresses);
        process.runtime.block_on(until("it listens", || TcpStream::connect(address).is_ok()));
        processes.push(process);
        // The third member completes the majority. Later members find a cluster.
        if processes.len() > addresses.len() / 2 {
            let have_joined = || processes.iter().all(|process| process.joined.is_finished());
            processes[0].runtime.block_on(until("all that have started have joined", have_joined));
        }
    }
    are_one_cluster(processes);
}

#[test]
fn whoever_dies_while_it_is_founded_is_one_of_the_cluster_when_it_is_back() {
    for round in 0..6 {
        let addresses = free(5);
        let mut processes: Vec<Process> = addresses.iter().map(|address| Process::start(address, &addresses)).collect();
        // The sleep is intended: the progress of the founding is not visible from outside, and a
        // member dies at another stage of it in each round.
        std::thread::sleep(Duration::from_millis(round as u64 * 30));
        let killed = processes.remove(round % 5).kill();
        processes.push(Process::start(&killed, &addresses));
        are_one_cluster(processes);
    }
}

#[test]
fn members_that_all_die_and_restart_found_one_cluster() {
    let addresses = free(3);
    let mut processes: Vec<Process> = Vec::new();
    for round in 0..4 {
        processes.drain(..).for_each(|process| drop(process.kill()));
        processes.extend(addresses.iter().map(|address| Process::start(address, &addresses)));
        // The sleep is intended, as above: all members die at another stage in each round.
        std::thread::sleep(Duration::from_millis(round * 60));
    }
    are_one_cluster(processes);
}

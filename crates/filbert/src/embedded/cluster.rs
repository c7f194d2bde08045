//! A member of a cluster below the embedded API: its groups on a runtime of their own, which nothing of a client's may hold up.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use filbert_grid::{Environment, Grid, GridConfig, threads};
use filbert_hazelcast::DoorConfig;
use filbert_links::{LinkSettings, Secret, TlsSettings};
use filbert_listen::Listener;
use filbert_member::{ClusterSettings, Ending, Member, MemberError, MemberSettings, Starting};
use tokio::runtime::Runtime;
use uuid::Uuid;

use super::{Error, shared_port};
use crate::ClusterConfig;

/// How long leaving in order may take: what one member holds of all groups goes over a network in that time, or its voters know that it goes.
const LEAVE_MAX: Duration = Duration::from_secs(30);
/// How long being taken out may take after that: one command of the registry.
const GO_MAX: Duration = Duration::from_secs(6);

/// Processors for each thread of the groups' runtime, and at most this many threads. What an entry costs is mostly tasks that wake each
/// other: on one thread that is no system call, and what several groups send to a member goes in one write. A second thread pays only
/// where the first one is busy and there are processors for both ([why](../../../../docs/decisions/0026-groups-share-a-thread.md)).
const PROCESSORS_PER_THREAD: usize = 8;
const THREADS_MAX: usize = 8;

fn group_threads() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (processors / PROCESSORS_PER_THREAD).clamp(1, THREADS_MAX)
}

/// The address at which a member is reached that listens on this one: where that is every address of the machine, the one from which other
/// members are reached.
fn reachable(listen: IpAddr, members: &[String]) -> Result<IpAddr, MemberError> {
    if !listen.is_unspecified() {
        return Ok(listen);
    }
    let towards = |member: SocketAddr| {
        let socket = UdpSocket::bind(SocketAddr::new(listen, 0)).ok()?;
        // Nothing is sent: the system chooses the way.
        socket.connect(member).ok()?;
        socket.local_addr().ok().map(|address| address.ip()).filter(|address| !address.is_unspecified())
    };
    let known: Vec<SocketAddr> = members.iter().flat_map(|it| it.to_socket_addrs().into_iter().flatten()).collect();
    // A machine may know its own name as a loopback address, by which no other one reaches it.
    let (near, far): (Vec<SocketAddr>, Vec<SocketAddr>) = known.into_iter().partition(|it| it.ip().is_loopback());
    far.into_iter().chain(near).find_map(towards).ok_or_else(|| {
        let text = "this member listens on every address, and none of the members' can be reached to tell which is its own: name it with \
                    --member-address, and the one for clients with network.public-address";
        MemberError::Settings(text.to_owned())
    })
}

/// Waits for a future on a thread of its own: whoever starts or ends a member may be within another runtime, where none may be waited in.
fn wait<T: Send>(runtime: &Runtime, future: impl Future<Output = T> + Send) -> T {
    let waited = std::thread::scope(|scope| scope.spawn(|| runtime.block_on(future)).join());
    waited.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Ends a runtime, and waits until its tasks have closed their ports; as [`wait`] does.
fn end(runtime: Runtime) {
    std::thread::scope(|scope| _ = scope.spawn(move || drop(runtime)));
}

/// A member of a cluster. Dropping it ends it at once; see [`ClusterMember::hand_over`].
pub(super) struct ClusterMember {
    // Taken when it is dropped.
    member: Option<Member>,
    runtime: Option<Runtime>,
    /// Where clients come from, if members share their port; taken by the door.
    clients: Option<Listener>,
}

impl ClusterMember {
    /// Joins a cluster or founds it; returns when this member holds what it is to hold.
    pub(super) fn join(
        cluster: ClusterConfig,
        grid: GridConfig,
        door: &DoorConfig,
        environment: Environment,
    ) -> Result<ClusterMember, Error> {
        loop {
            match ClusterMember::join_once(cluster.clone(), grid.clone(), door, environment.clone()) {
                Err(Error::Cluster(MemberError::InVain)) => {
                    tracing::warn!("the member that was founding the cluster has ended: this one starts again");
                }
                joined => return joined,
            }
        }
    }

    fn join_once(
        cluster: ClusterConfig,
        grid: GridConfig,
        door: &DoorConfig,
        environment: Environment,
    ) -> Result<ClusterMember, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(group_threads())
            .thread_name("filbert-groups")
            .on_thread_start(threads::answer_clients)
            .enable_all()
            .build()?;
        let shared = match cluster.listen {
            Some(_) => None,
            None => {
                let _inside = runtime.enter();
                Some(Listener::bind(door.listen, 1, "Hazelcast's clients and other members")?)
            }
        };
        let client_listen = shared.as_ref().map_or(door.listen, Listener::address);
        let (client_host, client_port) = match &door.public_address {
            Some(public) => (public.host.clone(), public.port),
            None => (reachable(client_listen.ip(), &cluster.members)?.to_string(), client_listen.port()),
        };
        let listen = cluster.listen.unwrap_or(client_listen);
        let public_address = match cluster.public_address {
            // Where clients are told to go, members go as well.
            None if shared.is_some() && door.public_address.is_some() => Some(format!("{client_host}:{client_port}")),
            None if listen.ip().is_unspecified() => {
                let address = reachable(listen.ip(), &cluster.members)?;
                Some(SocketAddr::new(address, listen.port()).to_string())
            }
            public_address => public_address,
        };
        let tls = match &cluster.tls {
            Some(files) => Some(TlsSettings::read(files).map_err(|error| MemberError::Settings(error.to_string()))?),
            None => None,
        };
        let settings = MemberSettings {
            listen,
            public_address,
            addresses: cluster.members,
            required: cluster.required,
            client_host,
            client_port,
            is_lite: cluster.is_lite,
            cluster: ClusterSettings {
                partitions: grid.partition_count,
                replicas: cluster.replicas,
                ..ClusterSettings::default()
            },
            dead_after: cluster.heartbeat,
            pair_continues: cluster.pair_continues,
            links: LinkSettings { secret: cluster.secret.map(Secret::new), tls, ..LinkSettings::default() },
            serves_later: true,
            ..MemberSettings::default()
        };
        let joined = wait(&runtime, async {
            let uuid = Uuid::new_v4();
            let (starting, clients) = match shared {
                None => (Starting::listen(settings, grid, environment, uuid).await?, None),
                Some(listener) => {
                    let starting = Starting::behind(settings, listen, grid, environment, uuid)?;
                    let (handing, clients) = Listener::handed(listen, shared_port::WAITING_MAX);
                    tokio::spawn(shared_port::run(listener, starting.links().clone(), handing));
                    (starting, Some(clients))
                }
            };
            Ok::<_, MemberError>((starting.join().await?, clients))
        });
        match joined {
            Ok((member, clients)) => Ok(ClusterMember { member: Some(member), runtime: Some(runtime), clients }),
            Err(error) => {
                end(runtime);
                Err(error.into())
            }
        }
    }

    pub(super) fn grid(&self) -> io::Result<Arc<Grid>> {
        let member = self.member.as_ref();
        member.map(|member| member.grid().clone()).ok_or_else(|| io::Error::other("the member has left its cluster"))
    }
}

impl ClusterMember {
    /// Where Hazelcast's clients come from, if this member shares their port.
    pub(super) fn clients(&mut self) -> Option<Listener> {
        self.clients.take()
    }

    /// Clients are let in.
    pub(super) fn serve(&self) {
        if let Some(member) = &self.member {
            member.serve();
        }
    }

    /// Waits until there is a reason to end; for ever if there is none.
    pub(super) async fn ending(&self) -> Ending {
        let Some(mut ending) = self.member.as_ref().map(Member::ending) else { return std::future::pending().await };
        match ending.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(why)) => *why,
            _ => std::future::pending().await,
        }
    }

    /// What the member holds.
    pub(super) fn holdings(&self) -> String {
        self.member.as_ref().map(Member::holdings).unwrap_or_default()
    }

    /// Hands over to others what the member has: returns when they have taken over, or that takes too long.
    pub(super) fn hand_over(&self) {
        if let Some(member) = &self.member {
            self.in_order(LEAVE_MAX, member.hand_over());
        }
    }

    /// Is taken out of the cluster, once it has handed over.
    pub(super) fn go(&self) {
        if let Some(member) = &self.member {
            self.in_order(GO_MAX, member.go());
        }
    }

    fn in_order(&self, limit: Duration, step: impl Future<Output = Result<(), MemberError>> + Send) {
        let Some(runtime) = &self.runtime else { return };
        match wait(runtime, async { tokio::time::timeout(limit, step).await }) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("the member does not leave its cluster in order: {error}"),
            Err(_) => tracing::warn!("the member does not leave its cluster in order: it took {limit:?}"),
        }
    }
}

impl Drop for ClusterMember {
    fn drop(&mut self) {
        let (Some(runtime), Some(member)) = (self.runtime.take(), self.member.take()) else { return };
        wait(&runtime, member.stop());
        runtime.shutdown_background();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_member_on_every_address_is_told_by_one_that_others_reach() {
        let everywhere = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
        let members = ["no such host:5801".to_owned(), "127.0.0.1:5801".to_owned()];
        assert_eq!(reachable(everywhere, &members).unwrap(), loopback);
        assert_eq!(reachable(loopback, &[]).unwrap(), loopback);
        assert!(reachable(everywhere, &members[..1]).unwrap_err().to_string().contains("--member-address"));
    }
}

//! A cluster member below the embedded API. Its groups have a separate runtime, so that clients
//! cannot delay them.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use filbert_grid::{Environment, Grid, GridConfig};
use filbert_hazelcast::DoorConfig;
use filbert_links::{LinkSettings, Secret, TlsSettings};
use filbert_listen::Listener;
use filbert_member::{ClusterSettings, Ending, Member, MemberError, MemberSettings, Starting};
use tokio::runtime::Runtime;
use uuid::Uuid;

use super::{Error, answering, shared_port};
use crate::ClusterConfig;

/// The maximum time of an orderly leave. Within this time a member can transfer its data of all
/// groups over a network, or at least inform the voters that it leaves.
const LEAVE_MAX: Duration = Duration::from_secs(30);

/// The number of processors for each thread of the groups' runtime, and the maximum number of
/// threads. Most of the work for an entry is tasks that wake each other. On one thread a wakeup
/// needs no system call, and messages of several groups to the same member are sent in one write. A
/// second thread helps only if the first thread is busy and there are processors for both
/// ([why](../../../../docs/decisions/0026-groups-share-a-thread.md)).
const PROCESSORS_PER_THREAD: usize = 8;
const THREADS_MAX: usize = 8;

fn group_threads() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (processors / PROCESSORS_PER_THREAD).clamp(1, THREADS_MAX)
}

/// The address under which a member with this listen address is reachable. If the member listens on
/// every address of the machine, it is the source address of connections to other members.
fn reachable(listen: IpAddr, members: &[String]) -> Result<IpAddr, MemberError> {
    if !listen.is_unspecified() {
        return Ok(listen);
    }
    let towards = |member: SocketAddr| {
        let socket = UdpSocket::bind(SocketAddr::new(listen, 0)).ok()?;
        // Nothing is sent: the operating system only selects the route.
        socket.connect(member).ok()?;
        socket.local_addr().ok().map(|address| address.ip()).filter(|address| !address.is_unspecified())
    };
    let known: Vec<SocketAddr> = members.iter().flat_map(|it| it.to_socket_addrs().into_iter().flatten()).collect();
    // The machine's own name may resolve to a loopback address, which other machines cannot reach.
    let (near, far): (Vec<SocketAddr>, Vec<SocketAddr>) = known.into_iter().partition(|it| it.ip().is_loopback());
    far.into_iter().chain(near).find_map(towards).ok_or_else(|| {
        let text = "this member listens on every address, and none of the members' can be reached to tell which is its own: name it with \
                    --member-address, and the one for clients with network.public-address";
        MemberError::Settings(text.to_owned())
    })
}

/// Waits for a future on a separate thread. The caller may be inside another runtime, where
/// blocking is not permitted.
fn wait<T: Send>(runtime: &Runtime, future: impl Future<Output = T> + Send) -> T {
    let waited = std::thread::scope(|scope| scope.spawn(|| runtime.block_on(future)).join());
    waited.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Drops a runtime and waits until its tasks have closed their ports. Uses a separate thread, as
/// [`wait`] does.
fn end(runtime: Runtime) {
    std::thread::scope(|scope| _ = scope.spawn(move || drop(runtime)));
}

/// A cluster member. Dropping it stops it immediately; for an orderly leave see
/// [`ClusterMember::leave`].
pub(super) struct ClusterMember {
    // Taken on drop.
    member: Option<Member>,
    runtime: Option<Runtime>,
    /// The source of client connections, if members share their port. Taken by the front door.
    clients: Option<Listener>,
}

impl ClusterMember {
    /// Joins or founds a cluster. Returns when this member holds its share of the data.
    pub(super) fn join(
        cluster: ClusterConfig,
        grid: GridConfig,
        door: &DoorConfig,
        environment: Environment,
    ) -> Result<ClusterMember, Error> {
        loop {
            match ClusterMember::join_once(cluster.clone(), grid.clone(), door, environment.clone()) {
                Err(Error::Cluster(MemberError::FoundingFailed)) => {
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
        let runtime = answering::runtime("filbert-groups", Some(group_threads()))?;
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
            // Without a separate port, members use the public address of clients.
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
    /// Returns the source of client connections, if this member shares the port of Hazelcast's
    /// clients.
    pub(super) fn clients(&mut self) -> Option<Listener> {
        self.clients.take()
    }

    /// Admits clients.
    pub(super) fn serve(&self) {
        if let Some(member) = &self.member {
            member.serve();
        }
    }

    /// Waits until the member should end. Never returns if there is no reason.
    pub(super) async fn ending(&self) -> Ending {
        let Some(mut ending) = self.member.as_ref().map(Member::ending) else { return std::future::pending().await };
        match ending.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(why)) => *why,
            _ => std::future::pending().await,
        }
    }

    /// A description of the data that the member holds.
    pub(super) fn holdings(&self) -> String {
        self.member.as_ref().map(Member::holdings).unwrap_or_default()
    }

    /// Leaves the cluster in order. Returns when other members have taken over, or after a timeout.
    pub(super) fn leave(&self) {
        let (Some(runtime), Some(member)) = (&self.runtime, &self.member) else { return };
        match wait(runtime, async { tokio::time::timeout(LEAVE_MAX, member.leave()).await }) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("the member does not leave its cluster in order: {error}"),
            Err(_) => tracing::warn!("the member does not leave its cluster in order: it took {LEAVE_MAX:?}"),
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

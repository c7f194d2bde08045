//! Several members in one process. Each leads some groups of partitions with a log of its own, and
//! all receive the same view. Logs are copied to other members if a test requires it
//! ([`Members::copying`]).

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use filbert_grid::{
    Cluster, ClusterView, Done, Environment, GridConfig, MemberView, ReadView, SystemClock, ViewCallback,
    replication::GroupId,
};
use filbert_hazelcast::DoorConfig;
use filbert_wire::Uuid;

use super::{
    Server,
    loopback::{Loopback, Whims},
};

pub const GROUPS: u32 = 24;
pub const PARTITIONS: u32 = 271;

/// The cluster, as defined by a test.
#[derive(Default)]
pub struct TestCluster {
    view: Mutex<Arc<ClusterView>>,
    callbacks: Mutex<Vec<ViewCallback>>,
    /// Whether the member holds only a part of the partitions.
    pub holds_a_part: AtomicBool,
}

impl TestCluster {
    pub fn set(&self, view: ClusterView) {
        *self.view.lock().unwrap() = Arc::new(view);
        for changed in self.callbacks.lock().unwrap().iter() {
            changed();
        }
    }

    pub fn now(&self) -> ClusterView {
        (**self.view.lock().unwrap()).clone()
    }
}

impl Cluster for TestCluster {
    fn view(&self) -> Arc<ClusterView> {
        self.view.lock().unwrap().clone()
    }

    fn on_change(&self, changed: ViewCallback) {
        self.callbacks.lock().unwrap().push(changed);
    }

    fn catch_up(&self, done: Done<ReadView>) {
        let holds_all = !self.holds_a_part.load(Ordering::SeqCst);
        done(Ok(ReadView::of_groups(&[holds_all; GROUPS as usize])));
    }
}

pub struct Member {
    pub server: Server,
    pub loopback: Arc<Loopback>,
    pub cluster: Arc<TestCluster>,
    /// The connection for other members, and for clients that use the reported address.
    pub wire: Wire,
}

impl Member {
    pub fn uuid(&self) -> Uuid {
        self.server.grid.member_uuid()
    }

    fn view(&self) -> MemberView {
        let address = self.wire.address;
        MemberView { uuid: self.uuid(), host: address.ip().to_string(), port: address.port(), is_lite: false }
    }
}

/// Members that lead the groups in turn.
pub struct Members(pub Vec<Member>);

impl Members {
    pub fn start(count: usize) -> Self {
        Self::with(count, |_| {})
    }

    pub fn with(count: usize, change: impl Fn(&mut DoorConfig)) -> Self {
        let members = (0..count).map(|at| start(at, &change)).collect();
        let members = Members(members);
        for group in 0..GROUPS {
            members.lead(group, group as usize % count);
        }
        members.reset_views();
        members
    }

    /// Members that also hold copies of the groups of all others. The map is created.
    pub fn copying(count: usize, map: &str, change: impl Fn(&mut DoorConfig)) -> Self {
        let members = Self::with(count, change);
        for member in &members.0 {
            let others = members.0.iter().filter(|other| other.uuid() != member.uuid());
            others.for_each(|other| member.loopback.copy_to(&other.server.grid));
        }
        // The creation of the map is also in the logs.
        for member in &members.0 {
            member.server.grid.map(map).unwrap();
            member.loopback.settle();
        }
        members
    }

    /// Makes one member the only leader of a group.
    pub fn lead(&self, group: u32, leader: usize) {
        for (at, member) in self.0.iter().enumerate() {
            if at == leader {
                member.loopback.elect(&member.server.grid, GroupId(group));
            } else {
                member.loopback.depose(&member.server.grid, GroupId(group));
            }
        }
    }

    /// The view in which members lead the groups in turn.
    pub fn view(&self) -> ClusterView {
        let version = self.0[0].cluster.now().leaders_version + 1;
        let leader = |partition| Some(self.0[(partition % GROUPS) as usize % self.0.len()].uuid());
        ClusterView {
            members: self.0.iter().map(Member::view).collect(),
            members_version: version,
            leaders: (0..PARTITIONS).map(leader).collect(),
            leaders_version: version,
            losses: Vec::new(),
        }
    }

    /// Sets the view in which members lead the groups in turn, at all members.
    pub fn reset_views(&self) {
        self.change_views(|_| {});
    }

    pub fn change_views(&self, change: impl Fn(&mut ClusterView)) {
        let mut view = self.view();
        change(&mut view);
        for member in &self.0 {
            member.cluster.set(view.clone());
        }
    }

    /// Moves a group to another member, and sets the new view at all members.
    pub fn move_group(&self, group: u32, leader: usize) {
        self.lead(group, leader);
        let uuid = self.0[leader].uuid();
        let mut view = self.0[0].cluster.now();
        for partition in (group..PARTITIONS).step_by(GROUPS as usize) {
            view.leaders[partition as usize] = Some(uuid);
        }
        view.leaders_version += 1;
        for member in &self.0 {
            member.cluster.set(view.clone());
        }
    }
}

fn start(at: usize, change: &impl Fn(&mut DoorConfig)) -> Member {
    let environment = Environment { clock: Arc::new(SystemClock::new()), random_seed: 42 + at as u64 };
    let config = GridConfig { cluster_uuid: Some(Uuid::from_u128(7)), ..GridConfig::default() };
    let (grid, loopback) = Loopback::start(config, environment, Whims { groups: GROUPS, ..Whims::default() });
    let cluster = Arc::new(TestCluster::default());
    assert!(grid.join_cluster(cluster.clone()));
    let mut door = DoorConfig::default();
    change(&mut door);
    let server = Server::of(door, grid);
    let wire = Wire::to(server.address);
    Member { server, loopback, cluster, wire }
}

/// A proxy for TCP connections, which a test can cut.
pub struct Wire {
    pub address: SocketAddr,
    open: Arc<Mutex<Vec<TcpStream>>>,
    ended: Arc<AtomicBool>,
    passed: Arc<AtomicUsize>,
    hangs: Arc<(Mutex<bool>, Condvar)>,
}

impl Wire {
    pub fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (open, ended) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let passed = Arc::new(AtomicUsize::new(0));
        let hangs: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        thread::spawn({
            let (open, ended, passed, hangs) = (open.clone(), ended.clone(), passed.clone(), hangs.clone());
            move || {
                for near in listener.incoming() {
                    if ended.load(Ordering::SeqCst) {
                        return;
                    }
                    let Ok(near) = near else { return };
                    let Ok(far) = TcpStream::connect(target) else { continue };
                    near.set_nodelay(true).unwrap();
                    far.set_nodelay(true).unwrap();
                    open.lock().unwrap().extend([near.try_clone().unwrap(), far.try_clone().unwrap()]);
                    let (near2, far2) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                    let (passed, hangs, hangs2) = (passed.clone(), hangs.clone(), hangs.clone());
                    thread::spawn(move || copy(near, far, &passed, &hangs));
                    thread::spawn(move || copy(far2, near2, &AtomicUsize::new(0), &hangs2));
                }
            }
        });
        Self { address, open, ended, passed, hangs }
    }

    /// The number of bytes sent to the member.
    pub fn passed(&self) -> usize {
        self.passed.load(Ordering::SeqCst)
    }

    /// Accepts bytes from now on and forwards none, like a stopped process.
    pub fn hang(&self) {
        *self.hangs.0.lock().unwrap() = true;
    }

    /// Cuts all current connections.
    pub fn cut(&self) {
        for stream in self.open.lock().unwrap().drain(..) {
            stream.shutdown(Shutdown::Both).ok();
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        *self.hangs.0.lock().unwrap() = false;
        self.hangs.1.notify_all();
        TcpStream::connect(self.address).ok();
        self.cut();
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, passed: &AtomicUsize, (hangs, resumed): &(Mutex<bool>, Condvar)) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(bytes) = from.read(&mut buffer) {
        passed.fetch_add(bytes, Ordering::SeqCst);
        drop(resumed.wait_while(hangs.lock().unwrap(), |hangs| *hangs).unwrap());
        if bytes == 0 || to.write_all(&buffer[..bytes]).is_err() {
            break;
        }
    }
    to.shutdown(Shutdown::Write).ok();
}

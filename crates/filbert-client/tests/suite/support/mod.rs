//! A fake member for tests. It speaks the protocol over a real socket, follows the script of the
//! test, and records the requests.

#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test fails by panicking; not every test uses all")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::BytesMut;
use filbert_client::{Backoff, ClientConfig};
use filbert_wire::{
    CorrelationId, Event, Limits, Message, MessageId, Response, Split, Splitter,
    error_message::{ErrorHolder, ErrorMessage},
    structure::{Address, MemberInfo, MemberVersion},
    table::{client, map},
};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::AbortHandle,
};
use uuid::Uuid;

pub(crate) const PARTITIONS: i32 = 7;

/// The reaction of the member to a request.
pub(crate) enum Act {
    /// Responds as a member with an empty map.
    Usual,
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Does not respond: the client waits.
    Wait,
    /// Closes the connection.
    Cut,
}

/// A received request.
#[derive(Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) id: MessageId,
    pub(crate) partition: i32,
    pub(crate) correlation: CorrelationId,
    pub(crate) bytes: Vec<u8>,
    /// The number of its connection, counted from 0.
    pub(crate) connection: usize,
}

type Script = Box<dyn FnMut(&ReceivedRequest) -> Act + Send>;

struct State {
    script: Script,
    received: Vec<ReceivedRequest>,
    outputs: Vec<mpsc::UnboundedSender<Vec<u8>>>,
    tasks: Vec<AbortHandle>,
    view: Vec<MemberInfo<'static>>,
    owners: Vec<(Uuid, Vec<i32>)>,
    views: Vec<(usize, CorrelationId)>,
    cluster: Uuid,
}

pub(crate) struct FakeMember {
    pub(crate) uuid: Uuid,
    pub(crate) port: u16,
    cluster: Uuid,
    state: Arc<Mutex<State>>,
    accepting: Arc<AtomicBool>,
    acceptor: AbortHandle,
}

impl Drop for FakeMember {
    fn drop(&mut self) {
        self.acceptor.abort();
        self.cut_all();
    }
}

impl FakeMember {
    pub(crate) async fn start(script: impl FnMut(&ReceivedRequest) -> Act + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (uuid, cluster) = (Uuid::new_v4(), Uuid::from_u128(1));
        let state = Arc::new(Mutex::new(State {
            script: Box::new(script),
            received: Vec::new(),
            outputs: Vec::new(),
            tasks: Vec::new(),
            view: vec![member_info(uuid, port)],
            owners: vec![(uuid, (0..PARTITIONS).collect())],
            views: Vec::new(),
            cluster,
        }));
        let accepting = Arc::new(AtomicBool::new(true));
        let (shared, may_accept) = (state.clone(), accepting.clone());
        let acceptor = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if !may_accept.load(Ordering::SeqCst) {
                    continue;
                }
                stream.set_nodelay(true).unwrap();
                let state = shared.clone();
                let (sender, receiver) = mpsc::unbounded_channel();
                let number = {
                    let mut state = shared.lock();
                    state.outputs.push(sender);
                    state.outputs.len() - 1
                };
                let task = tokio::spawn(serve(stream, state, receiver, number, uuid, port));
                shared.lock().tasks.push(task.abort_handle());
            }
        });
        FakeMember { uuid, port, cluster, state, accepting, acceptor: acceptor.abort_handle() }
    }

    /// Starts a member that responds to every request as a member with an empty map.
    pub(crate) async fn usual() -> Self {
        Self::start(|_| Act::Usual).await
    }

    /// The configuration of a client that connects to this member, with short pauses.
    pub(crate) fn config(&self) -> ClientConfig {
        let quick = Backoff { initial: Duration::from_millis(1), max: Duration::from_millis(5), ..Backoff::default() };
        ClientConfig {
            addresses: vec![format!("127.0.0.1:{}", self.port)],
            reconnect: quick,
            retry: quick,
            ..ClientConfig::default()
        }
    }

    /// Changes the member's view of the cluster. Sends it to registered clients, and to new clients
    /// when they connect.
    pub(crate) fn set_view(&self, members: &[&FakeMember], owners: Vec<(Uuid, Vec<i32>)>, version: i32) {
        self.set_view_with_lite(members, &[], owners, version);
    }

    /// As [`FakeMember::set_view`], with members that hold no data.
    pub(crate) fn set_view_with_lite(
        &self,
        members: &[&FakeMember],
        lite: &[&FakeMember],
        owners: Vec<(Uuid, Vec<i32>)>,
        version: i32,
    ) {
        let mut state = self.state.lock();
        let with_data = members.iter().map(|member| member_info(member.uuid, member.port));
        let without =
            lite.iter().map(|member| MemberInfo { lite_member: true, ..member_info(member.uuid, member.port) });
        state.view = with_data.chain(without).collect();
        state.owners = owners;
        for (connection, correlation) in state.views.clone() {
            let mut out = Vec::new();
            let member_infos = state.view.clone();
            client::add_cluster_view_listener::MembersViewEvent { version, member_infos }.encode(
                correlation,
                -1,
                &mut out,
            );
            client::add_cluster_view_listener::PartitionsViewEvent { version, partitions: state.owners.clone() }
                .encode(correlation, -1, &mut out);
            let _gone = state.outputs[connection].send(out);
        }
    }

    pub(crate) fn set_script(&self, script: impl FnMut(&ReceivedRequest) -> Act + Send + 'static) {
        self.state.lock().script = Box::new(script);
    }

    /// Changes the id of the cluster, as after a restart.
    pub(crate) fn set_cluster(&self, cluster: Uuid) {
        self.state.lock().cluster = cluster;
    }

    /// Sets whether new connections are served. Otherwise they are closed at once.
    pub(crate) fn accept(&self, accept: bool) {
        self.accepting.store(accept, Ordering::SeqCst);
    }

    /// Sends bytes on a connection, without a request.
    pub(crate) fn send(&self, connection: usize, bytes: Vec<u8>) {
        let _gone = self.state.lock().outputs[connection].send(bytes);
    }

    /// Closes all connections.
    pub(crate) fn cut_all(&self) {
        self.state.lock().tasks.drain(..).for_each(|task| task.abort());
    }

    /// The requests with this id received so far.
    pub(crate) fn received(&self, id: MessageId) -> Vec<ReceivedRequest> {
        self.state.lock().received.iter().filter(|received| received.id == id).cloned().collect()
    }

    /// Waits until `count` requests with this id have come.
    pub(crate) async fn wait_for(&self, id: MessageId, count: usize) -> Vec<ReceivedRequest> {
        eventually(|| self.received(id).len() >= count).await;
        self.received(id)
    }
}

/// Waits until a condition holds. Fails after a minute, far longer than any condition takes.
pub(crate) async fn eventually(mut condition: impl FnMut() -> bool) {
    for _ in 0..30_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("the condition did not come true within a minute");
}

pub(crate) fn member_info(uuid: Uuid, port: u16) -> MemberInfo<'static> {
    MemberInfo {
        address: Address { host: "127.0.0.1", port: i32::from(port) },
        uuid,
        attributes: Vec::new(),
        lite_member: false,
        version: MemberVersion { major: 5, minor: 6, patch: 0 },
        address_map: Vec::new(),
    }
}

pub(crate) fn encode<R: Response>(received: &ReceivedRequest, response: &R) -> Vec<u8> {
    let mut out = Vec::new();
    response.encode(received.correlation, &mut out);
    out
}

pub(crate) fn error(received: &ReceivedRequest, code: i32, class_name: &'static str, message: &'static str) -> Act {
    let holder = ErrorHolder { code, class_name, message: Some(message), stack_trace: Vec::new() };
    Act::Send(encode(received, &ErrorMessage { holders: vec![holder] }))
}

async fn serve(
    mut stream: TcpStream,
    state: Arc<Mutex<State>>,
    mut output: mpsc::UnboundedReceiver<Vec<u8>>,
    connection: usize,
    uuid: Uuid,
    port: u16,
) {
    let mut preamble = [0; 3];
    stream.read_exact(&mut preamble).await.unwrap_or_default();
    assert_eq!(preamble, filbert_wire::PREAMBLE);
    let mut splitter = Splitter::new(Limits::default());
    let mut buffer = BytesMut::new();
    loop {
        tokio::select! {
            read = stream.read_buf(&mut buffer) => if read.unwrap_or(0) == 0 { return },
            Some(bytes) = output.recv() => if stream.write_all(&bytes).await.is_err() { return },
        }
        while let Some(Split::Whole(length)) = splitter.split(&buffer).unwrap() {
            let bytes = buffer.split_to(length).to_vec();
            let message = Message::parse(&bytes).unwrap();
            let received = ReceivedRequest {
                id: message.id(),
                partition: message.partition_id(),
                correlation: message.correlation_id(),
                bytes: bytes.clone(),
                connection,
            };
            let answer = {
                let mut state = state.lock();
                state.received.push(received.clone());
                if received.id == client::add_cluster_view_listener::ID {
                    state.views.push((connection, received.correlation));
                }
                match (state.script)(&received) {
                    Act::Usual => usual(&received, &state, uuid, port),
                    Act::Send(bytes) => bytes,
                    Act::Wait => continue,
                    Act::Cut => return,
                }
            };
            if stream.write_all(&answer).await.is_err() {
                return;
            }
        }
    }
}

fn usual(received: &ReceivedRequest, state: &State, uuid: Uuid, port: u16) -> Vec<u8> {
    let message = Message::parse(&received.bytes).unwrap();
    match received.id {
        client::authentication::ID => {
            let request = message.decode::<client::authentication::Request<'_>>().unwrap();
            let response = client::authentication::Response {
                status: u8::from(request.cluster_name != "dev"),
                address: Some(Address { host: "127.0.0.1", port: i32::from(port) }),
                member_uuid: Some(uuid),
                serialization_version: 1,
                server_hazelcast_version: "5.6.0",
                partition_count: PARTITIONS,
                cluster_id: state.cluster,
                failover_supported: true,
                tpc_ports: None,
                tpc_token: None,
                member_list_version: 1,
                member_infos: state.view.clone(),
                partition_list_version: 1,
                partitions: state.owners.clone(),
                key_value_pairs: Vec::new(),
            };
            encode(received, &response)
        }
        client::add_cluster_view_listener::ID => encode(received, &client::add_cluster_view_listener::Response {}),
        client::ping::ID => encode(received, &client::ping::Response {}),
        map::get::ID => encode(received, &map::get::Response { response: None }),
        map::set::ID => encode(received, &map::set::Response {}),
        map::lock::ID => encode(received, &map::lock::Response {}),
        map::unlock::ID => encode(received, &map::unlock::Response {}),
        map::size::ID => encode(received, &map::size::Response { response: 0 }),
        map::add_entry_listener::ID => encode(
            received,
            &map::add_entry_listener::Response { response: Uuid::from_u128(received.connection as u128 + 77) },
        ),
        map::remove_entry_listener::ID => encode(received, &map::remove_entry_listener::Response { response: true }),
        other => panic!("the test's member was asked for {other}"),
    }
}

//! The first message of a connection: the identity of the client, and its admission.

use filbert_grid::{ClientInfo, ErrorKind};
use filbert_wire::{
    CorrelationId, Message, Request, Response, Uuid,
    table::client::{authentication, authentication_custom},
};
use tracing::{debug, info};

use crate::{
    config::Authentication,
    failure::{Failure, Outcome},
    row::Row,
    session::Session,
    view::{CLUSTER_VERSION, SERIALIZATION_VERSION, SERVER_VERSION, View},
};

pub(crate) const ROWS: &[(filbert_wire::MessageId, Row)] =
    &[(authentication::ID, Row::Authenticates(by_password)), (authentication_custom::ID, Row::Authenticates(by_token))];

/// The result of an authentication, with the protocol's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Authenticated = 0,
    /// Wrong credentials or a wrong cluster name. Clients are not told which.
    CredentialsFailed = 1,
    SerializationVersionMismatch = 2,
}

/// The common fields of both kinds of requests.
struct Applicant<'a> {
    cluster_name: &'a str,
    uuid: Option<Uuid>,
    serialization_version: u8,
    kind: &'a str,
    version: &'a str,
    name: &'a str,
    labels: Vec<&'a str>,
    accepted: bool,
}

fn by_password(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: authentication::Request<'_> = message.decode()?;
    let accepted = guessed(session, request.username.unwrap_or_default(), |authentication| {
        authentication.accepts_password(request.username, request.password)
    })?;
    let applicant = Applicant {
        cluster_name: request.cluster_name,
        uuid: request.uuid,
        serialization_version: request.serialization_version,
        kind: request.client_type,
        version: request.client_hazelcast_version,
        name: request.client_name,
        labels: request.labels.clone(),
        accepted,
    };
    let view = session.view();
    let status = admit(session, applicant, &view)?;
    let admitted = status == Status::Authenticated;
    if admitted && let Some(cluster) = session.relays_to().cloned() {
        let uuid = Some(session.client);
        let mut bytes = Vec::new();
        authentication::Request { uuid, ..request }.encode(CorrelationId(0), -1, &mut bytes);
        session.open_relays(cluster, bytes);
    }
    authentication::Response {
        status: status as u8,
        address: if admitted { view.address() } else { None },
        member_uuid: admitted.then(|| session.grid.member_uuid()),
        serialization_version: SERIALIZATION_VERSION,
        server_hazelcast_version: if admitted { SERVER_VERSION } else { "" },
        partition_count: if admitted { partition_count(session) } else { -1 },
        cluster_id: if admitted { session.grid.cluster_id() } else { Uuid::nil() },
        failover_supported: false,
        tpc_ports: None,
        tpc_token: None,
        member_list_version: if admitted { view.snapshot().members_version } else { -1 },
        member_infos: if admitted { view.members() } else { Vec::new() },
        partition_list_version: if admitted { view.snapshot().leaders_version } else { -1 },
        partitions: if admitted { view.partitions() } else { Vec::new() },
        key_value_pairs: if admitted { vec![("clusterVersion", CLUSTER_VERSION)] } else { Vec::new() },
    }
    .encode(message.correlation_id(), &mut session.out);
    Ok(())
}

/// Whether the client's credentials are right. Fails if its address has sent wrong ones too often.
fn guessed(session: &Session, name: &str, accepts: impl FnOnce(&Authentication) -> bool) -> Result<bool, Box<Failure>> {
    let authentication = &session.config.authentication;
    if *authentication == Authentication::None {
        return Ok(accepts(authentication));
    }
    let guess = session.guesses.begin(session.link.peer.ip(), name).map_err(|error| {
        let mut failure = Failure::new(ErrorKind::Authentication, error.to_string());
        failure.closes = true;
        failure
    })?;
    let accepted = accepts(authentication);
    if accepted {
        guess.right();
    }
    Ok(accepted)
}

fn by_token(session: &mut Session, message: &Message<'_>) -> Outcome {
    let request: authentication_custom::Request<'_> = message.decode()?;
    let accepted = guessed(session, "", |authentication| authentication.accepts_token(request.credentials))?;
    let applicant = Applicant {
        cluster_name: request.cluster_name,
        uuid: request.uuid,
        serialization_version: request.serialization_version,
        kind: request.client_type,
        version: request.client_hazelcast_version,
        name: request.client_name,
        labels: request.labels.clone(),
        accepted,
    };
    let view = session.view();
    let status = admit(session, applicant, &view)?;
    let admitted = status == Status::Authenticated;
    if admitted && let Some(cluster) = session.relays_to().cloned() {
        let uuid = Some(session.client);
        let mut bytes = Vec::new();
        authentication_custom::Request { uuid, ..request }.encode(CorrelationId(0), -1, &mut bytes);
        session.open_relays(cluster, bytes);
    }
    authentication_custom::Response {
        status: status as u8,
        address: if admitted { view.address() } else { None },
        member_uuid: admitted.then(|| session.grid.member_uuid()),
        serialization_version: SERIALIZATION_VERSION,
        server_hazelcast_version: if admitted { SERVER_VERSION } else { "" },
        partition_count: if admitted { partition_count(session) } else { -1 },
        cluster_id: if admitted { session.grid.cluster_id() } else { Uuid::nil() },
        failover_supported: false,
        tpc_ports: None,
        tpc_token: None,
        member_list_version: if admitted { view.snapshot().members_version } else { -1 },
        member_infos: Some(if admitted { view.members() } else { Vec::new() }),
        partition_list_version: if admitted { view.snapshot().leaders_version } else { -1 },
        partitions: Some(if admitted { view.partitions() } else { Vec::new() }),
        key_value_pairs: if admitted { vec![("clusterVersion", CLUSTER_VERSION)] } else { Vec::new() },
    }
    .encode(message.correlation_id(), &mut session.out);
    Ok(())
}

fn partition_count(session: &Session) -> i32 {
    i32::try_from(session.grid.partition_count()).unwrap_or(i32::MAX)
}

/// Registers the client with the grid if it is accepted.
fn admit(session: &mut Session, applicant: Applicant<'_>, view: &View) -> Result<Status, Box<Failure>> {
    if session.registration.is_some() {
        return Err(Failure::new(ErrorKind::IllegalState, "this connection is authenticated already"));
    }
    let status = if applicant.cluster_name != session.grid.cluster_name() || !applicant.accepted {
        Status::CredentialsFailed
    } else if applicant.serialization_version != SERIALIZATION_VERSION {
        Status::SerializationVersionMismatch
    } else {
        Status::Authenticated
    };
    let peer = session.link.peer;
    if status != Status::Authenticated {
        session.refused = true;
        info!(
            %peer, "client {:?} ({} {}) refused: {status:?}, cluster name {:?}, serialization version {}",
            applicant.name, applicant.kind, applicant.version, applicant.cluster_name, applicant.serialization_version
        );
        return Ok(status);
    }
    if view.address().is_none() {
        let mut failure =
            Failure::new(ErrorKind::NotActive, "this member is joining its cluster and serves no clients yet");
        failure.closes = true;
        return Err(failure);
    }
    // Stock clients choose their UUID. Other clients get a new one.
    let uuid = applicant.uuid.unwrap_or_else(Uuid::new_v4);
    session.client = uuid;
    session.registration = Some(session.grid.connect(ClientInfo {
        uuid,
        kind: applicant.kind.to_owned(),
        version: applicant.version.to_owned(),
        name: applicant.name.to_owned(),
        labels: applicant.labels.into_iter().map(str::to_owned).collect(),
        address: Some(peer),
    }));
    session.link.set_authenticated();
    debug!(%peer, client = %uuid, "client {:?} ({} {}) connected", applicant.name, applicant.kind, applicant.version);
    Ok(status)
}

//! The cluster over HTTP, for `filbert cluster` and for the console.
//!
//! ```text
//!  GET  /_filbert/cluster    members, groups, warnings, as this member sees them
//!  POST /_filbert/cluster    {"order": "leave" | "remove" | "recover", "member": 3}
//! ```
//!
//! Orders can stop members. Without configured users they are accepted only from this machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;

use filbert_grid::{ClusterOrder, ClusterStatus, ClusterWarning, Grid, GridError, GroupStatus, MemberStatus};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::connection::ConnectionState;
use crate::failure::Failure;
use crate::figures::json;
use crate::shared::Shared;
use crate::user::User;

/// The maximum size of an order in bytes.
const ORDER_BYTES_MAX: usize = 4_096;

/// The status of the cluster, as JSON.
#[derive(Serialize)]
pub(crate) struct Cluster {
    name: String,
    id: String,
    /// The member that answers.
    member: u64,
    /// The number of recoveries without a majority.
    recoveries: u64,
    replicas: Replicas,
    members: Vec<Member>,
    groups: Vec<Group>,
    warnings: Vec<Warning>,
}

#[derive(Serialize)]
struct Replicas {
    wanted: u32,
    held: usize,
}

#[derive(Serialize)]
struct Member {
    id: u64,
    uuid: String,
    address: String,
    client_address: String,
    state: &'static str,
    lite: bool,
    /// The time since the member was admitted.
    known_ms: i64,
    /// The time since the member's last announcement. `None` for the member that answers.
    silent_ms: Option<u64>,
    /// The number of groups that the member leads, and the number of groups in which it votes.
    leads: usize,
    votes: usize,
}

#[derive(Serialize)]
struct Group {
    group: String,
    leader: Option<u64>,
    term: u64,
    voters: Vec<Replica>,
    learners: Vec<Replica>,
    wanted: Vec<u64>,
    committed: u64,
    log_entries: u64,
    log_bytes: u64,
    changing: bool,
}

#[derive(Serialize)]
struct Replica {
    member: u64,
    /// The number of log entries that the replica has not received yet.
    lag: Option<u64>,
}

#[derive(Serialize)]
struct Warning {
    level: &'static str,
    title: String,
    text: String,
}

/// The status of a member's cluster. `None` if the member is not in a cluster.
pub(crate) fn status_of(grid: &Grid) -> Option<Cluster> {
    let status = grid.cluster()?.status()?;
    Some(cluster(grid.cluster_name(), grid.now().0, &status))
}

fn cluster(name: &str, now_ms: i64, status: &ClusterStatus) -> Cluster {
    let warning = |warning: ClusterWarning| Warning {
        level: if warning.is_critical { "critical" } else { "warning" },
        title: warning.title,
        text: warning.text,
    };
    Cluster {
        name: name.to_owned(),
        id: status.cluster.to_string(),
        member: status.member,
        recoveries: status.recoveries,
        replicas: Replicas { wanted: status.replicas_wanted, held: status.replicas_held() },
        members: status.members.iter().map(|one| member(now_ms, status, one)).collect(),
        groups: status.groups.iter().map(group).collect(),
        warnings: status.warnings().into_iter().map(warning).collect(),
    }
}

fn member(now_ms: i64, status: &ClusterStatus, member: &MemberStatus) -> Member {
    let silent_ms = member.silent_for.map(|silent| u64::try_from(silent.as_millis()).unwrap_or(u64::MAX));
    Member {
        id: member.id,
        uuid: member.uuid.to_string(),
        address: member.address.clone(),
        client_address: member.client_address.clone(),
        state: member.state.name(),
        lite: member.is_lite,
        known_ms: now_ms.saturating_sub(member.joined_ms).max(0),
        silent_ms,
        leads: status.groups.iter().filter(|group| group.leader == Some(member.id)).count(),
        votes: status.groups.iter().filter(|group| group.voters.contains_key(&member.id)).count(),
    }
}

fn group(group: &GroupStatus) -> Group {
    let replicas = |of: &BTreeMap<u64, Option<u64>>| -> Vec<Replica> {
        of.iter().map(|(member, lag)| Replica { member: *member, lag: *lag }).collect()
    };
    Group {
        group: group.name(),
        leader: group.leader,
        term: group.term,
        voters: replicas(&group.voters),
        learners: replicas(&group.learners),
        wanted: group.wanted.clone(),
        committed: group.committed,
        log_entries: group.log_entries,
        log_bytes: group.log_bytes,
        changing: group.is_changing,
    }
}

fn in_no_cluster() -> Failure {
    Failure::not_found("this member is in no cluster: it was started without --join")
}

/// Returns the status of the cluster.
pub(crate) async fn status(State(shared): State<Arc<Shared>>) -> Result<Response, Failure> {
    let status = status_of(&shared.grid).ok_or_else(in_no_cluster)?;
    Ok(json(&status))
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Leave,
    Remove,
    Recover,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    order: Word,
    member: Option<u64>,
    /// For `recover`.
    #[serde(default)]
    accept_data_loss: bool,
}

fn order_of(body: &[u8]) -> Result<ClusterOrder, Failure> {
    if body.len() > ORDER_BYTES_MAX {
        return Err(Failure::body_too_large(ORDER_BYTES_MAX));
    }
    let order: Order = serde_json::from_slice(body).map_err(|error| {
        Failure::parse(format!(
            "cannot read the order: {error}; expected such as {{\"order\": \"leave\", \"member\": 3}}"
        ))
    })?;
    let member = || order.member.ok_or_else(|| Failure::parse("the order names no member, expected its number"));
    Ok(match order.order {
        Word::Leave => ClusterOrder::Leave(member()?),
        Word::Remove => ClusterOrder::Remove(member()?),
        Word::Recover => ClusterOrder::Recover { accepts_data_loss: order.accept_data_loss },
    })
}

#[derive(Serialize)]
struct Done {
    done: bool,
    /// Additional sentences for the operator.
    #[serde(skip_serializing_if = "String::is_empty")]
    said: String,
}

/// Carries out an order.
pub(crate) async fn order(
    State(shared): State<Arc<Shared>>,
    Extension(connection): Extension<Arc<ConnectionState>>,
    Extension(User(user)): Extension<User>,
    body: Bytes,
) -> Result<Response, Failure> {
    if shared.config.users.is_empty() && !connection.is_of_this_machine() {
        return Err(Failure::forbidden(
            "orders to the cluster are taken from this machine alone, since this server has no users: \
             give them at the member itself, or configure users",
        ));
    }
    let order = order_of(&body)?;
    let cluster = shared.grid.cluster().ok_or_else(in_no_cluster)?;
    tracing::info!("user {user} orders: {order:?}");
    let (done, outcome) = oneshot::channel::<Result<String, GridError>>();
    let reply = move |result| {
        // The client may have disconnected.
        let _gone = done.send(result);
    };
    cluster.order(order, Box::new(reply));
    match outcome.await {
        Ok(Ok(said)) => Ok(json(&Done { done: true, said })),
        Ok(Err(error)) => {
            tracing::warn!("the order of user {user} is refused: {error}");
            Err(error.into())
        }
        Err(_) => {
            Err(Failure::unavailable("this member ended while the order was carried out, the outcome is unknown"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_and_everything_else_is_refused() {
        assert_eq!(order_of(br#"{"order": "leave", "member": 3}"#).unwrap(), ClusterOrder::Leave(3));
        assert_eq!(order_of(br#"{"order": "remove", "member": 4}"#).unwrap(), ClusterOrder::Remove(4));
        let recover = |accepts_data_loss| ClusterOrder::Recover { accepts_data_loss };
        assert_eq!(order_of(br#"{"order": "recover"}"#).unwrap(), recover(false));
        assert_eq!(order_of(br#"{"order": "recover", "accept_data_loss": true}"#).unwrap(), recover(true));
        let refused = |body: &[u8]| order_of(body).unwrap_err().message();
        assert!(refused(br#"{"order": "leave"}"#).contains("names no member"));
        assert!(refused(br#"{"order": "leaf", "member": 1}"#).contains("unknown variant"));
        assert!(refused(br#"{"order": "leave", "member": -1}"#).contains("cannot read the order"));
        assert!(refused(b"").contains("expected such as"));
        assert_eq!(order_of(&[b' '; ORDER_BYTES_MAX + 1]).unwrap_err().status(), 413);
    }
}

//! The cluster over HTTP, for `filbert cluster` and for the console.
//!
//! ```text
//!  GET  /_filbert/cluster    members, groups, warnings, as this member knows them
//!  POST /_filbert/cluster    {"order": "leave" | "remove" | "recover", "member": 3}
//! ```
//!
//! Orders end members: where no users are configured, they are taken from this machine alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;

use filbert_grid::{ClusterOrder, ClusterStatus, ClusterWarning, Grid, GridError, GroupStatus, MemberStatus};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::connection::Link;
use crate::console::json;
use crate::failure::Failure;
use crate::routes::User;
use crate::shared::Shared;

/// Bytes of an order.
const ORDER_BYTES_MAX: usize = 4_096;

/// The cluster, as JSON.
#[derive(Serialize)]
pub(crate) struct Cluster {
    name: String,
    id: String,
    /// The member that answers.
    member: u64,
    /// How often it went on without a majority.
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
    /// How long ago it was let in.
    known_ms: i64,
    /// How long it has not been heard of.
    silent_ms: Option<u64>,
    /// Groups that it leads, and that it votes in.
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
    /// Entries that it has still to get.
    lag: Option<u64>,
}

#[derive(Serialize)]
struct Warning {
    level: &'static str,
    title: String,
    text: String,
}

/// The cluster that a member is in, if it is in one.
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

/// Tells of the cluster.
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
    /// Of recovering.
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
    /// Sentences for a person, where there is more to say.
    #[serde(skip_serializing_if = "String::is_empty")]
    said: String,
}

/// Has an order carried out.
pub(crate) async fn order(
    State(shared): State<Arc<Shared>>,
    Extension(link): Extension<Arc<Link>>,
    Extension(User(user)): Extension<User>,
    body: Bytes,
) -> Result<Response, Failure> {
    if shared.config.users.is_empty() && !link.is_of_this_machine() {
        return Err(Failure::forbidden(
            "orders to the cluster are taken from this machine alone, since this server has no users: \
             give them at the member itself, or configure users",
        ));
    }
    let order = order_of(&body)?;
    let cluster = shared.grid.cluster().ok_or_else(in_no_cluster)?;
    tracing::info!("user {user} orders: {order:?}");
    let (done, outcome) = oneshot::channel::<Result<String, GridError>>();
    let tell = move |result| {
        // Whoever asked may have gone.
        let _gone = done.send(result);
    };
    cluster.order(order, Box::new(tell));
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
    fn orders_are_read_and_everything_else_is_told() {
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

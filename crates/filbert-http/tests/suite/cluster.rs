//! The status of a cluster over HTTP, and orders to it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::door;
use filbert_grid::{
    Cluster, ClusterCounters, ClusterOrder, ClusterStatus, ClusterView, GridError, GroupStatus, LinkCounters,
    MemberState, MemberStatus, OrderDone, ViewCallback,
};
use filbert_http::{HttpConfig, HttpUser};
use serde_json::Value;
use uuid::Uuid;

/// A cluster of two members. One of them does not respond.
#[derive(Default)]
struct Two {
    orders: Mutex<Vec<ClusterOrder>>,
    is_leaving: AtomicBool,
}

impl Cluster for Two {
    fn view(&self) -> Arc<ClusterView> {
        Arc::default()
    }

    fn on_change(&self, _: ViewCallback) {}

    fn status(&self) -> Option<ClusterStatus> {
        let member = |id: u64, state, silent_for| MemberStatus {
            id,
            uuid: Uuid::from_u128(u128::from(id)),
            address: format!("10.0.0.{id}:5801"),
            client_address: format!("10.0.0.{id}:5701"),
            state,
            is_lite: false,
            joined_ms: 0,
            silent_for,
        };
        let voters = BTreeMap::from([(1, Some(0)), (2, Some(70))]);
        let is_leaving = self.is_leaving.load(Ordering::SeqCst);
        let here = if is_leaving { MemberState::Leaving } else { MemberState::Active };
        Some(ClusterStatus {
            cluster: Uuid::from_u128(9),
            member: 1,
            replicas_wanted: 3,
            members: vec![member(1, here, None), member(2, MemberState::Unreachable, Some(Duration::from_secs(7)))],
            groups: vec![GroupStatus { number: Some(0), leader: Some(1), voters, ..GroupStatus::default() }],
            ..ClusterStatus::default()
        })
    }

    fn counters(&self) -> ClusterCounters {
        let links = vec![LinkCounters { kind: "entries", bytes_sent: 9, ..LinkCounters::default() }];
        ClusterCounters { proposals: 3, links, ..ClusterCounters::default() }
    }

    fn order(&self, order: ClusterOrder, done: OrderDone) {
        self.orders.lock().unwrap().push(order);
        done(match order {
            ClusterOrder::Leave(_) => Ok(String::new()),
            _ => Err(GridError::IllegalState("it is alive".to_owned())),
        });
    }
}

const PATH: &str = "/_filbert/cluster";

#[test]
fn a_member_alone_is_in_no_cluster() {
    let door = door(HttpConfig::default());
    let answer = door.connect().get(PATH, "");
    assert_eq!(answer.status, 404);
    assert!(answer.body.contains("started without --join"), "{}", answer.body);
    assert_eq!(door.connect().post(PATH, "", r#"{"order": "recover"}"#).status, 404);
}

#[test]
fn members_groups_and_warnings_are_reported() {
    let door = door(HttpConfig::default());
    assert!(door.grid.join_cluster(Arc::new(Two::default())));
    let answer = door.connect().get(PATH, "");
    assert_eq!(answer.status, 200);
    let status: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!((&status["member"], &status["replicas"]["held"]), (&1.into(), &1.into()));
    assert_eq!(
        (&status["members"][1]["state"], &status["members"][1]["silent_ms"]),
        (&"unreachable".into(), &7_000.into())
    );
    assert_eq!((&status["members"][0]["leads"], &status["members"][0]["silent_ms"]), (&1.into(), &Value::Null));
    assert_eq!(status["groups"][0]["voters"][1], serde_json::json!({"member": 2, "lag": 70}));
    assert!(status["warnings"].as_array().unwrap().len() >= 2, "{status}");
}

#[test]
fn metrics_and_the_console_show_the_cluster() {
    let door = door(HttpConfig::default());
    assert!(!door.connect().get("/metrics", "").body.contains("filbert_cluster"), "a member alone has no cluster");
    assert_eq!(door.connect().get("/_filbert/status", "").json()["membership"], Value::Null);
    assert!(door.grid.join_cluster(Arc::new(Two::default())));
    let metrics = door.connect().get("/metrics", "").body;
    for line in [
        "filbert_cluster_members{state=\"unreachable\"} 1",
        "filbert_cluster_member_silent_seconds{address=\"10.0.0.2:5801\"} 7",
        "filbert_cluster_lag_entries 70",
        "filbert_cluster_replicas 1",
        "filbert_cluster_groups_without_leader 0",
        "filbert_group_proposals_total 3",
        "filbert_link_sent_bytes_total{kind=\"entries\"} 9",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is not in\n{metrics}");
    }
    let status = door.connect().get("/_filbert/status", "").json();
    assert_eq!(status["membership"]["groups"][0]["leader"], 1);
    let warnings = status["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning["title"].as_str().unwrap().contains("not been heard of for 7 s")));
}

#[test]
fn orders_are_carried_out_or_refused_with_the_reason() {
    let door = door(HttpConfig::default());
    let two = Arc::new(Two::default());
    assert!(door.grid.join_cluster(two.clone()));
    assert_eq!(door.connect().post(PATH, "", r#"{"order": "leave", "member": 2}"#).status, 200);
    let refused = door.connect().post(PATH, "", r#"{"order": "remove", "member": 2}"#);
    assert!(refused.status >= 400 && refused.body.contains("it is alive"), "{} {}", refused.status, refused.body);
    assert_eq!(door.connect().post(PATH, "", r#"{"order": "flee"}"#).status, 400);
    assert_eq!(*two.orders.lock().unwrap(), [ClusterOrder::Leave(2), ClusterOrder::Remove(2)]);
}

#[test]
fn a_member_that_leaves_is_healthy_and_wants_no_more_clients() {
    let users = vec![HttpUser { name: "ann".into(), password: "a".into() }];
    let door = door(HttpConfig { users, ..HttpConfig::default() });
    let two = Arc::new(Two::default());
    assert_eq!(door.connect().get("/_ready", "").status, 200);
    assert!(door.grid.join_cluster(two.clone()));
    let states = || ["/_health", "/_ready"].map(|path| door.connect().get(path, "").status);
    assert_eq!(states(), [200, 200]);
    two.is_leaving.store(true, Ordering::SeqCst);
    assert_eq!(states(), [200, 503]);
    assert_eq!(door.connect().get("/_ready", "").json()["status"], "leaving");
}

#[test]
fn orders_of_other_machines_are_refused() {
    let users = vec![HttpUser { name: "ann".into(), password: "a".into() }];
    let door = door(HttpConfig { users, ..HttpConfig::default() });
    let two = Arc::new(Two::default());
    assert!(door.grid.join_cluster(two.clone()));
    let leave = r#"{"order": "leave", "member": 2}"#;
    assert_eq!(door.connect().post(PATH, "", leave).status, 401);
    assert_eq!(door.connect().get(PATH, "").status, 401);
    assert!(two.orders.lock().unwrap().is_empty());
    assert_eq!(door.connect().post(PATH, "Authorization: Basic YW5uOmE=\r\n", leave).status, 200);
}

//! The metrics of the cluster, as this member sees it. A member without a cluster has none.

use filbert_grid::{Cluster, ClusterStatus, Grid, LinkCounters, MemberState};

use super::text::{Families, Labels};

/// Writes the metrics if the member is in a cluster.
pub(super) fn write(families: &mut Families, grid: &Grid) {
    let Some(cluster) = grid.cluster() else { return };
    if let Some(status) = cluster.status() {
        members(families, &status);
        groups(families, &status);
    }
    counters(families, &**cluster);
    let links = grid.memory().links() as f64;
    let help = "Memory of requests and answers between members, in both directions.";
    families.gauge("filbert_link_buffer_bytes", help, Some(links));
}

fn members(families: &mut Families, status: &ClusterStatus) {
    let states = [MemberState::Joining, MemberState::Active, MemberState::Leaving, MemberState::Unreachable];
    let labels = states.map(|state| [("state", state.name())]);
    let counts = states.map(|state| status.members.iter().filter(|member| member.state == state).count() as f64);
    let samples = labels.iter().zip(counts).map(|(labels, count)| (labels as Labels<'_>, count));
    families.gauges("filbert_cluster_members", "Members of the cluster, as this one knows them.", samples);
    let silent: Vec<(String, f64)> = status
        .members
        .iter()
        .filter_map(|member| Some((member.address.clone(), member.silent_for?.as_secs_f64())))
        .collect();
    let labels: Vec<[(&str, &str); 1]> = silent.iter().map(|(address, _)| [("address", address.as_str())]).collect();
    let samples = labels.iter().zip(&silent).map(|(labels, (_, seconds))| (labels as Labels<'_>, *seconds));
    families.gauges("filbert_cluster_member_silent_seconds", "How long another member has not been heard of.", samples);
}

fn groups(families: &mut Families, status: &ClusterStatus) {
    let lost = status.lost_groups().count() as f64;
    let changing = status.groups.iter().filter(|group| group.is_changing).count() as f64;
    // The largest number of log entries that any voter has not received yet.
    let lag = status.groups.iter().flat_map(|group| group.voters.values().flatten()).max().copied().unwrap_or(0) as f64;
    let warnings = status.warnings();
    let critical = warnings.iter().filter(|warning| warning.is_critical).count();
    for (name, help, value) in [
        ("filbert_cluster_groups", "Groups of partitions, and the registry.", status.groups.len() as f64),
        (
            "filbert_cluster_groups_without_leader",
            "Groups that serve nothing: nobody leads them with a majority.",
            lost,
        ),
        ("filbert_cluster_groups_changing", "Groups whose voters are being changed.", changing),
        ("filbert_cluster_replicas_wanted", "Members that are to hold each group.", f64::from(status.replicas_wanted)),
        ("filbert_cluster_replicas", "Members that hold every group and answer.", status.replicas_held() as f64),
        ("filbert_cluster_lag_entries", "Entries that the farthest voter of any group has still to get.", lag),
    ] {
        families.gauge(name, help, Some(value));
    }
    let labels = [[("level", "critical")], [("level", "warning")]];
    let counts = [critical as f64, (warnings.len() - critical) as f64];
    let samples = labels.iter().zip(counts).map(|(labels, count)| (labels as Labels<'_>, count));
    families.gauges("filbert_cluster_warnings", "What somebody should look at.", samples);
}

/// The name, help text and value of a counter.
type Total = (&'static str, &'static str, fn(&LinkCounters) -> u64);

fn counters(families: &mut Families, cluster: &dyn Cluster) {
    let counters = cluster.counters();
    for (name, help, value) in [
        ("filbert_group_leads", "Groups that this member leads.", counters.leads as u64),
        ("filbert_group_votes", "Groups that this member votes in.", counters.votes as u64),
        ("filbert_group_log_entries", "Entries of logs that this member keeps.", counters.log_entries),
        ("filbert_group_log_bytes", "Bytes of them.", counters.log_bytes),
        ("filbert_group_waiting_bytes", "Bytes of changes that wait for an entry.", counters.waiting_bytes),
        ("filbert_group_behind_entries", "Entries that are decided and not applied here.", counters.behind_entries),
    ] {
        families.gauge(name, help, Some(value as f64));
    }
    for (name, help, value) in [
        ("filbert_group_proposals_total", "Entries that this member has proposed as a leader.", counters.proposals),
        ("filbert_group_elections_won_total", "Times that this member began to lead a group.", counters.elections_won),
        (
            "filbert_group_snapshot_sent_bytes_total",
            "Bytes of snapshots that this member has sent to others.",
            counters.snapshot_bytes_sent,
        ),
        (
            "filbert_group_snapshot_received_bytes_total",
            "Bytes of snapshots that others have sent to this member.",
            counters.snapshot_bytes_received,
        ),
    ] {
        families.counter(name, help, value);
    }
    let links = &counters.links;
    let labels: Vec<[(&str, &str); 1]> = links.iter().map(|link| [("kind", link.kind)]).collect();
    let each = || labels.iter().map(|labels| labels as Labels<'_>).zip(links);
    let connections = each().map(|(labels, link)| (labels, link.connections as f64));
    families.gauges("filbert_link_connections", "Connections between this member and others.", connections);
    let total: [Total; 3] = [
        ("filbert_link_failures_total", "Tries to connect to another member that failed.", |link| link.failures),
        ("filbert_link_sent_bytes_total", "Bytes sent to other members.", |link| link.bytes_sent),
        ("filbert_link_received_bytes_total", "Bytes received from other members.", |link| link.bytes_received),
    ];
    for (name, help, figure) in total {
        families.counters(name, help, each().map(|(labels, link)| (labels, figure(link))));
    }
}

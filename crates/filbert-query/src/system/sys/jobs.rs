//! The running statements, and the last ones that ended.

use super::super::relation::{Rows, row};
use super::super::scene::Scene;

fn node(scene: &Scene) -> String {
    format!("{{\"id\":\"{}\",\"name\":\"{}\"}}", scene.node_id(), scene.node_name())
}

pub(super) fn running(scene: &Scene, rows: &mut Rows<'_>) {
    let node = node(scene);
    for job in scene.server.jobs.running() {
        row!(rows,
            id: job.id.to_string(),
            node: &node,
            started: job.started.timestamp_micros(),
            stmt: job.text.as_ref(),
            username: job.user,
        );
    }
}

pub(super) fn ended(scene: &Scene, rows: &mut Rows<'_>) {
    let node = node(scene);
    for ended in scene.server.jobs.ended() {
        let first = ended.job.text.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
        let kind = match first.as_str() {
            "SELECT" | "INSERT" | "UPDATE" | "DELETE" | "COPY" => first.as_str(),
            "CREATE" | "ALTER" | "DROP" => "DDL",
            "WITH" | "VALUES" | "SHOW" => "SELECT",
            _ => "MANAGEMENT",
        };
        row!(rows,
            id: ended.job.id.to_string(),
            node: &node,
            started: ended.job.started.timestamp_micros(),
            ended: ended.ended.timestamp_micros(),
            stmt: ended.job.text.as_ref(),
            username: ended.job.user,
            error: ended.error,
            classification: format!("{{\"type\":\"{kind}\",\"labels\":[]}}"),
        );
    }
}

//! Tables as CrateDB divides them. A map is one shard here. Its numbers of records and bytes are
//! exact at a member that holds all partitions, and estimates at others.

use super::super::facts::{RelationFacts, RelationKind};
use super::super::relation::{Rows, row};
use super::super::scene::Scene;

fn tables(scene: &Scene) -> impl Iterator<Item = &RelationFacts> {
    scene.facts().of_users().filter(|relation| relation.kind == RelationKind::Table)
}

pub(super) fn health(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in tables(scene) {
        row!(rows,
            health: "GREEN",
            severity: 1,
            table_name: &relation.name,
            table_schema: &relation.schema,
        );
    }
}

pub(super) fn shards(scene: &Scene, rows: &mut Rows<'_>) {
    let node = format!("{{\"id\":\"{}\",\"name\":\"{}\"}}", scene.node_id(), scene.node_name());
    for relation in tables(scene) {
        row!(rows,
            id: 0,
            schema_name: &relation.schema,
            table_name: &relation.name,
            num_docs: scene.rows_of(relation),
            size: scene.bytes_of(relation),
            node: &node,
            recovery: "{\"stage\":\"DONE\",\"type\":\"EXISTING_STORE\",\"files\":{\"percent\":100.0},\"size\":{\"percent\":100.0}}",
        );
    }
}

pub(super) fn allocations(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in tables(scene) {
        row!(rows,
            table_schema: &relation.schema,
            table_name: &relation.name,
            shard_id: 0,
            node_id: scene.node_id(),
        );
    }
}

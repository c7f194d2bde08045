//! Tables and columns in CrateDB's `information_schema`.

use super::super::facts::RelationKind;
use super::super::relation::{Relation, Rows, no_rows, row};
use super::super::scene::Scene;
use super::server::TypeFacts;

pub(super) const RELATIONS: &[Relation] = &[
    Relation {
        name: "tables",
        columns: "blobs_path text, closed bool=f, clustered_by text, column_policy text=strict, number_of_replicas text, \
                  number_of_shards int4, partitioned_by _text, reference_generation text, routing_hash_function text, \
                  self_referencing_column_name text, settings json, table_catalog text, table_name text, table_schema text, \
                  table_type text, user_defined_type_catalog text, user_defined_type_name text, user_defined_type_schema text, \
                  version json, is_insertable_into text, is_typed text=NO, commit_action text",
        rows: tables,
    },
    Relation {
        name: "columns",
        columns: "character_maximum_length int4, character_octet_length int4, character_set_catalog text, \
                  character_set_name text, character_set_schema text, check_action int4, check_references text, \
                  collation_catalog text, collation_name text, collation_schema text, column_default text, column_details json, \
                  column_name text, data_type text, datetime_precision int4, domain_catalog text, domain_name text, \
                  domain_schema text, generation_expression text, identity_cycle bool, identity_generation text, \
                  identity_increment text, identity_maximum text, identity_minimum text, identity_start text, \
                  interval_precision int4, interval_type text, is_generated text=NEVER, is_identity bool=f, is_nullable bool, \
                  numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, ordinal_position int4, \
                  table_catalog text, table_name text, table_schema text, udt_catalog text, udt_name text, udt_schema text, \
                  is_updatable text=YES",
        rows: columns,
    },
    Relation {
        name: "table_partitions",
        columns: "closed bool, number_of_replicas text, number_of_shards int4, partition_ident text, routing_hash_function text, \
                  settings json, table_name text, table_schema text, values json, version json",
        rows: no_rows,
    },
    Relation {
        name: "sql_features",
        columns: "feature_id text, feature_name text, sub_feature_id text, sub_feature_name text, is_supported bool, \
                  is_verified_by text, comments text",
        rows: no_rows,
    },
    Relation {
        name: "foreign_tables",
        columns: "foreign_table_catalog text, foreign_table_schema text, foreign_table_name text, foreign_server_catalog text, \
                  foreign_server_name text",
        rows: no_rows,
    },
    Relation {
        name: "foreign_servers",
        columns: "foreign_server_catalog text, foreign_server_name text, foreign_data_wrapper_catalog text, \
                  foreign_data_wrapper_name text, foreign_server_type text, foreign_server_version text, \
                  authorization_identifier text",
        rows: no_rows,
    },
];

fn tables(scene: &Scene, rows: &mut Rows<'_>) {
    let partitions = scene.partitions();
    for relation in &scene.facts().relations {
        let of_user = relation.kind == RelationKind::Table;
        let key = relation.key().and_then(|key| relation.names_of(&key.columns).next().map(str::to_owned));
        row!(rows,
            clustered_by: if of_user { Some(key.unwrap_or_else(|| "_id".to_owned())) } else { None },
            number_of_replicas: if of_user { Some("0") } else { None },
            number_of_shards: if of_user { Some(partitions) } else { None },
            table_catalog: scene.database(),
            table_name: &relation.name,
            table_schema: &relation.schema,
            table_type: if relation.kind == RelationKind::View { "VIEW" } else { "BASE TABLE" },
            is_insertable_into: if of_user { "YES" } else { "NO" },
            reference_generation: if of_user { Some("SYSTEM GENERATED") } else { None },
            routing_hash_function: if of_user { Some("Murmur3") } else { None },
            settings: if of_user { Some("{}") } else { None },
        );
    }
}

fn columns(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in &scene.facts().relations {
        for (at, column) in relation.columns.iter().enumerate() {
            let facts = TypeFacts::of(column);
            let (oid, modifier) = column.declared;
            let mut details = String::from("{\"name\":");
            filbert_functions::push_json_text(&column.name, &mut details);
            details.push_str(",\"path\":[]}");
            row!(rows,
                character_maximum_length: if matches!(oid, 1042 | 1043) && modifier > 4 { Some(modifier - 4) } else { None },
                column_default: column.default.clone(),
                column_details: details,
                column_name: &column.name,
                data_type: &column.crate_type,
                datetime_precision: facts.fraction.map(|_| 3),
                generation_expression: column.generated.clone(),
                is_generated: if column.generated.is_some() { "ALWAYS" } else { "NEVER" },
                is_nullable: !column.not_null,
                numeric_precision: facts.precision,
                numeric_precision_radix: facts.radix,
                numeric_scale: facts.scale,
                ordinal_position: at + 1,
                table_catalog: scene.database(),
                table_name: &relation.name,
                table_schema: &relation.schema,
            );
        }
    }
}

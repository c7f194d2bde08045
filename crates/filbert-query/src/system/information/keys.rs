//! Keys, constraints, schemas, views and routines, which PostgreSQL and CrateDB share.

use filbert_grid::query::Dialect;

use super::super::PG_CATALOG;
use super::super::facts::RelationKind;
use super::super::relation::{Relation, Rows, no_rows, row};
use super::super::scene::Scene;
use crate::oids;

pub(super) const RELATIONS: &[Relation] = &[
    Relation {
        name: "schemata",
        columns: "catalog_name name, schema_name name, schema_owner name, default_character_set_catalog name, \
                  default_character_set_schema name, default_character_set_name name, sql_path text",
        rows: schemata,
    },
    Relation {
        name: "views",
        columns: "table_catalog name, table_schema name, table_name name, view_definition text, check_option text=NONE, \
                  is_updatable text=NO, is_insertable_into text=NO, is_trigger_updatable text=NO, is_trigger_deletable text=NO, \
                  is_trigger_insertable_into text=NO, owner text",
        rows: views,
    },
    Relation {
        name: "key_column_usage",
        columns: "constraint_catalog name, constraint_schema name, constraint_name name, table_catalog name, table_schema name, \
                  table_name name, column_name name, ordinal_position int4, position_in_unique_constraint int4",
        rows: key_columns,
    },
    Relation {
        name: "constraint_column_usage",
        columns: "table_catalog name, table_schema name, table_name name, column_name name, constraint_catalog name, \
                  constraint_schema name, constraint_name name",
        rows: constraint_columns,
    },
    Relation {
        name: "constraint_table_usage",
        columns: "table_catalog name, table_schema name, table_name name, constraint_catalog name, constraint_schema name, \
                  constraint_name name",
        rows: constraint_tables,
    },
    Relation {
        name: "table_constraints",
        columns: "constraint_catalog name, constraint_schema name, constraint_name name, table_catalog name, table_schema name, \
                  table_name name, constraint_type text, is_deferrable text=NO, initially_deferred text=NO, enforced text=YES, \
                  nulls_distinct text",
        rows: constraints,
    },
    Relation {
        name: "check_constraints",
        columns: "constraint_catalog name, constraint_schema name, constraint_name name, check_clause text",
        rows: checks,
    },
    Relation {
        name: "referential_constraints",
        columns: "constraint_catalog name, constraint_schema name, constraint_name name, unique_constraint_catalog name, \
                  unique_constraint_schema name, unique_constraint_name name, match_option text, update_rule text, delete_rule text",
        rows: no_rows,
    },
    Relation {
        name: "routines",
        columns: "specific_catalog name, specific_schema name, specific_name name, routine_catalog name, routine_schema name, \
                  routine_name name, routine_type text=FUNCTION, data_type text, routine_body text=EXTERNAL, routine_definition text, \
                  external_name text, external_language text=INTERNAL, is_deterministic text",
        rows: routines,
    },
    Relation {
        name: "parameters",
        columns: "specific_catalog name, specific_schema name, specific_name name, ordinal_position int4, parameter_mode text, \
                  parameter_name name, data_type text",
        rows: no_rows,
    },
    Relation {
        name: "sequences",
        columns: "sequence_catalog name, sequence_schema name, sequence_name name, data_type text, numeric_precision int4, \
                  numeric_precision_radix int4, numeric_scale int4, start_value text, minimum_value text, maximum_value text, \
                  increment text, cycle_option text",
        rows: no_rows,
    },
    Relation {
        name: "triggers",
        columns: "trigger_catalog name, trigger_schema name, trigger_name name, event_manipulation text, event_object_catalog name, \
                  event_object_schema name, event_object_table name, action_statement text, action_timing text",
        rows: no_rows,
    },
    Relation {
        name: "character_sets",
        columns: "character_set_catalog name, character_set_schema name, character_set_name name=UTF8, \
                  character_repertoire name=UCS, form_of_use name=UTF8, default_collate_catalog name, \
                  default_collate_schema name, default_collate_name name",
        rows: |scene, rows| row!(rows, default_collate_catalog: scene.database()),
    },
    Relation {
        name: "table_privileges",
        columns: "grantor name, grantee name, table_catalog name, table_schema name, table_name name, privilege_type text, \
                  is_grantable text=YES, with_hierarchy text=NO",
        rows: privileges,
    },
    Relation {
        name: "role_table_grants",
        columns: "grantor name, grantee name, table_catalog name, table_schema name, table_name name, privilege_type text, \
                  is_grantable text=YES, with_hierarchy text=NO",
        rows: privileges,
    },
    Relation { name: "applicable_roles", columns: "grantee name, role_name name, is_grantable text", rows: no_rows },
    Relation {
        name: "enabled_roles",
        columns: "role_name name",
        rows: |scene, rows| row!(rows, role_name: scene.user()),
    },
    Relation {
        name: "information_schema_catalog_name",
        columns: "catalog_name name",
        rows: |scene, rows| row!(rows, catalog_name: scene.database()),
    },
];

fn schemata(scene: &Scene, rows: &mut Rows<'_>) {
    for (name, _) in &scene.facts().schemas {
        row!(rows, catalog_name: scene.database(), schema_name: name, schema_owner: scene.user());
    }
}

/// The functions that statements can call. CrateDB lists user-defined functions only, and there are
/// none.
fn routines(scene: &Scene, rows: &mut Rows<'_>) {
    if scene.dialect != Dialect::Postgres {
        return;
    }
    for (at, (name, _)) in scene.server.function_names().iter().enumerate() {
        row!(rows,
            specific_catalog: scene.database(),
            specific_schema: PG_CATALOG,
            specific_name: format!("{name}_{}", oids::of_function(at)),
            routine_catalog: scene.database(),
            routine_schema: PG_CATALOG,
            routine_name: name,
            external_name: name,
        );
    }
}

fn views(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in scene.facts().of_users().filter(|relation| relation.kind == RelationKind::View) {
        row!(rows,
            table_catalog: scene.database(),
            table_schema: &relation.schema,
            table_name: &relation.name,
            view_definition: relation.definition.clone(),
            owner: scene.user(),
        );
    }
}

fn key_columns(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in scene.facts().of_users() {
        for constraint in relation.constraints.iter().filter(|constraint| constraint.kind != "c") {
            for (at, name) in relation.names_of(&constraint.columns).enumerate() {
                row!(rows,
                    constraint_catalog: scene.database(),
                    constraint_schema: &relation.schema,
                    constraint_name: &constraint.name,
                    table_catalog: scene.database(),
                    table_schema: &relation.schema,
                    table_name: &relation.name,
                    column_name: name,
                    ordinal_position: at + 1,
                );
            }
        }
    }
}

fn constraint_columns(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in scene.facts().of_users() {
        for constraint in &relation.constraints {
            for name in relation.names_of(&constraint.columns) {
                row!(rows,
                    table_catalog: scene.database(),
                    table_schema: &relation.schema,
                    table_name: &relation.name,
                    column_name: name,
                    constraint_catalog: scene.database(),
                    constraint_schema: &relation.schema,
                    constraint_name: &constraint.name,
                );
            }
        }
    }
}

fn constraint_tables(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in scene.facts().of_users() {
        for constraint in relation.constraints.iter().filter(|constraint| constraint.kind != "c") {
            row!(rows,
                table_catalog: scene.database(),
                table_schema: &relation.schema,
                table_name: &relation.name,
                constraint_catalog: scene.database(),
                constraint_schema: &relation.schema,
                constraint_name: &constraint.name,
            );
        }
    }
}

fn constraints(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in scene.facts().of_users() {
        for constraint in &relation.constraints {
            row!(rows,
                constraint_catalog: scene.database(),
                constraint_schema: &relation.schema,
                constraint_name: &constraint.name,
                table_catalog: scene.database(),
                table_schema: &relation.schema,
                table_name: &relation.name,
                constraint_type: if constraint.kind == "p" { "PRIMARY KEY" } else { "CHECK" },
            );
        }
    }
}

fn checks(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in scene.facts().of_users() {
        for constraint in relation.constraints.iter().filter(|constraint| constraint.kind == "c") {
            row!(rows,
                constraint_catalog: scene.database(),
                constraint_schema: &relation.schema,
                constraint_name: &constraint.name,
                check_clause: &constraint.definition,
            );
        }
    }
}

fn privileges(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in scene.facts().of_users() {
        for privilege in ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE"] {
            row!(rows,
                grantor: scene.user(),
                grantee: scene.user(),
                table_catalog: scene.database(),
                table_schema: &relation.schema,
                table_name: &relation.name,
                privilege_type: privilege,
            );
        }
    }
}

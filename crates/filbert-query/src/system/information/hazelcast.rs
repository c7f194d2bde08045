//! Mappings, views and their columns in Hazelcast's `information_schema`.

use filbert_data::FieldType;

use super::super::relation::{Relation, Rows, row};
use super::super::scene::Scene;
use crate::catalog::external_name;

pub(in super::super) const RELATIONS: &[Relation] = &[
    Relation {
        name: "mappings",
        columns: "table_catalog text=hazelcast, table_schema text=public, table_name text, mapping_external_name text, \
                  mapping_type text=IMap, mapping_options text",
        rows: mappings,
    },
    Relation {
        name: "columns",
        columns: "table_catalog text=hazelcast, table_schema text=public, table_name text, column_name text, \
                  column_external_name text, ordinal_position int4, is_nullable text=true, data_type text",
        rows: columns,
    },
    Relation {
        name: "tables",
        columns: "table_catalog text=hazelcast, table_schema text=public, table_name text, table_type text, \
                  self_referencing_column_name text, reference_generation text, user_defined_type_catalog text, \
                  user_defined_type_schema text, user_defined_type_name text, is_insertable_into text, is_typed text=NO, \
                  commit_action text",
        rows: tables,
    },
    Relation {
        name: "views",
        columns: "table_catalog text=hazelcast, table_schema text=public, table_name text, view_definition text, \
                  check_option text=NONE, is_updatable text=NO, insertable_into text=NO",
        rows: views,
    },
];

fn mappings(scene: &Scene, rows: &mut Rows<'_>) {
    for mapping in scene.server.tables.catalog().mappings() {
        row!(rows,
            table_name: &mapping.name,
            mapping_external_name: format!("\"{}\"", mapping.external_name.replace('"', "\"\"")),
            mapping_options: json_of(&mapping.options),
        );
    }
}

/// Options as a JSON object.
fn json_of(options: &[(String, String)]) -> String {
    let mut text = String::from("{");
    for (at, (key, value)) in options.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        filbert_functions::push_json_text(key, &mut text);
        text.push(':');
        filbert_functions::push_json_text(value, &mut text);
    }
    text.push('}');
    text
}

fn data_type(field_type: &FieldType) -> String {
    match field_type {
        FieldType::Decimal(_) => "DECIMAL".to_owned(),
        FieldType::Char => "VARCHAR".to_owned(),
        other => other.to_string(),
    }
}

fn columns(scene: &Scene, rows: &mut Rows<'_>) {
    let catalog = scene.server.tables.catalog();
    for mapping in catalog.mappings() {
        for (at, column) in mapping.columns.iter().filter(|column| !column.hidden).enumerate() {
            row!(rows,
                table_name: &mapping.name,
                column_name: &column.name,
                column_external_name: external_name(column),
                ordinal_position: at + 1,
                data_type: data_type(&column.field_type),
            );
        }
    }
    for view in catalog.views() {
        for (at, (name, field_type)) in view.columns.iter().enumerate() {
            row!(rows,
                table_name: &view.name,
                column_name: name,
                ordinal_position: at + 1,
                data_type: data_type(field_type),
            );
        }
    }
}

fn tables(scene: &Scene, rows: &mut Rows<'_>) {
    let catalog = scene.server.tables.catalog();
    for name in catalog.mapping_names() {
        row!(rows, table_name: name, table_type: "BASE TABLE", is_insertable_into: "YES");
    }
    for name in catalog.view_names() {
        row!(rows, table_name: name, table_type: "VIEW", is_insertable_into: "NO");
    }
}

fn views(scene: &Scene, rows: &mut Rows<'_>) {
    for view in scene.server.tables.catalog().views() {
        row!(rows, table_name: &view.name, view_definition: &view.query);
    }
}

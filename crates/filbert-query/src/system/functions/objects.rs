//! Functions that describe catalog objects by their OIDs.

use datafusion::common::Result;
use filbert_data::Value;
use filbert_functions::native::{Call, Native, Take, bool, int4, int8, now, of_text, pure, text};
use filbert_functions::pg_types;

use super::scene;
use crate::system::{Facts, RelationFacts, RelationKind, index_definition};

/// A function that returns whether an object is visible by its unqualified name.
const fn visible(name: &'static str) -> Native {
    pure(name, &[Take::Int], bool, |_| Ok(Value::Boolean(true)))
}

/// A function about privileges: every user has all of them.
const fn right(name: &'static str) -> Native {
    pure(name, &[Take::Any, Take::Rest], bool, |_| Ok(Value::Boolean(true)))
}

/// A function about objects that do not exist here.
const fn nothing(name: &'static str) -> Native {
    pure(name, &[Take::Any, Take::Rest], text, |_| Ok(Value::Null))
}

pub(super) const FUNCTIONS: &[Native] = &[
    now("pg_table_is_visible", &[Take::Int], bool, table_is_visible),
    visible("pg_type_is_visible"),
    visible("pg_function_is_visible"),
    visible("pg_operator_is_visible"),
    visible("pg_opclass_is_visible"),
    visible("pg_opfamily_is_visible"),
    visible("pg_collation_is_visible"),
    visible("pg_conversion_is_visible"),
    visible("pg_statistics_obj_is_visible"),
    visible("pg_ts_config_is_visible"),
    visible("pg_ts_dict_is_visible"),
    visible("pg_ts_parser_is_visible"),
    visible("pg_ts_template_is_visible"),
    right("has_table_privilege"),
    right("has_any_column_privilege"),
    right("has_column_privilege"),
    right("has_schema_privilege"),
    right("has_database_privilege"),
    right("has_function_privilege"),
    right("has_sequence_privilege"),
    right("has_tablespace_privilege"),
    right("has_type_privilege"),
    right("has_language_privilege"),
    right("has_foreign_data_wrapper_privilege"),
    right("has_server_privilege"),
    right("has_parameter_privilege"),
    right("pg_has_role"),
    pure("row_security_active", &[Take::Any], bool, |_| Ok(Value::Boolean(false))),
    now("pg_get_userbyid", &[Take::Int], text, |call| Ok(of_text(scene(call).map_or("filbert", |scene| scene.user())))),
    pure("pg_get_expr", &[Take::Any, Take::Int, Take::Bool], text, |call| Ok(of_text(call.text(0)))).least(2),
    now("pg_get_constraintdef", &[Take::Int, Take::Bool], text, constraint).least(1),
    now("pg_get_indexdef", &[Take::Int, Take::Int, Take::Bool], text, index).least(1),
    now("pg_get_viewdef", &[Take::Any, Take::Any], text, view).least(1),
    nothing("pg_get_ruledef"),
    nothing("pg_get_triggerdef"),
    nothing("pg_get_functiondef"),
    nothing("pg_get_function_sqlbody"),
    nothing("pg_get_partkeydef"),
    nothing("pg_get_partition_constraintdef"),
    nothing("pg_get_statisticsobjdef_columns"),
    nothing("pg_get_statisticsobjdef"),
    nothing("pg_get_serial_sequence"),
    nothing("pg_get_function_arg_default"),
    nothing("pg_tablespace_location"),
    nothing("shobj_description"),
    nothing("pg_get_publication_tables"),
    pure("pg_get_function_arguments", &[Take::Int], text, |_| Ok(of_text(""))),
    pure("pg_get_function_identity_arguments", &[Take::Int], text, |_| Ok(of_text(""))),
    pure("pg_get_function_result", &[Take::Int], text, |_| Ok(of_text(""))),
    pure("format_type", &[Take::Int, Take::Int], text, |call| {
        Ok(call.int(0).map_or(Value::Null, |oid| of_text(pg_types::format(oid, call.int(1)))))
    })
    .takes_nulls(),
    now("obj_description", &[Take::Int, Take::Text], text, |call| comment(call, None)).least(1),
    now("col_description", &[Take::Int, Take::Int], text, |call| comment(call, call.int(1))),
    pure("pg_encoding_to_char", &[Take::Int], text, |call| {
        Ok(of_text(if call.int(0) == Some(6) { "UTF8" } else { "" }))
    }),
    pure("pg_char_to_encoding", &[Take::Text], int4, |call| {
        Ok(Value::Int32(if call.text(0).eq_ignore_ascii_case("utf8") { 6 } else { -1 }))
    }),
    pure("pg_relation_is_publishable", &[Take::Any], bool, |_| Ok(Value::Boolean(false))),
    now("pg_relation_size", &[Take::Any, Take::Text], int8, size).least(1),
    now("pg_table_size", &[Take::Any], int8, size),
    now("pg_total_relation_size", &[Take::Any], int8, size),
    pure("pg_stat_get_numscans", &[Take::Int], int8, |_| Ok(Value::Int64(0))),
    pure("pg_indexes_size", &[Take::Any], int8, |_| Ok(Value::Int64(0))),
    now("pg_database_size", &[Take::Any], int8, total_size),
    now("pg_tablespace_size", &[Take::Any], int8, total_size),
    now("pg_relation_filenode", &[Take::Any], int8, |call| {
        Ok(relation(call, 0).map_or(Value::Null, |relation| Value::Int64(relation.oid)))
    }),
    pure("pg_size_pretty", &[Take::Float], text, |call| {
        let bytes = match call.values.first() {
            Some(Value::Float64(bytes)) => *bytes,
            _ => 0.0,
        };
        Ok(of_text(pretty(bytes)))
    }),
];

fn facts<'c>(call: &Call<'c>) -> Option<&'c Facts> {
    scene(call).map(|scene| scene.facts())
}

/// The relation with the name or the OID in an argument.
fn relation<'c>(call: &Call<'c>, at: usize) -> Option<&'c RelationFacts> {
    let facts = facts(call)?;
    match call.int(at) {
        Some(oid) => facts.relation(oid),
        None => {
            let oid = super::names::relation_oid(call, call.text(at))?;
            facts.relation(oid)
        }
    }
}

fn table_is_visible(call: &Call<'_>) -> Result<Value<'static>> {
    let Some(oid) = call.int(0) else { return Ok(Value::Null) };
    let Some(scene) = scene(call) else { return Ok(Value::Null) };
    let name = match scene.facts().relation(oid) {
        Some(relation) => Some(&relation.name),
        None => scene.facts().index(oid).map(|(_, index)| &index.name),
    };
    Ok(name.map_or(Value::Null, |name| Value::Boolean(super::names::is_visible(scene, name, oid))))
}

fn constraint(call: &Call<'_>) -> Result<Value<'static>> {
    let oid = call.int(0).unwrap_or(0);
    let found = facts(call).and_then(|facts| {
        facts.of_users().flat_map(|relation| &relation.constraints).find(|constraint| constraint.oid == oid)
    });
    Ok(found.map_or(Value::Null, |constraint| match constraint.kind {
        "c" => of_text(format!("CHECK ({})", constraint.definition)),
        _ => of_text(constraint.definition.as_str()),
    }))
}

/// The statement that creates an index, or the name of one of its columns.
fn index(call: &Call<'_>) -> Result<Value<'static>> {
    let Some((relation, index)) = facts(call).and_then(|facts| facts.index(call.int(0).unwrap_or(0))) else {
        return Ok(Value::Null);
    };
    match call.int(1).filter(|column| *column > 0) {
        None => Ok(of_text(index_definition(relation, index))),
        Some(column) => {
            let at = usize::try_from(column - 1).unwrap_or(usize::MAX);
            Ok(index.attributes.get(at).map_or_else(|| of_text(""), |name| of_text(filbert_dialect::quote_ident(name))))
        }
    }
}

fn view(call: &Call<'_>) -> Result<Value<'static>> {
    let definition = relation(call, 0).and_then(|relation| relation.definition.clone());
    Ok(definition.map_or(Value::Null, of_text))
}

fn comment(call: &Call<'_>, column: Option<i64>) -> Result<Value<'static>> {
    let Some(relation) = facts(call).and_then(|facts| facts.relation(call.int(0).unwrap_or(0))) else {
        return Ok(Value::Null);
    };
    let comment = match column {
        None => relation.comment.clone(),
        Some(column) => {
            let at = usize::try_from(column - 1).unwrap_or(usize::MAX);
            relation.columns.get(at).and_then(|column| column.comment.clone())
        }
    };
    Ok(comment.map_or(Value::Null, of_text))
}

fn size(call: &Call<'_>) -> Result<Value<'static>> {
    let bytes = relation(call, 0).map(RelationFacts::bytes_here);
    Ok(bytes.map_or(Value::Int64(0), |bytes| Value::Int64(i64::try_from(bytes).unwrap_or(i64::MAX))))
}

fn total_size(call: &Call<'_>) -> Result<Value<'static>> {
    let tables = facts(call).into_iter().flat_map(Facts::of_users).filter(|found| found.kind == RelationKind::Table);
    let bytes: usize = tables.map(RelationFacts::bytes_here).sum();
    Ok(Value::Int64(i64::try_from(bytes).unwrap_or(i64::MAX)))
}

/// A size as PostgreSQL shows it: in the smallest unit with less than 10240 units.
fn pretty(bytes: f64) -> String {
    let mut rest = bytes;
    for unit in ["bytes", "kB", "MB", "GB", "TB"] {
        if rest.abs() < 10_240.0 {
            return format!("{:.0} {unit}", rest.trunc());
        }
        rest = (rest / 1024.0).round();
    }
    format!("{rest:.0} PB")
}

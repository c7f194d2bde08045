//! Conversions between names and OIDs of objects: `regclass`, `regtype` and similar types.

use datafusion::common::Result;
use filbert_data::{FieldType, Value};
use filbert_dialect::{DEFAULT_SCHEMAS, quote_ident};
use filbert_functions::error::carried;
use filbert_functions::native::{Call, Native, Take, int8, now, of_text, pure, text};
use filbert_functions::pg_types;
use filbert_functions::types::type_of_objects;
use filbert_grid::query::{SqlError, SqlErrorCode};

use super::scene;
use crate::server::ServerOfSession;
use crate::session::search_path;
use crate::system::{self, Facts, Scene};

/// The name of an OID, or a name in its canonical form.
pub(super) static REG_NAME: Native = now(filbert_functions::REG_NAME, &[Take::Text, Take::Any], text, |call| {
    let oid = match call.int(1) {
        Some(oid) => oid,
        None => oid_of(call, call.text(0), call.text(1))?,
    };
    Ok(of_text(name_of(call, call.text(0), oid)))
});

pub(super) const FUNCTIONS: &[Native] = &[
    // Returns an OID for a text, and a text for an OID.
    now("reg_object", &[Take::Text, Take::Any], number_or_name, |call| match call.int(1) {
        Some(oid) => Ok(of_text(name_of(call, call.text(0), oid))),
        None => Ok(Value::Int64(oid_of(call, call.text(0), call.text(1))?)),
    })
    .of_named_objects(),
    now("reg_oid", &[Take::Text, Take::Any], int8, |call| match call.int(1) {
        Some(oid) => Ok(Value::Int64(oid)),
        None => Ok(Value::Int64(oid_of(call, call.text(0), call.text(1))?)),
    })
    .of_objects(),
    now("to_regclass", &[Take::Text], int8, |call| {
        Ok(relation_oid(call, call.text(0)).map_or(Value::Null, Value::Int64))
    })
    .of_pg_type(|_| type_of_objects("class")),
    pure("to_regtype", &[Take::Text], int8, |call| {
        Ok(pg_types::by_name(call.text(0)).map_or(Value::Null, Value::Int64))
    })
    .of_pg_type(|_| type_of_objects("type")),
    now("to_regnamespace", &[Take::Text], int8, |call| {
        Ok(schema_oid(call, call.text(0)).map_or(Value::Null, Value::Int64))
    })
    .of_pg_type(|_| type_of_objects("namespace")),
    now("to_regproc", &[Take::Text], int8, |call| {
        Ok(function_oid(call, call.text(0)).map_or(Value::Null, Value::Int64))
    })
    .of_pg_type(|_| type_of_objects("proc")),
    pure("quote_ident", &[Take::Text], text, |call| Ok(of_text(quote_ident(call.text(0))))),
];

fn number_or_name(types: &[FieldType]) -> FieldType {
    match types.get(1) {
        Some(FieldType::TinyInt | FieldType::SmallInt | FieldType::Integer | FieldType::BigInt) => FieldType::Varchar,
        _ => FieldType::BigInt,
    }
}

/// The parts of a dotted name, without quotes. Unquoted parts are in lower case.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut in_quotes = false;
    let mut chars = name.trim().chars().peekable();
    while let Some(char) = chars.next() {
        let Some(part) = parts.last_mut() else { break };
        match char {
            '"' if in_quotes && chars.peek() == Some(&'"') => {
                chars.next();
                part.push('"');
            }
            '"' => in_quotes = !in_quotes,
            '.' if !in_quotes => parts.push(String::new()),
            char if in_quotes => part.push(char),
            char => part.extend(char.to_lowercase()),
        }
    }
    parts
}

/// The OID of a relation or an index with this name.
pub(super) fn relation_oid(call: &Call<'_>, name: &str) -> Option<i64> {
    if let Ok(oid) = name.trim().parse() {
        return Some(oid);
    }
    let facts = scene(call)?.facts();
    let parts = parts(name);
    let (schema, name) = match parts.as_slice() {
        [name] => (None, name),
        [.., schema, name] => (Some(schema), name),
        [] => return None,
    };
    match schema {
        Some(schema) => oid_within(facts, schema, name),
        None => path(scene(call)?).iter().find_map(|schema| oid_within(facts, schema, name)),
    }
}

/// The search path, in order.
fn path(scene: &Scene) -> Vec<String> {
    let default = scene.default_schema();
    let path = search_path(scene.session.as_deref(), scene.dialect, false).into_iter();
    let path = path.map(|schema| if DEFAULT_SCHEMAS.contains(&schema.as_str()) { default.to_owned() } else { schema });
    path.chain([default.to_owned(), system::PG_CATALOG.to_owned()]).collect()
}

/// Whether the unqualified name of a relation or an index resolves to this OID.
pub(super) fn is_visible(scene: &Scene, name: &str, oid: i64) -> bool {
    path(scene).iter().find_map(|schema| oid_within(scene.facts(), schema, name)) == Some(oid)
}

/// The OID of a relation or an index of a schema.
fn oid_within(facts: &Facts, schema: &str, name: &str) -> Option<i64> {
    let relation = facts.relations.iter().find(|relation| relation.name == *name && relation.schema == schema);
    let index = || facts.indexes().find(|(relation, index)| index.name == *name && relation.schema == schema);
    relation.map(|relation| relation.oid).or_else(|| index().map(|(_, index)| index.oid))
}

fn schema_oid(call: &Call<'_>, name: &str) -> Option<i64> {
    let parts = parts(name);
    let schemas = &scene(call)?.facts().schemas;
    schemas.iter().find(|(known, _)| parts.last() == Some(known)).map(|(_, oid)| *oid)
}

fn function_oid(call: &Call<'_>, name: &str) -> Option<i64> {
    ServerOfSession::of(call.options())?.function_oid(&parts(name).pop()?)
}

fn oid_of(call: &Call<'_>, kind: &str, name: &str) -> Result<i64> {
    if name == "-" {
        return Ok(0);
    }
    if let Ok(oid) = name.trim().parse() {
        return Ok(oid);
    }
    let (found, what, sqlstate) = match kind {
        "class" => (relation_oid(call, name), "relation", "42P01"),
        "type" => (pg_types::by_name(name), "type", "42704"),
        "namespace" => (schema_oid(call, name), "schema", "3F000"),
        "role" => (Some(crate::oids::SUPERUSER), "role", "42704"),
        "proc" => (function_oid(call, name), "function", "42883"),
        _ => (None, "function", "42883"),
    };
    found.ok_or_else(|| {
        let error = SqlError::new(SqlErrorCode::ObjectNotFound, format!("{what} \"{name}\" does not exist"));
        carried(error.with_sqlstate(sqlstate))
    })
}

fn name_of(call: &Call<'_>, kind: &str, oid: i64) -> String {
    let unknown = || if oid == 0 { "-".to_owned() } else { oid.to_string() };
    match kind {
        "type" => match pg_types::by_oid(oid) {
            Some(_) => pg_types::format(oid, None),
            None => {
                let relations = scene(call).map(|scene| (scene, scene.facts().of_users()));
                let named = relations.and_then(|(scene, mut relations)| {
                    relations.find(|relation| relation.row_type == oid).map(|relation| (scene, relation.oid))
                });
                named.and_then(|(scene, relation)| relation_name(scene, relation)).unwrap_or_else(unknown)
            }
        },
        "class" => scene(call).and_then(|scene| relation_name(scene, oid)).unwrap_or_else(unknown),
        "namespace" => {
            let schemas = scene(call).map(|scene| scene.facts().schemas.as_slice()).unwrap_or_default();
            let found = schemas.iter().find(|(_, known)| *known == oid);
            found.map_or_else(unknown, |(name, _)| quote_ident(name))
        }
        "proc" => {
            let name = ServerOfSession::of(call.options()).and_then(|server| server.function_name(oid));
            name.map_or_else(unknown, quote_ident)
        }
        "role" => scene(call).map_or_else(unknown, |scene| quote_ident(scene.user())),
        _ => unknown(),
    }
}

/// The name of a relation or index, qualified if the search path does not find it.
fn relation_name(scene: &Scene, oid: i64) -> Option<String> {
    let facts = scene.facts();
    let (schema, name) = match facts.relation(oid) {
        Some(relation) => (&relation.schema, &relation.name),
        None => facts.index(oid).map(|(relation, index)| (&relation.schema, &index.name))?,
    };
    Some(if is_visible(scene, name, oid) {
        quote_ident(name)
    } else {
        format!("{}.{}", quote_ident(schema), quote_ident(name))
    })
}

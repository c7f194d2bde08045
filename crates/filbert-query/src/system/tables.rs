//! The catalog content of tables and mappings: columns, keys, indexes and checks, with their OIDs.

use std::sync::Arc;

use filbert_data::Side;
use filbert_dialect::{DeclaredType, quote_ident};
use filbert_functions::pg_types;
use filbert_functions::types::JSONB;
use filbert_grid::{IndexKind, Map};

use super::facts::{ColumnFacts, ConstraintFacts, IndexFacts, Place, RelationFacts, RelationKind, plain_column};
use crate::catalog::{self, Mapping, MappingColumn};
use crate::oids::Oids;
use crate::tables::Tables;

/// The catalog content of a table or mapping.
pub(super) fn facts(tables: &Tables, mapping: Arc<Mapping>, place: Place, oids: &mut Oids) -> RelationFacts {
    let Place { schema, schema_oid, name } = place;
    let full = format!("{schema}.{name}");
    let map = tables.grid().ok().and_then(|grid| grid.existing_map(&mapping.external_name));
    let visible: Vec<(&MappingColumn, ColumnFacts)> = columns(&mapping, &name);
    let key = key(&mapping, &visible);
    let (mut indexes, mut constraints) = (Vec::new(), Vec::new());
    if !key.is_empty() {
        let of_table = mapping.table.as_ref().map(|table| table.primary_key_name.clone());
        let key_name = of_table.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("{name}_pkey"));
        let attributes: Vec<String> = key.iter().map(|place| name_at(&visible, *place)).collect();
        let quoted: Vec<String> = attributes.iter().map(|column| quote_ident(column)).collect();
        let index = oids.of("index", &format!("{full}.{key_name}"));
        constraints.push(ConstraintFacts {
            oid: oids.of("constraint", &format!("{full}.{key_name}")),
            name: key_name.clone(),
            kind: "p",
            columns: key.clone(),
            index,
            definition: format!("PRIMARY KEY ({})", quoted.join(", ")),
        });
        indexes.push(IndexFacts {
            oid: index,
            name: key_name,
            is_primary: true,
            is_hash: false,
            columns: key,
            attributes,
        });
    }
    for check in mapping.table.iter().flat_map(|table| &table.checks) {
        constraints.push(ConstraintFacts {
            oid: oids.of("constraint", &format!("{full}.{}", check.name)),
            name: check.name.clone(),
            kind: "c",
            columns: Vec::new(),
            index: 0,
            definition: check.condition.text.clone(),
        });
    }
    indexes.extend(map.iter().flat_map(|map| declared_indexes(map, &visible, &full, oids)));
    RelationFacts {
        oid: oids.of("table", &full),
        row_type: oids.of("type", &full),
        columns: visible.into_iter().map(|(_, facts)| facts).collect(),
        schema,
        schema_oid,
        name,
        kind: RelationKind::Table,
        indexes,
        constraints,
        definition: None,
        map,
        comment: mapping.table.as_ref().and_then(|table| table.comment.clone()),
    }
}

/// The columns that `*` stands for.
fn columns<'m>(mapping: &'m Mapping, table: &str) -> Vec<(&'m MappingColumn, ColumnFacts)> {
    let declared = mapping.table.as_ref();
    let visible = mapping.columns.iter().enumerate().filter(|(_, column)| !column.hidden);
    let of = |(at, column): (usize, &'m MappingColumn)| {
        let plain = plain_column(&column.name, &column.field_type);
        let facts = match declared.and_then(|table| table.columns.get(at)) {
            Some(facts) => of_declared(plain, facts, table),
            None => ColumnFacts { not_null: column.path.side == Side::Key, ..plain },
        };
        (column, facts)
    };
    visible.map(of).collect()
}

fn of_declared(plain: ColumnFacts, facts: &catalog::ColumnFacts, table: &str) -> ColumnFacts {
    let counts = facts.identity.as_ref().map(|identity| (identity.always, identity.sequence.facts()));
    let next = || format!("nextval(\'{table}_{}_seq\'::regclass)", plain.name);
    let default = facts.default.as_ref().map(|default| default.text.clone());
    ColumnFacts {
        declared: of_declared_type(&facts.declared),
        crate_type: crate_type(&facts.declared),
        not_null: facts.not_null,
        default: default.or_else(|| counts.filter(|(_, sequence)| sequence.serial).map(|_| next())),
        identity: counts.filter(|(_, sequence)| !sequence.serial),
        generated: facts.generated.as_ref().map(|generated| generated.text.clone()),
        comment: facts.comment.clone(),
        ..plain
    }
}

/// A declared type for `pg_attribute`.
fn of_declared_type(declared: &DeclaredType) -> pg_types::Declared {
    match declared {
        DeclaredType::Plain(field_type) => pg_types::of_field_type(field_type),
        DeclaredType::Rounded(field_type, digits) => (pg_types::of_field_type(field_type).0, i64::from(*digits)),
        // PostgreSQL adds four to the length, for a former header.
        DeclaredType::Varchar(length) => (1043, length.map_or(-1, |length| i64::from(length) + 4)),
        DeclaredType::Character(length) => (1042, i64::from(*length) + 4),
        DeclaredType::Ip => (25, -1),
        DeclaredType::Array(item) => {
            let (oid, modifier) = of_declared_type(item);
            match pg_types::by_oid(oid) {
                Some((found, false)) => (found.array, modifier),
                _ => (oid, modifier),
            }
        }
        DeclaredType::Jsonb => (i64::from(JSONB), -1),
        DeclaredType::Object(..) | DeclaredType::GeoPoint | DeclaredType::GeoShape => {
            pg_types::of_field_type(&declared.field_type())
        }
    }
}

/// A declared type for CrateDB's `information_schema`.
fn crate_type(declared: &DeclaredType) -> String {
    match declared {
        DeclaredType::Plain(field_type) | DeclaredType::Rounded(field_type, _) => pg_types::crate_type(field_type),
        DeclaredType::Varchar(Some(_)) => "character varying".to_owned(),
        DeclaredType::Varchar(None) => pg_types::crate_type(&filbert_data::FieldType::Varchar),
        DeclaredType::Character(_) => "character".to_owned(),
        DeclaredType::Jsonb | DeclaredType::Object(..) => "object".to_owned(),
        DeclaredType::Array(item) => format!("{}_array", crate_type(item)),
        other => other.crate_name(),
    }
}

fn place_of(at: usize) -> i64 {
    i64::try_from(at + 1).unwrap_or(0)
}

fn name_at(columns: &[(&MappingColumn, ColumnFacts)], place: i64) -> String {
    let at = usize::try_from(place - 1).unwrap_or(usize::MAX);
    columns.get(at).map(|(column, _)| column.name.clone()).unwrap_or_default()
}

/// The positions of the primary key's columns.
fn key(mapping: &Mapping, columns: &[(&MappingColumn, ColumnFacts)]) -> Vec<i64> {
    let at = |name: &str| columns.iter().position(|(column, _)| column.name == name).map(place_of);
    match &mapping.table {
        Some(table) => table.primary_key.iter().filter_map(|name| at(name)).collect(),
        None => {
            let of_key = columns.iter().enumerate().filter(|(_, (column, _))| column.path.side == Side::Key);
            of_key.map(|(at, _)| place_of(at)).collect()
        }
    }
}

fn declared_indexes(
    map: &Map,
    columns: &[(&MappingColumn, ColumnFacts)],
    full: &str,
    oids: &mut Oids,
) -> Vec<IndexFacts> {
    let mut indexes = Vec::new();
    for config in map.indexes() {
        let name = config.name.clone().unwrap_or_default();
        let place =
            |path: &String| columns.iter().position(|(column, _)| column.path.to_string() == *path).map_or(0, place_of);
        let places: Vec<i64> = config.attributes.iter().map(place).collect();
        let written = config.attributes.iter().zip(&places);
        let written = written.map(|(path, place)| if *place > 0 { name_at(columns, *place) } else { path.clone() });
        indexes.push(IndexFacts {
            oid: oids.of("index", &format!("{full}.{name}")),
            is_primary: false,
            is_hash: config.kind != IndexKind::Sorted,
            attributes: written.collect(),
            columns: places,
            name,
        });
    }
    indexes
}

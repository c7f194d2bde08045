//! Tables and columns in PostgreSQL's `information_schema`.

use filbert_data::FieldType;
use filbert_functions::pg_types;

use super::super::facts::{ColumnFacts, RelationKind};
use super::super::relation::{Relation, Rows, row};
use super::super::scene::Scene;

pub(super) const RELATIONS: &[Relation] = &[
    Relation {
        name: "tables",
        columns: "table_catalog name, table_schema name, table_name name, table_type text, self_referencing_column_name name, \
                  reference_generation text, user_defined_type_catalog name, user_defined_type_schema name, \
                  user_defined_type_name name, is_insertable_into text, is_typed text=NO, commit_action text",
        rows: tables,
    },
    Relation {
        name: "columns",
        columns: "table_catalog name, table_schema name, table_name name, column_name name, ordinal_position int4, column_default text, \
                  is_nullable text, data_type text, character_maximum_length int4, character_octet_length int4, \
                  numeric_precision int4, numeric_precision_radix int4, numeric_scale int4, datetime_precision int4, \
                  interval_type text, interval_precision int4, character_set_catalog name, character_set_schema name, \
                  character_set_name name, collation_catalog name, collation_schema name, collation_name name, \
                  domain_catalog name, domain_schema name, domain_name name, udt_catalog name, udt_schema name=pg_catalog, \
                  udt_name name, scope_catalog name, scope_schema name, scope_name name, maximum_cardinality int4, \
                  dtd_identifier name, is_self_referencing text=NO, is_identity text=NO, identity_generation text, \
                  identity_start text, identity_increment text, identity_maximum text, identity_minimum text, \
                  identity_cycle text=NO, is_generated text=NEVER, generation_expression text, is_updatable text=YES",
        rows: columns,
    },
];

fn tables(scene: &Scene, rows: &mut Rows<'_>) {
    for relation in &scene.facts().relations {
        let is_table = relation.letter() == "r";
        row!(rows,
            table_catalog: scene.database(),
            table_schema: &relation.schema,
            table_name: &relation.name,
            table_type: if is_table { "BASE TABLE" } else { "VIEW" },
            is_insertable_into: if relation.kind == RelationKind::Table { "YES" } else { "NO" },
        );
    }
}

fn columns(scene: &Scene, rows: &mut Rows<'_>) {
    let database = scene.database();
    for relation in &scene.facts().relations {
        for (at, column) in relation.columns.iter().enumerate() {
            let facts = TypeFacts::of(column);
            let (oid, modifier) = column.declared;
            let found = pg_types::by_oid(oid);
            let udt = found.map(
                |(found, is_array)| {
                    if is_array { format!("_{}", found.name) } else { found.name.to_owned() }
                },
            );
            let length = match oid {
                1042 | 1043 if modifier > 4 => Some(modifier - 4),
                _ => None,
            };
            let sequence = column.identity.map(|(_, sequence)| sequence);
            row!(rows,
                table_catalog: &database,
                table_schema: &relation.schema,
                table_name: &relation.name,
                column_name: &column.name,
                ordinal_position: at + 1,
                column_default: column.default.clone(),
                is_nullable: if column.not_null { "NO" } else { "YES" },
                data_type: data_type(oid),
                character_maximum_length: length,
                // UTF-8 has at most four bytes for a character.
                character_octet_length: length.map(|length| length.saturating_mul(4)).or(facts.octets),
                numeric_precision: facts.precision,
                numeric_precision_radix: facts.radix,
                numeric_scale: facts.scale,
                datetime_precision: facts.fraction,
                udt_catalog: &database,
                udt_name: udt,
                dtd_identifier: (at + 1).to_string(),
                is_identity: if column.identity.is_some() { "YES" } else { "NO" },
                identity_generation: column.identity.map(|(always, _)| if always { "ALWAYS" } else { "BY DEFAULT" }),
                identity_start: sequence.map(|sequence| sequence.start.to_string()),
                identity_increment: sequence.map(|sequence| sequence.step.to_string()),
                identity_maximum: sequence.map(|sequence| sequence.most.to_string()),
                identity_minimum: sequence.map(|sequence| sequence.least.to_string()),
                identity_cycle: if sequence.is_some_and(|sequence| sequence.cycles) { "YES" } else { "NO" },
                is_generated: if column.generated.is_some() { "ALWAYS" } else { "NEVER" },
                generation_expression: column.generated.clone(),
            );
        }
    }
}

/// The standard's name of a type.
fn data_type(oid: i64) -> String {
    match pg_types::by_oid(oid) {
        Some((_, true)) => "ARRAY".to_owned(),
        Some((found, false)) => found.sql.to_owned(),
        None => "USER-DEFINED".to_owned(),
    }
}

/// The digits and bytes of a type.
#[derive(Default)]
pub(super) struct TypeFacts {
    pub(super) octets: Option<i64>,
    pub(super) precision: Option<i64>,
    pub(super) radix: Option<i64>,
    pub(super) scale: Option<i64>,
    pub(super) fraction: Option<i64>,
}

impl TypeFacts {
    pub(super) fn of(column: &ColumnFacts) -> TypeFacts {
        let binary = |precision| TypeFacts { precision: Some(precision), radix: Some(2), ..TypeFacts::default() };
        let whole = |precision| TypeFacts { scale: Some(0), ..binary(precision) };
        match &column.field_type {
            FieldType::TinyInt | FieldType::SmallInt => whole(16),
            FieldType::Integer => whole(32),
            FieldType::BigInt => whole(64),
            FieldType::Real => binary(24),
            FieldType::Double => binary(53),
            FieldType::Decimal(Some((precision, scale))) => TypeFacts {
                precision: Some(i64::from(*precision)),
                radix: Some(10),
                scale: Some(i64::from(*scale)),
                ..TypeFacts::default()
            },
            FieldType::Decimal(None) => TypeFacts { radix: Some(10), ..TypeFacts::default() },
            FieldType::Varchar | FieldType::Char => TypeFacts { octets: Some(1 << 30), ..TypeFacts::default() },
            FieldType::Date => TypeFacts { fraction: Some(0), ..TypeFacts::default() },
            FieldType::Time | FieldType::Timestamp | FieldType::TimestampTz | FieldType::Interval => {
                TypeFacts { fraction: Some(6), ..TypeFacts::default() }
            }
            _ => TypeFacts::default(),
        }
    }
}

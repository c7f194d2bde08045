//! Tables: maps with declared rows. The primary key is the map's key. The other columns are the
//! fields of a Compact value with the table's name as its type name, so the stock clients read rows
//! as records.
//!
//! ```text
//!  PRIMARY KEY (id)       key = the value of id           value = Compact t {a, b, ..}
//!  PRIMARY KEY (a, b)     key = Compact t_key {a, b}      value = Compact t {c, ..}
//!  no primary key         key = the hidden BIGINT _id     value = Compact t {a, b, ..}
//! ```
//!
//! The value of `id` is serialized as a client would write it. The member generates the values of
//! `_id`.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use datafusion::sql::sqlparser::ast::Expr;
use filbert_data::{FieldPath, FieldType, Path, Side};
use filbert_dialect::{DeclaredType, Expression, walk};
use filbert_functions::error::parsing_error;
use filbert_functions::types::PgType;
use filbert_grid::query::{ParameterType, SqlError};

use super::format::EntryFormat;
use super::mapping::{Mapping, MappingColumn};
use super::sequence::Sequence;

/// The hidden column of a table without a primary key.
pub(crate) const ROW_ID: &str = "_id";
/// The suffix of the type name of a key with several columns.
const KEY_SUFFIX: &str = "_key";

/// The declaration of a table, beyond its mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableFacts {
    /// The declarations of the mapping's columns, in the same order.
    pub(crate) columns: Vec<ColumnFacts>,
    /// The columns of the primary key, in its order; empty = none.
    pub(crate) primary_key: Vec<String>,
    /// The constraint name of the primary key.
    pub(crate) primary_key_name: String,
    /// Conditions that must not be false for any row.
    pub(crate) checks: Vec<CheckFacts>,
    /// `CLUSTERED BY`.
    pub(crate) clustered_by: Option<String>,
    /// `CLUSTERED INTO .. SHARDS`.
    pub(crate) shards: Option<u32>,
    /// `PARTITIONED BY`.
    pub(crate) partitioned_by: Vec<String>,
    /// `WITH (..)`.
    pub(crate) options: Vec<(String, String)>,
    /// `COMMENT ON TABLE`.
    pub(crate) comment: Option<String>,
    /// The id of the map with its rows, if a statement of a cluster has rewritten them
    /// ([`Map::replacement`](filbert_grid::Map::replacement)).
    pub(crate) map: Option<u32>,
}

/// The declaration of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnFacts {
    /// Its type.
    pub(crate) declared: DeclaredType,
    /// Whether it is never null: by `NOT NULL`, or as part of the primary key.
    pub(crate) not_null: bool,
    /// Its default.
    pub(crate) default: Option<Expression>,
    /// Its expression, if it is generated.
    pub(crate) generated: Option<Expression>,
    /// Its identity, if it has one.
    pub(crate) identity: Option<Identity>,
    /// `COMMENT ON COLUMN`.
    pub(crate) comment: Option<String>,
}

impl ColumnFacts {
    /// A column with nothing but a type.
    pub(crate) fn of(declared: DeclaredType) -> ColumnFacts {
        ColumnFacts { declared, not_null: false, default: None, generated: None, identity: None, comment: None }
    }
}

/// A `CHECK` constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckFacts {
    /// The constraint's name.
    pub(crate) name: String,
    /// The condition.
    pub(crate) condition: Expression,
}

/// An identity column.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Whether the identity is `ALWAYS`, so statements may not set the column.
    pub(crate) always: bool,
    /// Its sequence.
    pub(crate) sequence: Arc<Sequence>,
}

impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.always == other.always && self.sequence.id() == other.sequence.id()
    }
}

impl Eq for Identity {}

impl Identity {
    /// The identity of another column with the same definition and its own sequence.
    pub(crate) fn anew(&self) -> Identity {
        Identity { always: self.always, sequence: Arc::new(self.sequence.anew()) }
    }

    /// Restarts the sequence.
    pub(crate) fn restart(&self) {
        self.sequence.restart();
    }
}

/// Generates keys for rows without a primary key. The keys grow, and do not repeat after a restart,
/// because they begin with the time.
///
/// A key has 20 bits below the milliseconds. In a cluster, their upper half is the member's number.
#[derive(Debug, Default)]
pub(crate) struct RowIds {
    count: AtomicI64,
    member: OnceLock<i64>,
}

impl RowIds {
    /// Bits of a key below the milliseconds.
    const BITS: u32 = 20;
    /// The number of these bits that count, in a cluster.
    const BITS_OF_MEMBER: u32 = 10;

    /// Sets the member's number, which distinguishes its keys from those of other members.
    pub(crate) fn of_member(&self, member: u64) {
        let member = i64::try_from(member % (1 << Self::BITS_OF_MEMBER)).unwrap_or_default();
        // A member is in one cluster only.
        let _first = self.member.set(member);
    }

    /// Continues from this time at least.
    pub(crate) fn not_before(&self, now_ms: i64) {
        let bits = if self.member.get().is_some() { Self::BITS_OF_MEMBER } else { Self::BITS };
        self.count.fetch_max(now_ms.saturating_mul(1 << bits), Ordering::Relaxed);
    }

    /// A new key.
    pub(crate) fn next(&self) -> i64 {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let Some(member) = self.member.get() else { return count };
        let (time, low) = (count >> Self::BITS_OF_MEMBER, count & ((1 << Self::BITS_OF_MEMBER) - 1));
        time << Self::BITS | member << Self::BITS_OF_MEMBER | low
    }
}

impl Mapping {
    /// The declared members of a column's objects, if any.
    pub(crate) fn members(&self, column: usize) -> Option<String> {
        self.table.as_ref()?.columns.get(column)?.declared.members()
    }

    /// The PostgreSQL type of a column, if it carries more information than the stored type.
    pub(crate) fn pg_type(&self, column: usize) -> Option<PgType> {
        filbert_functions::postgres_type(&self.table.as_ref()?.columns.get(column)?.declared)
    }

    /// The type of a parameter that is the value of a column.
    pub(crate) fn parameter_type(&self, column: usize) -> Option<ParameterType> {
        let field_type = self.columns.get(column)?.field_type.clone();
        Some(ParameterType { field_type, pg_type: self.pg_type(column).map(|pg_type| pg_type.oid) })
    }

    /// The mapping of a table. Columns are in the declared order.
    ///
    /// # Errors
    /// A column of the primary key does not exist, or a generated column reads a generated one.
    pub(crate) fn of_table(
        name: &str,
        declared: Vec<(String, ColumnFacts)>,
        mut facts: TableFacts,
    ) -> Result<Mapping, SqlError> {
        if let Some(missing) = facts.primary_key.iter().find(|key| !declared.iter().any(|(name, _)| name == *key)) {
            let text = format!("column {missing:?} named in the primary key of {name:?} is not there");
            return Err(parsing_error(text).with_sqlstate("42703"));
        }
        check_generated(&declared)?;
        let single = facts.primary_key.len() == 1;
        let mut columns = Vec::with_capacity(declared.len() + 1);
        for (column, mut of_column) in declared {
            let of_key = facts.primary_key.contains(&column);
            let path = match (of_key, single) {
                (true, true) => FieldPath::KEY,
                (true, false) => FieldPath { side: Side::Key, path: Path::field(column.as_str()) },
                (false, _) => FieldPath { side: Side::Value, path: Path::field(column.as_str()) },
            };
            of_column.not_null |= of_key;
            let field_type = of_column.declared.field_type();
            if of_key {
                filbert_functions::check_key_type(&column, &field_type)?;
            }
            columns.push(MappingColumn { name: column, field_type, path, hidden: false });
            facts.columns.push(of_column);
        }
        let key_format = match facts.primary_key.as_slice() {
            [] => {
                let (field_type, path) = (FieldType::BigInt, FieldPath::KEY);
                columns.push(MappingColumn {
                    name: ROW_ID.to_owned(),
                    field_type: field_type.clone(),
                    path,
                    hidden: true,
                });
                let declared = DeclaredType::Plain(field_type.clone());
                facts.columns.push(ColumnFacts::of(declared));
                EntryFormat::Primitive(field_type)
            }
            [key] => {
                let key = columns.iter().find(|column| column.name == *key);
                EntryFormat::Primitive(key.map_or(FieldType::BigInt, |column| column.field_type.clone()))
            }
            _ => EntryFormat::Compact { type_name: format!("{name}{KEY_SUFFIX}") },
        };
        Ok(Mapping {
            name: name.to_owned(),
            external_name: name.to_owned(),
            columns,
            key_format,
            value_format: EntryFormat::Compact { type_name: name.to_owned() },
            options: Vec::new(),
            columnar: true,
            table: Some(Arc::new(facts)),
        })
    }
}

/// Generated columns are computed from others, not from each other.
fn check_generated(columns: &[(String, ColumnFacts)]) -> Result<(), SqlError> {
    let generated = columns.iter().filter_map(|(name, facts)| Some((name, facts.generated.as_ref()?)));
    for (name, expression) in generated.clone() {
        if let Some((other, _)) = generated.clone().find(|(other, _)| names_column(&expression.expr, other)) {
            let text = format!("the generated column {name:?} refers to the generated column {other:?}");
            return Err(parsing_error(text).with_sqlstate("42P17"));
        }
    }
    Ok(())
}

/// Whether an expression uses a column.
pub(crate) fn names_column(expr: &Expr, column: &str) -> bool {
    let mut found = false;
    let _ = walk::expressions(expr, |expr| {
        found |= match expr {
            Expr::Identifier(name) => name.value == column,
            Expr::CompoundIdentifier(names) => names.last().is_some_and(|name| name.value == column),
            _ => false,
        };
        std::ops::ControlFlow::<()>::Continue(())
    });
    found
}

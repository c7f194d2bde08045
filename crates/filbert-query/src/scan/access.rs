//! Access paths: finds the entries of a filter by key, by index, or by a full scan.
//!
//! An [`AccessPlan`] is made once from a statement's filter and may contain parameters.
//! [`AccessPlan::resolve`] inserts their values. The access path finds candidates: the filter is
//! checked on each of them afterwards.

use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::logical_expr::expr::{InList, Like, Placeholder};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use filbert_data::{Blob, FieldPath, FieldType, Kinds, Side, Value, uuid_of};
use filbert_functions::error::data_error;
use filbert_functions::lists;
use filbert_functions::types::value_of;
use filbert_grid::query::SqlError;
use filbert_grid::replication::IndexSelection;
use filbert_grid::{IndexId, IndexKind, Probe};

use crate::scan::table::{MapTable, TableColumn};

/// The maximum number of keys of one lookup; longer lists use a full scan.
const LOOKUPS_MAX: usize = 10_000;

/// A constant of a statement, or the number of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    Constant(Value<'static>),
    Parameter(usize),
}

impl Operand {
    pub(crate) fn value<'v>(&'v self, parameters: &'v [Value<'v>]) -> Result<&'v Value<'v>, SqlError> {
        match self {
            Operand::Constant(value) => Ok(value),
            Operand::Parameter(index) => parameters
                .get(*index)
                .ok_or_else(|| data_error(format!("parameter {} has no value", index.saturating_add(1)))),
        }
    }
}

/// The condition on one column.
#[derive(Clone, Debug)]
enum Wanted {
    OneOf(Vec<Operand>),
    Range(Bound<Operand>, Bound<Operand>),
}

/// An access path with open parameters.
#[derive(Clone, Debug)]
pub(crate) enum AccessPlan {
    /// All entries.
    All,
    /// The entries with these keys.
    Keys(Vec<Operand>),
    /// The entries with composite keys: alternatives for each key column.
    Composite(Vec<Vec<Operand>>),
    /// The entries that an index finds.
    Index {
        id: IndexId,
        name: String,
        /// One list of alternatives for each leading attribute, optionally followed by a range of
        /// the next one.
        equal: Vec<Vec<Operand>>,
        range: Option<(Bound<Operand>, Bound<Operand>)>,
        /// The column types of the attributes in use.
        types: Vec<FieldType>,
        /// All attributes, with the kinds of values for which the index can be used.
        fields: Arc<[(FieldPath, Kinds)]>,
    },
}

/// An access path.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    All,
    Keys(Vec<Blob>),
    Index {
        id: IndexId,
        name: String,
        /// The index and the keys, for this member and for others.
        selection: IndexSelection,
    },
    /// A comparison with null finds nothing.
    Nothing,
}

impl AccessPlan {
    /// The best access path for the entries that satisfy all `filters`.
    pub(crate) fn choose(table: &MapTable, filters: &[Expr]) -> AccessPlan {
        let mut wanted: Vec<(&FieldPath, &FieldType, Wanted)> = Vec::new();
        for filter in filters {
            collect(table, filter, &mut wanted);
        }
        if wanted.is_empty() {
            return AccessPlan::All;
        }
        let key_is_whole = |field: &FieldPath| *field == FieldPath::KEY;
        for (field, field_type, what) in &wanted {
            if key_is_whole(field)
                && let Wanted::OneOf(keys) = what
                && table.writes_key_as(field_type)
            {
                return AccessPlan::Keys(keys.clone());
            }
        }
        if let Some(columns) = composite(table, &wanted) {
            return AccessPlan::Composite(columns);
        }
        let mut best: Option<(u32, AccessPlan)> = None;
        for index in table.map().layout().indexes.iter().filter(|index| index.ready) {
            let mut equal = Vec::new();
            let mut range = None;
            let mut types = Vec::new();
            let mut combinations = 1usize;
            for attribute in &index.fields {
                let Some((_, field_type, _)) = wanted.iter().find(|(field, ..)| *field == attribute) else { break };
                // Several columns may expose a field in different types: one of them suffices.
                let of_attribute =
                    || wanted.iter().filter(|(field, other, _)| *field == attribute && other == field_type);
                types.push((*field_type).clone());
                let lists = of_attribute().filter_map(|(_, _, what)| match what {
                    Wanted::OneOf(operands) => Some(operands),
                    Wanted::Range(..) => None,
                });
                if let Some(operands) = lists.min_by_key(|operands| operands.len())
                    && combinations.saturating_mul(operands.len()) <= LOOKUPS_MAX
                {
                    combinations *= operands.len().max(1);
                    equal.push(operands.clone());
                    continue;
                }
                if index.kind == IndexKind::Sorted && combinations == 1 {
                    range = merged_range(of_attribute().map(|(_, _, what)| what));
                }
                break;
            }
            let complete = equal.len() == index.fields.len();
            let usable = match index.kind {
                IndexKind::Sorted => range.is_some() || (!equal.is_empty() && (complete || combinations == 1)),
                IndexKind::Hash | IndexKind::Bitmap => complete,
            };
            if !usable {
                continue;
            }
            // Equal attributes narrow most, then a range. A hash index finds one key faster than a
            // sorted one.
            let few = u32::from(combinations == 1);
            let score = u32::try_from(equal.len()).unwrap_or(0) * 8
                + few * 4
                + u32::from(range.is_some()) * 2
                + u32::from(index.kind == IndexKind::Hash);
            if best.as_ref().is_none_or(|(known, _)| score > *known) {
                let kinds = types.iter().map(Kinds::shown_as_they_are).chain(std::iter::repeat(Kinds::ALL));
                let fields = index.fields.iter().cloned().zip(kinds).collect();
                let (id, name) = (index.id, index.name.clone());
                best = Some((score, AccessPlan::Index { id, name, equal, range, types, fields }));
            }
        }
        best.map_or(AccessPlan::All, |(_, plan)| plan)
    }

    /// Inserts the values of parameters. An index that was dropped, or has values that the columns
    /// convert, is not used.
    pub(crate) fn resolve(&self, table: &MapTable, parameters: &[Value<'_>]) -> Result<Access, SqlError> {
        match self {
            AccessPlan::All => Ok(Access::All),
            AccessPlan::Keys(operands) => {
                let mut keys = Vec::with_capacity(operands.len());
                for operand in operands {
                    let value = operand.value(parameters)?;
                    if !value.is_null()
                        && let Some(key) = table.key_blob(value)?
                    {
                        keys.push(key);
                    }
                }
                if keys.len() > 1 {
                    keys.sort_unstable();
                    keys.dedup();
                }
                Ok(if keys.is_empty() { Access::Nothing } else { Access::Keys(keys) })
            }
            AccessPlan::Composite(columns) => {
                let mut keys = composite_keys(table, columns, parameters)?;
                keys.sort_unstable();
                keys.dedup();
                Ok(if keys.is_empty() { Access::Nothing } else { Access::Keys(keys) })
            }
            AccessPlan::Index { id, name, equal, range, types, fields } => {
                let layout = table.map().layout();
                let Some(index) = layout.indexes.iter().find(|index| index.id == *id) else { return Ok(Access::All) };
                let shown = |(at, (_, kinds)): (usize, &(FieldPath, Kinds))| index.seen.of(at).are_within(*kinds);
                if !fields.iter().enumerate().all(shown) {
                    return Ok(Access::All);
                }
                let mut prefixes = vec![Vec::new()];
                for (operands, field_type) in equal.iter().zip(types) {
                    let mut longer = Vec::with_capacity(prefixes.len() * operands.len());
                    for operand in operands {
                        let value = operand.value(parameters)?;
                        if value.is_null() {
                            continue;
                        }
                        let value = as_kept(value, field_type);
                        for prefix in &prefixes {
                            let mut key: Vec<u8> = prefix.clone();
                            value.append_index_key(&mut key);
                            longer.push(key);
                        }
                    }
                    prefixes = longer;
                }
                let complete = range.is_none() && index.fields.len() == equal.len();
                let probe = match (complete, prefixes.len()) {
                    (_, 0) => return Ok(Access::Nothing),
                    (true, 1) => Probe::Equal(prefixes.pop().unwrap_or_default()),
                    (true, _) => {
                        prefixes.sort_unstable();
                        prefixes.dedup();
                        Probe::In(prefixes)
                    }
                    (false, _) => {
                        let prefix = prefixes.pop().unwrap_or_default();
                        match range {
                            Some((from, to)) => {
                                match range_probe(&prefix, from, to, types.get(equal.len()), parameters)? {
                                    Some(probe) => probe,
                                    None => return Ok(Access::Nothing),
                                }
                            }
                            // All entries with the equal attributes, for any values of the other
                            // attributes, including nulls.
                            None => Probe::Range {
                                to: successor(prefix.clone()).map_or(Bound::Unbounded, Bound::Excluded),
                                from: Bound::Included(prefix),
                                descending: false,
                            },
                        }
                    }
                };
                let selection = IndexSelection { kind: index.kind, fields: fields.clone(), probe };
                Ok(Access::Index { id: *id, name: name.clone(), selection })
            }
        }
    }
}

/// The alternatives for each column of a composite key, if the filter compares all of them by
/// equality.
fn composite(table: &MapTable, wanted: &[(&FieldPath, &FieldType, Wanted)]) -> Option<Vec<Vec<Operand>>> {
    let columns = table.key_columns();
    let mut combinations = 1usize;
    let mut alternatives = Vec::with_capacity(columns.len());
    for column in columns {
        let lists = wanted.iter().filter_map(|(path, field_type, what)| match what {
            Wanted::OneOf(operands) if **path == column.path && table.writes_key_as(field_type) => Some(operands),
            _ => None,
        });
        let operands = lists.min_by_key(|operands| operands.len())?;
        combinations = combinations.saturating_mul(operands.len());
        alternatives.push(operands.clone());
    }
    (!alternatives.is_empty() && combinations <= LOOKUPS_MAX).then_some(alternatives)
}

/// The keys of all combinations. No row has a key with a null, or with a value that does not fit
/// its column's type.
fn composite_keys(table: &MapTable, columns: &[Vec<Operand>], parameters: &[Value<'_>]) -> Result<Vec<Blob>, SqlError> {
    let mut combinations: Vec<Vec<&Value<'_>>> = vec![Vec::new()];
    for operands in columns {
        let mut longer = Vec::with_capacity(combinations.len() * operands.len());
        for operand in operands {
            let value = operand.value(parameters)?;
            if !value.is_null() {
                longer.extend(combinations.iter().map(|before| [before.as_slice(), &[value]].concat()));
            }
        }
        combinations = longer;
    }
    let mut keys = Vec::with_capacity(combinations.len());
    for values in combinations {
        keys.extend(table.composite_key(&values)?);
    }
    Ok(keys)
}

/// The index keys that begin with `prefix` and continue within the bounds; `None` if a bound is
/// null.
fn range_probe(
    prefix: &[u8],
    from: &Bound<Operand>,
    to: &Bound<Operand>,
    field_type: Option<&FieldType>,
    parameters: &[Value<'_>],
) -> Result<Option<Probe>, SqlError> {
    let encoded = |bound: &Bound<Operand>| -> Result<Option<Option<Vec<u8>>>, SqlError> {
        let (Bound::Included(operand) | Bound::Excluded(operand)) = bound else { return Ok(Some(None)) };
        let value = operand.value(parameters)?;
        if value.is_null() {
            return Ok(None);
        }
        let mut key = prefix.to_vec();
        field_type.map_or(Cow::Borrowed(value), |field_type| as_kept(value, field_type)).append_index_key(&mut key);
        Ok(Some(Some(key)))
    };
    let (Some(low), Some(high)) = (encoded(from)?, encoded(to)?) else { return Ok(None) };
    // The filter checks the bounds again, so the range includes both: a decimal's key may be
    // rounded.
    let from = match low {
        Some(key) => Bound::Included(key),
        // Nulls come first, and a range never includes them.
        None => {
            let mut nulls = prefix.to_vec();
            Value::Null.append_index_key(&mut nulls);
            successor(nulls).map_or(Bound::Unbounded, Bound::Included)
        }
    };
    let to = match high.map_or_else(|| successor(prefix.to_vec()), successor) {
        Some(key) => Bound::Excluded(key),
        None => Bound::Unbounded,
    };
    Ok(Some(Probe::Range { from, to, descending: false }))
}

/// A value in its stored form: a UUID as its canonical text.
fn as_kept<'v>(value: &'v Value<'v>, field_type: &FieldType) -> Cow<'v, Value<'v>> {
    match (value, field_type) {
        (Value::Text(text), FieldType::Uuid) => match uuid_of(text.trim()) {
            Some(uuid) => Cow::Owned(Value::Text(uuid.to_string().into())),
            None => Cow::Borrowed(value),
        },
        _ => Cow::Borrowed(value),
    }
}

/// The smallest byte string that is greater than all byte strings with this prefix; `None` if there
/// is none.
pub(crate) fn successor(mut key: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = key.pop() {
        if last < u8::MAX {
            key.push(last + 1);
            return Some(key);
        }
    }
    None
}

fn merged_range<'w>(wanted: impl Iterator<Item = &'w Wanted>) -> Option<(Bound<Operand>, Bound<Operand>)> {
    let mut range = None;
    for what in wanted {
        let Wanted::Range(from, to) = what else { continue };
        let (low, high) = range.get_or_insert((Bound::Unbounded, Bound::Unbounded));
        if *low == Bound::Unbounded {
            *low = from.clone();
        }
        if *high == Bound::Unbounded {
            *high = to.clone();
        }
    }
    range
}

/// Collects the conditions of a filter on single columns. Other conditions narrow nothing.
fn collect<'t>(table: &'t MapTable, filter: &Expr, wanted: &mut Vec<(&'t FieldPath, &'t FieldType, Wanted)>) {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            collect(table, left, wanted);
            collect(table, right, wanted);
        }
        Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => {
            let mut operands = Vec::new();
            if let Some(column) = alternatives(table, filter, &mut operands) {
                wanted.push((&column.path, &column.field_type, Wanted::OneOf(operands)));
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let (column, operand, op) = match (column_of(table, left), operand_of(right)) {
                (Some(column), Some(operand)) => (column, operand, *op),
                _ => match (column_of(table, right), operand_of(left), op.swap()) {
                    (Some(column), Some(operand), Some(op)) => (column, operand, op),
                    _ => return,
                },
            };
            let what = match op {
                Operator::Eq => Wanted::OneOf(vec![operand]),
                Operator::Lt => Wanted::Range(Bound::Unbounded, Bound::Excluded(operand)),
                Operator::LtEq => Wanted::Range(Bound::Unbounded, Bound::Included(operand)),
                Operator::Gt => Wanted::Range(Bound::Excluded(operand), Bound::Unbounded),
                Operator::GtEq => Wanted::Range(Bound::Included(operand), Bound::Unbounded),
                _ => return,
            };
            wanted.push((&column.path, &column.field_type, what));
        }
        Expr::Between(Between { expr, negated: false, low, high }) => {
            if let (Some(column), Some(low), Some(high)) = (column_of(table, expr), operand_of(low), operand_of(high)) {
                let what = Wanted::Range(Bound::Included(low), Bound::Included(high));
                wanted.push((&column.path, &column.field_type, what));
            }
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            if let (Some(column), Some(operands)) =
                (column_of(table, expr), list.iter().map(operand_of).collect::<Option<Vec<_>>>())
            {
                wanted.push((&column.path, &column.field_type, Wanted::OneOf(operands)));
            }
        }
        Expr::Like(Like { negated: false, expr, pattern, escape_char: None, case_insensitive: false }) => {
            if let (Some(column), Some(Operand::Constant(Value::Text(pattern)))) =
                (column_of(table, expr), operand_of(pattern))
            {
                let prefix: String = pattern.chars().take_while(|char| !matches!(char, '%' | '_' | '\\')).collect();
                if !prefix.is_empty() {
                    let above: String = prefix.chars().chain([char::MAX]).collect();
                    let bound = |text: String| Bound::Included(Operand::Constant(Value::Text(text.into())));
                    let what = Wanted::Range(bound(prefix), bound(above));
                    wanted.push((&column.path, &column.field_type, what));
                }
            }
        }
        other => {
            if let Some(kept) = lists::what_is_kept(other) {
                collect(table, kept, wanted);
            }
        }
    }
}

/// The operands of `c = a OR c = b OR ..`, and the column `c`.
fn alternatives<'t>(table: &'t MapTable, filter: &Expr, operands: &mut Vec<Operand>) -> Option<&'t TableColumn> {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let column = alternatives(table, left, operands)?;
            (alternatives(table, right, operands)?.name == column.name).then_some(column)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let column = column_of(table, left)?;
            operands.push(operand_of(right)?);
            Some(column)
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let column = column_of(table, expr)?;
            for item in list {
                operands.push(operand_of(item)?);
            }
            Some(column)
        }
        other => alternatives(table, lists::what_is_kept(other)?, operands),
    }
}

/// The column that an expression is, also as a decimal with more digits: equal numbers have equal
/// index keys, whatever their types are. Keys of entries are looked up in their own type alone.
fn column_of<'t>(table: &'t MapTable, expr: &Expr) -> Option<&'t TableColumn> {
    match expr {
        Expr::Column(column) => table.column(&column.name),
        Expr::Cast(cast) => match cast.expr.as_ref() {
            Expr::Column(column) => table
                .column(&column.name)
                .filter(|column| holds(cast.field.data_type(), &column.field_type) && column.path.side == Side::Value),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a decimal type has all digits of a column's decimals.
fn holds(wider: &DataType, of_column: &FieldType) -> bool {
    match (wider, of_column) {
        (
            DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale),
            FieldType::Decimal(Some((own_precision, own_scale))),
        ) => {
            let before = |precision: u8, scale: i8| i16::from(precision) - i16::from(scale);
            scale >= own_scale && before(*precision, *scale) >= before(*own_precision, *own_scale)
        }
        _ => false,
    }
}

fn operand_of(expr: &Expr) -> Option<Operand> {
    match expr {
        Expr::Literal(scalar, _) => {
            let value = value_of(scalar, &FieldType::Varchar);
            Some(Operand::Constant(value))
        }
        // The conversion of keys also normalizes the operand of a UUID.
        Expr::ScalarFunction(call) if call.func.name() == "cast_uuid" => match call.args.as_slice() {
            [operand @ Expr::Placeholder(_)] => operand_of(operand),
            _ => None,
        },
        Expr::Placeholder(Placeholder { id, .. }) => {
            let number: usize = id.strip_prefix('$')?.parse().ok()?;
            Some(Operand::Parameter(number.checked_sub(1)?))
        }
        _ => None,
    }
}

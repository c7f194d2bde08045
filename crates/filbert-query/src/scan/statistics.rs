//! Statistics of a map for the optimizer, without reading the map: the number of rows, and the
//! distinct values, minimum and maximum of indexed and columnar fields. They decide the order of
//! joins, and the side of a join that is held in memory.

use datafusion::common::stats::Precision;
use datafusion::common::{ColumnStatistics, ScalarValue, Statistics};
use filbert_data::FieldType;
use filbert_grid::{ColumnRange, IndexId, IndexInfo, PartitionId};

use crate::scan::access::Access;
use crate::scan::scanner::ScanSpec;
use crate::scan::table::{MapTable, TableColumn};

/// The assumed selectivity of other filters: one row of this number passes.
const SELECTIVITY: usize = 5;

/// Statistics of a table's columns that need no reading.
pub(crate) fn of_table(table: &MapTable) -> Statistics {
    Statistics {
        num_rows: Precision::Inexact(table.map().size()),
        total_byte_size: Precision::Absent,
        column_statistics: table.columns().iter().map(|_| ColumnStatistics::new_unknown()).collect(),
    }
}

/// Statistics of the rows and columns of a scan.
pub(crate) fn of_scan(spec: &ScanSpec) -> Statistics {
    let table = &spec.table;
    let all = table.map().size();
    let rows = match &spec.access {
        Access::Nothing => 0,
        Access::Keys(keys) => keys.len(),
        Access::Index { id, .. } => of_index(table, *id, all),
        Access::All if spec.filter.is_some() => all.div_ceil(SELECTIVITY),
        Access::All => all,
    };
    let of_column = |index: &usize| match table.columns().get(*index) {
        Some(column) => of_column(table, column),
        None => ColumnStatistics::new_unknown(),
    };
    Statistics {
        num_rows: Precision::Inexact(rows),
        total_byte_size: Precision::Absent,
        column_statistics: spec.columns.iter().take(spec.width).map(of_column).collect(),
    }
}

/// The average number of entries for one key of an index.
fn of_index(table: &MapTable, id: IndexId, all: usize) -> usize {
    match table.map().index_statistics(id) {
        Some(statistics) if statistics.distinct > 0 => statistics.entries.div_ceil(statistics.distinct).max(1),
        _ => all.div_ceil(SELECTIVITY),
    }
}

fn of_column(table: &MapTable, column: &TableColumn) -> ColumnStatistics {
    let mut statistics = ColumnStatistics::new_unknown();
    let layout = table.map().layout();
    if column.path == filbert_data::FieldPath::KEY {
        statistics.distinct_count = Precision::Inexact(table.map().size());
        statistics.null_count = Precision::Exact(0);
    }
    let is_of_column = |index: &&IndexInfo| index.ready && index.fields.as_slice() == [column.path.clone()];
    if let Some(index) = layout.indexes.iter().find(is_of_column)
        && let Some(known) = table.map().index_statistics(index.id)
    {
        statistics.distinct_count = Precision::Inexact(known.distinct);
        statistics.null_count = Precision::Inexact(known.nulls);
    }
    let kept = layout
        .columns
        .iter()
        .find(|kept| kept.ready && kept.field == column.path && kept.field_type == column.field_type);
    if let Some(kept) = kept {
        of_kept_column(table, column, kept.id, &mut statistics);
    }
    statistics
}

fn of_kept_column(
    table: &MapTable,
    column: &TableColumn,
    id: filbert_grid::ColumnId,
    statistics: &mut ColumnStatistics,
) {
    let mut range: Option<ColumnRange> = None;
    let mut nulls = 0;
    for partition in (0..table.map().partition_count()).map(PartitionId) {
        let Some(columns) = table.map().scan_columns(partition) else { return };
        let Some(position) = columns.position(id) else { return };
        for chunk in columns.chunks() {
            nulls += chunk.null_count(position);
            range = match (range, chunk.range(position)) {
                (Some(one), Some(other)) => wider(one, other),
                (one, other) => one.or(other),
            };
        }
    }
    statistics.null_count = Precision::Inexact(nulls);
    if let Some((min, max)) = range.and_then(|range| scalars(range, &column.field_type)) {
        statistics.min_value = Precision::Inexact(min);
        statistics.max_value = Precision::Inexact(max);
    }
}

fn wider(one: ColumnRange, other: ColumnRange) -> Option<ColumnRange> {
    Some(match (one, other) {
        (ColumnRange::Whole(a, b), ColumnRange::Whole(c, d)) => ColumnRange::Whole(a.min(c), b.max(d)),
        (ColumnRange::Float(a, b), ColumnRange::Float(c, d)) => ColumnRange::Float(a.min(c), b.max(d)),
        (ColumnRange::Decimal(a, b), ColumnRange::Decimal(c, d)) => ColumnRange::Decimal(a.min(c), b.max(d)),
        _ => return None,
    })
}

fn scalars(range: ColumnRange, field_type: &FieldType) -> Option<(ScalarValue, ScalarValue)> {
    let whole = |value: i64| -> Option<ScalarValue> {
        Some(match field_type {
            FieldType::TinyInt => ScalarValue::Int8(Some(i8::try_from(value).ok()?)),
            FieldType::SmallInt => ScalarValue::Int16(Some(i16::try_from(value).ok()?)),
            FieldType::Integer => ScalarValue::Int32(Some(i32::try_from(value).ok()?)),
            FieldType::BigInt => ScalarValue::Int64(Some(value)),
            FieldType::Date => ScalarValue::Date32(Some(i32::try_from(value).ok()?)),
            FieldType::Time => ScalarValue::Time64Nanosecond(Some(value)),
            FieldType::Timestamp => ScalarValue::TimestampMicrosecond(Some(value), None),
            FieldType::TimestampTz => ScalarValue::TimestampMicrosecond(Some(value), Some("UTC".into())),
            _ => return None,
        })
    };
    match (range, field_type) {
        (ColumnRange::Whole(min, max), _) => Some((whole(min)?, whole(max)?)),
        (ColumnRange::Float(min, max), FieldType::Double) => {
            Some((ScalarValue::Float64(Some(min)), ScalarValue::Float64(Some(max))))
        }
        (ColumnRange::Decimal(min, max), FieldType::Decimal(Some((precision, scale)))) => Some((
            ScalarValue::Decimal128(Some(min), *precision, *scale),
            ScalarValue::Decimal128(Some(max), *precision, *scale),
        )),
        _ => None,
    }
}

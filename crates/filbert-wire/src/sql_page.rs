//! One page of an SQL result, column by column.
//!
//! ```text
//! BEGIN │ is-last u8 │ column types, packed i32 │ column │ .. │ END
//!
//! column of VARCHAR, DECIMAL, OBJECT, JSON:  BEGIN │ value or null │ .. │ END
//! column of NULL:                            one frame: row count i32
//! any other column:                          one frame: layout u8 │ row count i32 │ values
//! ```
//!
//! Layout 1: all rows are null, no values. Layout 2: no row is null, packed values. Layout 3: for
//! each group of eight rows one byte with one bit per row, lowest bit first, set if the row has a
//! value; then the values of the group.

use crate::{
    Data,
    codec::{Fault, Field, Fixed, Item, Problem, Reader, Variable, Writer},
    frame::FRAME_HEADER_BYTES,
    sample::Source,
    structure::HazelcastJsonValue,
};

/// A page of rows, stored by column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SqlPage<'a> {
    /// Whether this is the last page.
    pub last: bool,
    /// The columns of the result, all with the same number of rows.
    pub columns: Vec<SqlColumn<'a>>,
}

/// The values of one column of a page.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants are the protocol's column types")]
pub enum SqlColumn<'a> {
    Varchar(Vec<Option<&'a str>>),
    Boolean(Vec<Option<bool>>),
    TinyInt(Vec<Option<i8>>),
    SmallInt(Vec<Option<i16>>),
    Integer(Vec<Option<i32>>),
    BigInt(Vec<Option<i64>>),
    Decimal(Vec<Option<SqlDecimal<'a>>>),
    Real(Vec<Option<f32>>),
    Double(Vec<Option<f64>>),
    Date(Vec<Option<SqlDate>>),
    Time(Vec<Option<SqlTime>>),
    Timestamp(Vec<Option<SqlTimestamp>>),
    TimestampWithTimeZone(Vec<Option<SqlTimestampWithTimeZone>>),
    Object(Vec<Option<Data<'a>>>),
    Json(Vec<Option<HazelcastJsonValue<'a>>>),
    /// A column of nulls, of the type [`SqlColumn::NULL`] or of a type of fixed size. Such a column
    /// always decodes to this variant, never to a list: the encoding has a row count but no bytes
    /// per row, and a count must not make the reader allocate.
    Nulls {
        /// The type, for example [`SqlColumn::INTEGER`].
        column_type: i32,
        /// The number of rows.
        rows: u32,
    },
}

#[allow(missing_docs, reason = "the numbers of the column types")]
impl SqlColumn<'_> {
    pub const VARCHAR: i32 = 0;
    pub const BOOLEAN: i32 = 1;
    pub const TINYINT: i32 = 2;
    pub const SMALLINT: i32 = 3;
    pub const INTEGER: i32 = 4;
    pub const BIGINT: i32 = 5;
    pub const DECIMAL: i32 = 6;
    pub const REAL: i32 = 7;
    pub const DOUBLE: i32 = 8;
    pub const DATE: i32 = 9;
    pub const TIME: i32 = 10;
    pub const TIMESTAMP: i32 = 11;
    pub const TIMESTAMP_WITH_TIME_ZONE: i32 = 12;
    pub const OBJECT: i32 = 13;
    pub const NULL: i32 = 14;
    pub const JSON: i32 = 15;
}

/// A decimal number: `unscaled * 10^-scale`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqlDecimal<'a> {
    /// The unscaled value: two's complement, big endian, at least one byte.
    pub unscaled: &'a [u8],
    /// The number of digits after the decimal point; if negative, the number of zeros before it.
    pub scale: i32,
}

/// A date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqlDate {
    /// The year in the proleptic Gregorian calendar.
    pub year: i32,
    /// The month, 1 to 12.
    pub month: u8,
    /// The day, 1 to 31.
    pub day: u8,
}

/// A time of day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqlTime {
    /// The hour, 0 to 23.
    pub hour: u8,
    /// The minute, 0 to 59.
    pub minute: u8,
    /// The second, 0 to 59.
    pub second: u8,
    /// The nanosecond, 0 to 999,999,999.
    pub nanosecond: i32,
}

/// A date and a time of day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqlTimestamp {
    /// The date.
    pub date: SqlDate,
    /// The time of day.
    pub time: SqlTime,
}

/// A date and a time of day with an offset from UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqlTimestampWithTimeZone {
    /// The local date and time.
    pub local: SqlTimestamp,
    /// The offset in seconds; positive east of UTC.
    pub offset_seconds: i32,
}

/// Implements [`Fixed`] for structs: their fields in sequence.
macro_rules! fixed_struct {
    ($($name:ident { $($field:ident: $type:ty),* })*) => {$(
        impl Fixed for $name {
            const BYTES: usize = 0 $( + <$type as Fixed>::BYTES )*;

            #[inline]
            fn put(&self, out: &mut Vec<u8>) {
                $( self.$field.put(out); )*
            }

            #[inline]
            fn take(bytes: &mut &[u8]) -> Result<Self, Problem> {
                Ok(Self { $( $field: <$type as Fixed>::take(bytes)?, )* })
            }

            #[inline]
            fn random(source: &mut Source<'_>) -> Self {
                Self { $( $field: <$type as Fixed>::random(source), )* }
            }
        }
    )*};
}

fixed_struct! {
    SqlDate { year: i32, month: u8, day: u8 }
    SqlTime { hour: u8, minute: u8, second: u8, nanosecond: i32 }
    SqlTimestamp { date: SqlDate, time: SqlTime }
    SqlTimestampWithTimeZone { local: SqlTimestamp, offset_seconds: i32 }
}

/// One frame: the number of unscaled bytes, the unscaled bytes, the scale.
impl<'a> Field<'a> for SqlDecimal<'a> {
    #[inline]
    fn put_variable(&self, writer: &mut Writer<'_>) {
        writer.frame_with(0, |out| {
            count(self.unscaled.len()).put(out);
            out.extend_from_slice(self.unscaled);
            self.scale.put(out);
        });
    }

    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        let mut bytes = reader.value()?;
        let length = i32::take(&mut bytes)?;
        let (unscaled, mut bytes) = usize::try_from(length)
            .ok()
            .and_then(|length| bytes.split_at_checked(length))
            .ok_or(Problem::BrokenColumn("a decimal is longer than its frame"))?;
        Ok(SqlDecimal { unscaled, scale: i32::take(&mut bytes)? })
    }

    #[inline]
    fn sample(source: &mut Source<'a>) -> Self {
        SqlDecimal { unscaled: source.bytes(), scale: <i32 as Fixed>::random(source) }
    }
}

impl<'a> Variable<'a> for SqlDecimal<'a> {}

const LAYOUT_NULLS: u8 = 1;
const LAYOUT_VALUES: u8 = 2;
const LAYOUT_MIXED: u8 = 3;

/// Converts a count of rows or bytes to its wire format. A count above `i32::MAX` becomes
/// `i32::MAX`; it cannot occur with values, because a frame holds fewer than 2^31 bytes.
fn count(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn put_fixed_column<T: Fixed>(values: &[Option<T>], writer: &mut Writer<'_>) {
    let nulls = values.iter().filter(|value| value.is_none()).count();
    writer.frame_with(0, |out| put_fixed_rows(values.len(), nulls, values.iter().copied(), out));
}

fn read_fixed_column<'a, T: Fixed>(
    reader: &mut Reader<'a>,
    column_type: i32,
    column: fn(Vec<Option<T>>) -> SqlColumn<'a>,
) -> Result<SqlColumn<'a>, Fault> {
    let mut bytes = reader.value()?;
    let layout = u8::take(&mut bytes)?;
    let rows = read_count(&mut bytes)?;
    if layout == LAYOUT_NULLS {
        return Ok(SqlColumn::Nulls { column_type, rows });
    }
    if layout != LAYOUT_VALUES && layout != LAYOUT_MIXED {
        return Err(Problem::BrokenColumn("its layout is none of 1, 2 and 3").into());
    }
    // Every value and every group of eight rows needs bytes. The loop ends with an error when the
    // bytes are exhausted, whatever the row count claims.
    let mut values = Vec::new();
    let mut bits = u8::MAX;
    for row in 0..rows {
        if layout == LAYOUT_MIXED && row % 8 == 0 {
            bits = u8::take(&mut bytes)?;
        }
        let has_value = layout == LAYOUT_VALUES || bits >> (row % 8) & 1 == 1;
        values.push(if has_value { Some(T::take(&mut bytes)?) } else { None });
    }
    Ok(column(values))
}

fn read_count(bytes: &mut &[u8]) -> Result<u32, Fault> {
    u32::try_from(i32::take(bytes)?).map_err(|_| Problem::BrokenColumn("its row count is negative").into())
}

/// Returns random rows with at least one value, because a column of nulls decodes to
/// [`SqlColumn::Nulls`].
fn sample_fixed_column<T: Fixed>(source: &mut Source<'_>) -> Vec<Option<T>> {
    let rows = usize::from(source.byte() % 20);
    let mut values: Vec<Option<T>> = (0..rows).map(|_| (source.byte() & 1 == 1).then(|| T::random(source))).collect();
    values.push(Some(T::random(source)));
    values
}

/// Generates the methods of [`SqlColumn`], with one match arm for each variant with values of fixed
/// size.
macro_rules! fixed_columns {
    ($($variant:ident($type:ty) = $constant:ident),* $(,)?) => {
        impl<'a> SqlColumn<'a> {
            /// The number of the column's type.
            pub fn column_type(&self) -> i32 {
                match self {
                    SqlColumn::Varchar(_) => Self::VARCHAR,
                    SqlColumn::Decimal(_) => Self::DECIMAL,
                    SqlColumn::Object(_) => Self::OBJECT,
                    SqlColumn::Json(_) => Self::JSON,
                    SqlColumn::Nulls { column_type, .. } => *column_type,
                    $( SqlColumn::$variant(_) => Self::$constant, )*
                }
            }

            /// The number of rows.
            pub fn rows(&self) -> usize {
                match self {
                    SqlColumn::Varchar(rows) => rows.len(),
                    SqlColumn::Decimal(rows) => rows.len(),
                    SqlColumn::Object(rows) => rows.len(),
                    SqlColumn::Json(rows) => rows.len(),
                    SqlColumn::Nulls { rows, .. } => *rows as usize,
                    $( SqlColumn::$variant(rows) => rows.len(), )*
                }
            }

            fn put(&self, writer: &mut Writer<'_>) {
                match self {
                    SqlColumn::Varchar(rows) => rows.put_variable(writer),
                    SqlColumn::Decimal(rows) => rows.put_variable(writer),
                    SqlColumn::Object(rows) => rows.put_variable(writer),
                    SqlColumn::Json(rows) => rows.put_variable(writer),
                    SqlColumn::Nulls { column_type, rows } => put_nulls(*column_type, *rows, writer),
                    $( SqlColumn::$variant(rows) => put_fixed_column(rows, writer), )*
                }
            }

            fn read(column_type: i32, reader: &mut Reader<'a>) -> Result<Self, Fault> {
                match column_type {
                    Self::VARCHAR => Item::read_list(reader).map(SqlColumn::Varchar),
                    Self::DECIMAL => Item::read_list(reader).map(SqlColumn::Decimal),
                    Self::OBJECT => Item::read_list(reader).map(SqlColumn::Object),
                    Self::JSON => Item::read_list(reader).map(SqlColumn::Json),
                    Self::NULL => {
                        let rows = read_count(&mut reader.value()?)?;
                        Ok(SqlColumn::Nulls { column_type, rows })
                    }
                    $( Self::$constant => read_fixed_column::<$type>(reader, column_type, SqlColumn::$variant), )*
                    _ => Err(Problem::UnknownColumnType(column_type).into()),
                }
            }

            fn sample(source: &mut Source<'a>) -> Self {
                match i32::from(source.byte() % 16) {
                    Self::VARCHAR => SqlColumn::Varchar(Field::sample(source)),
                    Self::DECIMAL => SqlColumn::Decimal(Field::sample(source)),
                    Self::OBJECT => SqlColumn::Object(Field::sample(source)),
                    Self::JSON => SqlColumn::Json(Field::sample(source)),
                    $( Self::$constant if source.byte() & 7 != 0 => SqlColumn::$variant(sample_fixed_column::<$type>(source)), )*
                    column_type => SqlColumn::Nulls { column_type, rows: u32::from(source.byte()) },
                }
            }
        }
    };
}

fixed_columns! {
    Boolean(bool) = BOOLEAN,
    TinyInt(i8) = TINYINT,
    SmallInt(i16) = SMALLINT,
    Integer(i32) = INTEGER,
    BigInt(i64) = BIGINT,
    Real(f32) = REAL,
    Double(f64) = DOUBLE,
    Date(SqlDate) = DATE,
    Time(SqlTime) = TIME,
    Timestamp(SqlTimestamp) = TIMESTAMP,
    TimestampWithTimeZone(SqlTimestampWithTimeZone) = TIMESTAMP_WITH_TIME_ZONE,
}

/// Writes a column of nulls. Types with a list encoding need a frame for each row.
fn put_nulls(column_type: i32, rows: u32, writer: &mut Writer<'_>) {
    match column_type {
        SqlColumn::NULL => writer.frame_with(0, |out| count(rows as usize).put(out)),
        SqlColumn::VARCHAR | SqlColumn::DECIMAL | SqlColumn::OBJECT | SqlColumn::JSON => {
            writer.begin();
            (0..rows).for_each(|_| writer.null());
            writer.end();
        }
        _ => writer.frame_with(0, |out| {
            out.push(LAYOUT_NULLS);
            count(rows as usize).put(out);
        }),
    }
}

/// Writes a page column by column from iterators, without an intermediate [`SqlPage`]. [`SqlPage`]
/// decodes the output.
///
/// ```
/// use filbert_wire::{frame::Writer, sql_page::{PageWriter, SqlColumn}};
///
/// let mut out = Vec::new();
/// let mut writer = Writer::new(&mut out);
/// let mut page =
///     PageWriter::begin(&mut writer, true, [SqlColumn::BIGINT, SqlColumn::VARCHAR].into_iter());
/// page.fixed(2, 1, [Some(7_i64), None].into_iter());
/// page.texts([Some("seven"), None].into_iter());
/// page.end();
/// ```
#[derive(Debug)]
pub struct PageWriter<'w, 'o> {
    writer: &'w mut Writer<'o>,
}

impl<'w, 'o> PageWriter<'w, 'o> {
    /// Starts a page with columns of these types. The caller must write the columns in this order.
    #[inline]
    pub fn begin(writer: &'w mut Writer<'o>, last: bool, column_types: impl Iterator<Item = i32>) -> Self {
        writer.begin();
        writer.frame(0, &[u8::from(last)]);
        writer.frame_with(0, |out| column_types.for_each(|column_type| column_type.put(out)));
        PageWriter { writer }
    }

    /// Writes a column of values of fixed size. `values` has `rows` items, and `nulls` of them are
    /// `None`.
    #[inline]
    pub fn fixed<T: Fixed>(&mut self, rows: usize, nulls: usize, values: impl Iterator<Item = Option<T>>) {
        self.writer.reserve(FRAME_HEADER_BYTES + 5 + rows.div_ceil(8) + (rows - nulls.min(rows)) * T::BYTES);
        self.writer.frame_with(0, |out| put_fixed_rows(rows, nulls, values, out));
    }

    /// Writes a column of type [`SqlColumn::NULL`] with this number of rows.
    pub fn nulls(&mut self, rows: usize) {
        self.writer.frame_with(0, |out| count(rows).put(out));
    }

    /// Writes a column of type [`SqlColumn::VARCHAR`].
    #[inline]
    pub fn texts<'t>(&mut self, values: impl Iterator<Item = Option<&'t str>>) {
        self.objects(values.map(|value| value.map(str::as_bytes)));
    }

    /// Writes a column of type [`SqlColumn::OBJECT`]: serialized values.
    #[inline]
    pub fn objects<'t>(&mut self, values: impl Iterator<Item = Option<Data<'t>>>) {
        self.writer.begin();
        for value in values {
            match value {
                Some(value) => self.writer.frame(0, value),
                None => self.writer.null(),
            }
        }
        self.writer.end();
    }

    /// Writes a column of a type with a list encoding: [`SqlColumn::DECIMAL`] or
    /// [`SqlColumn::JSON`].
    #[inline]
    pub fn items<'t, T: Variable<'t>>(&mut self, values: impl Iterator<Item = Option<T>>) {
        self.writer.begin();
        for value in values {
            match value {
                Some(value) => value.put_variable(self.writer),
                None => self.writer.null(),
            }
        }
        self.writer.end();
    }

    /// Writes a column of type [`SqlColumn::DECIMAL`], for decimals with short-lived bytes. `fill`
    /// must call its argument once for each row.
    #[inline]
    pub fn decimals(&mut self, fill: impl FnOnce(&mut dyn FnMut(Option<SqlDecimal<'_>>))) {
        self.writer.begin();
        fill(&mut |value| match value {
            Some(value) => value.put_variable(self.writer),
            None => self.writer.null(),
        });
        self.writer.end();
    }

    /// Ends the page.
    #[inline]
    pub fn end(self) {
        self.writer.end();
    }
}

/// Appends the layout, the row count and the values of a column with values of fixed size.
#[inline]
fn put_fixed_rows<T: Fixed>(rows: usize, nulls: usize, values: impl Iterator<Item = Option<T>>, out: &mut Vec<u8>) {
    let layout = match nulls {
        0 => LAYOUT_VALUES,
        _ if nulls == rows => LAYOUT_NULLS,
        _ => LAYOUT_MIXED,
    };
    out.push(layout);
    count(rows).put(out);
    match layout {
        LAYOUT_NULLS => {}
        LAYOUT_VALUES => values.flatten().for_each(|value| value.put(out)),
        _ => {
            let mut bits_at = 0;
            for (row, value) in values.enumerate() {
                if row % 8 == 0 {
                    bits_at = out.len();
                    out.push(0);
                }
                let Some(value) = value else { continue };
                if let Some(bits) = out.get_mut(bits_at) {
                    *bits |= 1 << (row % 8);
                }
                value.put(out);
            }
        }
    }
}

impl<'a> Field<'a> for SqlPage<'a> {
    #[inline]
    fn put_variable(&self, writer: &mut Writer<'_>) {
        writer.begin();
        writer.frame(0, &[u8::from(self.last)]);
        let types: Vec<i32> = self.columns.iter().map(SqlColumn::column_type).collect();
        types.put_variable(writer);
        self.columns.iter().for_each(|column| column.put(writer));
        writer.end();
    }

    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        let outer = reader.enter(true)?;
        let last = reader.fixed::<bool>().map_err(|fault| fault.within("last"))?;
        let types = Vec::<i32>::read(reader).map_err(|fault| fault.within("types"))?;
        let mut columns = Vec::new();
        for column_type in types {
            columns.push(SqlColumn::read(column_type, reader).map_err(|fault| fault.within("column"))?);
        }
        reader.leave(outer)?;
        Ok(SqlPage { last, columns })
    }

    #[inline]
    fn sample(source: &mut Source<'a>) -> Self {
        let columns = source.count();
        SqlPage { last: source.byte() & 1 == 1, columns: (0..columns).map(|_| SqlColumn::sample(source)).collect() }
    }
}

impl<'a> Variable<'a> for SqlPage<'a> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frames;

    #[test]
    fn a_page_written_from_iterators_reads_as_the_page_that_it_stands_for() {
        for (rows, null_every) in [(0, 0), (1, 0), (8, 0), (9, 1), (9, 2), (100, 7), (64, 1)] {
            let has_value = |row: usize| null_every == 0 || !row.is_multiple_of(null_every);
            let nulls = (0..rows).filter(|row| !has_value(*row)).count();
            let numbers: Vec<Option<i64>> = (0..rows).map(|row| has_value(row).then_some(row as i64)).collect();
            let texts: Vec<Option<&str>> = numbers.iter().map(|number| number.map(|_| "text")).collect();
            let jsons = texts.iter().map(|text| text.map(|value| HazelcastJsonValue { value }));
            let types = [SqlColumn::BIGINT, SqlColumn::VARCHAR, SqlColumn::DECIMAL, SqlColumn::JSON];

            let mut out = Vec::new();
            let mut writer = Writer::new(&mut out);
            let mut page = PageWriter::begin(&mut writer, true, types.into_iter());
            page.fixed(rows, nulls, numbers.iter().copied());
            page.texts(texts.iter().copied());
            page.decimals(|put| {
                for number in &numbers {
                    put(number
                        .map(|number| number as u8)
                        .as_ref()
                        .map(std::slice::from_ref)
                        .map(|unscaled| SqlDecimal { unscaled, scale: 2 }));
                }
            });
            page.items(jsons.clone());
            page.end();

            let read = SqlPage::read(&mut Reader::new(&[], Frames::new(&out))).unwrap();
            assert!(read.last);
            let expected = match nulls {
                nulls if nulls > 0 && nulls == rows => {
                    SqlColumn::Nulls { column_type: SqlColumn::BIGINT, rows: rows as u32 }
                }
                _ => SqlColumn::BigInt(numbers.clone()),
            };
            assert_eq!(read.columns[0], expected);
            assert_eq!(read.columns[1], SqlColumn::Varchar(texts.clone()));
            assert_eq!(read.columns[2].rows(), rows);
            assert_eq!(read.columns[3], SqlColumn::Json(jsons.collect()));
        }
    }
}

//! Aggregators: one value from many entries.

use std::cmp::Ordering;
use std::collections::HashSet;

use bigdecimal::{BigDecimal, ToPrimitive, Zero};
use filbert_data::criteria::{Aggregator, distinct_blob, entry_blob};
use filbert_data::{Blob, DataError, FieldPath, FieldReader, Formats, Side, ToBlob, Value};
use filbert_grid::GridError;

/// The digits of a mean of decimals, as in Java's `MathContext.DECIMAL128`.
const MEAN_DIGITS: u64 = 34;

/// The state between entries.
enum State {
    Count(u64),
    Distinct(HashSet<Blob>),
    /// The greatest or least value so far, with its entry where the result needs it.
    Extreme {
        wanted: Ordering,
        best: Option<Value<'static>>,
        entry: Option<Option<(Blob, Blob)>>,
        /// The stored form of the best value, if whole values are compared: this keeps its type.
        stored: Option<Blob>,
    },
    Whole {
        sum: i128,
        kind: WholeKind,
    },
    Floating {
        sum: f64,
        count: u64,
        mean: bool,
    },
    Decimal {
        sum: BigDecimal,
        count: u64,
        kind: DecimalKind,
    },
}

#[derive(Clone, Copy)]
enum WholeKind {
    Sum,
    Mean(u64),
}

#[derive(Clone, Copy)]
enum DecimalKind {
    BigIntegerSum,
    BigDecimalSum,
    Mean,
}

/// A running aggregation.
pub(crate) struct Aggregation {
    state: State,
    reader: FieldReader,
    counts_entries: bool,
    /// The half of the entry that is read as a whole.
    whole: Option<Side>,
}

impl Aggregation {
    pub(crate) fn new(aggregator: &Aggregator, formats: &Formats) -> Result<Self, GridError> {
        let extreme =
            |wanted, entry: bool| State::Extreme { wanted, best: None, entry: entry.then_some(None), stored: None };
        let decimal = |kind| State::Decimal { sum: BigDecimal::zero(), count: 0, kind };
        let (attribute, state) = match aggregator {
            Aggregator::Count(attribute) => (attribute, State::Count(0)),
            Aggregator::Distinct(attribute) => (attribute, State::Distinct(HashSet::new())),
            Aggregator::Max(attribute) => (attribute, extreme(Ordering::Greater, false)),
            Aggregator::Min(attribute) => (attribute, extreme(Ordering::Less, false)),
            Aggregator::MaxBy(attribute) => (attribute, extreme(Ordering::Greater, true)),
            Aggregator::MinBy(attribute) => (attribute, extreme(Ordering::Less, true)),
            Aggregator::IntegerSum(attribute) | Aggregator::LongSum(attribute) | Aggregator::FixedSum(attribute) => {
                (attribute, State::Whole { sum: 0, kind: WholeKind::Sum })
            }
            Aggregator::IntegerAvg(attribute) | Aggregator::LongAvg(attribute) => {
                (attribute, State::Whole { sum: 0, kind: WholeKind::Mean(0) })
            }
            Aggregator::DoubleSum(attribute) | Aggregator::FloatingSum(attribute) => {
                (attribute, State::Floating { sum: 0.0, count: 0, mean: false })
            }
            Aggregator::DoubleAvg(attribute) | Aggregator::NumberAvg(attribute) => {
                (attribute, State::Floating { sum: 0.0, count: 0, mean: true })
            }
            Aggregator::BigIntegerSum(attribute) => (attribute, decimal(DecimalKind::BigIntegerSum)),
            Aggregator::BigDecimalSum(attribute) => (attribute, decimal(DecimalKind::BigDecimalSum)),
            Aggregator::BigIntegerAvg(attribute) | Aggregator::BigDecimalAvg(attribute) => {
                (attribute, decimal(DecimalKind::Mean))
            }
        };
        let path = match attribute {
            Some(attribute) => {
                FieldPath::parse(attribute).map_err(|error| GridError::IllegalArgument(error.to_string()))?
            }
            None => FieldPath::THIS,
        };
        // Entries count whether or not they have the attribute, unless its path may find several
        // values in one entry.
        let counts_entries = matches!(state, State::Count(_)) && !path.path.finds_many();
        let whole = path.path.is_itself().then_some(path.side);
        let reader = FieldReader::new(vec![path], formats.clone());
        Ok(Aggregation { state, reader, counts_entries, whole })
    }

    /// Adds an entry.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), DataError> {
        if let (State::Count(count), true) = (&mut self.state, self.counts_entries) {
            *count += 1;
            return Ok(());
        }
        let stored = match self.whole {
            Some(Side::Key) => Some(key),
            Some(Side::Value) => Some(value),
            None => None,
        };
        match self.reader.read_one(key, value)? {
            Value::Array(items) => items.into_iter().try_for_each(|item| self.state.add(item, key, value, None)),
            one => self.state.add(one, key, value, stored),
        }
    }

    /// Adds a number of entries without reading them; `false` if they must be read.
    pub(crate) fn add_unread(&mut self, entries: usize) -> bool {
        match &mut self.state {
            State::Count(count) if self.counts_entries => {
                *count += u64::try_from(entries).unwrap_or(u64::MAX);
                true
            }
            _ => false,
        }
    }

    /// The result; `None` is null.
    pub(crate) fn finish(self) -> Result<Option<Blob>, DataError> {
        let value = match self.state {
            State::Count(count) => Value::Int64(i64::try_from(count).unwrap_or(i64::MAX)),
            State::Distinct(values) => return distinct_blob(values.into_iter()).map(Some),
            State::Extreme { entry: Some(entry), .. } => {
                return entry.map(|(key, value)| entry_blob(&key, &value)).transpose();
            }
            State::Extreme { stored: Some(stored), .. } => return Ok(Some(stored)),
            State::Extreme { best, .. } => best.unwrap_or(Value::Null),
            State::Whole { sum, kind: WholeKind::Sum } => match i64::try_from(sum) {
                Ok(sum) => Value::Int64(sum),
                Err(_) => return Err(overflow(sum)),
            },
            State::Whole { kind: WholeKind::Mean(0), .. } | State::Floating { count: 0, mean: true, .. } => Value::Null,
            #[allow(clippy::cast_precision_loss, reason = "a mean is a double, as exact as doubles are")]
            State::Whole { sum, kind: WholeKind::Mean(count) } => Value::Float64(sum as f64 / count as f64),
            #[allow(clippy::cast_precision_loss, reason = "as above")]
            State::Floating { sum, count, mean: true } => Value::Float64(sum / count as f64),
            State::Floating { sum, .. } => Value::Float64(sum),
            State::Decimal { sum, kind: DecimalKind::BigIntegerSum, .. } => {
                let (whole, _) = sum.with_scale(0).into_bigint_and_exponent();
                return whole.to_blob().map(Some);
            }
            State::Decimal { sum, kind: DecimalKind::BigDecimalSum, .. } => Value::Decimal(sum),
            State::Decimal { count: 0, .. } => Value::Null,
            State::Decimal { sum, count, .. } => {
                Value::Decimal((sum / BigDecimal::from(count)).with_prec(MEAN_DIGITS).normalized())
            }
        };
        if value.is_null() { Ok(None) } else { value.to_blob().map(Some) }
    }
}

impl State {
    fn add(&mut self, found: Value<'_>, key: &[u8], value: &[u8], stored: Option<&[u8]>) -> Result<(), DataError> {
        if found.is_null() {
            if let State::Distinct(values) = self {
                values.insert(Value::Null.to_blob()?);
            }
            return Ok(());
        }
        match self {
            State::Count(count) => *count += 1,
            State::Distinct(values) => {
                values.insert(stored.map_or_else(|| found.to_blob(), |stored| Ok(Blob::from(stored)))?);
            }
            State::Extreme { wanted, best, entry, stored: best_stored } => {
                let better = match best {
                    None => true,
                    Some(best) => found.compare(best) == Some(*wanted),
                };
                if better {
                    *best = Some(found.into_owned());
                    *best_stored = stored.map(Blob::from);
                    if let Some(entry) = entry {
                        *entry = Some((Blob::from(key), Blob::from(value)));
                    }
                }
            }
            State::Whole { sum, kind } => {
                *sum = sum.saturating_add(whole(&found)?);
                if let WholeKind::Mean(count) = kind {
                    *count += 1;
                }
            }
            State::Floating { sum, count, .. } => {
                *sum += double(&found)?;
                *count += 1;
            }
            State::Decimal { sum, count, .. } => {
                *sum += decimal(&found)?;
                *count += 1;
            }
        }
        Ok(())
    }
}

fn overflow(sum: i128) -> DataError {
    DataError::NotConvertible {
        value: sum.to_string(),
        found: "sum",
        to: "BIGINT".to_owned(),
        expected: "a number of 64 bits",
    }
}

fn not_a_number(value: &Value<'_>) -> DataError {
    DataError::NotConvertible {
        value: value.to_string(),
        found: value.type_name(),
        to: "number".to_owned(),
        expected: "a number, of which the aggregator makes sums,",
    }
}

fn whole(value: &Value<'_>) -> Result<i128, DataError> {
    Ok(match value {
        Value::Int8(number) => i128::from(*number),
        Value::Int16(number) => i128::from(*number),
        Value::Int32(number) => i128::from(*number),
        Value::Int64(number) => i128::from(*number),
        // Fractions are truncated, as in Java's `Number.longValue`.
        Value::Float32(number) => f64::from(*number).trunc().to_i128().ok_or_else(|| not_a_number(value))?,
        Value::Float64(number) => number.trunc().to_i128().ok_or_else(|| not_a_number(value))?,
        Value::Decimal(number) => number.to_i128().ok_or_else(|| not_a_number(value))?,
        _ => return Err(not_a_number(value)),
    })
}

#[allow(clippy::cast_precision_loss, reason = "a sum of doubles is as exact as doubles are")]
fn double(value: &Value<'_>) -> Result<f64, DataError> {
    Ok(match value {
        Value::Int8(number) => f64::from(*number),
        Value::Int16(number) => f64::from(*number),
        Value::Int32(number) => f64::from(*number),
        Value::Int64(number) => *number as f64,
        Value::Float32(number) => f64::from(*number),
        Value::Float64(number) => *number,
        Value::Decimal(number) => number.to_f64().ok_or_else(|| not_a_number(value))?,
        _ => return Err(not_a_number(value)),
    })
}

fn decimal(value: &Value<'_>) -> Result<BigDecimal, DataError> {
    match value {
        Value::Decimal(number) => Ok(number.clone()),
        Value::Float32(_) | Value::Float64(_) => BigDecimal::try_from(double(value)?).map_err(|_| not_a_number(value)),
        other => Ok(BigDecimal::from(whole(other)?)),
    }
}

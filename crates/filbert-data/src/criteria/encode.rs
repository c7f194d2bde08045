//! Writes predicates, aggregators and projections as the stock clients write them, and results as
//! the stock clients read them.

use bigdecimal::BigDecimal;

use super::class::{self, HASH_SET, aggregator, predicate, projection};
use super::object::write_value;
use super::{Aggregator, Predicate, Projection};
use crate::convert::write_length;
use crate::portable::put_in;
use crate::text::write_text;
use crate::{BLOB_HEADER_BYTES, Blob, DataError, ToBlob, TypeId, Value};

fn head(factory: i32, class: i32, out: &mut Vec<u8>) {
    out.push(1);
    out.extend_from_slice(&factory.to_be_bytes());
    out.extend_from_slice(&class.to_be_bytes());
}

fn text(text: Option<&str>, out: &mut Vec<u8>) -> Result<(), DataError> {
    match text {
        Some(text) => write_text(TypeId::STRING, text, out),
        None => {
            out.extend_from_slice(&(-1i32).to_be_bytes());
            Ok(())
        }
    }
}

impl ToBlob for Predicate {
    fn type_id(&self) -> TypeId {
        TypeId::IDENTIFIED
    }

    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        let head = |class: i32, out: &mut Vec<u8>| head(class::PREDICATES, class, out);
        match self {
            Predicate::True => head(predicate::TRUE, out),
            Predicate::False => head(predicate::FALSE, out),
            Predicate::Sql(condition) => {
                head(predicate::SQL, out);
                text(Some(condition), out)?;
            }
            Predicate::And(all) | Predicate::Or(all) => {
                head(if matches!(self, Predicate::And(_)) { predicate::AND } else { predicate::OR }, out);
                write_length(TypeId::IDENTIFIED, all.len(), out)?;
                all.iter().try_for_each(|one| one.write_object(out))?;
            }
            Predicate::Not(inner) => {
                head(predicate::NOT, out);
                inner.write_object(out)?;
            }
            Predicate::Equal(attribute, value) | Predicate::NotEqual(attribute, value) => {
                let equal = matches!(self, Predicate::Equal(..));
                head(if equal { predicate::EQUAL } else { predicate::NOT_EQUAL }, out);
                text(Some(attribute), out)?;
                write_value(value, out)?;
            }
            Predicate::Compare { attribute, value, equal, less } => {
                head(predicate::GREATER_LESS, out);
                text(Some(attribute), out)?;
                write_value(value, out)?;
                out.extend_from_slice(&[u8::from(*equal), u8::from(*less)]);
            }
            Predicate::Between { attribute, from, to } => {
                head(predicate::BETWEEN, out);
                text(Some(attribute), out)?;
                write_value(to, out)?;
                write_value(from, out)?;
            }
            Predicate::In(attribute, values) => {
                head(predicate::IN, out);
                text(Some(attribute), out)?;
                write_length(TypeId::IDENTIFIED, values.len(), out)?;
                values.iter().try_for_each(|value| write_value(value, out))?;
            }
            Predicate::Like { attribute, pattern, ignore_case } => {
                head(if *ignore_case { predicate::ILIKE } else { predicate::LIKE }, out);
                text(Some(attribute), out)?;
                text(pattern.as_deref(), out)?;
            }
            Predicate::Regex { attribute, pattern } => {
                head(predicate::REGEX, out);
                text(Some(attribute), out)?;
                text(pattern.as_deref(), out)?;
            }
            Predicate::InstanceOf(name) => {
                head(predicate::INSTANCE_OF, out);
                text(Some(name), out)?;
            }
            Predicate::Partition { key, predicate } => {
                head(predicate::PARTITION, out);
                key.write_object(out)?;
                predicate.write_object(out)?;
            }
            Predicate::Partitions { keys, predicate } => {
                head(predicate::PARTITIONS, out);
                out.extend_from_slice(&HASH_SET.0.to_be_bytes());
                write_length(HASH_SET, keys.len(), out)?;
                keys.iter().try_for_each(|key| key.write_object(out))?;
                predicate.write_object(out)?;
            }
        }
        Ok(())
    }

    fn payload_bytes(&self) -> usize {
        64
    }
}

impl ToBlob for Aggregator {
    fn type_id(&self) -> TypeId {
        TypeId::IDENTIFIED
    }

    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        /// The initial state of an aggregator, as its class writes it.
        enum Start {
            Number,
            TwoNumbers,
            Items,
            Null,
            TwoNulls,
            Decimal,
            DecimalAndNumber,
            Integer,
            IntegerAndNumber,
        }
        let (class, path, start) = match self {
            Aggregator::Count(path) => (aggregator::COUNT, path, Start::Number),
            Aggregator::Distinct(path) => (aggregator::DISTINCT, path, Start::Items),
            Aggregator::Max(path) => (aggregator::MAX, path, Start::Null),
            Aggregator::Min(path) => (aggregator::MIN, path, Start::Null),
            Aggregator::MaxBy(path) => (aggregator::MAX_BY, path, Start::TwoNulls),
            Aggregator::MinBy(path) => (aggregator::MIN_BY, path, Start::TwoNulls),
            Aggregator::IntegerSum(path) => (aggregator::INTEGER_SUM, path, Start::Number),
            Aggregator::LongSum(path) => (aggregator::LONG_SUM, path, Start::Number),
            Aggregator::DoubleSum(path) => (aggregator::DOUBLE_SUM, path, Start::Number),
            Aggregator::BigIntegerSum(path) => (aggregator::BIG_INTEGER_SUM, path, Start::Integer),
            Aggregator::BigDecimalSum(path) => (aggregator::BIG_DECIMAL_SUM, path, Start::Decimal),
            Aggregator::FixedSum(path) => (aggregator::FIXED_SUM, path, Start::Number),
            Aggregator::FloatingSum(path) => (aggregator::FLOATING_SUM, path, Start::Number),
            Aggregator::IntegerAvg(path) => (aggregator::INTEGER_AVG, path, Start::TwoNumbers),
            Aggregator::LongAvg(path) => (aggregator::LONG_AVG, path, Start::TwoNumbers),
            Aggregator::DoubleAvg(path) => (aggregator::DOUBLE_AVG, path, Start::TwoNumbers),
            Aggregator::NumberAvg(path) => (aggregator::NUMBER_AVG, path, Start::TwoNumbers),
            Aggregator::BigIntegerAvg(path) => (aggregator::BIG_INTEGER_AVG, path, Start::IntegerAndNumber),
            Aggregator::BigDecimalAvg(path) => (aggregator::BIG_DECIMAL_AVG, path, Start::DecimalAndNumber),
        };
        head(class::AGGREGATORS, class, out);
        text(path.as_deref(), out)?;
        let integer = |out: &mut Vec<u8>| {
            out.extend_from_slice(&TypeId::BIG_INTEGER.0.to_be_bytes());
            out.extend_from_slice(&[0, 0, 0, 1, 0]);
        };
        // A zero has the same bytes as a long and as a double.
        match start {
            Start::Number => out.extend_from_slice(&[0; 8]),
            Start::TwoNumbers => out.extend_from_slice(&[0; 16]),
            Start::Items | Start::Null => out.extend_from_slice(&[0; 4]),
            Start::TwoNulls => out.extend_from_slice(&[0; 8]),
            Start::Decimal => write_value(&Value::Decimal(BigDecimal::default()), out)?,
            Start::DecimalAndNumber => {
                write_value(&Value::Decimal(BigDecimal::default()), out)?;
                out.extend_from_slice(&[0; 8]);
            }
            Start::Integer => integer(out),
            Start::IntegerAndNumber => {
                integer(out);
                out.extend_from_slice(&[0; 8]);
            }
        }
        Ok(())
    }

    fn payload_bytes(&self) -> usize {
        64
    }
}

impl ToBlob for Projection {
    fn type_id(&self) -> TypeId {
        if let Projection::Unknown(blob) = self { blob.type_id() } else { TypeId::IDENTIFIED }
    }

    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        match self {
            Projection::Single(attribute) => {
                head(class::PROJECTIONS, projection::SINGLE, out);
                text(Some(attribute), out)
            }
            Projection::Multi(attributes) => {
                head(class::PROJECTIONS, projection::MULTI, out);
                write_length(TypeId::STRING_ARRAY, attributes.len(), out)?;
                attributes.iter().try_for_each(|attribute| text(Some(attribute), out))
            }
            Projection::Identity => {
                head(class::PROJECTIONS, projection::IDENTITY, out);
                Ok(())
            }
            Projection::Unknown(blob) => blob.write_payload(out),
        }
    }

    fn payload_bytes(&self) -> usize {
        64
    }
}

/// The beginning of a result of this class: header, flags, factory, class.
fn result((factory, class): (i32, i32)) -> Vec<u8> {
    let mut out = vec![0; 4];
    out.extend_from_slice(&TypeId::IDENTIFIED.0.to_be_bytes());
    head(factory, class, &mut out);
    out
}

/// Appends a blob as a nested object: its type id and its payload.
fn item(blob: &[u8], out: &mut Vec<u8>) -> Result<(), DataError> {
    if crate::type_id(blob)? == TypeId::PORTABLE {
        out.extend_from_slice(&TypeId::PORTABLE.0.to_be_bytes());
        return put_in(blob, out);
    }
    match blob.get(4..).filter(|_| blob.len() >= BLOB_HEADER_BYTES) {
        Some(object) => {
            out.extend_from_slice(object);
            Ok(())
        }
        None => Err(DataError::NoHeader { bytes: blob.len() }),
    }
}

/// Serializes an entry, the result of [`Aggregator::MaxBy`], [`Aggregator::MinBy`] and
/// [`Projection::Identity`]. Key and value are blobs. Java reads it as a `Map.Entry`, Python as a
/// `MapEntry`.
///
/// # Errors
///
/// One of the blobs has no header, or holds a broken Portable.
pub fn entry_blob(key: &[u8], value: &[u8]) -> Result<Blob, DataError> {
    let mut out = result(class::ENTRY);
    item(key, &mut out)?;
    item(value, &mut out)?;
    Ok(Blob::from(out))
}

/// Serializes the set of distinct values, the result of [`Aggregator::Distinct`]. The items are
/// blobs. Java reads it as a `Set`, Python as a `set`.
///
/// # Errors
///
/// A blob has no header or holds a broken Portable, or there are 2^31 or more blobs.
pub fn distinct_blob(items: impl ExactSizeIterator<Item: AsRef<[u8]>>) -> Result<Blob, DataError> {
    let mut out = result(class::DISTINCT_SET);
    write_length(TypeId::IDENTIFIED, items.len(), &mut out)?;
    for blob in items {
        item(blob.as_ref(), &mut out)?;
    }
    Ok(Blob::from(out))
}

/// Serializes attributes of one entry, the result of [`Projection::Multi`]. The items are blobs.
/// Java reads it as an `Object[]`, Python as a list.
///
/// # Errors
///
/// A blob has no header or holds a broken Portable, or there are 2^31 or more blobs.
pub fn row_blob(items: impl ExactSizeIterator<Item: AsRef<[u8]>>) -> Result<Blob, DataError> {
    let mut out = vec![0; 4];
    out.extend_from_slice(&TypeId::OBJECT_ARRAY.0.to_be_bytes());
    write_length(TypeId::OBJECT_ARRAY, items.len(), &mut out)?;
    for blob in items {
        item(blob.as_ref(), &mut out)?;
    }
    Ok(Blob::from(out))
}

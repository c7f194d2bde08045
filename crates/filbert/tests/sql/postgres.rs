//! A member as a database for sqllogictest: over PostgreSQL's protocol, with a stock driver, in the
//! dialect of the file.

use std::error::Error;

use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta};
use filbert::{Config, Dialect, FieldType, Filbert, Interval, Value};
use futures_util::TryStreamExt;
use tokio::runtime::Runtime;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{Format, FromSql, IsNull, Kind as TypeKind, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, NoTls, Row};
use uuid::Uuid;

use crate::database::{Answer, Database, Failed};
use crate::values::Kind;

/// The stock driver, connected to a separate member.
pub(crate) struct Postgres {
    client: Client,
    dialect: Dialect,
    runtime: Runtime,
    _member: Filbert,
}

impl Postgres {
    pub(crate) fn start(dialect: Dialect) -> Self {
        let member = Filbert::start(Config::default().with_postgres(([127, 0, 0, 1], 0).into())).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let mut config = tokio_postgres::Config::new();
        config.host("127.0.0.1").port(member.postgres_address().unwrap().port()).user("tester").dbname("filbert");
        config.options(format!("-c filbert.dialect={}", dialect.name()));
        let (client, connection) = runtime.block_on(config.connect(NoTls)).unwrap();
        runtime.spawn(connection);
        Postgres { client, dialect, runtime, _member: member }
    }

    /// Converts an error to the form of the other databases.
    fn failed(&self, error: &tokio_postgres::Error) -> Failed {
        // The driver checks the number of parameters itself.
        let Some(told) = error.as_db_error() else { return Failed::new("2000", &error.to_string(), None) };
        let sqlstate = told.code().code();
        match self.dialect {
            Dialect::Hazelcast => Failed::new(hazelcast_code(sqlstate), told.message(), told.hint()),
            _ => Failed(format!("{sqlstate}: {}", told.message())),
        }
    }

    fn values(&self, row: &Row) -> Vec<Value<'static>> {
        let value = |(at, column): (usize, &tokio_postgres::Column)| match row.get::<_, Option<Raw<'_>>>(at) {
            // An object is sent as the bytes of its blob.
            Some(Raw(bytes)) if *column.type_() == Type::BYTEA && self.dialect == Dialect::Hazelcast => {
                Value::from_blob(bytes).unwrap().into_owned()
            }
            Some(Raw(bytes)) => decoded(column.type_(), bytes),
            None => Value::Null,
        };
        row.columns().iter().enumerate().map(value).collect()
    }
}

/// Converts an SQLSTATE to the error code of Hazelcast's protocol.
fn hazelcast_code(sqlstate: &str) -> &str {
    match sqlstate {
        "42704" => "1009",
        "42P01" => "1010",
        _ if sqlstate.starts_with("42") => "1008",
        _ if sqlstate.starts_with("22") || sqlstate.starts_with("21") => "2000",
        other => other,
    }
}

impl Database for Postgres {
    fn answer(&mut self, statement: &str, parameters: &[Value<'static>]) -> Result<Answer, Failed> {
        let types: Vec<Type> = parameters.iter().map(type_of).collect();
        let texts: Vec<AsText> = parameters.iter().map(|value| AsText(text(value))).collect();
        let answer = self.runtime.block_on(async {
            let prepared = self.client.prepare_typed(statement, &types).await?;
            if prepared.columns().is_empty() {
                return Ok(Answer::Count(self.client.execute_raw(&prepared, &texts).await?));
            }
            let rows: Vec<Row> = self.client.query_raw(&prepared, &texts).await?.try_collect().await?;
            let kinds = prepared.columns().iter().map(|column| Kind::of(Some(&field_type(column.type_())))).collect();
            Ok(Answer::Rows { kinds, rows: rows.iter().map(|row| self.values(row)).collect() })
        });
        answer.map_err(|error| self.failed(&error))
    }

    fn protocol() -> &'static str {
        "postgres"
    }

    fn told(kind: Kind) -> Kind {
        match kind.0 {
            'Y' => Kind('S'),
            'X' => Kind('O'),
            other => Kind(other),
        }
    }
}

/// A parameter that is sent as text.
#[derive(Debug)]
struct AsText(Option<String>);

impl ToSql for AsText {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        Ok(match &self.0 {
            None => IsNull::Yes,
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                IsNull::No
            }
        })
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

fn text(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Decimal(value) => Some(value.to_plain_string()),
        value => Some(value.to_string()),
    }
}

/// The type with which a parameter is sent.
fn type_of(value: &Value<'_>) -> Type {
    match value {
        Value::Boolean(_) => Type::BOOL,
        Value::Int8(_) | Value::Int16(_) => Type::INT2,
        Value::Int32(_) => Type::INT4,
        Value::Int64(_) => Type::INT8,
        Value::Decimal(_) => Type::NUMERIC,
        Value::Float32(_) => Type::FLOAT4,
        Value::Float64(_) => Type::FLOAT8,
        Value::Text(_) => Type::TEXT,
        Value::Date(_) => Type::DATE,
        Value::Time(_) => Type::TIME,
        Value::Timestamp(_) => Type::TIMESTAMP,
        Value::Json(_) => Type::JSON,
        _ => Type::UNKNOWN,
    }
}

/// Converts a column type of the driver to a field type.
fn field_type(of: &Type) -> FieldType {
    match *of {
        Type::BOOL => FieldType::Boolean,
        Type::INT2 => FieldType::SmallInt,
        Type::INT4 => FieldType::Integer,
        Type::INT8 => FieldType::BigInt,
        Type::NUMERIC => FieldType::Decimal(None),
        Type::FLOAT4 => FieldType::Real,
        Type::FLOAT8 => FieldType::Double,
        Type::DATE => FieldType::Date,
        Type::TIME => FieldType::Time,
        Type::TIMESTAMP => FieldType::Timestamp,
        Type::TIMESTAMPTZ => FieldType::TimestampTz,
        Type::INTERVAL => FieldType::Interval,
        Type::UUID => FieldType::Uuid,
        Type::JSON | Type::JSONB => FieldType::Json,
        Type::BYTEA => FieldType::Object,
        _ => match of.kind() {
            TypeKind::Array(item) => FieldType::Array(Box::new(field_type(item))),
            _ => FieldType::Varchar,
        },
    }
}

/// The raw bytes of a value.
struct Raw<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Raw(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// The epoch of PostgreSQL's timestamps, which are in microseconds.
fn epoch() -> NaiveDate {
    NaiveDate::from_ymd_opt(2000, 1, 1).unwrap()
}

fn decoded(of: &Type, bytes: &[u8]) -> Value<'static> {
    let micros = |bytes: &[u8]| TimeDelta::microseconds(i64::from_be_bytes(bytes.try_into().unwrap()));
    let moment = || epoch().and_time(NaiveTime::MIN) + micros(bytes);
    match *of {
        Type::BOOL => Value::Boolean(bytes == [1]),
        Type::INT2 => Value::Int16(i16::from_be_bytes(bytes.try_into().unwrap())),
        Type::INT4 => Value::Int32(i32::from_be_bytes(bytes.try_into().unwrap())),
        Type::INT8 => Value::Int64(i64::from_be_bytes(bytes.try_into().unwrap())),
        Type::FLOAT4 => Value::Float32(f32::from_be_bytes(bytes.try_into().unwrap())),
        Type::FLOAT8 => Value::Float64(f64::from_be_bytes(bytes.try_into().unwrap())),
        Type::NUMERIC => Value::Decimal(numeric(bytes)),
        Type::DATE => {
            let days = i64::from(i32::from_be_bytes(bytes.try_into().unwrap()));
            let magnitude = Days::new(days.unsigned_abs());
            Value::Date(if days < 0 { epoch() - magnitude } else { epoch() + magnitude })
        }
        Type::TIME => Value::Time(NaiveTime::MIN + micros(bytes)),
        Type::TIMESTAMP => Value::Timestamp(moment()),
        Type::TIMESTAMPTZ => {
            Value::TimestampTz(DateTime::from_naive_utc_and_offset(moment(), chrono::FixedOffset::east_opt(0).unwrap()))
        }
        Type::INTERVAL => {
            let (time, rest) = bytes.split_at(8);
            let (days, months) = rest.split_at(4);
            Value::Interval(Interval {
                months: i32::from_be_bytes(months.try_into().unwrap()),
                days: i32::from_be_bytes(days.try_into().unwrap()),
                nanoseconds: i64::from_be_bytes(time.try_into().unwrap()) * 1_000,
            })
        }
        Type::UUID => Value::Uuid(Uuid::from_slice(bytes).unwrap()),
        Type::BYTEA => Value::Bytes(bytes.to_vec().into()),
        // The version number precedes the text.
        Type::JSONB => Value::Json(String::from_utf8(bytes[1..].to_vec()).unwrap().into()),
        Type::JSON => Value::Json(String::from_utf8(bytes.to_vec()).unwrap().into()),
        _ => match of.kind() {
            TypeKind::Array(item) => {
                let (header, mut rest) = bytes.split_at(12);
                let dimensions = usize::try_from(i32::from_be_bytes(header[..4].try_into().unwrap())).unwrap();
                let lengths: Vec<usize> =
                    (0..dimensions).map(|_| usize::try_from(taken_number(&mut rest, 2)[0]).unwrap()).collect();
                match lengths.is_empty() {
                    true => Value::Array(Vec::new()),
                    false => array(item, &lengths, &mut rest),
                }
            }
            _ => Value::Text(String::from_utf8(bytes.to_vec()).unwrap().into()),
        },
    }
}

/// Decodes an array with one or more dimensions. The length of each item precedes the item, and the
/// last dimension varies fastest.
fn array(item: &Type, lengths: &[usize], rest: &mut &[u8]) -> Value<'static> {
    let Some((length, inner)) = lengths.split_first() else {
        let Ok(length) = usize::try_from(taken_number(rest, 1)[0]) else { return Value::Null };
        let (bytes, behind) = rest.split_at(length);
        *rest = behind;
        return decoded(item, bytes);
    };
    Value::Array((0..*length).map(|_| array(item, inner, rest)).collect())
}

/// Reads 32-bit numbers.
fn taken_number(rest: &mut &[u8], count: usize) -> Vec<i32> {
    let (numbers, behind) = rest.split_at(4 * count);
    *rest = behind;
    numbers.chunks_exact(4).map(|number| i32::from_be_bytes(number.try_into().unwrap())).collect()
}

/// Decodes a numeric: the number of digits, the weight of the first digit, the sign, the display
/// scale, and then the base-10,000 digits.
fn numeric(bytes: &[u8]) -> BigDecimal {
    let words: Vec<u16> = bytes.chunks_exact(2).map(|word| u16::from_be_bytes(word.try_into().unwrap())).collect();
    let ([count, weight, sign, scale], digits) = words.split_first_chunk().unwrap();
    let digits = digits.iter().fold(BigInt::from(0), |all, digit| all * 10_000 + BigInt::from(*digit));
    let behind = (i64::from(*count) - 1 - i64::from(weight.cast_signed())) * 4;
    let magnitude = BigDecimal::new(digits, behind).with_scale(i64::from(*scale));
    if *sign == 0x4000 { -magnitude } else { magnitude }
}

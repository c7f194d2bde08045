//! The current time: the start of the statement or of its transaction, the same for all rows.

use chrono::{DateTime, NaiveDateTime, Utc};
use filbert_data::dates::SECOND_US;
use filbert_data::{FieldType, Value};

use crate::native::{Call, Native, Take, now, timestamptz};

pub(super) const FUNCTIONS: &[Native] = &[
    now("now", &[], timestamptz, |call| Ok(Value::TimestampTz(transaction(call).fixed_offset()))),
    now("current_timestamp", &[Take::Int], timestamptz, |call| {
        Ok(Value::TimestampTz(rounded(transaction(call), call).fixed_offset()))
    })
    .least(0),
    now("statement_timestamp", &[], timestamptz, |call| Ok(Value::TimestampTz(statement(call).fixed_offset()))),
    now("transaction_timestamp", &[], timestamptz, |call| Ok(Value::TimestampTz(transaction(call).fixed_offset()))),
    now("clock_timestamp", &[], timestamptz, |_| Ok(Value::TimestampTz(Utc::now().fixed_offset()))),
    now("localtimestamp", &[Take::Int], |_| FieldType::Timestamp, |call| Ok(Value::Timestamp(local(call)))).least(0),
    now("current_date", &[], |_| FieldType::Date, |call| Ok(Value::Date(local(call).date()))),
    now("current_time", &[Take::Int], |_| FieldType::Time, |call| Ok(Value::Time(local(call).time()))).least(0),
    now("localtime", &[Take::Int], |_| FieldType::Time, |call| Ok(Value::Time(local(call).time()))).least(0),
];

/// The start time of the statement.
fn statement(call: &Call<'_>) -> DateTime<Utc> {
    call.context().map_or_else(Utc::now, |context| context.now())
}

/// The start time of the transaction, which is that of its first statement.
fn transaction(call: &Call<'_>) -> DateTime<Utc> {
    call.context().map_or_else(Utc::now, |context| context.transaction_began())
}

/// The same in the session's time zone.
fn local(call: &Call<'_>) -> NaiveDateTime {
    let began = rounded(transaction(call), call);
    let Some(context) = call.context() else { return began.naive_utc() };
    let local = i64::try_from(context.zone().to_local(began.timestamp_micros())).ok();
    local.and_then(DateTime::from_timestamp_micros).map_or_else(|| began.naive_utc(), |local| local.naive_utc())
}

/// The timestamp with the number of fractional digits in the argument.
fn rounded(timestamp: DateTime<Utc>, call: &Call<'_>) -> DateTime<Utc> {
    let Some(digits) = call.int(0).and_then(|digits| u32::try_from(digits).ok()).filter(|digits| *digits < 6) else {
        return timestamp;
    };
    let unit = SECOND_US / 10_i64.pow(digits);
    let micros = timestamp.timestamp_micros();
    DateTime::from_timestamp_micros((micros + unit / 2).div_euclid(unit) * unit).unwrap_or(timestamp)
}

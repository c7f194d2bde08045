//! What time it is: the moment when the statement began, the same for all of its rows.

use filbert_data::{FieldType, Value};

use super::native::{Call, Native, Take, moment, now};

pub(super) const FUNCTIONS: &[Native] = &[
    now("now", &[], moment, |call| Ok(Value::TimestampTz(began(call).fixed_offset()))),
    now("current_timestamp", &[Take::Int], moment, |call| Ok(Value::TimestampTz(began(call).fixed_offset()))).least(0),
    now("statement_timestamp", &[], moment, |call| Ok(Value::TimestampTz(began(call).fixed_offset()))),
    now("transaction_timestamp", &[], moment, |call| Ok(Value::TimestampTz(began(call).fixed_offset()))),
    now("clock_timestamp", &[], moment, |_| Ok(Value::TimestampTz(chrono::Utc::now().fixed_offset()))),
    now("localtimestamp", &[Take::Int], |_| FieldType::Timestamp, |call| Ok(Value::Timestamp(began(call).naive_utc())))
        .least(0),
    now("current_date", &[], |_| FieldType::Date, |call| Ok(Value::Date(began(call).date_naive()))),
    now("current_time", &[Take::Int], |_| FieldType::Time, |call| Ok(Value::Time(began(call).time()))).least(0),
    now("localtime", &[Take::Int], |_| FieldType::Time, |call| Ok(Value::Time(began(call).time()))).least(0),
];

fn began(call: &Call<'_>) -> chrono::DateTime<chrono::Utc> {
    call.surroundings().map_or_else(chrono::Utc::now, |surroundings| surroundings.now())
}

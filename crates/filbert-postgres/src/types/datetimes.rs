//! Dates, times and timestamps as counts of days or microseconds, mostly from 2000-01-01.

use chrono::{DateTime, Datelike, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, Offset, Timelike, Utc};

use crate::error::{PgError, sqlstate};

/// Days from the start of the common era to 2000-01-01.
const EPOCH_DAYS_FROM_CE: i32 = 730_120;
/// Days from 1970-01-01 to 2000-01-01.
const EPOCH_DAYS_FROM_UNIX: i64 = 10_957;
const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;

/// The number of days from 1970-01-01 to a date.
pub(super) fn days_of(date: NaiveDate) -> i64 {
    i64::from(days(date)) + EPOCH_DAYS_FROM_UNIX
}

/// The date at a number of days from 1970-01-01.
pub(super) fn of_days(days: i32) -> Option<NaiveDate> {
    date_of(i32::try_from(i64::from(days) - EPOCH_DAYS_FROM_UNIX).ok()?)
}

/// The timestamp at a number of microseconds from 1970-01-01.
pub(super) fn of_micros(microseconds: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp_micros(microseconds).map(|timestamp| timestamp.naive_utc())
}

pub(super) fn days(date: NaiveDate) -> i32 {
    date.num_days_from_ce() - EPOCH_DAYS_FROM_CE
}

pub(super) fn date_of(days: i32) -> Option<NaiveDate> {
    NaiveDate::from_num_days_from_ce_opt(days.checked_add(EPOCH_DAYS_FROM_CE)?)
}

pub(super) fn microseconds_of_day(time: NaiveTime) -> i64 {
    i64::from(time.num_seconds_from_midnight()) * 1_000_000 + i64::from(time.nanosecond() % 1_000_000_000 / 1_000)
}

pub(super) fn time_of(microseconds: i64) -> Option<NaiveTime> {
    let seconds = u32::try_from(microseconds.div_euclid(1_000_000)).ok()?;
    let rest = u32::try_from(microseconds.rem_euclid(1_000_000)).ok()?;
    NaiveTime::from_num_seconds_from_midnight_opt(seconds, rest * 1_000)
}

pub(super) fn microseconds(timestamp: NaiveDateTime) -> Option<i64> {
    let days = i64::from(days(timestamp.date())).checked_mul(MICROSECONDS_PER_DAY)?;
    days.checked_add(microseconds_of_day(timestamp.time()))
}

pub(super) fn timestamp_of(microseconds: i64) -> Option<NaiveDateTime> {
    let days = i32::try_from(microseconds.div_euclid(MICROSECONDS_PER_DAY)).ok()?;
    Some(date_of(days)?.and_time(time_of(microseconds.rem_euclid(MICROSECONDS_PER_DAY))?))
}

pub(super) fn in_utc(timestamp: NaiveDateTime) -> DateTime<FixedOffset> {
    timestamp.and_utc().with_timezone(&Utc.fix())
}

#[cold]
pub(super) fn out_of_range(what: &str) -> Box<PgError> {
    PgError::new(sqlstate::DATETIME_OUT_OF_RANGE, format!("{what} out of range"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_counted_from_2000() {
        let date = |text: &str| text.parse::<NaiveDate>().unwrap();
        assert_eq!(days(date("2000-01-01")), 0);
        assert_eq!(days(date("1970-01-01")), -10_957);
        assert_eq!(date_of(8_825), Some(date("2024-02-29")));
        assert_eq!(microseconds("1999-12-31T23:59:59.999999".parse().unwrap()), Some(-1));
        assert_eq!(microseconds_of_day("00:00:01.5".parse().unwrap()), 1_500_000);
        assert_eq!(time_of(86_400_000_000), None);
    }
}

//! Dates, times and timestamps: ISO 8601 as PostgreSQL writes it, and counts from 2000-01-01.

use std::fmt::Write;

use chrono::{DateTime, Datelike, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeDelta, Timelike, Utc};

use super::Text;
use crate::error::{PgError, sqlstate};

/// Days from the start of the common era to 2000-01-01.
const EPOCH_DAYS_FROM_CE: i32 = 730_120;
const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;

pub(super) fn write_date(date: NaiveDate, out: &mut Text<'_>) {
    write_day(date, out);
    write_era(date, out);
}

fn write_day(date: NaiveDate, out: &mut Text<'_>) {
    // Writing to a text does not fail.
    let _ = write!(out, "{:04}-{:02}-{:02}", date.year_ce().1, date.month(), date.day());
}

fn write_era(date: NaiveDate, out: &mut Text<'_>) {
    if !date.year_ce().0 {
        out.push_str(" BC");
    }
}

pub(super) fn write_time(time: NaiveTime, out: &mut Text<'_>) {
    let _ = write!(out, "{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second());
    let microseconds = time.nanosecond() % 1_000_000_000 / 1_000;
    if microseconds != 0 {
        out.push('.');
        out.push_str(format!("{microseconds:06}").trim_end_matches('0'));
    }
}

pub(super) fn write_timestamp(timestamp: NaiveDateTime, suffix: &str, out: &mut Text<'_>) {
    write_day(timestamp.date(), out);
    out.push(' ');
    write_time(timestamp.time(), out);
    out.push_str(suffix);
    write_era(timestamp.date(), out);
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

pub(super) fn read_date(text: &str) -> Option<NaiveDate> {
    let (text, is_bc) = era(text);
    // A timestamp has a date, too.
    let text = text.split([' ', 'T', 't']).next()?;
    day(text, is_bc)
}

pub(super) fn read_time(text: &str) -> Option<NaiveTime> {
    clock(split_zone(text.trim()).0)
}

pub(super) fn read_timestamp(text: &str) -> Option<NaiveDateTime> {
    Some(timestamp_and_zone(text)?.0)
}

/// A moment; without an offset it is in UTC.
pub(super) fn read_timestamptz(text: &str) -> Option<DateTime<FixedOffset>> {
    let (timestamp, offset) = timestamp_and_zone(text)?;
    let timestamp = timestamp.checked_sub_signed(TimeDelta::seconds(offset.unwrap_or_default().into()))?;
    Some(in_utc(timestamp))
}

fn timestamp_and_zone(text: &str) -> Option<(NaiveDateTime, Option<i32>)> {
    let (text, is_bc) = era(text);
    let Some((date, rest)) = text.split_once([' ', 'T', 't']) else {
        return Some((day(text, is_bc)?.and_time(NaiveTime::MIN), None));
    };
    let (time, zone) = split_zone(rest.trim());
    let offset = match zone {
        "" => None,
        zone => Some(offset(zone)?),
    };
    let time = if time.is_empty() { NaiveTime::MIN } else { clock(time)? };
    Some((day(date, is_bc)?.and_time(time), offset))
}

fn era(text: &str) -> (&str, bool) {
    let text = text.trim();
    match text.strip_suffix("BC").or_else(|| text.strip_suffix("bc")) {
        Some(text) => (text.trim_end(), true),
        None => (text, false),
    }
}

fn day(text: &str, is_bc: bool) -> Option<NaiveDate> {
    let mut parts = text.splitn(3, '-');
    let (year, month, day) = (parts.next()?, parts.next(), parts.next());
    let (year, month, day) = match (month, day) {
        (Some(month), Some(day)) => (year, month, day),
        // 20241231
        (None, None) if year.len() == 8 => (year.get(..4)?, year.get(4..6)?, year.get(6..)?),
        _ => return None,
    };
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u32>().ok()).flatten();
    let year = i32::try_from(number(year)?).ok()?;
    NaiveDate::from_ymd_opt(if is_bc { 1 - year } else { year }, number(month)?, number(day)?)
}

/// A time of day and the zone behind it, which may be empty.
fn split_zone(text: &str) -> (&str, &str) {
    let end = text.find(|char: char| !char.is_ascii_digit() && !matches!(char, ':' | '.')).unwrap_or(text.len());
    let (time, zone) = text.split_at_checked(end).unwrap_or((text, ""));
    (time, zone.trim())
}

fn clock(text: &str) -> Option<NaiveTime> {
    ["%H:%M:%S%.f", "%H:%M"].iter().find_map(|format| NaiveTime::parse_from_str(text, format).ok())
}

/// Seconds east of Greenwich.
fn offset(zone: &str) -> Option<i32> {
    if ["z", "utc", "gmt", "zulu"].iter().any(|name| zone.eq_ignore_ascii_case(name)) {
        return Some(0);
    }
    let (sign, digits) = match zone.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, zone.strip_prefix('+')?),
    };
    let parts: Vec<&str> = match digits.contains(':') {
        true => digits.split(':').collect(),
        false => vec![digits.get(..2).unwrap_or(digits), digits.get(2..).unwrap_or_default()],
    };
    let mut seconds = 0;
    for (part, unit) in parts.iter().zip([3600, 60, 1]) {
        let value: i32 =
            if part.is_empty() { 0 } else { part.parse().ok().filter(|value| (0..=59).contains(value))? };
        seconds += value * unit;
    }
    (parts.len() <= 3 && seconds < 16 * 3600).then_some(sign * seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_read_as_postgresql_writes_them() {
        for (text, expected) in [
            ("2024-02-29 12:34:56.789", "2024-02-29 12:34:56.789+00"),
            ("2024-02-29T12:34:56Z", "2024-02-29 12:34:56+00"),
            ("2024-02-29 12:34:56+02", "2024-02-29 10:34:56+00"),
            ("2024-02-29 12:34:56.5 -05:30", "2024-02-29 18:04:56.5+00"),
            ("2024-02-29 12:34:56+0130", "2024-02-29 11:04:56+00"),
            ("2024-02-29", "2024-02-29 00:00:00+00"),
            ("0044-03-15 12:00:00 BC", "0044-03-15 12:00:00+00 BC"),
            ("12345-01-01 00:00", "12345-01-01 00:00:00+00"),
            ("20240229 010203.000004", ""),
        ] {
            let moment = read_timestamptz(text).map(|moment| moment.naive_utc());
            let out = moment.map(|moment| Text::written(|out| write_timestamp(moment, "+00", out)));
            assert_eq!(out.unwrap_or_default(), expected, "{text}");
            assert_eq!(moment.and_then(microseconds).and_then(timestamp_of), moment);
        }
        for text in ["", "2024-13-01", "2024-02-30", "x", "2024-02-29 25:00:00", "2024-02-29 12:00 Nowhere", "infinity"]
        {
            assert_eq!(read_timestamptz(text), None, "{text}");
        }
    }

    #[test]
    fn moments_are_counted_from_2000() {
        let date = |text| read_date(text).unwrap();
        assert_eq!(days(date("2000-01-01")), 0);
        assert_eq!(days(date("1970-01-01")), -10_957);
        assert_eq!(date_of(8_825), Some(date("2024-02-29")));
        assert_eq!(microseconds(read_timestamp("1999-12-31 23:59:59.999999").unwrap()), Some(-1));
        assert_eq!(microseconds_of_day(read_time("00:00:01.5").unwrap()), 1_500_000);
        assert_eq!(time_of(86_400_000_000), None);
    }
}

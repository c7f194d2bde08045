//! Writes the text formats of PostgreSQL's `DateStyle` `ISO` and `IntervalStyle` `postgres`.

use std::fmt::Write;

use super::calendar::{SECOND_US, civil_of_days, split_micros};
use super::zone::Zone;
use crate::Interval;

/// Writes a date, given in days since 1970-01-01, such as `2024-02-29` or `0044-03-15 BC`.
pub fn write_date(days: i64, out: &mut impl Write) {
    let is_bc = write_day(days, out);
    write_era(is_bc, out);
}

/// Writes a date without its era. Returns whether the era is BC.
fn write_day(days: i64, out: &mut impl Write) -> bool {
    let date = civil_of_days(days);
    let is_bc = date.year <= 0;
    let year = if is_bc { 1 - date.year } else { date.year };
    // Writing to a `String` does not fail.
    let _ = write!(out, "{year:04}-{:02}-{:02}", date.month, date.day);
    is_bc
}

fn write_era(is_bc: bool, out: &mut impl Write) {
    if is_bc {
        let _ = out.write_str(" BC");
    }
}

/// Writes a time of day, given in microseconds since midnight, such as `04:05:06.5`.
pub fn write_time(micros: i64, out: &mut impl Write) {
    let (seconds, rest) = (micros / SECOND_US, micros % SECOND_US);
    write_clock(seconds, rest, out);
}

fn write_clock(seconds: i64, micros: i64, out: &mut impl Write) {
    let _ = write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if micros != 0 {
        let _ = write!(out, ".{}", format!("{micros:06}").trim_end_matches('0'));
    }
}

/// Writes a timestamp, given in microseconds since 1970-01-01, such as `2024-02-29 04:05:06.5`.
pub fn write_timestamp(micros: i64, out: &mut impl Write) {
    let (days, of_day) = split_micros(micros);
    let is_bc = write_day(days, out);
    let _ = out.write_char(' ');
    write_time(of_day, out);
    write_era(is_bc, out);
}

/// Writes a timestamp in a time zone, given in microseconds since 1970-01-01 in UTC, such as
/// `2024-02-29 04:05:06.5+01`.
pub fn write_timestamptz(micros: i64, zone: &Zone, out: &mut impl Write) {
    let offset = zone.offset_at(micros);
    let (days, of_day) = split_micros(micros.saturating_add(i64::from(offset) * SECOND_US));
    let is_bc = write_day(days, out);
    let _ = out.write_char(' ');
    write_time(of_day, out);
    write_offset(offset, out);
    write_era(is_bc, out);
}

/// Writes an offset, given in seconds east of Greenwich, such as `+00` or `-03:30`.
pub fn write_offset(seconds: i32, out: &mut impl Write) {
    let sign = if seconds < 0 { '-' } else { '+' };
    let (hours, rest) = (seconds.unsigned_abs() / 3600, seconds.unsigned_abs() % 3600);
    let _ = write!(out, "{sign}{hours:02}");
    if rest != 0 {
        let _ = write!(out, ":{:02}", rest / 60);
    }
    if rest % 60 != 0 {
        let _ = write!(out, ":{:02}", rest % 60);
    }
}

/// Writes an interval, such as `1 year 2 mons -3 days +04:05:06.5`.
pub fn write_interval(interval: &Interval, out: &mut impl Write) {
    let mut is_first = true;
    let mut was_negative = false;
    let parts = [(interval.months / 12, "year"), (interval.months % 12, "mon"), (interval.days, "day")];
    for (value, unit) in parts.into_iter().filter(|(value, _)| *value != 0) {
        let space = if is_first { "" } else { " " };
        let plus = if was_negative && value > 0 { "+" } else { "" };
        let plural = if value == 1 { "" } else { "s" };
        let _ = write!(out, "{space}{plus}{value} {unit}{plural}");
        was_negative = value < 0;
        is_first = false;
    }
    let micros = interval.nanoseconds / 1_000;
    if micros == 0 && !is_first {
        return;
    }
    let space = if is_first { "" } else { " " };
    let sign = match micros {
        ..0 => "-",
        _ if was_negative => "+",
        _ => "",
    };
    let _ = write!(out, "{space}{sign}");
    write_clock((micros / SECOND_US).abs(), (micros % SECOND_US).abs(), out);
}

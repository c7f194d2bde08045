//! Intervals as PostgreSQL's `IntervalStyle` `postgres` writes them.

use std::fmt::Write;

use filbert_data::Interval;

use super::Text;

const MICROSECONDS_PER_SECOND: i64 = 1_000_000;

/// Writes such as `1 year 2 mons 3 days 04:05:06.5`.
pub(super) fn write_text(interval: &Interval, out: &mut Text<'_>) {
    let start = out.len();
    let mut was_negative = false;
    let parts = [(interval.months / 12, "year"), (interval.months % 12, "mon"), (interval.days, "day")];
    for (value, unit) in parts.into_iter().filter(|(value, _)| *value != 0) {
        let space = if out.len() > start { " " } else { "" };
        let plus = if was_negative && value > 0 { "+" } else { "" };
        let plural = if value == 1 { "" } else { "s" };
        // Writing to a text does not fail.
        let _ = write!(out, "{space}{plus}{value} {unit}{plural}");
        was_negative = value < 0;
    }
    let microseconds = interval.nanoseconds / 1_000;
    if microseconds == 0 && out.len() > start {
        return;
    }
    if out.len() > start {
        out.push(' ');
    }
    if microseconds < 0 {
        out.push('-');
    } else if was_negative {
        out.push('+');
    }
    let (seconds, rest) = (microseconds.unsigned_abs() / 1_000_000, microseconds.unsigned_abs() % 1_000_000);
    let _ = write!(out, "{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if rest != 0 {
        out.push('.');
        out.push_str(format!("{rest:06}").trim_end_matches('0'));
    }
}

/// Writes microseconds, days and months.
pub(super) fn write_binary(interval: &Interval, out: &mut Vec<u8>) {
    out.extend_from_slice(&(interval.nanoseconds / 1_000).to_be_bytes());
    out.extend_from_slice(&interval.days.to_be_bytes());
    out.extend_from_slice(&interval.months.to_be_bytes());
}

/// Reads microseconds, days and months; none if the microseconds are beyond what nanoseconds can hold, 292 years.
pub(super) fn read_binary(bytes: &[u8; 16]) -> Option<Interval> {
    let (microseconds, rest) = bytes.split_first_chunk::<8>()?;
    let (days, rest) = rest.split_first_chunk::<4>()?;
    let months = rest.first_chunk::<4>()?;
    let nanoseconds = i64::from_be_bytes(*microseconds).checked_mul(1_000_000_000 / MICROSECONDS_PER_SECOND)?;
    Some(Interval { months: i32::from_be_bytes(*months), days: i32::from_be_bytes(*days), nanoseconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_written_as_postgresql_writes_them() {
        for (text, expected) in [
            ("P1Y2M3DT4H5M6.5S", "1 year 2 mons 3 days 04:05:06.5"),
            ("PT0S", "00:00:00"),
            ("P2Y", "2 years"),
            ("P1D", "1 day"),
            ("P-1D", "-1 days"),
            ("P-1DT1H", "-1 days +01:00:00"),
            ("P-1Y2D", "-1 years +2 days"),
            ("PT-0.000001S", "-00:00:00.000001"),
            ("PT100H", "100:00:00"),
        ] {
            let interval: Interval = text.parse().unwrap();
            let mut bytes = Vec::new();
            let out = Text::written(|out| write_text(&interval, out));
            assert_eq!(out, expected, "{text}");
            assert_eq!(out.parse(), Ok(interval), "{out}");
            write_binary(&interval, &mut bytes);
            assert_eq!(read_binary(bytes.first_chunk().unwrap()), Some(interval));
        }
    }
}

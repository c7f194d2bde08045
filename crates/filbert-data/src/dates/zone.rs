//! Time zones: names of the tz database, fixed offsets in POSIX notation, and abbreviations.

use std::borrow::Cow;
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::LazyLock;

use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, TimeZone};
use chrono_tz::{OffsetName, TZ_VARIANTS, Tz};

use super::abbreviations::{FIXED, OF_ZONES};
use super::calendar::{Civil, DAY_US, SECOND_US, civil_of_days, days_of_civil, split_micros, weekday};

/// From this year on, the tz database contains no transitions. The rules of its last years are
/// continued.
const YEARS_KNOWN_END: i64 = 2095;
/// The years with the rules that are continued. Any year has the same calendar as one of these
/// years: 28 consecutive years have all combinations of weekday and leap day.
const YEARS_TAKEN: std::ops::Range<i64> = 2067..2095;
/// The upper limit of an offset in seconds, exclusive.
const OFFSET_SECONDS_MAX: i64 = 16 * 3600;

/// A time zone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Zone {
    /// A time zone of the tz database.
    Named(Tz),
    /// A time zone with a fixed offset from UTC.
    Fixed {
        /// Seconds east of Greenwich.
        seconds: i32,
        /// The name for display, such as `<+03>-03`.
        name: Cow<'static, str>,
    },
}

impl Zone {
    /// UTC: the offset is always 0.
    pub const UTC: Zone = Zone::Fixed { seconds: 0, name: Cow::Borrowed("UTC") };

    /// The zone with a name of the tz database, in upper or lower case, or with a fixed offset in
    /// POSIX notation (`UTC+3` is west of Greenwich).
    pub fn of_name(name: &str) -> Option<Zone> {
        let name = name.trim();
        if name.eq_ignore_ascii_case("utc") {
            return Some(Zone::UTC);
        }
        named(name).or_else(|| posix(name))
    }

    /// The zone of an abbreviation, such as `CEST`.
    pub fn of_abbreviation(name: &str) -> Option<Zone> {
        let is_it = |known: &str| name.eq_ignore_ascii_case(known);
        if let Some((name, seconds)) = FIXED.iter().find(|(known, _)| is_it(known)) {
            return Some(Zone::Fixed { seconds: *seconds, name: Cow::Borrowed(name) });
        }
        OF_ZONES.iter().find(|(known, _)| is_it(known)).map(|(_, zone)| Zone::Named(*zone))
    }

    /// The zone of an abbreviation or a name, as in `AT TIME ZONE` and in the text of a timestamp.
    pub fn of_word(name: &str) -> Option<Zone> {
        Zone::of_abbreviation(name.trim()).or_else(|| Zone::of_name(name))
    }

    /// The zone of a value of the setting `TimeZone`: a name, or hours east of Greenwich.
    pub fn of_setting(value: &str) -> Option<Zone> {
        let value = value.trim();
        match value.parse::<f64>() {
            Ok(hours) if hours.is_finite() => Zone::of_seconds((hours * 3600.0).round() as i64),
            _ => Zone::of_name(value),
        }
    }

    /// The zone of an offset in seconds east of Greenwich, with the same name as in PostgreSQL.
    pub fn of_seconds(seconds: i64) -> Option<Zone> {
        let seconds = i32::try_from(seconds).ok().filter(|_| seconds.abs() < 168 * 3600)?;
        let mut east = String::new();
        let mut west = String::new();
        super::write_offset(seconds, &mut east);
        super::write_offset(-seconds, &mut west);
        Some(Zone::Fixed { seconds, name: format!("<{east}>{west}").into() })
    }

    /// The name for display.
    pub fn name(&self) -> &str {
        match self {
            Zone::Named(zone) => zone.name(),
            Zone::Fixed { name, .. } => name,
        }
    }

    /// The offset at a time, in seconds east of Greenwich. The time is given in microseconds since
    /// 1970-01-01 in UTC.
    pub fn offset_at(&self, micros: i64) -> i32 {
        match self {
            Zone::Fixed { seconds, .. } => *seconds,
            Zone::Named(zone) => match naive(known(micros)) {
                Some(timestamp) => zone.offset_from_utc_datetime(&timestamp).fix().local_minus_utc(),
                None => 0,
            },
        }
    }

    /// The abbreviation of the zone's name at a time, such as `CEST`. The time is given in
    /// microseconds since 1970-01-01 in UTC.
    pub fn abbreviation_at(&self, micros: i64) -> String {
        match self {
            Zone::Fixed { name, .. } => match name.strip_prefix('<').and_then(|name| name.split_once('>')) {
                Some((shown, _)) => shown.to_owned(),
                None => name.trim_end_matches(|char: char| !char.is_ascii_alphabetic()).to_owned(),
            },
            Zone::Named(zone) => naive(known(micros))
                .map(|timestamp| {
                    let offset = zone.offset_from_utc_datetime(&timestamp);
                    offset.abbreviation().map_or_else(|| numeric_name(offset.fix().local_minus_utc()), str::to_owned)
                })
                .unwrap_or_default(),
        }
    }

    /// Converts a local time to UTC, in microseconds since 1970-01-01. If the local time occurs
    /// twice, the later time is returned. If it does not occur, the offset before the change is
    /// used, as in PostgreSQL.
    pub fn to_utc(&self, local: i64) -> i128 {
        i128::from(local) - i128::from(self.offset_of_local(local)) * i128::from(SECOND_US)
    }

    /// Converts a time in UTC to local time, in microseconds since 1970-01-01.
    pub fn to_local(&self, micros: i64) -> i128 {
        i128::from(micros) + i128::from(self.offset_at(micros)) * i128::from(SECOND_US)
    }

    fn offset_of_local(&self, local: i64) -> i32 {
        let zone = match self {
            Zone::Fixed { seconds, .. } => return *seconds,
            Zone::Named(zone) => zone,
        };
        let shifted = known(local);
        let Some(timestamp) = naive(shifted) else { return 0 };
        match zone.offset_from_local_datetime(&timestamp) {
            LocalResult::Single(offset) => offset.fix().local_minus_utc(),
            LocalResult::Ambiguous(one, other) => one.fix().local_minus_utc().min(other.fix().local_minus_utc()),
            LocalResult::None => self.offset_at(shifted - DAY_US).min(self.offset_at(shifted + DAY_US)),
        }
    }
}

/// The name of an offset without an abbreviation in the tz database, such as `-03` or `+0545`.
fn numeric_name(seconds: i32) -> String {
    let mut name = String::new();
    super::write_offset(seconds, &mut name);
    name.retain(|char| char != ':');
    name
}

fn naive(micros: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp_micros(micros).map(|timestamp| timestamp.naive_utc())
}

/// The same time in a year with known transitions: a year with the same weekdays.
fn known(micros: i64) -> i64 {
    let (days, rest) = split_micros(micros);
    let date = civil_of_days(days);
    if date.year < YEARS_KNOWN_END {
        return micros;
    }
    let first = |year: i64| weekday(days_of_civil(Civil { year, month: 1, day: 1 }));
    let leap_day = |year: i64| super::days_in_month(year, 2);
    let same = |year: &i64| first(*year) == first(date.year) && leap_day(*year) == leap_day(date.year);
    let year = YEARS_TAKEN.clone().find(same).unwrap_or(YEARS_TAKEN.start);
    days_of_civil(Civil { year, ..date }) * DAY_US + rest
}

fn named(name: &str) -> Option<Zone> {
    static NAMES: LazyLock<HashMap<String, Tz>> =
        LazyLock::new(|| TZ_VARIANTS.iter().map(|zone| (zone.name().to_ascii_lowercase(), *zone)).collect());
    match Tz::from_str(name) {
        Ok(zone) => Some(Zone::Named(zone)),
        Err(_) => NAMES.get(&name.to_ascii_lowercase()).copied().map(Zone::Named),
    }
}

/// Reads a zone in POSIX notation: a name of three or more letters, or any text between `<` and
/// `>`, then the offset west of Greenwich. The name is optional.
fn posix(text: &str) -> Option<Zone> {
    let (shown, offset) = match text.strip_prefix('<') {
        Some(rest) => rest.split_once('>')?,
        None => text.split_at(text.find(|char: char| !char.is_ascii_alphabetic())?),
    };
    if !shown.is_empty() && shown.len() < 3 {
        return None;
    }
    let west = offset_seconds(offset)?;
    let seconds = -west;
    // A zone without a name is named after its offset, as in PostgreSQL.
    if shown.is_empty() {
        return Zone::of_seconds((-west).into());
    }
    Some(Zone::Fixed { seconds, name: Cow::Owned(text.to_owned()) })
}

/// Reads an offset such as `+3`, `-03:30`, `0530` or `05:30:10`, in seconds. The sign is optional.
fn offset_seconds(text: &str) -> Option<i32> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let seconds = unsigned_offset(digits)?;
    i32::try_from(sign * seconds).ok()
}

/// Reads an offset without a sign, such as `3`, `03`, `0330`, `03:30` or `03:30:10`, in seconds.
/// Returns `None` if the text is malformed or the offset is 16 hours or more.
pub(super) fn unsigned_offset(digits: &str) -> Option<i64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b':') {
        return None;
    }
    let parts: Vec<&str> = match digits.contains(':') {
        true => digits.split(':').collect(),
        false if digits.len() <= 2 => vec![digits],
        false => {
            let (hours, minutes) = digits.split_at_checked(digits.len().checked_sub(2)?)?;
            match hours.len() {
                1 | 2 => vec![hours, minutes],
                3 | 4 => {
                    let (hours, of_hour) = hours.split_at_checked(hours.len() - 2)?;
                    vec![hours, of_hour, minutes]
                }
                _ => return None,
            }
        }
    };
    let mut seconds = 0;
    for (at, part) in parts.iter().enumerate() {
        let value: i64 = part.parse().ok()?;
        let unit = *[3600, 60, 1].get(at)?;
        if at > 0 && value >= 60 {
            return None;
        }
        seconds += value * unit;
    }
    (seconds < OFFSET_SECONDS_MAX).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::super::{read_timestamp, write_timestamptz};
    use super::*;

    fn timestamp(text: &str) -> i64 {
        read_timestamp(text).unwrap()
    }

    #[test]
    fn names_are_those_of_the_tz_database_of_posix_and_offsets() {
        for (name, seconds, shown) in [
            ("UTC", 0, "UTC"),
            ("utc", 0, "UTC"),
            ("europe/berlin", 3600, "Europe/Berlin"),
            ("EST5EDT", -18_000, "EST5EDT"),
            ("UTC+3", -10_800, "UTC+3"),
            ("+3", -10_800, "<-03>+03"),
            ("<+03>-03", 10_800, "<+03>-03"),
            ("Foo5", -18_000, "Foo5"),
        ] {
            let zone = Zone::of_name(name).unwrap();
            assert_eq!((zone.offset_at(timestamp("2024-01-01")), zone.name()), (seconds, shown), "{name}");
        }
        assert_eq!(Zone::of_setting("5.5").unwrap().name(), "<+05:30>-05:30");
        assert_eq!(Zone::of_setting("-7").unwrap().offset_at(0), -25_200);
        for name in ["nowhere", "", "x5", "CEST", "UTC+99", "Europe/Berlin/Mitte"] {
            assert_eq!(Zone::of_name(name), None, "{name}");
        }
        assert_eq!(Zone::of_word("cest").unwrap().offset_at(0), 7200);
    }

    #[test]
    fn local_times_that_are_twice_or_never_are_as_in_postgresql() {
        let berlin = Zone::of_name("Europe/Berlin").unwrap();
        for (local, expected) in [
            ("2024-03-31 02:30:00", "2024-03-31 03:30:00+02"),
            ("2024-10-27 02:30:00", "2024-10-27 02:30:00+01"),
            ("2024-07-01 12:00:00", "2024-07-01 12:00:00+02"),
            ("2500-07-01 12:00:00", "2500-07-01 12:00:00+02"),
            ("2500-01-01 12:00:00", "2500-01-01 12:00:00+01"),
            ("1800-01-01 12:00:00", "1800-01-01 12:00:00+00:53:28"),
        ] {
            let utc = i64::try_from(berlin.to_utc(timestamp(local))).unwrap();
            let mut out = String::new();
            write_timestamptz(utc, &berlin, &mut out);
            assert_eq!(out, expected);
        }
    }
}

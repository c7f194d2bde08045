//! Intervals of SQL: spans of time with months and days, which have no fixed number of seconds.

use std::fmt;
use std::str::FromStr;

const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;
const MONTHS_PER_YEAR: i32 = 12;

/// A span of time. Its parts may differ in sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interval {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Nanoseconds.
    pub nanoseconds: i64,
}

impl Interval {
    /// The length in nanoseconds, with 30 days per month and 24 hours per day. PostgreSQL orders
    /// intervals by this length.
    pub fn length(&self) -> i128 {
        const DAY: i128 = 86_400 * NANOSECONDS_PER_SECOND as i128;
        (i128::from(self.months) * 30 + i128::from(self.days)) * DAY + i128::from(self.nanoseconds)
    }

    fn add(&mut self, amount: f64, unit: &str) -> Option<()> {
        let nanoseconds_per = |seconds: f64| seconds * NANOSECONDS_PER_SECOND as f64;
        let range = f64::from(i32::MIN)..=f64::from(i32::MAX);
        let whole = |amount: f64| (amount.fract() == 0.0 && range.contains(&amount)).then_some(amount as i32);
        let unit = unit.to_ascii_lowercase();
        match unit.strip_suffix('s').filter(|unit| !unit.is_empty()).unwrap_or(&unit) {
            "year" | "y" | "yr" => {
                self.months = self.months.checked_add(whole(amount * f64::from(MONTHS_PER_YEAR))?)?
            }
            "month" | "mon" => self.months = self.months.checked_add(whole(amount)?)?,
            "week" | "w" => self.days = self.days.checked_add(whole(amount * 7.0)?)?,
            "day" | "d" => self.days = self.days.checked_add(whole(amount)?)?,
            "hour" | "h" => {
                self.nanoseconds = self.nanoseconds.checked_add(rounded(nanoseconds_per(amount * 3600.0))?)?
            }
            "minute" | "min" | "m" => {
                self.nanoseconds = self.nanoseconds.checked_add(rounded(nanoseconds_per(amount * 60.0))?)?;
            }
            "second" | "sec" | "s" => {
                self.nanoseconds = self.nanoseconds.checked_add(rounded(nanoseconds_per(amount))?)?;
            }
            "millisecond" | "ms" => self.nanoseconds = self.nanoseconds.checked_add(rounded(amount * 1e6)?)?,
            "microsecond" | "us" => self.nanoseconds = self.nanoseconds.checked_add(rounded(amount * 1e3)?)?,
            _ => return None,
        }
        Some(())
    }
}

fn rounded(nanoseconds: f64) -> Option<i64> {
    (nanoseconds.abs() < i64::MAX as f64).then_some(nanoseconds.round() as i64)
}

/// The format of ISO 8601, such as `P1Y2M3DT4H5M6.5S`.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Interval::default() {
            return f.write_str("PT0S");
        }
        f.write_str("P")?;
        let mut part = |value: i64, unit: &str| if value == 0 { Ok(()) } else { write!(f, "{value}{unit}") };
        part((self.months / MONTHS_PER_YEAR).into(), "Y")?;
        part((self.months % MONTHS_PER_YEAR).into(), "M")?;
        part(self.days.into(), "D")?;
        if self.nanoseconds == 0 {
            return Ok(());
        }
        part_of_day(f, self.nanoseconds)
    }
}

fn part_of_day(f: &mut fmt::Formatter<'_>, nanoseconds: i64) -> fmt::Result {
    f.write_str("T")?;
    let seconds = nanoseconds / NANOSECONDS_PER_SECOND;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let rest = (nanoseconds % NANOSECONDS_PER_SECOND).abs();
    if hours != 0 {
        write!(f, "{hours}H")?;
    }
    if minutes != 0 {
        write!(f, "{minutes}M")?;
    }
    if seconds == 0 && rest == 0 {
        return Ok(());
    }
    if nanoseconds < 0 && seconds == 0 {
        f.write_str("-")?;
    }
    write!(f, "{seconds}")?;
    if rest != 0 {
        f.write_str(".")?;
        f.write_str(format!("{rest:09}").trim_end_matches('0'))?;
    }
    f.write_str("S")
}

/// The error for a text that is neither an interval of ISO 8601 nor an interval of PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no interval, expected such as \"P1Y2M3DT4H5M6.5S\" or \"1 year 2 days 04:05:06.5\"")]
pub struct NoInterval;

/// Parses the formats of ISO 8601 (`P1Y2M3DT4H5M6.5S`) and PostgreSQL (`1 year 2 mons 3 days
/// 04:05:06.5`, `2 hours ago`).
impl FromStr for Interval {
    type Err = NoInterval;

    fn from_str(text: &str) -> Result<Interval, NoInterval> {
        let text = text.trim();
        match text.strip_prefix(['P', 'p']) {
            Some(rest) => iso(rest),
            None => words(text),
        }
        .ok_or(NoInterval)
    }
}

fn iso(text: &str) -> Option<Interval> {
    let (date, time) = text.split_once(['T', 't']).unwrap_or((text, ""));
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let mut interval = Interval::default();
    for (part, month) in [(date, "month"), (time, "minute")] {
        let mut rest = part;
        while let Some(end) = rest.find(|char: char| char.is_ascii_alphabetic()) {
            let amount: f64 = rest.get(..end)?.parse().ok()?;
            let unit = rest.get(end..=end)?;
            interval.add(amount, if unit.eq_ignore_ascii_case("m") { month } else { unit })?;
            rest = rest.get(end + 1..)?;
        }
        if !rest.is_empty() {
            return None;
        }
    }
    Some(interval)
}

fn words(text: &str) -> Option<Interval> {
    let mut interval = Interval::default();
    let mut words = text.trim_start_matches('@').split_whitespace();
    let mut is_empty = true;
    while let Some(word) = words.next() {
        if word.eq_ignore_ascii_case("ago") {
            interval = Interval {
                months: interval.months.checked_neg()?,
                days: interval.days.checked_neg()?,
                nanoseconds: interval.nanoseconds.checked_neg()?,
            };
            continue;
        }
        is_empty = false;
        if word.contains(':') {
            interval.nanoseconds = interval.nanoseconds.checked_add(clock(word)?)?;
            continue;
        }
        // The unit may follow without a space, as in `5m`.
        let end = word.find(|char: char| char.is_ascii_alphabetic()).unwrap_or(word.len());
        let (amount, unit) = word.split_at(end);
        let unit = match unit.is_empty() {
            true => words.next().unwrap_or("second"),
            false => unit,
        };
        interval.add(amount.parse().ok()?, unit)?;
    }
    (!is_empty).then_some(interval)
}

/// `[-]hours:minutes[:seconds]`.
fn clock(word: &str) -> Option<i64> {
    let (sign, word) = match word.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, word.trim_start_matches('+')),
    };
    let mut parts = word.split(':');
    let hours: f64 = parts.next()?.parse().ok()?;
    let minutes: f64 = parts.next()?.parse().ok()?;
    let seconds: f64 = parts.next().unwrap_or("0").parse().ok()?;
    if parts.next().is_some() {
        return None;
    }
    rounded(sign * ((hours * 60.0 + minutes) * 60.0 + seconds) * NANOSECONDS_PER_SECOND as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_read_what_they_write() {
        for (text, months, days, nanoseconds, written) in [
            ("P1Y2M3DT4H5M6.5S", 14, 3, 14_706_500_000_000, "P1Y2M3DT4H5M6.5S"),
            ("1 year 2 mons 3 days 04:05:06.5", 14, 3, 14_706_500_000_000, "P1Y2M3DT4H5M6.5S"),
            ("2 hours ago", 0, 0, -7_200_000_000_000, "PT-2H"),
            ("-00:00:00.25", 0, 0, -250_000_000, "PT-0.25S"),
            ("5m", 0, 0, 300_000_000_000, "PT5M"),
            ("P1W", 0, 7, 0, "P7D"),
            ("0", 0, 0, 0, "PT0S"),
        ] {
            let interval: Interval = text.parse().unwrap();
            assert_eq!(interval, Interval { months, days, nanoseconds }, "{text}");
            assert_eq!(interval.to_string(), written, "{text}");
            assert_eq!(written.parse(), Ok(interval), "{text}");
        }
        for text in ["", "P", "1 fortnight", "PT5", "x", "1:2:3:4"] {
            assert_eq!(text.parse::<Interval>(), Err(NoInterval), "{text}");
        }
    }
}

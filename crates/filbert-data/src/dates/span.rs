//! Reads intervals from text, multiplies and divides them.

use std::borrow::Cow;

use super::calendar::{DAY_US, HOUR_US, MINUTE_US, SECOND_US};
use super::error::DateError;
use crate::{Interval, is_space};

const KIND: &str = "interval";
const DAYS_PER_MONTH: f64 = 30.0;

/// Reads an interval, in the formats that PostgreSQL accepts: `1 year 2 mons -3 days 04:05:06.5
/// ago`, `1-2`, `P1Y2M3DT4H5M6.5S`.
///
/// # Errors
/// The text is not an interval, or the interval is out of range.
pub fn read_interval(text: &str) -> Result<Interval, DateError> {
    read_interval_of(text, None)
}

/// Reads an interval with a range of fields, from the first field to the last field of `fields`. A
/// number without a unit counts the last field, and smaller fields are cut off. The fields are
/// named `year` to `second`.
///
/// # Errors
/// As [`read_interval`].
pub fn read_interval_of(text: &str, fields: Option<(&str, &str)>) -> Result<Interval, DateError> {
    let plain = text.trim_matches(is_space);
    let sum = match plain.strip_prefix('P') {
        Some(rest) => iso(rest),
        None => words(&with_signs(plain), fields),
    };
    let sum = sum.map(|sum| match fields {
        Some((_, last)) => sum.down_to(last),
        None => sum,
    });
    match sum.and_then(Sum::interval) {
        Ok(interval) => Ok(interval),
        Err(Wrong::Syntax) => Err(DateError::Syntax { kind: KIND, text: text.to_owned() }),
        Err(Wrong::Field) => Err(DateError::IntervalField { text: text.to_owned() }),
    }
}

/// The text with each sign that begins a word directly before its number: `1 month - 1 day`.
fn with_signs(text: &str) -> Cow<'_, str> {
    if !text.contains(['+', '-']) {
        return Cow::Borrowed(text);
    }
    let mut joined = String::with_capacity(text.len());
    for word in text.split_inclusive(is_space) {
        match word.trim_end_matches(is_space) {
            sign @ ("+" | "-") => joined.push_str(sign),
            "" if joined.ends_with(['+', '-']) => {}
            _ => joined.push_str(word),
        }
    }
    Cow::Owned(joined)
}

/// The interval multiplied by a number. Fractions of months become days, and fractions of days
/// become time.
///
/// # Errors
/// The product is out of range.
pub fn scaled(interval: &Interval, factor: f64) -> Result<Interval, DateError> {
    by(interval, |part| part * factor)
}

/// The interval divided by a number that is not zero. Fractions are handled as in [`scaled`].
///
/// # Errors
/// The quotient is out of range.
pub fn spread(interval: &Interval, divisor: f64) -> Result<Interval, DateError> {
    by(interval, |part| part / divisor)
}

fn by(interval: &Interval, of: impl Fn(f64) -> f64) -> Result<Interval, DateError> {
    const SECONDS_PER_DAY: f64 = 86_400.0;
    let overflow = || DateError::Overflow { kind: KIND };
    // As in PostgreSQL: digits after the sixth are noise of the computation.
    let noiseless = |value: f64| (value * 1e6).round_ties_even() / 1e6;
    let (months, days) = (of(interval.months.into()), of(interval.days.into()));
    let whole_months = int(months.trunc()).ok_or_else(overflow)?;
    let mut whole_days = int(days.trunc()).ok_or_else(overflow)?;
    let days_of_months = noiseless((months - months.trunc()) * DAYS_PER_MONTH);
    let rest = days - days.trunc() + days_of_months - days_of_months.trunc();
    let mut seconds = noiseless(rest * SECONDS_PER_DAY);
    if seconds.abs() >= SECONDS_PER_DAY {
        let carried = (seconds / SECONDS_PER_DAY).trunc();
        whole_days = whole_days.checked_add(int(carried).ok_or_else(overflow)?).ok_or_else(overflow)?;
        seconds -= carried * SECONDS_PER_DAY;
    }
    whole_days = whole_days.checked_add(int(days_of_months.trunc()).ok_or_else(overflow)?).ok_or_else(overflow)?;
    let micros = of((interval.nanoseconds / 1_000) as f64) + seconds * SECOND_US as f64;
    let micros = micros.round_ties_even();
    let nanoseconds = (micros.abs() < i64::MAX as f64).then_some(micros as i64).and_then(|us| us.checked_mul(1_000));
    Ok(Interval { months: whole_months, days: whole_days, nanoseconds: nanoseconds.ok_or_else(overflow)? })
}

fn int(value: f64) -> Option<i32> {
    (value >= f64::from(i32::MIN) && value <= f64::from(i32::MAX)).then_some(value as i32)
}

/// The kind of an error in a text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    Syntax,
    Field,
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Microseconds,
    Milliseconds,
    Seconds,
    Minutes,
    Hours,
    Days,
    Weeks,
    Months,
    Years,
    Decades,
    Centuries,
    Millennia,
}

impl Unit {
    fn of(word: &str) -> Option<Unit> {
        Some(match word.to_ascii_lowercase().as_str() {
            "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecond" | "microseconds" | "microsecon" => {
                Unit::Microseconds
            }
            "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecond" | "milliseconds" | "millisecon" => {
                Unit::Milliseconds
            }
            "s" | "sec" | "secs" | "second" | "seconds" => Unit::Seconds,
            "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minutes,
            "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Hours,
            "d" | "day" | "days" => Unit::Days,
            "w" | "week" | "weeks" => Unit::Weeks,
            "mon" | "mons" | "month" | "months" => Unit::Months,
            "y" | "yr" | "yrs" | "year" | "years" => Unit::Years,
            "dec" | "decs" | "decade" | "decades" => Unit::Decades,
            "c" | "cent" | "century" | "centuries" => Unit::Centuries,
            "mil" | "mils" | "millennia" | "millennium" => Unit::Millennia,
            _ => return None,
        })
    }
}

/// A sum of amounts.
#[derive(Debug, Default)]
struct Sum {
    months: i64,
    days: i64,
    micros: i128,
}

impl Sum {
    fn add(&mut self, amount: Amount, unit: Unit) -> Result<(), Wrong> {
        let Amount { whole, fraction } = amount;
        let add = |to: &mut i64, count: i64| {
            *to = whole.checked_mul(count).and_then(|whole| to.checked_add(whole)).ok_or(Wrong::Field)?;
            Ok(())
        };
        match unit {
            Unit::Microseconds => self.add_micros(whole, fraction, 1),
            Unit::Milliseconds => self.add_micros(whole, fraction, 1_000),
            Unit::Seconds => self.add_micros(whole, fraction, SECOND_US),
            Unit::Minutes => self.add_micros(whole, fraction, MINUTE_US),
            Unit::Hours => self.add_micros(whole, fraction, HOUR_US),
            Unit::Days => {
                add(&mut self.days, 1)?;
                self.add_micros(0, fraction, DAY_US);
            }
            Unit::Weeks => {
                add(&mut self.days, 7)?;
                self.add_part_of_days(fraction, 7.0);
            }
            Unit::Months => {
                add(&mut self.months, 1)?;
                self.add_part_of_days(fraction, DAYS_PER_MONTH);
            }
            Unit::Years | Unit::Decades | Unit::Centuries | Unit::Millennia => {
                let years = match unit {
                    Unit::Years => 1,
                    Unit::Decades => 10,
                    Unit::Centuries => 100,
                    _ => 1_000,
                };
                add(&mut self.months, 12 * years)?;
                self.months += (fraction * years as f64 * 12.0).round_ties_even() as i64;
            }
        }
        Ok(())
    }

    fn add_micros(&mut self, whole: i64, fraction: f64, unit: i64) {
        let scaled = fraction * unit as f64;
        let rest = scaled - scaled.trunc();
        // Halves are rounded towards 0.
        let rounded = scaled.trunc() + if rest.abs() > 0.5 { rest.signum() } else { 0.0 };
        self.micros += i128::from(whole) * i128::from(unit) + rounded as i128;
    }

    fn add_part_of_days(&mut self, fraction: f64, unit: f64) {
        let days = fraction * unit;
        self.days += days.trunc() as i64;
        self.add_micros(0, days - days.trunc(), DAY_US);
    }

    /// The same sum without the fields that are smaller than `last`.
    fn down_to(self, last: &str) -> Sum {
        let micros = |unit: i64| self.micros / i128::from(unit) * i128::from(unit);
        match last {
            "year" => Sum { months: self.months / 12 * 12, days: 0, micros: 0 },
            "month" => Sum { days: 0, micros: 0, ..self },
            "day" => Sum { micros: 0, ..self },
            "hour" => Sum { micros: micros(HOUR_US), ..self },
            "minute" => Sum { micros: micros(MINUTE_US), ..self },
            _ => self,
        }
    }

    fn negate(&mut self) {
        (self.months, self.days, self.micros) = (-self.months, -self.days, -self.micros);
    }

    fn interval(self) -> Result<Interval, Wrong> {
        let nanoseconds = i64::try_from(self.micros).ok().and_then(|micros| micros.checked_mul(1_000));
        Ok(Interval {
            months: i32::try_from(self.months).map_err(|_| Wrong::Field)?,
            days: i32::try_from(self.days).map_err(|_| Wrong::Field)?,
            nanoseconds: nanoseconds.ok_or(Wrong::Field)?,
        })
    }
}

/// A number, split into its whole part and its fraction.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Amount {
    whole: i64,
    fraction: f64,
}

impl Amount {
    /// Reads digits with an optional sign and an optional fraction.
    fn of(text: &str) -> Result<Amount, Wrong> {
        let (is_negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) || (whole.is_empty() && fraction.is_empty()) {
            return Err(Wrong::Syntax);
        }
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| Wrong::Field)? };
        let fraction: f64 = format!("0.{fraction}0").parse().map_err(|_| Wrong::Syntax)?;
        Ok(match is_negative {
            true => Amount { whole: -whole, fraction: -fraction },
            false => Amount { whole, fraction },
        })
    }
}

/// A part of an interval's text.
#[derive(Clone, Copy, Debug)]
enum Piece<'t> {
    /// A number with an optional sign and an optional fraction, or years and months as in `1-2`.
    Number(&'t str),
    Clock(&'t str),
    Word(&'t str),
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, Wrong> {
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|char: char| is_space(char) || matches!(char, ',' | '@'));
        let Some(first) = rest.bytes().next() else { return Ok(pieces) };
        let is_word = first.is_ascii_alphabetic();
        let within = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b':');
        let end = match first {
            _ if is_word => rest.bytes().take_while(u8::is_ascii_alphabetic).count(),
            b'+' | b'-' | b'.' | b'0'..=b'9' => {
                let count = 1 + rest.bytes().skip(1).take_while(|byte| within(*byte)).count();
                // `1-2`: years and months.
                match rest.as_bytes().get(count) {
                    Some(b'-') if first != b'.' && count > usize::from(!first.is_ascii_digit()) => {
                        count + 1 + rest.bytes().skip(count + 1).take_while(|byte| within(*byte)).count()
                    }
                    _ => count,
                }
            }
            _ => return Err(Wrong::Syntax),
        };
        let (piece, after) = rest.split_at_checked(end).ok_or(Wrong::Syntax)?;
        if after.starts_with('-') {
            return Err(Wrong::Syntax);
        }
        rest = after;
        pieces.push(match is_word {
            true => Piece::Word(piece),
            false if piece.contains(':') => Piece::Clock(piece),
            false => Piece::Number(piece),
        });
    }
}

fn words(text: &str, fields: Option<(&str, &str)>) -> Result<Sum, Wrong> {
    let last = fields.and_then(|(_, last)| Unit::of(last)).unwrap_or(Unit::Seconds);
    let pieces = pieces(text)?;
    let mut sum = Sum::default();
    let mut used: Vec<Unit> = Vec::new();
    let mut unit = None;
    let mut is_ago = false;
    let mut is_waiting = false;
    // From the end, because the unit of a number follows the number.
    for (at, piece) in pieces.iter().enumerate().rev() {
        match piece {
            Piece::Word(word) if word.eq_ignore_ascii_case("ago") && at + 1 == pieces.len() => is_ago = true,
            Piece::Word(word) => {
                if is_waiting {
                    return Err(Wrong::Syntax);
                }
                unit = Some(Unit::of(word).ok_or(Wrong::Syntax)?);
                is_waiting = true;
            }
            Piece::Clock(text) => {
                if is_waiting {
                    return Err(Wrong::Syntax);
                }
                take(&mut used, &[Unit::Hours, Unit::Minutes, Unit::Seconds])?;
                sum.micros += clock(text, fields == Some(("minute", "second")))?;
                // A number in front of a time counts days.
                unit = Some(Unit::Days);
            }
            Piece::Number(text) => {
                is_waiting = false;
                match text.get(1..).and_then(|rest| rest.find('-')) {
                    Some(dash) => {
                        take(&mut used, &[Unit::Years, Unit::Months])?;
                        years_and_months(text, dash + 1, &mut sum)?;
                    }
                    None => {
                        let of = unit.unwrap_or(last);
                        take(&mut used, &[of])?;
                        sum.add(Amount::of(text)?, of)?;
                        // A number in front of hours counts days, as in front of a time.
                        if of == Unit::Hours {
                            unit = Some(Unit::Days);
                        }
                    }
                }
            }
        }
    }
    if used.is_empty() || is_waiting {
        return Err(Wrong::Syntax);
    }
    if is_ago {
        sum.negate();
    }
    Ok(sum)
}

/// Marks units as used. Each unit may occur only once.
fn take(used: &mut Vec<Unit>, units: &[Unit]) -> Result<(), Wrong> {
    for unit in units {
        if used.contains(unit) {
            return Err(Wrong::Syntax);
        }
        used.push(*unit);
    }
    Ok(())
}

fn years_and_months(text: &str, dash: usize, sum: &mut Sum) -> Result<(), Wrong> {
    let (years, months) = text.split_at_checked(dash).ok_or(Wrong::Syntax)?;
    let months = months.get(1..).ok_or(Wrong::Syntax)?;
    let is_negative = years.starts_with('-');
    let (years, months) = (Amount::of(years)?, Amount::of(months)?);
    if !(0..12).contains(&months.whole) {
        return Err(Wrong::Field);
    }
    if years.fraction != 0.0 || months.fraction != 0.0 {
        return Err(Wrong::Syntax);
    }
    let months = Amount { whole: if is_negative { -months.whole } else { months.whole }, ..months };
    sum.add(years, Unit::Years)?;
    sum.add(months, Unit::Months)
}

/// `[-]hours:minutes[:seconds]`, `[-]minutes:seconds.fraction`.
fn clock(text: &str, of_minutes: bool) -> Result<i128, Wrong> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let parts: Vec<&str> = digits.split(':').collect();
    let (hours, minutes, seconds) = match parts.as_slice() {
        [minutes, seconds] if of_minutes || seconds.contains('.') => ("0", *minutes, *seconds),
        [hours, minutes] => (*hours, *minutes, "0"),
        [hours, minutes, seconds] => (*hours, *minutes, *seconds),
        _ => return Err(Wrong::Syntax),
    };
    let (hours, minutes, seconds) = (Amount::of(hours)?, Amount::of(minutes)?, Amount::of(seconds)?);
    if hours.fraction != 0.0 || minutes.fraction != 0.0 {
        return Err(Wrong::Syntax);
    }
    if minutes.whole > 59 || seconds.whole > 60 {
        return Err(Wrong::Field);
    }
    let fraction = (seconds.fraction * SECOND_US as f64).round_ties_even() as i128;
    let micros = i128::from(hours.whole) * i128::from(HOUR_US)
        + i128::from(minutes.whole * MINUTE_US + seconds.whole * SECOND_US)
        + fraction;
    Ok(if is_negative { -micros } else { micros })
}

/// Reads the text after the `P` of ISO 8601.
fn iso(text: &str) -> Result<Sum, Wrong> {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut sum = Sum::default();
    let designated = text.contains(|char: char| char.is_ascii_alphabetic() && char != 'T');
    if text.is_empty() || (time == Some("") && date.is_empty()) {
        return Err(Wrong::Syntax);
    }
    if !designated {
        return alternative(date, time);
    }
    for (part, is_time) in [(date, false), (time.unwrap_or_default(), true)] {
        let mut rest = part;
        while !rest.is_empty() {
            let end = rest.find(|char: char| char.is_ascii_alphabetic()).ok_or(Wrong::Syntax)?;
            let (amount, after) = rest.split_at_checked(end).ok_or(Wrong::Syntax)?;
            let unit = match (after.bytes().next(), is_time) {
                (Some(b'Y'), false) => Unit::Years,
                (Some(b'M'), false) => Unit::Months,
                (Some(b'W'), false) => Unit::Weeks,
                (Some(b'D'), false) => Unit::Days,
                (Some(b'H'), true) => Unit::Hours,
                (Some(b'M'), true) => Unit::Minutes,
                (Some(b'S'), true) => Unit::Seconds,
                _ => return Err(Wrong::Syntax),
            };
            sum.add(Amount::of(amount)?, unit)?;
            rest = after.get(1..).unwrap_or_default();
        }
    }
    Ok(sum)
}

/// The alternative format of ISO 8601, such as `P0001-02-03T04:05:06`.
fn alternative(date: &str, time: Option<&str>) -> Result<Sum, Wrong> {
    let mut sum = Sum::default();
    if !date.is_empty() {
        let parts: Vec<&str> = date.split('-').collect();
        if parts.len() != 3 {
            return Err(Wrong::Syntax);
        }
        for (part, unit) in parts.iter().zip([Unit::Years, Unit::Months, Unit::Days]) {
            sum.add(Amount::of(part)?, unit)?;
        }
    }
    if let Some(time) = time.filter(|time| !time.is_empty()) {
        if time.split(':').count() != 3 {
            return Err(Wrong::Syntax);
        }
        sum.micros += clock(time, false)?;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::super::write_interval;
    use super::*;

    fn written(interval: &Interval) -> String {
        let mut out = String::new();
        write_interval(interval, &mut out);
        out
    }

    #[test]
    fn intervals_are_read_in_the_forms_of_postgresql() {
        for (text, expected) in [
            ("1 year 2 mons 3 days 04:05:06.789", "1 year 2 mons 3 days 04:05:06.789"),
            ("1-2", "1 year 2 mons"),
            ("-1-2 3 -4:05", "-1 years -2 mons +3 days -04:05:00"),
            ("P1Y2M3DT4H5M6.7S", "1 year 2 mons 3 days 04:05:06.7"),
            ("P0001-02-03T04:05:06", "1 year 2 mons 3 days 04:05:06"),
            ("P1W", "7 days"),
            ("PT-1.5H", "-01:30:00"),
            ("1.5 years", "1 year 6 mons"),
            ("1.5 months", "1 mon 15 days"),
            ("1.25 days", "1 day 06:00:00"),
            ("0.5 weeks", "3 days 12:00:00"),
            ("1 day ago", "-1 days"),
            ("@ 1 hour 2 mins", "01:02:00"),
            ("5", "00:00:05"),
            ("3 4:05", "3 days 04:05:00"),
            ("1 2 hours", "1 day 02:00:00"),
            ("1 decade", "10 years"),
            ("1.5 centuries", "150 years"),
            ("90 minutes", "01:30:00"),
            ("5m", "00:05:00"),
            ("1h30m", "01:30:00"),
            ("04:05.5", "00:04:05.5"),
            ("100 ms", "00:00:00.1"),
            ("-1 day +2 hours", "-1 days +02:00:00"),
            ("1 mon -1 day", "1 mon -1 days"),
        ] {
            let interval = read_interval(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let out = written(&interval);
            assert_eq!(out, expected, "{text}");
            assert_eq!(read_interval(&out), Ok(interval), "{out}");
        }
        for text in
            ["", "P", "1 fortnight", "PT5", "x", "1:2:3:4", "1 day 2 days", "day", "ago", "1 day 2 h 3:00", "now"]
        {
            let found = read_interval(text).map_err(|error| error.sqlstate());
            assert_eq!(found, Err("22007"), "{text}");
        }
        for text in ["1-13", "9999999999 years", "1000000 hours 99:99"] {
            assert_eq!(read_interval(text).map_err(|error| error.sqlstate()), Err("22015"), "{text}");
        }
    }

    #[test]
    fn what_is_left_of_months_and_days_goes_down() {
        let of = |text: &str, factor: f64| written(&scaled(&read_interval(text).unwrap(), factor).unwrap());
        assert_eq!(of("1 mon", 1.5), "1 mon 15 days");
        assert_eq!(of("1 day", 0.5), "12:00:00");
        assert_eq!(of("1 year 2 mons 3 days", 2.0), "2 years 4 mons 6 days");
        assert_eq!(written(&spread(&read_interval("1 mon").unwrap(), 3.0).unwrap()), "10 days");
        assert!(scaled(&read_interval("1 mon").unwrap(), 1e12).is_err());
    }
}

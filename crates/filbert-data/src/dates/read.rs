//! Reads dates, times and timestamps from text, in the formats that PostgreSQL accepts with the
//! order month, day, year.

use super::calendar::{
    Civil, DAY_US, HOUR_US, MINUTE_US, SECOND_US, check_days, check_micros, days_in_month, days_of_civil, split_micros,
};
use super::error::DateError;
use super::tokens::{Token, is_weekday, month, tokens};
use super::zone::{Zone, unsigned_offset};

/// The number of days from the Julian day 0 to 1970-01-01.
const JULIAN_OF_EPOCH: i64 = 2_440_588;

const DATE: &str = "date";
const TIME: &str = "time";
const TIMESTAMP: &str = "timestamp";
const TIMESTAMPTZ: &str = "timestamp with time zone";

/// Reads a date. Returns days since 1970-01-01.
///
/// # Errors
/// The text is not a date, or the date is not supported.
pub fn read_date(text: &str) -> Result<i32, DateError> {
    let parsed = parse(text, DATE)?;
    let days = parsed.days.ok_or_else(|| syntax(text, DATE))?;
    check_days(days).map_err(|_| DateError::Range { kind: DATE, text: text.to_owned() })
}

/// Reads a time of day. Returns microseconds since midnight.
///
/// # Errors
/// The text is not a time of day, or the time is not supported.
pub fn read_time(text: &str) -> Result<i64, DateError> {
    let parsed = parse(text, TIME)?;
    match parsed.time {
        // The parser accepts 24:00:00, which is not a time of day here.
        Some(DAY_US..) => Err(unsupported(TIME, text, "a day ends at 23:59:59.999999")),
        Some(time) => Ok(time),
        None => Err(syntax(text, TIME)),
    }
}

/// Reads a timestamp. Returns microseconds since 1970-01-01. A time zone in the text is accepted
/// and ignored.
///
/// # Errors
/// The text is not a timestamp, or the timestamp is not supported.
pub fn read_timestamp(text: &str) -> Result<i64, DateError> {
    let parsed = parse(text, TIMESTAMP)?;
    let local = parsed.local(text, TIMESTAMP)?;
    check_micros(local.into()).map_err(|_| DateError::Range { kind: TIMESTAMP, text: text.to_owned() })
}

/// Reads a timestamp with time zone. Returns microseconds since 1970-01-01 in UTC. If the text has
/// no time zone, the timestamp is a local time of `zone`.
///
/// # Errors
/// The text is not a timestamp, or the timestamp is not supported.
pub fn read_timestamptz(text: &str, zone: &Zone) -> Result<i64, DateError> {
    let parsed = parse(text, TIMESTAMPTZ)?;
    let local = parsed.local(text, TIMESTAMPTZ)?;
    let utc = parsed.zone.as_ref().unwrap_or(zone).to_utc(local);
    check_micros(utc).map_err(|_| DateError::Range { kind: TIMESTAMP, text: text.to_owned() })
}

fn syntax(text: &str, kind: &'static str) -> DateError {
    DateError::Syntax { kind, text: text.to_owned() }
}

fn unsupported(kind: &'static str, text: &str, instead: &'static str) -> DateError {
    DateError::Unsupported { kind, text: text.to_owned(), instead }
}

/// The reason why infinities are not supported.
const FINITE: &str = "timestamps and dates are finite";

/// The values that were read from a text.
#[derive(Debug, Default)]
struct Moment {
    days: Option<i64>,
    /// Microseconds since midnight, up to a whole day.
    time: Option<i64>,
    zone: Option<Zone>,
}

impl Moment {
    fn local(&self, text: &str, kind: &'static str) -> Result<i64, DateError> {
        let days = self.days.ok_or_else(|| syntax(text, kind))?;
        let days = check_days(days).map_err(|_| DateError::Range { kind: TIMESTAMP, text: text.to_owned() })?;
        Ok(i64::from(days) * DAY_US + self.time.unwrap_or(0))
    }
}

/// The parts of a text that were found so far.
#[derive(Debug, Default)]
struct Parts<'t> {
    year: Option<(i64, usize)>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    julian: Option<i64>,
    has_named_month: bool,
    time: Option<(i64, i64, f64)>,
    half: Option<Half>,
    era: Option<bool>,
    zone: Option<Zone>,
    is_epoch: bool,
    text: &'t str,
    kind: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Half {
    Am,
    Pm,
}

fn parse(text: &str, kind: &'static str) -> Result<Moment, DateError> {
    let mut parts = Parts { text, kind, ..Parts::default() };
    // As a token, the sign would be read as the sign of an offset.
    if kind != TIME && text.trim().eq_ignore_ascii_case("-infinity") {
        return Err(unsupported(kind, text, FINITE));
    }
    let tokens = tokens(text).filter(|tokens| !tokens.is_empty()).ok_or_else(|| syntax(text, kind))?;
    let mut before = None;
    for token in tokens {
        parts.take(token, before)?;
        before = Some(token);
    }
    parts.finish()
}

impl<'t> Parts<'t> {
    fn wrong<T>(&self) -> Result<T, DateError> {
        Err(syntax(self.text, self.kind))
    }

    fn out_of_range(&self) -> DateError {
        DateError::Field { text: self.text.to_owned() }
    }

    fn has_date(&self) -> bool {
        self.julian.is_some()
            || (self.year.is_some() && (self.day_of_year.is_some() || (self.month.is_some() && self.day.is_some())))
    }

    fn take(&mut self, token: Token<'t>, before: Option<Token<'t>>) -> Result<(), DateError> {
        match token {
            Token::Number(digits) if matches!(before, Some(Token::Word("j" | "J"))) && self.julian == Some(-1) => {
                self.julian = Some(digits.parse().map_err(|_| syntax(self.text, self.kind))?);
                Ok(())
            }
            Token::Number(digits) => self.number(digits),
            Token::Date(date) => self.date(date),
            Token::Time(time) => self.clock(time),
            Token::Word(word) => self.word(word),
            Token::Signed(offset) => self.offset(offset),
            Token::Zone(name) => {
                let zone = Zone::of_name(name).ok_or_else(|| DateError::Zone { name: name.to_owned() })?;
                self.set_zone(zone)
            }
        }
    }

    fn set_zone(&mut self, zone: Zone) -> Result<(), DateError> {
        match self.zone.replace(zone) {
            None => Ok(()),
            Some(_) => self.wrong(),
        }
    }

    fn offset(&mut self, text: &str) -> Result<(), DateError> {
        if self.time.is_none() {
            return self.wrong();
        }
        let (sign, digits) = text.split_at_checked(1).unwrap_or((text, ""));
        if digits.is_empty() {
            return self.wrong();
        }
        let Some(seconds) = unsigned_offset(digits) else {
            return Err(DateError::Displacement { text: self.text.to_owned() });
        };
        let seconds = if sign == "-" { -seconds } else { seconds };
        match Zone::of_seconds(seconds) {
            Some(zone) => self.set_zone(zone),
            None => Err(DateError::Displacement { text: self.text.to_owned() }),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), DateError> {
        if let Some(number) = month(word) {
            if self.has_named_month {
                return self.wrong();
            }
            // A number before the name of the month is the day.
            if let Some(shifted) = self.month.replace(number.into()) {
                self.day = Some(shifted);
            }
            self.has_named_month = true;
            return Ok(());
        }
        if is_weekday(word) {
            return Ok(());
        }
        match word.to_ascii_lowercase().as_str() {
            "t" if self.has_date() && self.time.is_none() => Ok(()),
            "j" if self.julian.is_none() && !self.has_date() => {
                // The number is the next token.
                self.julian = Some(-1);
                Ok(())
            }
            "am" | "pm" if self.time.is_some() && self.half.is_none() => {
                self.half = Some(if word.eq_ignore_ascii_case("am") { Half::Am } else { Half::Pm });
                Ok(())
            }
            "bc" | "ad" if self.era.is_none() => {
                self.era = Some(word.eq_ignore_ascii_case("bc"));
                Ok(())
            }
            "allballs" if self.time.is_none() => {
                self.time = Some((0, 0, 0.0));
                Ok(())
            }
            "epoch" if self.kind != TIME => {
                self.is_epoch = true;
                Ok(())
            }
            "infinity" | "inf" if self.kind != TIME => Err(unsupported(self.kind, self.text, FINITE)),
            "now" | "today" | "tomorrow" | "yesterday" => {
                Err(unsupported(self.kind, self.text, "write now() or current_date"))
            }
            _ if self.has_date() || self.time.is_some() => match Zone::of_word(word) {
                Some(zone) => self.set_zone(zone),
                None => self.wrong(),
            },
            _ => self.wrong(),
        }
    }

    fn number(&mut self, digits: &str) -> Result<(), DateError> {
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let value: i64 = whole.parse().map_err(|_| self.out_of_range())?;
        if self.has_date() {
            // 040506, 0405
            if self.time.is_some() || !matches!(whole.len(), 4 | 6) {
                return self.wrong();
            }
            let (clock, seconds) = if whole.len() == 6 { (value / 100, value % 100) } else { (value, 0) };
            let fraction: f64 = format!("0.{fraction}0").parse().unwrap_or(0.0);
            self.time = Some((clock / 100, clock % 100, seconds as f64 + fraction));
            return Ok(());
        }
        if !fraction.is_empty() {
            // 1999.008
            if whole.len() == 4 && fraction.len() == 3 && self.year.is_none() && self.month.is_none() {
                self.year = Some((value, 4));
                self.day_of_year = fraction.parse().ok();
                return Ok(());
            }
            return self.wrong();
        }
        // A time without a date: 040506
        if self.kind == TIME && whole.len() == 6 && self.year.is_none() && self.time.is_none() {
            self.time = Some((value / 10_000, value / 100 % 100, (value % 100) as f64));
            return Ok(());
        }
        if whole.len() >= 6 && self.year.is_none() && self.month.is_none() {
            // 19990108, 990108
            self.year = Some((value / 10_000, whole.len() - 4));
            (self.month, self.day) = (Some(value / 100 % 100), Some(value % 100));
            return Ok(());
        }
        // A time without a date: 0405
        if self.kind == TIME && whole.len() == 4 && self.year.is_none() && self.month.is_none() && self.time.is_none() {
            self.time = Some((value / 100, value % 100, 0.0));
            return Ok(());
        }
        self.part(whole, value)
    }

    /// Uses a number of a date with separate parts as the year, the month, the day, or the day of
    /// the year.
    fn part(&mut self, digits: &str, value: i64) -> Result<(), DateError> {
        let place = if digits.len() >= 3 && self.year.is_none() {
            self.year = Some((value, digits.len()));
            return Ok(());
        } else if digits.len() == 3 && self.month.is_none() && self.day.is_none() {
            &mut self.day_of_year
        } else if self.month.is_none() {
            &mut self.month
        } else if self.day.is_none() {
            &mut self.day
        } else if self.year.is_none() {
            self.year = Some((value, digits.len()));
            return Ok(());
        } else {
            return self.wrong();
        };
        match place.replace(value) {
            None => Ok(()),
            Some(_) => self.wrong(),
        }
    }

    fn date(&mut self, text: &str) -> Result<(), DateError> {
        let delimiter = text.chars().find(|char| matches!(char, '-' | '/' | '.')).unwrap_or('-');
        if self.has_date() {
            return self.wrong();
        }
        let parts: Vec<&str> = text.split(delimiter).collect();
        if !(2..=3).contains(&parts.len()) || self.year.is_some() || self.month.is_some() {
            return self.wrong();
        }
        for part in &parts {
            if let Some(number) = month(part) {
                if self.has_named_month {
                    return self.wrong();
                }
                (self.month, self.has_named_month) = (Some(number.into()), true);
            }
        }
        for part in parts.into_iter().filter(|part| month(part).is_none()) {
            if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
                return self.wrong();
            }
            let value = part.parse().map_err(|_| self.out_of_range())?;
            self.part(part, value)?;
        }
        if self.has_date() { Ok(()) } else { self.wrong() }
    }

    fn clock(&mut self, text: &str) -> Result<(), DateError> {
        let parts: Vec<&str> = text.split(':').collect();
        let number = |text: &str| text.parse::<i64>().ok();
        let seconds = |text: &str| {
            let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            (plain && !text.is_empty() && !text.starts_with('.')).then(|| text.parse::<f64>().ok()).flatten()
        };
        let time = match parts.as_slice() {
            [hours, minutes] if minutes.contains('.') => {
                number(hours).zip(seconds(minutes)).map(|(minutes, seconds)| (0, minutes, seconds))
            }
            [hours, minutes] => number(hours).zip(number(minutes)).map(|(hours, minutes)| (hours, minutes, 0.0)),
            [hours, minutes, rest] => {
                let clock = number(hours).zip(number(minutes)).zip(seconds(rest));
                clock.map(|((hours, minutes), seconds)| (hours, minutes, seconds))
            }
            _ => None,
        };
        match (time, self.time) {
            (Some(time), None) => {
                self.time = Some(time);
                Ok(())
            }
            _ => self.wrong(),
        }
    }

    /// Microseconds since midnight.
    fn time_of_day(&self) -> Result<Option<i64>, DateError> {
        let Some((mut hours, minutes, seconds)) = self.time else { return Ok(None) };
        match self.half {
            Some(_) if hours > 12 => return Err(self.out_of_range()),
            Some(Half::Am) if hours == 12 => hours = 0,
            Some(Half::Pm) if hours < 12 => hours += 12,
            _ => {}
        }
        if hours > 24 || minutes > 59 || seconds >= 61.0 || (seconds > 60.0) {
            return Err(self.out_of_range());
        }
        // Only the fraction is rounded, as in PostgreSQL.
        let fraction = (seconds.fract() * SECOND_US as f64).round_ties_even() as i64;
        let micros = hours * HOUR_US + minutes * MINUTE_US + seconds.trunc() as i64 * SECOND_US + fraction;
        if micros > DAY_US { Err(self.out_of_range()) } else { Ok(Some(micros)) }
    }

    fn days(&self) -> Result<Option<i64>, DateError> {
        if let Some(julian) = self.julian {
            return Ok(Some(julian - JULIAN_OF_EPOCH));
        }
        let Some((year, digits)) = self.year else {
            let is_begun = self.month.is_some() || self.day.is_some();
            return if is_begun { self.wrong() } else { Ok(None) };
        };
        let year = match (self.era, digits) {
            (Some(true), _) if year > 0 => 1 - year,
            (None, ..=2) if year < 70 => year + 2000,
            (None, ..=2) => year + 1900,
            (_, _) if year > 0 => year,
            _ => return Err(self.out_of_range()),
        };
        if year > 10_000_000 {
            return Err(self.out_of_range());
        }
        if let Some(day) = self.day_of_year {
            // As in PostgreSQL, any year may have a 366th day.
            let first = days_of_civil(Civil { year, month: 1, day: 1 });
            return if (1..=366).contains(&day) { Ok(Some(first + day - 1)) } else { self.wrong() };
        }
        let (Some(month), Some(day)) = (self.month, self.day) else { return self.wrong() };
        let part = |value: i64| u32::try_from(value).unwrap_or(u32::MAX);
        let (month, day) = (part(month), part(day));
        if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
            return Err(self.out_of_range());
        }
        Ok(Some(days_of_civil(Civil { year, month, day })))
    }

    fn finish(self) -> Result<Moment, DateError> {
        if self.is_epoch {
            let is_alone = self.year.is_none() && self.month.is_none() && self.time.is_none() && self.zone.is_none();
            let epoch = Moment { days: Some(0), time: Some(0), zone: Some(Zone::UTC) };
            return if is_alone { Ok(epoch) } else { self.wrong() };
        }
        if self.julian == Some(-1) {
            return self.wrong();
        }
        let (mut days, mut time) = (self.days()?, self.time_of_day()?);
        // 24:00 is midnight of the next day.
        if let (Some(of_date), Some(of_day)) = (days, time)
            && self.kind != TIME
        {
            let (carried, rest) = split_micros(of_day);
            (days, time) = (Some(of_date + if self.kind == DATE { 0 } else { carried }), Some(rest));
        }
        Ok(Moment { days, time, zone: self.zone })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{write_date, write_time, write_timestamp, write_timestamptz};
    use super::*;

    fn written(write: impl FnOnce(&mut String)) -> String {
        let mut out = String::new();
        write(&mut out);
        out
    }

    #[test]
    fn timestamps_are_read_in_the_forms_of_postgresql() {
        for (text, expected) in [
            ("2024-02-29 12:34:56.789", "2024-02-29 12:34:56.789+00"),
            ("2024-02-29T12:34:56Z", "2024-02-29 12:34:56+00"),
            ("2024-02-29 12:34:56+02", "2024-02-29 10:34:56+00"),
            ("2024-02-29 12:34:56.5 -05:30", "2024-02-29 18:04:56.5+00"),
            ("2024-02-29 12:34:56+0130", "2024-02-29 11:04:56+00"),
            ("2024-02-29", "2024-02-29 00:00:00+00"),
            ("0044-03-15 12:00:00 BC", "0044-03-15 12:00:00+00 BC"),
            ("12345-01-01 00:00", "12345-01-01 00:00:00+00"),
            ("20240229 010203.000004", "2024-02-29 01:02:03.000004+00"),
            ("20240229T010203", "2024-02-29 01:02:03+00"),
            ("January 8, 1999", "1999-01-08 00:00:00+00"),
            ("Mon Jan 8 04:05:06 1999 PST", "1999-01-08 12:05:06+00"),
            ("8-Jan-99 04:05 PM", "1999-01-08 16:05:00+00"),
            ("1/8/1999 24:00", "1999-01-09 00:00:00+00"),
            ("1999-01-08 04:05:60", "1999-01-08 04:06:00+00"),
            ("1999.008", "1999-01-08 00:00:00+00"),
            ("J2451187", "1999-01-08 00:00:00+00"),
            ("2024-07-01 12:00 Europe/Berlin", "2024-07-01 10:00:00+00"),
            ("2024-07-01 12:00 UTC+3", "2024-07-01 15:00:00+00"),
            ("epoch", "1970-01-01 00:00:00+00"),
        ] {
            let timestamp = read_timestamptz(text, &Zone::UTC).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(written(|out| write_timestamptz(timestamp, &Zone::UTC, out)), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_timestamp_says_why() {
        for (text, sqlstate) in [
            ("", "22007"),
            ("x", "22007"),
            ("2024-13-01", "22008"),
            ("2024-02-30", "22008"),
            ("0000-01-01", "22008"),
            ("2024-02-29 25:00:00", "22008"),
            ("2024-02-29 24:00:01", "22008"),
            ("2024-02-29 13:00 PM", "22008"),
            ("2024-02-29 12:00 Nowhere", "22007"),
            ("2024-02-29 12:00 No/Where", "22023"),
            ("2024-02-29 12:00+20", "22009"),
            ("2024-02", "22007"),
            ("12:00", "22007"),
            ("300000-01-01", "22008"),
            ("infinity", "0A000"),
            ("-infinity", "0A000"),
            ("now", "0A000"),
        ] {
            let found = read_timestamptz(text, &Zone::UTC).map_err(|error| error.sqlstate());
            assert_eq!(found, Err(sqlstate), "{text}");
        }
        assert_eq!(read_time("24:00:00").map_err(|error| error.sqlstate()), Err("0A000"));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let berlin = Zone::of_name("Europe/Berlin").unwrap();
        let mut micros = -200_000_000_000_000_000_i64;
        while micros < 8_000_000_000_000_000_000 {
            let text = written(|out| write_timestamp(micros, out));
            assert_eq!(read_timestamp(&text), Ok(micros), "{text}");
            let text = written(|out| write_timestamptz(micros, &berlin, out));
            assert_eq!(read_timestamptz(&text, &Zone::UTC), Ok(micros), "{text}");
            let (days, time) = split_micros(micros);
            let text = written(|out| write_date(days, out));
            assert_eq!(read_date(&text).map(i64::from), Ok(days), "{text}");
            let text = written(|out| write_time(time, out));
            assert_eq!(read_time(&text), Ok(time), "{text}");
            micros += 1_234_567_890_123_457;
        }
    }
}

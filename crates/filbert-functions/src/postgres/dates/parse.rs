//! `to_timestamp` and `to_date`: parse texts by a template.

use datafusion::common::Result;
use filbert_data::dates::{
    Civil, DAY_US, DateError, HOUR_US, MINUTE_US, SECOND_US, Zone, check_micros, civil_of_days, days_in_month,
    days_of_civil,
};

use super::template::{MONTHS, Part, Pattern, parts};
use super::{refused, wrong};

/// The values that were found in a text.
#[derive(Debug, Default)]
struct Found {
    year: Option<i64>,
    is_bc: bool,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    julian: Option<i64>,
    hours: Option<i64>,
    is_twelve: bool,
    is_afternoon: Option<bool>,
    minutes: Option<i64>,
    seconds: Option<i64>,
    micros: i64,
    seconds_of_day: Option<i64>,
    zone_sign: i64,
    zone_hours: Option<i64>,
    zone_minutes: Option<i64>,
}

/// Days, microseconds of the day, and the offset east of Greenwich in seconds if the text has one.
pub(super) struct Parsed {
    pub(super) days: i64,
    time: i64,
    offset: Option<i64>,
}

impl Parsed {
    /// Microseconds in UTC. Without an offset in the text, it is a local time of the zone.
    pub(super) fn utc(&self, zone: &Zone) -> Result<i64> {
        let local = self.days * DAY_US + self.time;
        let utc = match self.offset {
            Some(offset) => i128::from(local) - i128::from(offset) * i128::from(SECOND_US),
            None => zone.to_utc(local),
        };
        check_micros(utc).map_err(|error| wrong(&error))
    }
}

/// Parses a text by a template.
pub(super) fn read(text: &str, template: &str) -> Result<Parsed> {
    let parts = parts(template);
    let mut found = Found { zone_sign: 1, ..Found::default() };
    let mut rest = text;
    for (at, part) in parts.iter().enumerate() {
        if rest.is_empty() {
            break;
        }
        match part {
            Part::Pattern(pattern) => {
                rest = rest.trim_start();
                let is_open =
                    pattern.is_bare || !parts.get(at + 1).is_some_and(|next| matches!(next, Part::Pattern(_)));
                rest = found.take(pattern, rest, is_open)?;
            }
            Part::Separator(_) => {
                let plain = rest.trim_start();
                if plain.len() < rest.len() {
                    rest = plain;
                } else if let Some(first) = rest.chars().next()
                    && first.is_ascii_punctuation()
                    // The sign may belong to the zone's hours.
                    && !(matches!(first, '+' | '-') && is_zone(parts.get(at + 1)))
                {
                    rest = rest.get(1..).unwrap_or_default();
                }
            }
            Part::Literal(_) => {
                let skipped = rest.chars().next().map_or(0, char::len_utf8);
                rest = rest.get(skipped..).unwrap_or_default();
            }
        }
    }
    found.timestamp(text)
}

fn is_zone(part: Option<&Part>) -> bool {
    matches!(part, Some(Part::Pattern(pattern)) if pattern.name.eq_ignore_ascii_case("TZH"))
}

/// A number at the start of a text, with at most `width` digits; returns the number, its digits and
/// the rest.
fn number<'t>(rest: &'t str, width: usize, is_open: bool, name: &str) -> Result<(i64, usize, &'t str)> {
    let limit = if is_open { 18 } else { width };
    let (sign, digits) = match rest.strip_prefix('-') {
        Some(digits) if is_open => (-1, digits),
        _ => (1, rest.strip_prefix('+').filter(|_| is_open).unwrap_or(rest)),
    };
    let count = digits.bytes().take(limit).take_while(u8::is_ascii_digit).count();
    let (number, after) = digits.split_at_checked(count).unwrap_or((digits, ""));
    match number.parse::<i64>() {
        Ok(number) => Ok((sign * number, count, after)),
        Err(_) => {
            let shown: String = rest.chars().take(width).collect();
            Err(refused(format!("invalid value \"{shown}\" for \"{name}\""), "22007"))
        }
    }
}

impl Found {
    fn take<'t>(&mut self, pattern: &Pattern, rest: &'t str, is_open: bool) -> Result<&'t str> {
        let name = pattern.name.to_ascii_uppercase();
        let of = |width: usize| number(rest, width, is_open, pattern.name);
        let after = match name.as_str() {
            "YYYY" => set(&mut self.year, pattern, of(4)?)?,
            "YYY" | "YY" | "Y" => {
                // A year of fewer than four digits is near 2020.
                let (year, digits, after) = of(name.len())?;
                set(&mut self.year, pattern, (year, digits, after))?;
                self.year = Some(if digits < 4 { near(year) } else { year });
                after
            }
            "MM" => set(&mut self.month, pattern, of(2)?)?,
            "DD" => set(&mut self.day, pattern, of(2)?)?,
            "DDD" => set(&mut self.day_of_year, pattern, of(3)?)?,
            "J" => set(&mut self.julian, pattern, number(rest, 9, true, pattern.name)?)?,
            "SSSS" | "SSSSS" => set(&mut self.seconds_of_day, pattern, of(5)?)?,
            "HH24" => set(&mut self.hours, pattern, of(2)?)?,
            "HH" | "HH12" => {
                self.is_twelve = true;
                set(&mut self.hours, pattern, of(2)?)?
            }
            "MI" => set(&mut self.minutes, pattern, of(2)?)?,
            "SS" => set(&mut self.seconds, pattern, of(2)?)?,
            "MS" | "FF3" => self.fraction(of(3)?, 3),
            "US" | "FF6" => self.fraction(of(6)?, 6),
            "FF1" => self.fraction(of(1)?, 1),
            "FF2" => self.fraction(of(2)?, 2),
            "FF4" => self.fraction(of(4)?, 4),
            "FF5" => self.fraction(of(5)?, 5),
            "MONTH" | "MON" => {
                let is_whole = name == "MONTH";
                let month = MONTHS.iter().position(|month| {
                    let wanted = if is_whole { month } else { month.get(..3).unwrap_or(month) };
                    rest.get(..wanted.len()).is_some_and(|start| start.eq_ignore_ascii_case(wanted))
                });
                let Some(at) = month else { return Err(invalid(rest, pattern.name)) };
                let length = if is_whole { MONTHS.get(at).map_or(0, |month| month.len()) } else { 3 };
                let number = i64::try_from(at + 1).unwrap_or_default();
                set(&mut self.month, pattern, (number, length, rest.get(length..).unwrap_or_default()))?
            }
            "DAY" | "DY" => rest.trim_start_matches(|char: char| char.is_ascii_alphabetic()),
            "D" | "ID" | "Q" => of(1)?.2,
            "AM" | "PM" | "A.M." | "P.M." | "BC" | "AD" | "B.C." | "A.D." => {
                let start = rest.get(..name.len()).unwrap_or(rest);
                let plain: String = start.chars().filter(|char| *char != '.').collect::<String>().to_ascii_uppercase();
                match plain.as_str() {
                    "AM" | "PM" if name.contains('M') => self.is_afternoon = Some(plain == "PM"),
                    "BC" | "AD" if !name.contains('M') => self.is_bc = plain == "BC",
                    _ => return Err(invalid(rest, pattern.name)),
                }
                rest.get(name.len()..).unwrap_or_default()
            }
            "TZH" => {
                self.zone_sign = if rest.starts_with('-') { -1 } else { 1 };
                set(
                    &mut self.zone_hours,
                    pattern,
                    number(rest.trim_start_matches(['+', '-']), 2, false, pattern.name)?,
                )?
            }
            "TZM" => set(&mut self.zone_minutes, pattern, number(rest, 2, false, pattern.name)?)?,
            "FX" => return Err(refused("the modifier FX is not served", "0A000")),
            _ => return Err(refused(format!("the pattern {name} is served by to_char only"), "0A000")),
        };
        // Skips the letters of an ordinal number.
        let passed = if pattern.ordinal.is_some() { after.get(2..).unwrap_or_default() } else { after };
        Ok(passed)
    }

    /// The fractional digits of the seconds.
    fn fraction<'t>(&mut self, (value, digits, after): (i64, usize, &'t str), width: u32) -> &'t str {
        let scale = u32::try_from(digits).unwrap_or(width).min(6);
        self.micros = value * 10_i64.pow(6 - scale);
        after
    }

    fn timestamp(&self, text: &str) -> Result<Parsed> {
        let out_of_range = || wrong(&DateError::Field { text: text.to_owned() });
        let mut hours = self.hours.unwrap_or(0);
        let (minutes, seconds) = (self.minutes.unwrap_or(0), self.seconds.unwrap_or(0));
        let zone_minutes = self.zone_minutes.unwrap_or(0);
        if self.is_twelve {
            if !(1..=12).contains(&hours) {
                return Err(refused(format!("hour \"{hours}\" is invalid for the 12-hour clock"), "22007"));
            }
            match self.is_afternoon {
                Some(true) if hours < 12 => hours += 12,
                Some(false) if hours == 12 => hours = 0,
                _ => {}
            }
        }
        let is_time = (0..24).contains(&hours) && (0..60).contains(&minutes) && (0..60).contains(&seconds);
        let of_clock = hours * HOUR_US + minutes * MINUTE_US + seconds * SECOND_US;
        let time = self.seconds_of_day.map_or(of_clock, |seconds| seconds * SECOND_US) + self.micros;
        if !is_time || !(0..DAY_US).contains(&time) || self.micros >= SECOND_US {
            return Err(out_of_range());
        }
        let days = self.days().ok_or_else(out_of_range)?;
        filbert_data::dates::check_days(days).map_err(|_| out_of_range())?;
        let offset = self.zone_hours.map(|hours| self.zone_sign * (hours * 3600 + zone_minutes * 60));
        if zone_minutes > 59 || offset.is_some_and(|offset| offset.abs() > 15 * 3600 + 3599) {
            return Err(out_of_range());
        }
        Ok(Parsed { days, time, offset })
    }

    fn days(&self) -> Option<i64> {
        if let Some(julian) = self.julian {
            return Some(julian - 2_440_588);
        }
        // Without a year it is year 0. The era reverses the sign of the year.
        let year = if self.is_bc { -self.year.unwrap_or(0) } else { self.year.unwrap_or(0) };
        let year = if year < 0 { year + 1 } else { year };
        // As in PostgreSQL, a zero counts as no value.
        let given = |part: Option<i64>| part.filter(|part| *part != 0);
        if let Some(day) = given(self.day_of_year) {
            let days = days_of_civil(Civil { year, month: 1, day: 1 }) + day - 1;
            return Some(days).filter(|days| day >= 1 && civil_of_days(*days).year == year);
        }
        let month = u32::try_from(given(self.month).unwrap_or(1)).ok().filter(|month| (1..=12).contains(month))?;
        let day = u32::try_from(given(self.day).unwrap_or(1)).ok()?;
        let is_day = (1..=days_in_month(year, month)).contains(&day);
        is_day.then(|| days_of_civil(Civil { year, month, day }))
    }
}

fn invalid(rest: &str, name: &str) -> datafusion::common::DataFusionError {
    let shown: String = rest.chars().take(name.len()).collect();
    refused(format!("invalid value \"{shown}\" for \"{name}\""), "22007")
}

/// Keeps the value of a pattern; returns the rest of the text.
///
/// # Errors
/// The value is another one than before.
fn set<'t>(place: &mut Option<i64>, pattern: &Pattern, (value, _, after): (i64, usize, &'t str)) -> Result<&'t str> {
    if place.is_some_and(|known| known != 0 && known != value) {
        let text = format!("conflicting values for \"{}\" field in formatting string", pattern.name);
        return Err(refused(text, "22007"));
    }
    *place = Some(value);
    Ok(after)
}

/// The full year for fewer than four digits.
fn near(year: i64) -> i64 {
    match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        other => other,
    }
}

//! `to_char` of dates, times and intervals.

use datafusion::common::Result;
use filbert_data::dates::{
    Civil, DAY_US, HOUR_US, MINUTE_US, SECOND_US, Zone, check_micros, civil_of_days, days_of_civil, iso_week,
    split_micros, weekday, write_offset,
};

use super::calculate::micros_of;
use super::cells::Cell;
use super::template::{DAYS, MONTHS, Part, Pattern, ROMAN_MONTHS, ordinal_letters, parts};
use super::{refused, wrong};

/// The value that patterns format.
struct Source {
    year: i64,
    /// From 1; for intervals the months beyond whole years, which may be zero or negative.
    month: i64,
    /// The day of the month, or the days of an interval.
    day: i64,
    /// Days since 1970-01-01; `None` for intervals.
    days: Option<i64>,
    /// Microseconds of the day; for intervals they may exceed a day, or be negative.
    time: i64,
    /// The offset and abbreviation of the time zone.
    zone: Option<(i32, String)>,
}

/// Formats a value by a template; `None` for other types.
pub(super) fn to_char(cell: &Cell, template: &str, zone: &Zone) -> Result<Option<String>> {
    let of_local = |local: i64, zone: Option<(i32, String)>| {
        let (days, time) = split_micros(local);
        let Civil { year, month, day } = civil_of_days(days);
        Source { year, month: month.into(), day: day.into(), days: Some(days), time, zone }
    };
    let source = match cell {
        Cell::Timestamp(local) => of_local(*local, None),
        Cell::Timestamptz(utc) => {
            let local = check_micros(zone.to_local(*utc)).map_err(|error| wrong(&error))?;
            of_local(local, Some((zone.offset_at(*utc), zone.abbreviation_at(*utc))))
        }
        Cell::Interval(span) => Source {
            year: i64::from(span.months / 12),
            month: i64::from(span.months % 12),
            day: span.days.into(),
            days: None,
            time: micros_of(span),
            zone: None,
        },
        // Templates treat a time of day as an interval.
        Cell::Time(time) => Source { year: 0, month: 0, day: 0, days: None, time: *time, zone: None },
        _ => return Ok(None),
    };
    // As in PostgreSQL, an empty template has no result.
    if template.is_empty() {
        return Ok(None);
    }
    let mut out = String::new();
    for part in parts(template) {
        match part {
            Part::Pattern(pattern) => source.push(pattern, &mut out)?,
            Part::Separator(char) | Part::Literal(char) => out.push(char),
        }
    }
    Ok(Some(out))
}

impl Source {
    fn push(&self, pattern: Pattern, out: &mut String) -> Result<()> {
        let name = pattern.name.to_ascii_uppercase();
        if let Some(text) = self.text(&pattern, &name)? {
            out.push_str(&text);
            return Ok(());
        }
        let Some((number, width)) = self.number(&name)? else {
            return Err(refused(format!("the pattern {name} of to_char is not served"), "0A000"));
        };
        // In some patterns the minus sign replaces a digit.
        let is_narrow = name.starts_with("FF") || matches!(name.as_str(), "MS" | "US" | "DD" | "DDD" | "WW");
        let digits = match pattern.is_bare {
            // The digits of a fraction stay.
            true if name.starts_with("FF") || matches!(name.as_str(), "MS" | "US") => format!("{number:0width$}"),
            true => number.to_string(),
            false if is_narrow || number >= 0 => format!("{number:0width$}"),
            false => format!("-{:0width$}", number.unsigned_abs()),
        };
        out.push_str(&digits);
        if let Some(ordinal) = pattern.ordinal {
            out.push_str(ordinal_letters(&digits, ordinal));
        }
        Ok(())
    }

    fn days(&self) -> Result<i64> {
        let none = || refused("invalid format specification for an interval value", "22007");
        self.days.ok_or_else(none)
    }

    /// The days for a pattern. For intervals PostgreSQL would return a meaningless number.
    fn days_of(&self, name: &str) -> Result<i64> {
        let none = || refused(format!("the pattern {name} of to_char is not served of intervals"), "0A000");
        self.days.ok_or_else(none)
    }

    /// A pattern for a name or a symbol.
    fn text(&self, pattern: &Pattern, name: &str) -> Result<Option<String>> {
        let written = pattern.name;
        let cased = |text: &str| match written.chars().nth(1).is_some_and(char::is_uppercase) {
            _ if written.starts_with(char::is_lowercase) => text.to_lowercase(),
            true => text.to_uppercase(),
            false => text.to_owned(),
        };
        let filled = |text: String, width: usize| if pattern.is_bare { text } else { format!("{text:<width$}") };
        let of = |names: &[&str], at: i64| {
            let at = usize::try_from(at).unwrap_or(0);
            names.get(at).copied().unwrap_or_default().to_owned()
        };
        Ok(Some(match name {
            "AM" | "PM" | "A.M." | "P.M." => {
                let half = if self.time % DAY_US >= DAY_US / 2 { "PM" } else { "AM" };
                let half =
                    if name.contains('.') { format!("{}.M.", half.get(..1).unwrap_or_default()) } else { half.into() };
                if written.starts_with(char::is_lowercase) { half.to_lowercase() } else { half }
            }
            "BC" | "AD" | "B.C." | "A.D." => {
                self.days()?;
                let era = if self.year <= 0 { "BC" } else { "AD" };
                let era = match name.contains('.') {
                    true if era == "BC" => "B.C.",
                    true => "A.D.",
                    false => era,
                };
                if written.starts_with(char::is_lowercase) { era.to_lowercase() } else { era.to_owned() }
            }
            "MONTH" => {
                self.days()?;
                filled(cased(&of(&MONTHS, self.month - 1)), 9)
            }
            "MON" => {
                self.days()?;
                cased(of(&MONTHS, self.month - 1).get(..3).unwrap_or_default())
            }
            "DAY" => filled(cased(&of(&DAYS, weekday(self.days()?))), 9),
            "DY" => cased(of(&DAYS, weekday(self.days()?)).get(..3).unwrap_or_default()),
            // Empty for an interval without months and years.
            "RM" if self.days.is_none() && self.month == 0 && self.year == 0 => String::new(),
            "RM" => filled(cased(&of(&ROMAN_MONTHS, self.roman_month())), 4),
            "Q" if self.days.is_none() && self.month == 0 => String::new(),
            "TZ" => {
                self.days()?;
                let zone = self.zone.as_ref().map(|(_, name)| name.clone()).unwrap_or_default();
                if written == "tz" { zone.to_lowercase() } else { zone }
            }
            "TZH" | "TZM" | "OF" => {
                self.days()?;
                let offset = self.zone.as_ref().map_or(0, |(offset, _)| *offset);
                let (hours, minutes) = (offset.abs() / 3600, offset.abs() / 60 % 60);
                let sign = if offset < 0 { '-' } else { '+' };
                match name {
                    "TZH" => format!("{sign}{hours:02}"),
                    "TZM" => format!("{minutes:02}"),
                    _ => {
                        let mut out = String::new();
                        write_offset(offset / 60 * 60, &mut out);
                        out
                    }
                }
            }
            "Y,YYY" => {
                let year = self.displayed_year();
                format!("{},{:03}", year / 1000, year % 1000)
            }
            "FX" => String::new(),
            _ => return Ok(None),
        }))
    }

    /// The index of the month in the Roman numerals. For an interval, twelve if it has only years;
    /// negative months count from the end.
    fn roman_month(&self) -> i64 {
        match self.month {
            0 if self.year >= 0 => 11,
            0 => 0,
            month if month < 0 => 12 + month,
            month => month - 1,
        }
    }

    /// The day of the year; for an interval all its days.
    fn day_of_year(&self) -> i64 {
        match self.days {
            Some(days) => days - days_of_civil(Civil { year: self.year, month: 1, day: 1 }) + 1,
            None => (self.year * 12 + self.month) * 30 + self.day,
        }
    }

    /// The year without its era.
    fn displayed_year(&self) -> i64 {
        if self.days.is_some() && self.year <= 0 { 1 - self.year } else { self.year }
    }

    /// A numeric pattern, and its number of digits.
    fn number(&self, name: &str) -> Result<Option<(i64, usize)>> {
        let micros = self.time % SECOND_US;
        let hours = self.time / HOUR_US;
        Ok(Some(match name {
            "HH" | "HH12" => (if hours % 12 == 0 { 12 } else { hours % 12 }, 2),
            "HH24" => (hours, 2),
            "MI" => (self.time / MINUTE_US % 60, 2),
            "SS" => (self.time / SECOND_US % 60, 2),
            "MS" => (micros / 1_000, 3),
            "US" => (micros, 6),
            "SSSS" | "SSSSS" => (self.time / SECOND_US, 1),
            "FF1" => (micros / 100_000, 1),
            "FF2" => (micros / 10_000, 2),
            "FF3" => (micros / 1_000, 3),
            "FF4" => (micros / 100, 4),
            "FF5" => (micros / 10, 5),
            "FF6" => (micros, 6),
            "MM" => (self.month, 2),
            "DD" => (self.day, 2),
            "DDD" => (self.day_of_year(), 3),
            "D" => (weekday(self.days()?) + 1, 1),
            "ID" => (iso_week(self.days()?).2, 1),
            "IDDD" => {
                let (_, week, day) = iso_week(self.days_of(name)?);
                ((week - 1) * 7 + day, 3)
            }
            "WW" => ((self.day_of_year() - 1) / 7 + 1, 2),
            "IW" => (iso_week(self.days_of(name)?).1, 2),
            "W" => ((self.day - 1) / 7 + 1, 1),
            "Q" => ((self.month - 1) / 3 + 1, 1),
            "CC" if self.days.is_none() => (self.year / 100, 2),
            "CC" => (if self.year > 0 { (self.year - 1) / 100 + 1 } else { (self.year - 1) / 100 - 1 }, 2),
            "J" => (self.days_of(name)? + 2_440_588, 1),
            "YYYY" => (self.displayed_year(), 4),
            "YYY" => (self.displayed_year() % 1000, 3),
            "YY" => (self.displayed_year() % 100, 2),
            "Y" => (self.displayed_year() % 10, 1),
            "IYYY" => (self.iso_year(name)?, 4),
            "IYY" => (self.iso_year(name)? % 1000, 3),
            "IY" => (self.iso_year(name)? % 100, 2),
            "I" => (self.iso_year(name)? % 10, 1),
            _ => return Ok(None),
        }))
    }

    fn iso_year(&self, name: &str) -> Result<i64> {
        let year = iso_week(self.days_of(name)?).0;
        Ok(if year <= 0 { 1 - year } else { year })
    }
}

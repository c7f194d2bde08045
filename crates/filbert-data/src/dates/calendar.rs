//! The Gregorian calendar, extended to all years, with a year 0 before the year 1, as PostgreSQL
//! counts internally.

use super::DateError;

/// Microseconds of a second.
pub const SECOND_US: i64 = 1_000_000;
/// Microseconds of a minute.
pub const MINUTE_US: i64 = 60 * SECOND_US;
/// Microseconds of an hour.
pub const HOUR_US: i64 = 60 * MINUTE_US;
/// Microseconds of a day of 24 hours.
pub const DAY_US: i64 = 24 * HOUR_US;
/// 2000-01-01 in microseconds since 1970-01-01.
const MILLENNIUM_US: i64 = 10_957 * DAY_US;

/// The Julian day 0, 4714-11-24 BC: the earliest date in PostgreSQL.
const DAYS_MIN: i64 = -2_440_588;
/// 262142-12-31, the last day that all parts of the program can represent. PostgreSQL has later
/// dates.
const DAYS_MAX: i64 = 95_026_236;

/// A date as year, month and day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Civil {
    /// The year; 0 is 1 BC.
    pub year: i64,
    /// The month, 1 to 12.
    pub month: u32,
    /// The day of the month, 1 to 31.
    pub day: u32,
}

/// The number of days from 1970-01-01 to a date.
pub fn days_of_civil(date: Civil) -> i64 {
    // Here years begin in March, so that the leap day is the last day of the year.
    let year = if date.month <= 2 { date.year - 1 } else { date.year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month = i64::from((date.month + 9) % 12);
    let day_of_year = (153 * month + 2) / 5 + i64::from(date.day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The date `days` days after 1970-01-01.
pub fn civil_of_days(days: i64) -> Civil {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let part = |number: i64| u32::try_from(number).unwrap_or(1);
    let day = part(day_of_year - (153 * shifted + 2) / 5 + 1);
    let month = part(if shifted < 10 { shifted + 3 } else { shifted - 9 });
    Civil { year: year_of_era + era * 400 + i64::from(month <= 2), month, day }
}

/// The number of days of a month.
pub fn days_in_month(year: i64, month: u32) -> u32 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day of the week, 0 = Sunday.
pub fn weekday(days: i64) -> i64 {
    (days + 4).rem_euclid(7)
}

/// The year and the number of the week in ISO 8601, and the day of that week, 1 = Monday.
pub fn iso_week(days: i64) -> (i64, i64, i64) {
    let day = (weekday(days) + 6) % 7;
    // The week belongs to the year of its Thursday.
    let thursday = days - day + 3;
    let year = civil_of_days(thursday).year;
    let first = days_of_civil(Civil { year, month: 1, day: 1 });
    (year, (thursday - first) / 7 + 1, day + 1)
}

/// Rounds microseconds to this number of fractional digits of a second. Halves are rounded away
/// from zero.
pub fn round_micros(micros: i64, digits: u32) -> i64 {
    let unit = 10_i64.pow(6_u32.saturating_sub(digits));
    let half = unit / 2;
    match micros {
        0.. => (micros + half) / unit * unit,
        _ => -((half - micros) / unit * unit),
    }
}

/// Rounds a timestamp, given in microseconds since 1970-01-01. Halves are rounded away from
/// 2000-01-01, as in PostgreSQL.
pub fn round_timestamp(micros: i64, digits: u32) -> i64 {
    round_micros(micros - MILLENNIUM_US, digits) + MILLENNIUM_US
}

/// Splits microseconds into whole days, and microseconds since midnight.
pub fn split_micros(micros: i64) -> (i64, i64) {
    (micros.div_euclid(DAY_US), micros.rem_euclid(DAY_US))
}

/// Returns the days if they are in the range of dates.
///
/// # Errors
/// The days are out of the range of dates.
pub fn check_days(days: i64) -> Result<i32, DateError> {
    let days = Some(days).filter(|days| (DAYS_MIN..=DAYS_MAX).contains(days));
    days.and_then(|days| i32::try_from(days).ok()).ok_or(DateError::Overflow { kind: "date" })
}

/// Returns the microseconds if they are in the range of timestamps.
///
/// # Errors
/// The microseconds are out of the range of timestamps.
pub fn check_micros(micros: i128) -> Result<i64, DateError> {
    let range = i128::from(DAYS_MIN) * i128::from(DAY_US)..i128::from(DAYS_MAX + 1) * i128::from(DAY_US);
    let micros = Some(micros).filter(|micros| range.contains(micros));
    micros.and_then(|micros| i64::try_from(micros).ok()).ok_or(DateError::Overflow { kind: "timestamp" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_each_others_opposite() {
        for days in (DAYS_MIN..=DAYS_MAX).step_by(997).chain(-1000..1000) {
            let date = civil_of_days(days);
            assert_eq!(days_of_civil(date), days, "{date:?}");
            assert!((1..=12).contains(&date.month) && (1..=days_in_month(date.year, date.month)).contains(&date.day));
        }
        assert_eq!(civil_of_days(0), Civil { year: 1970, month: 1, day: 1 });
        assert_eq!(civil_of_days(DAYS_MIN), Civil { year: -4713, month: 11, day: 24 });
        assert_eq!(civil_of_days(DAYS_MAX), Civil { year: 262_142, month: 12, day: 31 });
        assert!(check_days(DAYS_MAX + 1).is_err() && check_days(DAYS_MIN).is_ok());
    }

    #[test]
    fn weeks_are_those_of_iso_8601() {
        let of = |year, month, day| iso_week(days_of_civil(Civil { year, month, day }));
        assert_eq!(of(2024, 1, 1), (2024, 1, 1));
        assert_eq!(of(2021, 1, 3), (2020, 53, 7));
        assert_eq!(of(2018, 12, 31), (2019, 1, 1));
        assert_eq!(weekday(0), 4);
    }
}

//! Dates and times of day, computed from numbers of days, seconds and nanoseconds.

use filbert_wire::sql_page::{SqlDate, SqlTime, SqlTimestamp};

const SECONDS_PER_DAY: i64 = 86_400;

/// The date of a number of days after 1970-01-01, in the proleptic Gregorian calendar. The
/// algorithm is from "chrono-Compatible Low-Level Date Algorithms" by Howard Hinnant: years begin
/// with March, so a leap day is the last day of a year, and an era has 400 years.
pub(crate) fn date_of_days(days: i64) -> SqlDate {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    SqlDate { year: i32::try_from(year).unwrap_or(i32::MAX), month: narrow(month), day: narrow(day) }
}

/// The time of day of a number of nanoseconds after midnight. Whole days are ignored.
pub(crate) fn time_of_nanoseconds(nanoseconds: i64) -> SqlTime {
    let seconds = nanoseconds.div_euclid(1_000_000_000).rem_euclid(SECONDS_PER_DAY);
    SqlTime {
        hour: narrow(seconds / 3600),
        minute: narrow(seconds / 60 % 60),
        second: narrow(seconds % 60),
        nanosecond: i32::try_from(nanoseconds.rem_euclid(1_000_000_000)).unwrap_or(0),
    }
}

/// The date and the time of a number of seconds after 1970-01-01 00:00, plus 0 to 999,999,999
/// nanoseconds.
pub(crate) fn timestamp_of(seconds: i64, nanoseconds: i64) -> SqlTimestamp {
    let second_of_day = seconds.rem_euclid(SECONDS_PER_DAY);
    SqlTimestamp {
        date: date_of_days(seconds.div_euclid(SECONDS_PER_DAY)),
        time: time_of_nanoseconds(second_of_day * 1_000_000_000 + nanoseconds),
    }
}

/// Converts a number that is below 256 by construction.
fn narrow(number: i64) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_1970() {
        let check = |days, year, month, day| assert_eq!(date_of_days(days), SqlDate { year, month, day }, "{days}");
        check(0, 1970, 1, 1);
        check(-1, 1969, 12, 31);
        check(59, 1970, 3, 1);
        check(11_016, 2000, 2, 29);
        check(11_017, 2000, 3, 1);
        check(19_782, 2024, 2, 29);
        check(-719_468, 0, 3, 1);
        check(-719_528, 0, 1, 1);
        check(2_932_896, 9999, 12, 31);
        check(i64::from(i32::MAX), 5_881_580, 7, 11);
        check(i64::from(i32::MIN), -5_877_641, 6, 23);
    }

    #[test]
    fn timestamps_before_1970_have_their_time_of_day() {
        let timestamp = timestamp_of(-1, 999_999_999);
        assert_eq!(timestamp.date, SqlDate { year: 1969, month: 12, day: 31 });
        assert_eq!(timestamp.time, SqlTime { hour: 23, minute: 59, second: 59, nanosecond: 999_999_999 });
    }
}

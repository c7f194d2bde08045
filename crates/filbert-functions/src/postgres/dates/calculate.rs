//! The arithmetic of dates, times and intervals, as in PostgreSQL.

use filbert_data::Interval;
use filbert_data::dates::{
    Civil, DAY_US, DateError, Zone, check_days, check_micros, civil_of_days, days_in_month, days_of_civil, split_micros,
};

type Outcome<T> = Result<T, DateError>;

const INTERVAL: DateError = DateError::Overflow { kind: "interval" };

/// The time part of an interval, in microseconds.
pub(super) fn micros_of(interval: &Interval) -> i64 {
    interval.nanoseconds / 1_000
}

/// An interval from its parts.
pub(super) fn interval(months: i64, days: i64, micros: i128) -> Outcome<Interval> {
    let nanoseconds = micros.checked_mul(1_000).and_then(|nanoseconds| i64::try_from(nanoseconds).ok());
    Ok(Interval {
        months: i32::try_from(months).map_err(|_| INTERVAL)?,
        days: i32::try_from(days).map_err(|_| INTERVAL)?,
        nanoseconds: nanoseconds.ok_or(INTERVAL)?,
    })
}

/// The sum of two intervals.
pub(super) fn add(left: &Interval, right: &Interval) -> Outcome<Interval> {
    Ok(Interval {
        months: left.months.checked_add(right.months).ok_or(INTERVAL)?,
        days: left.days.checked_add(right.days).ok_or(INTERVAL)?,
        nanoseconds: left.nanoseconds.checked_add(right.nanoseconds).ok_or(INTERVAL)?,
    })
}

/// The negated interval.
pub(super) fn negated(interval: &Interval) -> Outcome<Interval> {
    Ok(Interval {
        months: interval.months.checked_neg().ok_or(INTERVAL)?,
        days: interval.days.checked_neg().ok_or(INTERVAL)?,
        nanoseconds: interval.nanoseconds.checked_neg().ok_or(INTERVAL)?,
    })
}

/// Adds months to a local timestamp. If the month is too short, the result is its last day.
fn add_months(local: i64, months: i32) -> Outcome<i64> {
    if months == 0 {
        return Ok(local);
    }
    let (days, of_day) = split_micros(local);
    let date = civil_of_days(days);
    let month = date.year * 12 + i64::from(date.month) - 1 + i64::from(months);
    let (year, month) = (month.div_euclid(12), u32::try_from(month.rem_euclid(12) + 1).unwrap_or(1));
    let day = date.day.min(days_in_month(year, month));
    let days = days_of_civil(Civil { year, month, day });
    check_micros(i128::from(days) * i128::from(DAY_US) + i128::from(of_day))
}

/// The sum of a timestamp and an interval.
pub(super) fn add_to_timestamp(local: i64, interval: &Interval) -> Outcome<i64> {
    let local = add_months(local, interval.months)?;
    let days = i128::from(interval.days) * i128::from(DAY_US);
    check_micros(i128::from(local) + days)?;
    check_micros(i128::from(local) + days + i128::from(micros_of(interval)))
}

/// The sum of a `timestamptz` and an interval. Months and days are added in a time zone.
pub(super) fn add_to_timestamptz(utc: i64, interval: &Interval, zone: &Zone) -> Outcome<i64> {
    let mut utc = utc;
    if interval.months != 0 {
        let local = add_months(check_micros(zone.to_local(utc))?, interval.months)?;
        utc = check_micros(zone.to_utc(local))?;
    }
    if interval.days != 0 {
        let local = zone.to_local(utc) + i128::from(interval.days) * i128::from(DAY_US);
        utc = check_micros(zone.to_utc(check_micros(local)?))?;
    }
    check_micros(i128::from(utc) + i128::from(micros_of(interval)))
}

/// The interval between two timestamps, in days and time.
pub(super) fn difference(left: i64, right: i64) -> Outcome<Interval> {
    let micros = i128::from(left) - i128::from(right);
    let days = micros / i128::from(DAY_US);
    interval(0, i64::try_from(days).map_err(|_| INTERVAL)?, micros % i128::from(DAY_US))
}

/// Adds days to a date.
pub(super) fn add_days(days: i64, count: i64) -> Outcome<i64> {
    let days = days.checked_add(count).ok_or(DateError::Overflow { kind: "date" })?;
    check_days(days).map(i64::from)
}

/// The interval between two timestamps in years, months, days and time, by the calendar.
pub(super) fn age(left: i64, right: i64) -> Outcome<Interval> {
    let is_negative = left < right;
    let ((left_days, left_time), (right_days, right_time)) = (split_micros(left), split_micros(right));
    let (one, other) = (civil_of_days(left_days), civil_of_days(right_days));
    let sign = if is_negative { -1 } else { 1 };
    let mut time = sign * (left_time - right_time);
    let mut days = sign * (i64::from(one.day) - i64::from(other.day));
    let mut months = sign * (i64::from(one.month) - i64::from(other.month));
    let mut years = sign * (one.year - other.year);
    if time < 0 {
        time += DAY_US;
        days -= 1;
    }
    while days < 0 {
        let of = if is_negative { one } else { other };
        days += i64::from(days_in_month(of.year, of.month));
        months -= 1;
    }
    while months < 0 {
        months += 12;
        years -= 1;
    }
    interval(sign * (years * 12 + months), sign * days, i128::from(sign * time))
}

/// Converts 24-hour periods of an interval into days.
pub(super) fn justify_hours(span: &Interval) -> Outcome<Interval> {
    let micros = micros_of(span);
    let (mut days, mut micros) = (i64::from(span.days) + micros / DAY_US, micros % DAY_US);
    same_sign(&mut days, &mut micros, DAY_US);
    interval(span.months.into(), days, micros.into())
}

/// Converts 30-day periods of an interval into months.
pub(super) fn justify_days(span: &Interval) -> Outcome<Interval> {
    let days = i64::from(span.days);
    let (mut months, mut days) = (i64::from(span.months) + days / 30, days % 30);
    same_sign(&mut months, &mut days, 30);
    interval(months, days, micros_of(span).into())
}

/// Does both, and gives all parts the same sign.
pub(super) fn justify_interval(span: &Interval) -> Outcome<Interval> {
    let micros = micros_of(span);
    let (mut days, mut micros) = (i64::from(span.days) + micros / DAY_US, micros % DAY_US);
    let mut months = i64::from(span.months) + days / 30;
    days %= 30;
    let rest = if days == 0 { micros.signum() } else { days.signum() };
    if months > 0 && rest < 0 {
        (days, months) = (days + 30, months - 1);
    } else if months < 0 && rest > 0 {
        (days, months) = (days - 30, months + 1);
    }
    same_sign(&mut days, &mut micros, DAY_US);
    interval(months, days, micros.into())
}

/// Gives the smaller part the sign of the larger one.
fn same_sign(large: &mut i64, small: &mut i64, unit: i64) {
    if *large > 0 && *small < 0 {
        (*large, *small) = (*large - 1, *small + unit);
    } else if *large < 0 && *small > 0 {
        (*large, *small) = (*large + 1, *small - unit);
    }
}

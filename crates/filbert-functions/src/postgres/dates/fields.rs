//! Fields of dates, times and intervals: `extract`, `date_part`, `date_trunc`, `date_bin`.

use std::sync::{Arc, LazyLock};

use arrow_schema::DataType;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF};
use filbert_data::dates::{
    Civil, DAY_US, DateError, HOUR_US, MINUTE_US, SECOND_US, Zone, check_micros, civil_of_days, days_of_civil,
    iso_week, split_micros, weekday,
};
use filbert_data::{FieldType, Interval};

use super::super::super::row::{Function, is_text, text_of, wrong_arguments};
use super::calculate::{interval, micros_of};
use super::casts::local;
use super::cells::{Cell, Kind, compute};
use super::{refused, wrong, zone_of};

/// Days from the Julian day 0 to 1970-01-01.
const JULIAN_OF_EPOCH: i64 = 2_440_588;

static EXTRACT: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(Function::udf("extract", coerce_part, extract_type, |args| part(args, true))));
static DATE_PART: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(Function::udf("date_part", coerce_part, |_| Ok(FieldType::Double), |args| part(args, false)))
});
static DATE_TRUNC: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(Function::udf("date_trunc", coerce_trunc, trunc_type, trunc)));
static DATE_BIN: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(Function::udf("date_bin", coerce_bin, |args| type_of_argument(args, 1), bin)));

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    [&EXTRACT, &DATE_PART, &DATE_TRUNC, &DATE_BIN].map(|function| Arc::clone(function)).to_vec()
}

/// A field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    DayOfWeek,
    IsoDayOfWeek,
    DayOfYear,
    IsoYear,
    Julian,
    Epoch,
    Timezone,
    TimezoneHour,
    TimezoneMinute,
}

impl Part {
    fn of(name: &str) -> Option<Part> {
        Some(match name.to_ascii_lowercase().as_str() {
            "microseconds" | "microsecond" | "us" | "usec" | "usecs" | "usecond" | "useconds" => Part::Microseconds,
            "milliseconds" | "millisecond" | "ms" | "msec" | "msecs" | "msecond" | "mseconds" => Part::Milliseconds,
            "second" | "seconds" | "sec" | "secs" | "s" => Part::Second,
            "minute" | "minutes" | "min" | "mins" | "m" => Part::Minute,
            "hour" | "hours" | "hr" | "hrs" | "h" => Part::Hour,
            "day" | "days" | "d" => Part::Day,
            "week" | "weeks" | "w" => Part::Week,
            "month" | "months" | "mon" | "mons" => Part::Month,
            "quarter" | "qtr" => Part::Quarter,
            "year" | "years" | "y" | "yr" | "yrs" => Part::Year,
            "decade" | "decades" | "dec" | "decs" => Part::Decade,
            "century" | "centuries" | "c" | "cent" => Part::Century,
            "millennium" | "millennia" | "mil" | "mils" => Part::Millennium,
            "dow" => Part::DayOfWeek,
            "isodow" => Part::IsoDayOfWeek,
            "doy" => Part::DayOfYear,
            "isoyear" => Part::IsoYear,
            "julian" | "jd" | "j" => Part::Julian,
            "epoch" => Part::Epoch,
            "timezone" => Part::Timezone,
            "timezone_hour" | "timezone_h" => Part::TimezoneHour,
            "timezone_minute" | "timezone_m" => Part::TimezoneMinute,
            _ => return None,
        })
    }

    /// The number of decimal places of the field.
    fn scale(self) -> u8 {
        match self {
            Part::Second | Part::Epoch => 6,
            Part::Milliseconds => 3,
            _ => 0,
        }
    }

    fn is_of_day(self) -> bool {
        matches!(self, Part::Microseconds | Part::Milliseconds | Part::Second | Part::Minute | Part::Hour)
    }
}

fn found(name: &str, kind: Kind) -> Result<Part> {
    let text = name.to_ascii_lowercase();
    Part::of(name).ok_or_else(|| refused(format!("unit \"{text}\" not recognized for type {}", kind.name()), "22023"))
}

/// The field of the previous row, which is usually the same in the next row.
#[derive(Default)]
struct Last(Option<(String, Kind, Part)>);

impl Last {
    fn found(&mut self, name: &str, kind: Kind) -> Result<Part> {
        if let Some((known, of, part)) = &self.0
            && known == name
            && *of == kind
        {
            return Ok(*part);
        }
        let part = found(name, kind)?;
        self.0 = Some((name.to_owned(), kind, part));
        Ok(part)
    }
}

fn unsupported(name: &str, kind: Kind) -> DataFusionError {
    let text = name.to_ascii_lowercase();
    refused(format!("unit \"{text}\" not supported for type {}", kind.name()), "0A000")
}

fn coerce_part(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        // The field is not cast, because the result type depends on its text.
        [field, of] if is_text(field) && (!field.is_null() || name == "date_part") => {
            let field = if field.is_null() { DataType::Utf8View } else { field.clone() };
            match Kind::of(of) {
                Kind::Unknown => Ok(vec![field, Kind::Timestamp.arrow()]),
                kind if kind.is_temporal() => Ok(vec![field, kind.arrow()]),
                _ => Err(wrong_arguments(name, types)),
            }
        }
        _ => Err(wrong_arguments(name, types)),
    }
}

fn type_of_argument(args: &ReturnFieldArgs<'_>, at: usize) -> Result<FieldType> {
    let kind = args.arg_fields.get(at).map_or(Kind::Unknown, |field| Kind::of(field.data_type()));
    Ok(super::operators::field_type(kind))
}

/// A number with the scale of the field. The field of `extract` is always a literal.
fn extract_type(args: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    let field = args.scalar_arguments.first().copied().flatten().and_then(text_of);
    let kind = args.arg_fields.get(1).map_or(Kind::Unknown, |field| Kind::of(field.data_type()));
    let part = found(field.unwrap_or_default(), kind)?;
    let scale = if kind == Kind::Date { 0 } else { part.scale() };
    Ok(FieldType::Decimal(Some((38, i8::try_from(scale).unwrap_or(0)))))
}

fn part(args: &ScalarFunctionArgs, is_exact: bool) -> Result<ColumnarValue> {
    let zone = zone_of(&args.config_options);
    let mut last = Last::default();
    compute(args, |cells| {
        let [Cell::Text(name), of] = cells else { return Ok(Cell::Null) };
        let kind = kind_of(of);
        let part = last.found(name, kind)?;
        if is_exact && kind == Kind::Date && (part.is_of_day() || is_of_zone(part)) {
            return Err(unsupported(name, kind));
        }
        let is_of_timestamp = matches!(kind, Kind::Timestamp | Kind::Timestamptz);
        if part == Part::Julian && is_of_timestamp {
            if is_exact {
                return Err(refused(
                    "extract(julian ..) is served for dates, date_part('julian', ..) for timestamps",
                    "0A000",
                ));
            }
            let local = local(of, &zone).map_err(|error| wrong(&error))?.unwrap_or(0);
            let (days, time) = split_micros(local);
            return Ok(Cell::Number((days + JULIAN_OF_EPOCH) as f64 + time as f64 / DAY_US as f64));
        }
        let micros = value(part, of, &zone).map_err(|error| wrong(&error))?;
        let micros = micros.ok_or_else(|| unsupported(name, kind))?;
        Ok(match is_exact {
            true if kind == Kind::Date => Cell::Decimal(micros / 1_000_000),
            true => Cell::Decimal(micros / 10_i128.pow(6 - u32::from(part.scale()))),
            false => Cell::Number(micros as f64 / 1e6),
        })
    })
}

fn is_of_zone(part: Part) -> bool {
    matches!(part, Part::Timezone | Part::TimezoneHour | Part::TimezoneMinute)
}

fn kind_of(cell: &Cell) -> Kind {
    match cell {
        Cell::Date(_) => Kind::Date,
        Cell::Time(_) => Kind::Time,
        Cell::Timestamp(_) => Kind::Timestamp,
        Cell::Timestamptz(_) => Kind::Timestamptz,
        Cell::Interval(_) => Kind::Interval,
        _ => Kind::Unknown,
    }
}

/// The field's value in millionths; `None` if the value does not have the field.
fn value(part: Part, of: &Cell, zone: &Zone) -> Result<Option<i128>, DateError> {
    let whole = |value: i64| Some(i128::from(value) * 1_000_000);
    if let Cell::Interval(span) = of {
        return Ok(of_interval(part, span));
    }
    if let Cell::Time(time) = of {
        return Ok(match part {
            Part::Epoch => Some((*time).into()),
            _ => of_day(part, *time),
        });
    }
    let Some(local) = local(of, zone)? else { return Ok(None) };
    if let (Cell::Timestamptz(utc), true) = (of, is_of_zone(part)) {
        let offset = i64::from(zone.offset_at(*utc));
        return Ok(whole(match part {
            Part::Timezone => offset,
            Part::TimezoneHour => offset / 3600,
            _ => offset / 60 % 60,
        }));
    }
    let (days, time) = split_micros(local);
    if part == Part::Epoch {
        return Ok(Some(match of {
            Cell::Timestamptz(utc) => (*utc).into(),
            _ => local.into(),
        }));
    }
    Ok(of_day(part, time).or_else(|| of_date(part, days).and_then(whole)))
}

fn of_day(part: Part, time: i64) -> Option<i128> {
    let micros_of_minute = i128::from(time % MINUTE_US);
    Some(match part {
        Part::Microseconds => micros_of_minute * 1_000_000,
        Part::Milliseconds => micros_of_minute * 1_000,
        Part::Second => micros_of_minute,
        Part::Minute => i128::from(time / MINUTE_US % 60) * 1_000_000,
        Part::Hour => i128::from(time / HOUR_US) * 1_000_000,
        _ => return None,
    })
}

fn of_date(part: Part, days: i64) -> Option<i64> {
    let Civil { year, month, day } = civil_of_days(days);
    // There is no year 0.
    let displayed = |year: i64| if year > 0 { year } else { year - 1 };
    let since = |years: i64| if year > 0 { (year + years - 1) / years } else { -((years - year) / years) };
    Some(match part {
        Part::Day => day.into(),
        Part::Week => iso_week(days).1,
        Part::Month => month.into(),
        Part::Quarter => i64::from((month - 1) / 3 + 1),
        Part::Year => displayed(year),
        Part::Decade => year.div_euclid(10),
        Part::Century => since(100),
        Part::Millennium => since(1000),
        Part::DayOfWeek => weekday(days),
        Part::IsoDayOfWeek => iso_week(days).2,
        Part::DayOfYear => days - days_of_civil(Civil { year, month: 1, day: 1 }) + 1,
        Part::IsoYear => displayed(iso_week(days).0),
        Part::Julian => days + JULIAN_OF_EPOCH,
        _ => return None,
    })
}

fn of_interval(part: Part, span: &Interval) -> Option<i128> {
    let micros = micros_of(span);
    let (years, months) = (i64::from(span.months / 12), i64::from(span.months % 12));
    let whole = |value: i64| Some(i128::from(value) * 1_000_000);
    match part {
        Part::Microseconds | Part::Milliseconds | Part::Second | Part::Minute => of_day(part, micros),
        Part::Hour => whole(micros / HOUR_US),
        Part::Day => whole(span.days.into()),
        Part::Month => whole(months),
        Part::Quarter => whole(months / 3 + 1),
        Part::Year => whole(years),
        Part::Decade => whole(years / 10),
        Part::Century => whole(years / 100),
        Part::Millennium => whole(years / 1000),
        Part::Epoch => {
            // A year has 365.25 days, a month 30.
            let quarter_days = i128::from(years) * 1_461 + i128::from(months) * 120 + i128::from(span.days) * 4;
            Some(quarter_days * i128::from(DAY_US / 4) + i128::from(micros))
        }
        _ => None,
    }
}

fn coerce_trunc(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [field, of] if is_text(field) => Ok(vec![
            DataType::Utf8View,
            match Kind::of(of) {
                kind @ (Kind::Timestamp | Kind::Interval) => kind.arrow(),
                Kind::Timestamptz | Kind::Date | Kind::Unknown | Kind::Text => Kind::Timestamptz.arrow(),
                Kind::Time => Kind::Interval.arrow(),
                _ => return Err(wrong_arguments(name, types)),
            },
        ]),
        [field, of, zone] if is_text(field) && is_text(zone) => match Kind::of(of) {
            Kind::Timestamptz | Kind::Timestamp | Kind::Date | Kind::Unknown => {
                Ok(vec![DataType::Utf8View, Kind::Timestamptz.arrow(), DataType::Utf8View])
            }
            _ => Err(wrong_arguments(name, types)),
        },
        _ => Err(wrong_arguments(name, types)),
    }
}

fn trunc_type(args: &ReturnFieldArgs<'_>) -> Result<FieldType> {
    type_of_argument(args, 1)
}

fn trunc(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let session_zone = zone_of(&args.config_options);
    let mut last = Last::default();
    compute(args, |cells| {
        let (Some(Cell::Text(name)), Some(of)) = (cells.first(), cells.get(1)) else { return Ok(Cell::Null) };
        let kind = kind_of(of);
        let part = last.found(name, kind)?;
        let given = match cells.get(2) {
            Some(Cell::Text(zone)) => Some(zone_of_text(zone)?),
            _ => None,
        };
        let zone = given.as_ref().unwrap_or(&session_zone);
        let truncated = match of {
            Cell::Interval(span) => trunc_interval(part, span).map(|span| span.map(Cell::Interval)),
            Cell::Timestamp(local) => trunc_local(part, *local).map(|local| local.map(Cell::Timestamp)),
            Cell::Timestamptz(utc) => trunc_timestamp(part, *utc, zone).map(|utc| utc.map(Cell::Timestamptz)),
            _ => return Ok(Cell::Null),
        };
        truncated.map_err(|error| wrong(&error))?.ok_or_else(|| unsupported(name, kind))
    })
}

/// The time zone with a name, or an error.
pub(super) fn zone_of_text(name: &str) -> Result<Zone> {
    Zone::of_word(name).ok_or_else(|| wrong(&DateError::Zone { name: name.to_owned() }))
}

fn trunc_timestamp(part: Part, utc: i64, zone: &Zone) -> Result<Option<i64>, DateError> {
    let local = check_micros(zone.to_local(utc))?;
    let Some(truncated) = trunc_local(part, local)? else { return Ok(None) };
    if part.is_of_day() {
        // Within a day, the offset stays the same.
        return Ok(Some(utc - (local - truncated)));
    }
    check_micros(zone.to_utc(truncated)).map(Some)
}

fn trunc_local(part: Part, local: i64) -> Result<Option<i64>, DateError> {
    let unit = match part {
        Part::Microseconds => 1,
        Part::Milliseconds => 1_000,
        Part::Second => SECOND_US,
        Part::Minute => MINUTE_US,
        Part::Hour => HOUR_US,
        _ => DAY_US,
    };
    if part.is_of_day() || part == Part::Day {
        return Ok(Some(local - local.rem_euclid(unit)));
    }
    let (days, _) = split_micros(local);
    let Civil { year, month, .. } = civil_of_days(days);
    let since = |years: i64| (year - 1).div_euclid(years) * years + 1;
    let (year, month) = match part {
        Part::Week => {
            let monday = days - (iso_week(days).2 - 1);
            return check_micros(i128::from(monday) * i128::from(DAY_US)).map(Some);
        }
        Part::Month => (year, month),
        Part::Quarter => (year, (month - 1) / 3 * 3 + 1),
        Part::Year => (year, 1),
        Part::Decade => (year.div_euclid(10) * 10, 1),
        Part::Century => (since(100), 1),
        Part::Millennium => (since(1000), 1),
        _ => return Ok(None),
    };
    let first = days_of_civil(Civil { year, month, day: 1 });
    check_micros(i128::from(first) * i128::from(DAY_US)).map(Some)
}

fn trunc_interval(part: Part, span: &Interval) -> Result<Option<Interval>, DateError> {
    let micros = micros_of(span);
    let of_months = |unit: i32| interval((span.months / unit * unit).into(), 0, 0).map(Some);
    let of_micros = |unit: i64| interval(span.months.into(), span.days.into(), (micros / unit * unit).into()).map(Some);
    match part {
        Part::Millennium => of_months(12_000),
        Part::Century => of_months(1_200),
        Part::Decade => of_months(120),
        Part::Year => of_months(12),
        Part::Quarter => of_months(3),
        Part::Month => of_months(1),
        Part::Day => interval(span.months.into(), span.days.into(), 0).map(Some),
        Part::Hour => of_micros(HOUR_US),
        Part::Minute => of_micros(MINUTE_US),
        Part::Second => of_micros(SECOND_US),
        Part::Milliseconds => of_micros(1_000),
        Part::Microseconds => of_micros(1),
        _ => Ok(None),
    }
}

fn coerce_bin(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    let [stride, of, origin] = types else { return Err(wrong_arguments(name, types)) };
    let is_datetime = |data_type: &DataType| matches!(Kind::of(data_type), Kind::Timestamptz);
    let fits = |data_type: &DataType| {
        matches!(Kind::of(data_type), Kind::Timestamp | Kind::Timestamptz | Kind::Date | Kind::Unknown | Kind::Text)
    };
    if !matches!(Kind::of(stride), Kind::Interval | Kind::Text | Kind::Unknown) || !fits(of) || !fits(origin) {
        return Err(wrong_arguments(name, types));
    }
    // A date may be either type. If both are possible, PostgreSQL prefers `timestamptz`.
    let has_timestamp = [of, origin].into_iter().any(|data_type| Kind::of(data_type) == Kind::Timestamp);
    let has_date = [of, origin].into_iter().any(|data_type| Kind::of(data_type) == Kind::Date);
    let has_zone = is_datetime(of) || is_datetime(origin) || has_date && !has_timestamp;
    let kind = if has_zone { Kind::Timestamptz } else { Kind::Timestamp };
    Ok(vec![Kind::Interval.arrow(), kind.arrow(), kind.arrow()])
}

fn bin(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    compute(args, |cells| {
        let (stride, (of, origin), is_zoned) = match cells {
            [Cell::Interval(stride), Cell::Timestamp(of), Cell::Timestamp(origin)] => (stride, (*of, *origin), false),
            [Cell::Interval(stride), Cell::Timestamptz(of), Cell::Timestamptz(origin)] => {
                (stride, (*of, *origin), true)
            }
            _ => return Ok(Cell::Null),
        };
        if stride.months != 0 {
            return Err(refused("timestamps cannot be binned into intervals containing months or years", "0A000"));
        }
        let stride = i128::from(stride.days) * i128::from(DAY_US) + i128::from(micros_of(stride));
        if stride <= 0 {
            return Err(refused("stride must be greater than zero", "22008"));
        }
        let (of, origin) = (i128::from(of), i128::from(origin));
        let start = check_micros(origin + (of - origin).div_euclid(stride) * stride).map_err(|error| wrong(&error))?;
        Ok(if is_zoned { Cell::Timestamptz(start) } else { Cell::Timestamp(start) })
    })
}

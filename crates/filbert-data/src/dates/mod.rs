//! Dates, times and intervals of PostgreSQL: their text formats, the calendar and the time zones.
//!
//! | module | content |
//! |---|---|
//! | `calendar` | days and microseconds as years, months and days; the ranges of both |
//! | `abbreviations` | PostgreSQL's abbreviations of time zones |
//! | `zone` | time zones: names, abbreviations, offsets |
//! | `tokens` | the tokens in the text of a date or a time |
//! | `read` | reading of dates, times and timestamps from text |
//! | `span` | reading of intervals from text, and their arithmetic |
//! | `write` | writing of dates, times, timestamps and intervals as text |
//!
//! A date is a number of days since 1970-01-01. A time of day is the number of microseconds since
//! midnight, a timestamp is the number of microseconds since 1970-01-01. The PostgreSQL front door
//! and the query engine share this module, so that a value has the same text in both.

mod abbreviations;
mod calendar;
mod error;
mod read;
mod span;
mod tokens;
mod write;
mod zone;

pub use calendar::{
    Civil, DAY_US, HOUR_US, MINUTE_US, SECOND_US, check_days, check_micros, civil_of_days, days_in_month,
    days_of_civil, iso_week, round_micros, round_timestamp, split_micros, weekday,
};
pub use error::DateError;
pub use read::{read_date, read_time, read_timestamp, read_timestamptz};
pub use span::{read_interval, read_interval_of, scaled, spread};
pub use write::{write_date, write_interval, write_offset, write_time, write_timestamp, write_timestamptz};
pub use zone::Zone;

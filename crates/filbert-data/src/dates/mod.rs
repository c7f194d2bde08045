//! Dates, times and intervals as PostgreSQL has them: their text forms, its calendar and its time zones.
//!
//! | here | what |
//! |---|---|
//! | `calendar` | days and microseconds as years, months, days, and the range of both |
//! | `zone` | time zones: names, abbreviations, offsets |
//! | `tokens` | a text as the fields that dates, times and intervals are written with |
//! | `read` | dates, times and timestamps from their text |
//! | `span` | intervals from their text, and their arithmetic |
//! | `write` | the text of each |
//!
//! A date is a number of days since 1970-01-01, a time of day and a timestamp are microseconds since midnight and since 1970-01-01.
//! PostgreSQL's door and the query engine share these, so that a value has one text form in both.

mod calendar;
mod error;
mod read;
mod span;
mod tokens;
mod write;
mod zone;

pub use calendar::{
    Civil, DAY_US, HOUR_US, MINUTE_US, SECOND_US, check_days, check_micros, civil_of_days, days_in_month,
    days_of_civil, iso_week, split_micros, weekday,
};
pub use error::DateError;
pub use read::{read_date, read_time, read_timestamp, read_timestamptz};
pub use span::{read_interval, read_interval_of, scaled, spread};
pub use write::{write_date, write_interval, write_offset, write_time, write_timestamp, write_timestamptz};
pub use zone::Zone;

//! Results as JSON in CrateDB's format.

mod head;
mod types;
mod values;

pub(crate) use head::{bulk_results, count, rows_end, rows_start};
pub(crate) use types::write_type;
pub(crate) use values::{write_text, write_value};

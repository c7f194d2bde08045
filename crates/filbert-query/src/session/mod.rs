//! Sessions: their settings, the state of their transactions, and the statements about both.

mod run;
mod settings;
mod transaction;

pub(crate) use run::{run, tag, value_columns};
pub(crate) use settings::{CRATE_VERSION, SETTINGS, database, statement_timeout_ms, value_of, version};
pub(crate) use settings::{check, lock_timeout_ms, search_path, shown_name, unknown};
pub(crate) use transaction::check_may_change;

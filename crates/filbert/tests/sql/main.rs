//! SQL tests: sqllogictest files over the embedded API, Hazelcast's protocol and PostgreSQL's
//! protocol; SQLite's public tests; TPC-H compared with DuckDB; and the examples of the SQL
//! reference. Each file starts with an empty member.
//!
//! Each file is a test for each door: `cargo test -p filbert --test sql -- postgres_dates` runs the
//! tests of one file.
//!
//! The expectations come from the SQL standard and from Hazelcast's documentation. The SQL
//! reference documents intentional differences. `values.rs` describes the text form of values.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panics and tell figures"
)]

mod database;
mod files;
mod limits;
mod postgres;
mod reference;
mod sqlite;
mod tpch;
mod values;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// The tests of the other modules, by name.
const OTHERS: [(&str, fn()); 9] = [
    (
        "limits::statements_beyond_a_limit_are_refused",
        limits::statements_beyond_a_limit_are_refused_and_the_member_goes_on,
    ),
    ("limits::large_statements_are_answered", limits::large_statements_within_the_limits_are_answered),
    ("limits::ten_thousand_parameters", limits::as_many_parameters_as_in_postgresql_are_taken_and_one_more_is_not),
    ("limits::unreadable_row", limits::a_row_that_cannot_be_read_is_named_by_its_key),
    ("limits::join_and_sort", limits::a_join_that_does_not_fit_is_an_error_and_sorting_goes_to_disk),
    ("limits::dropped_cursors", limits::cursors_that_are_dropped_cost_nothing_and_hold_nobody_up),
    ("reference::examples", reference::every_example_of_the_reference_is_as_it_says),
    ("sqlite::queries", sqlite::queries_give_the_rows_that_sqlite_gives),
    ("tpch::queries", tpch::tpch_gives_the_rows_that_duckdb_gives),
];

fn main() -> ExitCode {
    let others = OTHERS.map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    let trials = files::trials().into_iter().chain(others).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

//! Statements in Hazelcast's dialect from a hostile client.
#![no_main]

mod sql;

use filbert_grid::query::Dialect;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sql::read(data, Dialect::Hazelcast));

//! Entries of a log from a hostile member: each entry that was read is written again without a
//! change.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| filbert_cluster::fuzz::read_entry(data));

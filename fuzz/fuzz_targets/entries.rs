//! Entries of a log from a member that wants harm: what is read is written again alike.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| filbert_cluster::fuzz::read_entry(data));

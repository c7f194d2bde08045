//! Messages of a member that wants harm: requests, answers and replies. What is read is written
//! again alike.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| filbert_cluster::fuzz::read_message(data));

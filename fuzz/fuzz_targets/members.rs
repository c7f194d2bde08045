//! Messages of a hostile member: requests, answers and replies. Each message that was read is
//! written again without a change.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| filbert_cluster::fuzz::read_message(data));

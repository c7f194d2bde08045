//! Bytes of a peer that says that it is a member and wants harm: frames, and messages of the
//! handshake. What is read is written again alike.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| filbert_links::fuzz::read_everything(data));

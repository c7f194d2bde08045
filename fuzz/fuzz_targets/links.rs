//! Bytes of a hostile peer that claims to be a member: frames, and messages of the handshake. Each
//! of them that was read is written again without a change.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| filbert_links::fuzz::read_everything(data));

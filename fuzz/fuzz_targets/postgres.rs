//! Bytes of a hostile PostgreSQL client: messages, the first message, values of every type as text
//! and in binary, rows of COPY, statements of the protocol, SCRAM.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| filbert_postgres::fuzz::read_everything(data));

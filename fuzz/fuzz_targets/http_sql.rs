//! Bodies of `POST /_sql` from a hostile client: as JSON, as the values and rows of a valid body,
//! and compressed.
#![no_main]

use filbert_http::probe::{count_values, rewritten_args, unpacked};
use libfuzzer_sys::fuzz_target;

const UNPACKED_BYTES_MAX: usize = 1 << 16;

fuzz_target!(|data: &[u8]| {
    parse(data);
    parse(&within(b"{\"stmt\": \"s\", \"args\": [", data, b"]}"));
    parse(&within(b"{\"stmt\": \"s\", \"bulk_args\": [[1, \"a\"], ", data, b"]}"));
    if let Some(body) = unpacked(data, UNPACKED_BYTES_MAX) {
        assert!(body.len() <= UNPACKED_BYTES_MAX, "more than allowed is unpacked");
        parse(&body);
    }
});

fn within(before: &[u8], data: &[u8], behind: &[u8]) -> Vec<u8> {
    [before, data, behind].concat()
}

/// The parsed values, written as JSON again, must have the same number of values.
fn parse(body: &[u8]) {
    let count = count_values(body);
    if let Some(args) = rewritten_args(body) {
        let values: Vec<serde_json::Value> = serde_json::from_slice(&args).expect("values are written as JSON");
        assert_eq!(values.len(), count, "values are lost");
    }
}

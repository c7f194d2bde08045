//! `CardinalityEstimator`: an estimate of the number of distinct added values.

use super::service;

service! {
    CardinalityEstimator = 0x19;

    add = 0x01, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, hash: i64 }
        response {}
    }

    estimate = 0x02, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str }
        response { response: i64 }
    }
}

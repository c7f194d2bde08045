//! `FlakeIdGenerator`: unique numbers in batches, ordered by time.

use super::service;

service! {
    FlakeIdGenerator = 0x1c;

    new_id_batch = 0x01, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, batch_size: i32 }
        response { base: i64, increment: i64, batch_size: i32 }
    }
}

//! `PNCounter`: a counter that every replica can change.

use super::service;

service! {
    PNCounter = 0x1d;

    get = 0x01, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, replica_timestamps: Vec<(Uuid, i64)>, target_replica_uuid: Uuid }
        response { value: i64, replica_timestamps: Vec<(Uuid, i64)>, replica_count: i32 }
    }

    add = 0x02, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, delta: i64, get_before_update: bool, replica_timestamps: Vec<(Uuid, i64)>,
            target_replica_uuid: Uuid,
        }
        response { value: i64, replica_timestamps: Vec<(Uuid, i64)>, replica_count: i32 }
    }

    get_configured_replica_count = 0x03, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str }
        response { response: i32 }
    }
}

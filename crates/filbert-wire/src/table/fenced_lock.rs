//! `FencedLock`: locks of the CP subsystem with fencing tokens.

use super::service;

service! {
    FencedLock = 0x07;

    lock = 0x01, since 2.0, retryable: true, partition: None {
        request<'a> {
            group_id: RaftGroupId<'a>, name: &'a str, session_id: i64, thread_id: i64, invocation_uid: Uuid,
        }
        response { response: i64 }
    }

    try_lock = 0x02, since 2.0, retryable: true, partition: None {
        request<'a> {
            group_id: RaftGroupId<'a>, name: &'a str, session_id: i64, thread_id: i64, invocation_uid: Uuid,
            timeout_ms: i64,
        }
        response { response: i64 }
    }

    unlock = 0x03, since 2.0, retryable: true, partition: None {
        request<'a> {
            group_id: RaftGroupId<'a>, name: &'a str, session_id: i64, thread_id: i64, invocation_uid: Uuid,
        }
        response { response: bool }
    }

    get_lock_ownership = 0x04, since 2.0, retryable: true, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str }
        response { fence: i64, lock_count: i32, session_id: i64, thread_id: i64 }
    }
}

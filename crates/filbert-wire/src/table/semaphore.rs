//! `Semaphore`: semaphores of the CP subsystem.

use super::service;

service! {
    Semaphore = 0x0c;

    init = 0x01, since 2.0, retryable: true, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str, permits: i32 }
        response { response: bool }
    }

    acquire = 0x02, since 2.0, retryable: true, partition: None {
        request<'a> {
            group_id: RaftGroupId<'a>, name: &'a str, session_id: i64, thread_id: i64, invocation_uid: Uuid,
            permits: i32, timeout_ms: i64,
        }
        response { response: bool }
    }

    release = 0x03, since 2.0, retryable: true, partition: None {
        request<'a> {
            group_id: RaftGroupId<'a>, name: &'a str, session_id: i64, thread_id: i64, invocation_uid: Uuid,
            permits: i32,
        }
        response { response: bool }
    }

    drain = 0x04, since 2.0, retryable: true, partition: None {
        request<'a> {
            group_id: RaftGroupId<'a>, name: &'a str, session_id: i64, thread_id: i64, invocation_uid: Uuid,
        }
        response { response: i32 }
    }

    change = 0x05, since 2.0, retryable: true, partition: None {
        request<'a> {
            group_id: RaftGroupId<'a>, name: &'a str, session_id: i64, thread_id: i64, invocation_uid: Uuid,
            permits: i32,
        }
        response { response: bool }
    }

    available_permits = 0x06, since 2.0, retryable: true, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str }
        response { response: i32 }
    }

    get_semaphore_type = 0x07, since 2.0, retryable: true, partition: None {
        request<'a> { proxy_name: &'a str }
        response { response: bool }
    }
}

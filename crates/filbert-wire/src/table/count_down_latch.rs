//! `CountDownLatch`: latches of the CP subsystem.

use super::service;

service! {
    CountDownLatch = 0x0b;

    try_set_count = 0x01, since 2.0, retryable: true, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str, count: i32 }
        response { response: bool }
    }

    await_zero "await" = 0x02, since 2.0, retryable: true, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str, invocation_uid: Uuid, timeout_ms: i64 }
        response { response: bool }
    }

    count_down = 0x03, since 2.0, retryable: true, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str, invocation_uid: Uuid, expected_round: i32 }
        response {}
    }

    get_count = 0x04, since 2.0, retryable: true, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str }
        response { response: i32 }
    }

    get_round = 0x05, since 2.0, retryable: true, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str }
        response { response: i32 }
    }
}

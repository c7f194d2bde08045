//! `CPSession`: client sessions. The end of a session releases the locks and permits of its client.

use super::service;

service! {
    CPSession = 0x1f;

    create_session = 0x01, since 2.0, retryable: true, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, endpoint_name: &'a str }
        response { session_id: i64, ttl_millis: i64, heartbeat_millis: i64 }
    }

    close_session = 0x02, since 2.0, retryable: true, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, session_id: i64 }
        response { response: bool }
    }

    heartbeat_session = 0x03, since 2.0, retryable: true, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, session_id: i64 }
        response {}
    }

    generate_thread_id = 0x04, since 2.0, retryable: true, partition: None {
        request<'a> { group_id: RaftGroupId<'a> }
        response { response: i64 }
    }
}

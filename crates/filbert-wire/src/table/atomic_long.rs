//! `AtomicLong`: a number of the CP subsystem, changed atomically.

use super::service;

service! {
    AtomicLong = 0x09;

    apply = 0x01, since 2.0, retryable: false, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str, function: Data<'a> }
        response<'a> { response: Option<Data<'a>> }
    }

    alter = 0x02, since 2.0, retryable: false, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str, function: Data<'a>, return_value_type: i32 }
        response { response: i64 }
    }

    add_and_get = 0x03, since 2.0, retryable: false, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str, delta: i64 }
        response { response: i64 }
    }

    compare_and_set = 0x04, since 2.0, retryable: false, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str, expected: i64, updated: i64 }
        response { response: bool }
    }

    get = 0x05, since 2.0, retryable: true, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str }
        response { response: i64 }
    }

    get_and_add = 0x06, since 2.0, retryable: false, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str, delta: i64 }
        response { response: i64 }
    }

    get_and_set = 0x07, since 2.0, retryable: false, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str, new_value: i64 }
        response { response: i64 }
    }
}

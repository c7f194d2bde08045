//! `AtomicRef`: a reference of the CP subsystem, changed atomically.

use super::service;

service! {
    AtomicRef = 0x0a;

    apply = 0x01, since 2.0, retryable: false, partition: None {
        request<'a> {
            group_id: RaftGroupId<'a>, name: &'a str, function: Data<'a>, return_value_type: i32, alter: bool,
        }
        response<'a> { response: Option<Data<'a>> }
    }

    compare_and_set = 0x02, since 2.0, retryable: false, partition: None {
        request<'a> {
            group_id: RaftGroupId<'a>, name: &'a str, old_value: Option<Data<'a>>, new_value: Option<Data<'a>>,
        }
        response { response: bool }
    }

    contains = 0x03, since 2.0, retryable: true, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str, value: Option<Data<'a>> }
        response { response: bool }
    }

    get = 0x04, since 2.0, retryable: true, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str }
        response<'a> { response: Option<Data<'a>> }
    }

    set = 0x05, since 2.0, retryable: false, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str, new_value: Option<Data<'a>>, return_old_value: bool }
        response<'a> { response: Option<Data<'a>> }
    }
}

//! `CPMap`: a small linearizable map of the CP subsystem.

use super::service;

service! {
    CPMap = 0x23;

    get = 0x01, since 2.7, retryable: false, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str, key: Data<'a> }
        response<'a> { response: Option<Data<'a>> }
    }

    put = 0x02, since 2.7, retryable: false, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str, key: Data<'a>, value: Data<'a> }
        response<'a> { response: Option<Data<'a>> }
    }

    set = 0x03, since 2.7, retryable: false, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str, key: Data<'a>, value: Data<'a> }
        response<'a> { response: Option<Data<'a>> }
    }

    remove = 0x04, since 2.7, retryable: false, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str, key: Data<'a> }
        response<'a> { response: Option<Data<'a>> }
    }

    delete = 0x05, since 2.7, retryable: false, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str, key: Data<'a> }
        response<'a> { response: Option<Data<'a>> }
    }

    compare_and_set = 0x06, since 2.7, retryable: false, partition: None {
        request<'a> {
            group_id: RaftGroupId<'a>, name: &'a str, key: Data<'a>, expected_value: Data<'a>, new_value: Data<'a>,
        }
        response { response: bool }
    }

    put_if_absent = 0x07, since 2.7, retryable: false, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, name: &'a str, key: Data<'a>, value: Data<'a> }
        response<'a> { response: Option<Data<'a>> }
    }
}

//! `Queue`: a distributed queue, stored in one partition.

use super::service;

service! {
    Queue = 0x03;

    offer = 0x01, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, value: Data<'a>, timeout_millis: i64 }
        response { response: bool }
    }

    put = 0x02, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, value: Data<'a> }
        response {}
    }

    size = 0x03, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str }
        response { response: i32 }
    }

    remove = 0x04, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, value: Data<'a> }
        response { response: bool }
    }

    poll = 0x05, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, timeout_millis: i64 }
        response<'a> { response: Option<Data<'a>> }
    }

    take = 0x06, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str }
        response<'a> { response: Option<Data<'a>> }
    }

    peek = 0x07, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str }
        response<'a> { response: Option<Data<'a>> }
    }

    iterator = 0x08, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str }
        response<'a> { response: Vec<Data<'a>> }
    }

    drain_to = 0x09, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str }
        response<'a> { response: Vec<Data<'a>> }
    }

    drain_to_max_size = 0x0a, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, max_size: i32 }
        response<'a> { response: Vec<Data<'a>> }
    }

    contains = 0x0b, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, value: Data<'a> }
        response { response: bool }
    }

    contains_all = 0x0c, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, data_list: Vec<Data<'a>> }
        response { response: bool }
    }

    compare_and_remove_all = 0x0d, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, data_list: Vec<Data<'a>> }
        response { response: bool }
    }

    compare_and_retain_all = 0x0e, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, data_list: Vec<Data<'a>> }
        response { response: bool }
    }

    clear = 0x0f, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str }
        response {}
    }

    add_all = 0x10, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, data_list: Vec<Data<'a>> }
        response { response: bool }
    }

    add_listener = 0x11, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, include_value: bool, local_only: bool }
        response { response: Uuid }
        event ItemEvent = 0x02, since 2.0 <'a> { item: Option<Data<'a>>, uuid: Uuid, event_type: i32 }
    }

    remove_listener = 0x12, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, registration_id: Uuid }
        response { response: bool }
    }

    remaining_capacity = 0x13, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str }
        response { response: i32 }
    }

    is_empty = 0x14, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str }
        response { response: bool }
    }
}

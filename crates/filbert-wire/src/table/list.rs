//! `List`: a distributed list, stored in one partition.

use super::service;

service! {
    List = 0x05;

    size = 0x01, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str }
        response { response: i32 }
    }

    contains = 0x02, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str, value: Data<'a> }
        response { response: bool }
    }

    contains_all = 0x03, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str, values: Vec<Data<'a>> }
        response { response: bool }
    }

    add = 0x04, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, value: Data<'a> }
        response { response: bool }
    }

    remove = 0x05, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, value: Data<'a> }
        response { response: bool }
    }

    add_all = 0x06, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, value_list: Vec<Data<'a>> }
        response { response: bool }
    }

    compare_and_remove_all = 0x07, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, values: Vec<Data<'a>> }
        response { response: bool }
    }

    compare_and_retain_all = 0x08, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, values: Vec<Data<'a>> }
        response { response: bool }
    }

    clear = 0x09, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str }
        response {}
    }

    get_all = 0x0a, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str }
        response<'a> { response: Vec<Data<'a>> }
    }

    add_listener = 0x0b, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, include_value: bool, local_only: bool }
        response { response: Uuid }
        event ItemEvent = 0x02, since 2.0 <'a> { item: Option<Data<'a>>, uuid: Uuid, event_type: i32 }
    }

    remove_listener = 0x0c, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str, registration_id: Uuid }
        response { response: bool }
    }

    is_empty = 0x0d, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str }
        response { response: bool }
    }

    add_all_with_index = 0x0e, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, index: i32, value_list: Vec<Data<'a>> }
        response { response: bool }
    }

    get = 0x0f, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str, index: i32 }
        response<'a> { response: Option<Data<'a>> }
    }

    set = 0x10, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, index: i32, value: Data<'a> }
        response<'a> { response: Option<Data<'a>> }
    }

    add_with_index = 0x11, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, index: i32, value: Data<'a> }
        response {}
    }

    remove_with_index = 0x12, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, index: i32 }
        response<'a> { response: Option<Data<'a>> }
    }

    last_index_of = 0x13, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str, value: Data<'a> }
        response { response: i32 }
    }

    index_of = 0x14, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str, value: Data<'a> }
        response { response: i32 }
    }

    sub = 0x15, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str, from: i32, to: i32 }
        response<'a> { response: Vec<Data<'a>> }
    }

    iterator = 0x16, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str }
        response<'a> { response: Vec<Data<'a>> }
    }

    list_iterator = 0x17, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str, index: i32 }
        response<'a> { response: Vec<Data<'a>> }
    }
}

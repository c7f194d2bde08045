//! `MultiMap`: a map with several values for a key.

use super::service;

service! {
    MultiMap = 0x02;

    put = 0x01, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, value: Data<'a>, thread_id: i64 }
        response { response: bool }
    }

    get = 0x02, since 2.0, retryable: true, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, thread_id: i64 }
        response<'a> { response: Vec<Data<'a>> }
    }

    remove = 0x03, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, thread_id: i64 }
        response<'a> { response: Vec<Data<'a>> }
    }

    key_set = 0x04, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str }
        response<'a> { response: Vec<Data<'a>> }
    }

    values = 0x05, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str }
        response<'a> { response: Vec<Data<'a>> }
    }

    entry_set = 0x06, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str }
        response<'a> { response: Vec<(Data<'a>, Data<'a>)> }
    }

    contains_key = 0x07, since 2.0, retryable: true, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, thread_id: i64 }
        response { response: bool }
    }

    contains_value = 0x08, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, value: Data<'a> }
        response { response: bool }
    }

    contains_entry = 0x09, since 2.0, retryable: true, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, value: Data<'a>, thread_id: i64 }
        response { response: bool }
    }

    size = 0x0a, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str }
        response { response: i32 }
    }

    clear = 0x0b, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str }
        response {}
    }

    value_count = 0x0c, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, key: Data<'a>, thread_id: i64 }
        response { response: i32 }
    }

    add_entry_listener_to_key = 0x0d, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, key: Data<'a>, include_value: bool, local_only: bool }
        response { response: Uuid }
        event EntryEvent = 0x02, since 2.0 <'a> {
            key: Option<Data<'a>>, value: Option<Data<'a>>, old_value: Option<Data<'a>>,
            merging_value: Option<Data<'a>>, event_type: i32, uuid: Uuid, number_of_affected_entries: i32,
        }
    }

    add_entry_listener = 0x0e, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, include_value: bool, local_only: bool }
        response { response: Uuid }
        event EntryEvent = 0x02, since 2.0 <'a> {
            key: Option<Data<'a>>, value: Option<Data<'a>>, old_value: Option<Data<'a>>,
            merging_value: Option<Data<'a>>, event_type: i32, uuid: Uuid, number_of_affected_entries: i32,
        }
    }

    remove_entry_listener = 0x0f, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, registration_id: Uuid }
        response { response: bool }
    }

    lock = 0x10, since 2.0, retryable: true, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, thread_id: i64, ttl: i64, reference_id: i64 }
        response {}
    }

    try_lock = 0x11, since 2.0, retryable: true, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, thread_id: i64, lease: i64, timeout: i64, reference_id: i64 }
        response { response: bool }
    }

    is_locked = 0x12, since 2.0, retryable: true, partition: Key {
        request<'a> { name: &'a str, key: Data<'a> }
        response { response: bool }
    }

    unlock = 0x13, since 2.0, retryable: true, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, thread_id: i64, reference_id: i64 }
        response {}
    }

    force_unlock = 0x14, since 2.0, retryable: true, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, reference_id: i64 }
        response {}
    }

    remove_entry = 0x15, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, value: Data<'a>, thread_id: i64 }
        response { response: bool }
    }

    delete = 0x16, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, thread_id: i64 }
        response {}
    }

    put_all = 0x17, since 2.1, retryable: false, partition: AnyKey {
        request<'a> { name: &'a str, entries: Vec<(Data<'a>, Vec<Data<'a>>)> }
        response {}
    }
}

//! `ReplicatedMap`: a map with a full copy on every member.

use super::service;

service! {
    ReplicatedMap = 0x0d;

    put = 0x01, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, value: Data<'a>, ttl: i64 }
        response<'a> { response: Option<Data<'a>> }
    }

    size = 0x02, since 2.0, retryable: true, partition: Random {
        request<'a> { name: &'a str }
        response { response: i32 }
    }

    is_empty = 0x03, since 2.0, retryable: true, partition: Random {
        request<'a> { name: &'a str }
        response { response: bool }
    }

    contains_key = 0x04, since 2.0, retryable: true, partition: Key {
        request<'a> { name: &'a str, key: Data<'a> }
        response { response: bool }
    }

    contains_value = 0x05, since 2.0, retryable: true, partition: Random {
        request<'a> { name: &'a str, value: Data<'a> }
        response { response: bool }
    }

    get = 0x06, since 2.0, retryable: true, partition: Key {
        request<'a> { name: &'a str, key: Data<'a> }
        response<'a> { response: Option<Data<'a>> }
    }

    remove = 0x07, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a> }
        response<'a> { response: Option<Data<'a>> }
    }

    put_all = 0x08, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, entries: Vec<(Data<'a>, Data<'a>)> }
        response {}
    }

    clear = 0x09, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str }
        response {}
    }

    add_entry_listener_to_key_with_predicate = 0x0a, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, key: Data<'a>, predicate: Data<'a>, local_only: bool }
        response { response: Uuid }
        event EntryEvent = 0x02, since 2.0 <'a> {
            key: Option<Data<'a>>, value: Option<Data<'a>>, old_value: Option<Data<'a>>,
            merging_value: Option<Data<'a>>, event_type: i32, uuid: Uuid, number_of_affected_entries: i32,
        }
    }

    add_entry_listener_with_predicate = 0x0b, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, predicate: Data<'a>, local_only: bool }
        response { response: Uuid }
        event EntryEvent = 0x02, since 2.0 <'a> {
            key: Option<Data<'a>>, value: Option<Data<'a>>, old_value: Option<Data<'a>>,
            merging_value: Option<Data<'a>>, event_type: i32, uuid: Uuid, number_of_affected_entries: i32,
        }
    }

    add_entry_listener_to_key = 0x0c, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, key: Data<'a>, local_only: bool }
        response { response: Uuid }
        event EntryEvent = 0x02, since 2.0 <'a> {
            key: Option<Data<'a>>, value: Option<Data<'a>>, old_value: Option<Data<'a>>,
            merging_value: Option<Data<'a>>, event_type: i32, uuid: Uuid, number_of_affected_entries: i32,
        }
    }

    add_entry_listener = 0x0d, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, local_only: bool }
        response { response: Uuid }
        event EntryEvent = 0x02, since 2.0 <'a> {
            key: Option<Data<'a>>, value: Option<Data<'a>>, old_value: Option<Data<'a>>,
            merging_value: Option<Data<'a>>, event_type: i32, uuid: Uuid, number_of_affected_entries: i32,
        }
    }

    remove_entry_listener = 0x0e, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, registration_id: Uuid }
        response { response: bool }
    }

    key_set = 0x0f, since 2.0, retryable: true, partition: Random {
        request<'a> { name: &'a str }
        response<'a> { response: Vec<Data<'a>> }
    }

    values = 0x10, since 2.0, retryable: true, partition: Random {
        request<'a> { name: &'a str }
        response<'a> { response: Vec<Data<'a>> }
    }

    entry_set = 0x11, since 2.0, retryable: true, partition: Random {
        request<'a> { name: &'a str }
        response<'a> { response: Vec<(Data<'a>, Data<'a>)> }
    }

    add_near_cache_entry_listener = 0x12, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, include_value: bool, local_only: bool }
        response { response: Uuid }
        event EntryEvent = 0x02, since 2.0 <'a> {
            key: Option<Data<'a>>, value: Option<Data<'a>>, old_value: Option<Data<'a>>,
            merging_value: Option<Data<'a>>, event_type: i32, uuid: Uuid, number_of_affected_entries: i32,
        }
    }

    put_all_with_metadata = 0x13, since 2.7, retryable: false, partition: AnyKey {
        request<'a> { name: &'a str, entries: Vec<ReplicatedMapEntryViewHolder<'a>>, partition_id: i32 }
        response {}
    }

    fetch_entry_views = 0x14, since 2.7, retryable: true, partition: None {
        request<'a> { name: &'a str, cursor_id: Uuid, new_iteration: bool, partition_id: i32, batch_size: i32 }
        response<'a> { cursor_id: Uuid, entry_views: Vec<ReplicatedMapEntryViewHolder<'a>> }
    }

    end_entry_view_iteration = 0x15, since 2.7, retryable: true, partition: None {
        request<'a> { name: &'a str, cursor_id: Option<Uuid> }
        response {}
    }
}

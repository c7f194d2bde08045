//! `Cache`: JCache caches.

use super::service;

service! {
    Cache = 0x13;

    add_entry_listener = 0x01, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, local_only: bool }
        response { response: Uuid }
        event CacheEvent = 0x02, since 2.0 <'a> { kind: i32, keys: Vec<CacheEventData<'a>>, completion_id: i32 }
    }

    clear = 0x02, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str }
        response {}
    }

    remove_all_keys = 0x03, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, keys: Vec<Data<'a>>, completion_id: i32 }
        response {}
    }

    remove_all = 0x04, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, completion_id: i32 }
        response {}
    }

    contains_key = 0x05, since 2.0, retryable: true, partition: Key {
        request<'a> { name: &'a str, key: Data<'a> }
        response { response: bool }
    }

    create_config = 0x06, since 2.0, retryable: true, partition: Name {
        request<'a> { cache_config: CacheConfigHolder<'a>, create_also_on_others: bool }
        response<'a> { response: Option<CacheConfigHolder<'a>> }
    }

    destroy = 0x07, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str }
        response {}
    }

    entry_processor = 0x08, since 2.0, retryable: false, partition: Key {
        request<'a> {
            name: &'a str, key: Data<'a>, entry_processor: Data<'a>, arguments: Vec<Data<'a>>, completion_id: i32,
        }
        response<'a> { response: Option<Data<'a>> }
    }

    get_all = 0x09, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, keys: Vec<Data<'a>>, expiry_policy: Option<Data<'a>> }
        response<'a> { response: Vec<(Data<'a>, Data<'a>)> }
    }

    get_and_remove = 0x0a, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, completion_id: i32 }
        response<'a> { response: Option<Data<'a>> }
    }

    get_and_replace = 0x0b, since 2.0, retryable: false, partition: Key {
        request<'a> {
            name: &'a str, key: Data<'a>, value: Data<'a>, expiry_policy: Option<Data<'a>>, completion_id: i32,
        }
        response<'a> { response: Option<Data<'a>> }
    }

    get_config = 0x0c, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str, simple_name: &'a str }
        response<'a> { response: Option<CacheConfigHolder<'a>> }
    }

    get = 0x0d, since 2.0, retryable: true, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, expiry_policy: Option<Data<'a>> }
        response<'a> { response: Option<Data<'a>> }
    }

    iterate = 0x0e, since 2.0, retryable: false, partition: PartitionId {
        request<'a> { name: &'a str, iteration_pointers: Vec<(i32, i32)>, batch: i32 }
        response<'a> { iteration_pointers: Vec<(i32, i32)>, keys: Vec<Data<'a>> }
    }

    listener_registration = 0x0f, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, listener_config: Data<'a>, should_register: bool, uuid: Uuid }
        response {}
    }

    load_all = 0x10, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, keys: Vec<Data<'a>>, replace_existing_values: bool }
        response {}
    }

    management_config = 0x11, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, is_stat: bool, enabled: bool, uuid: Uuid }
        response {}
    }

    put_if_absent = 0x12, since 2.0, retryable: false, partition: Key {
        request<'a> {
            name: &'a str, key: Data<'a>, value: Data<'a>, expiry_policy: Option<Data<'a>>, completion_id: i32,
        }
        response { response: bool }
    }

    put = 0x13, since 2.0, retryable: false, partition: Key {
        request<'a> {
            name: &'a str, key: Data<'a>, value: Data<'a>, expiry_policy: Option<Data<'a>>, get: bool,
            completion_id: i32,
        }
        response<'a> { response: Option<Data<'a>> }
    }

    remove_entry_listener = 0x14, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, registration_id: Uuid }
        response { response: bool }
    }

    remove_invalidation_listener = 0x15, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, registration_id: Uuid }
        response { response: bool }
    }

    remove = 0x16, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, current_value: Option<Data<'a>>, completion_id: i32 }
        response { response: bool }
    }

    replace = 0x17, since 2.0, retryable: false, partition: Key {
        request<'a> {
            name: &'a str, key: Data<'a>, old_value: Option<Data<'a>>, new_value: Data<'a>,
            expiry_policy: Option<Data<'a>>, completion_id: i32,
        }
        response<'a> { response: Option<Data<'a>> }
    }

    size = 0x18, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str }
        response { response: i32 }
    }

    add_partition_lost_listener = 0x19, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, local_only: bool }
        response { response: Uuid }
        event CachePartitionLostEvent = 0x02, since 2.0 { partition_id: i32, uuid: Uuid }
    }

    remove_partition_lost_listener = 0x1a, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, registration_id: Uuid }
        response { response: bool }
    }

    put_all = 0x1b, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, entries: Vec<(Data<'a>, Data<'a>)>, expiry_policy: Option<Data<'a>>, completion_id: i32,
        }
        response {}
    }

    iterate_entries = 0x1c, since 2.0, retryable: true, partition: PartitionId {
        request<'a> { name: &'a str, iteration_pointers: Vec<(i32, i32)>, batch: i32 }
        response<'a> { iteration_pointers: Vec<(i32, i32)>, entries: Vec<(Data<'a>, Data<'a>)> }
    }

    add_near_cache_invalidation_listener = 0x1d, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, local_only: bool }
        response { response: Uuid }
        event CacheInvalidationEvent = 0x02, since 2.0 <'a> {
            name: &'a str, key: Option<Data<'a>>, source_uuid: Option<Uuid>, partition_uuid: Uuid, sequence: i64,
        }
        event CacheBatchInvalidationEvent = 0x03, since 2.0 <'a> {
            name: &'a str, keys: Vec<Data<'a>>, source_uuids: Vec<Uuid>, partition_uuids: Vec<Uuid>,
            sequences: Vec<i64>,
        }
    }

    fetch_near_cache_invalidation_metadata = 0x1e, since 2.0, retryable: false, partition: None {
        request<'a> { names: Vec<&'a str>, uuid: Uuid }
        response<'a> {
            name_partition_sequence_list: Vec<(&'a str, Vec<(i32, i64)>)>, partition_uuid_list: Vec<(i32, Uuid)>,
        }
    }

    event_journal_subscribe = 0x1f, since 2.0, retryable: true, partition: PartitionId {
        request<'a> { name: &'a str }
        response { oldest_sequence: i64, newest_sequence: i64 }
    }

    event_journal_read = 0x20, since 2.0, retryable: true, partition: PartitionId {
        request<'a> {
            name: &'a str, start_sequence: i64, min_size: i32, max_size: i32, predicate: Option<Data<'a>>,
            projection: Option<Data<'a>>,
        }
        response<'a> { read_count: i32, items: Vec<Data<'a>>, item_seqs: Option<Vec<i64>>, next_seq: i64 }
    }

    set_expiry_policy = 0x21, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, keys: Vec<Data<'a>>, expiry_policy: Data<'a> }
        response { response: bool }
    }
}

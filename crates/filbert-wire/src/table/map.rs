//! `Map`: the distributed map.

use super::service;

service! {
    Map = 0x01;

    put = 0x01, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, value: Data<'a>, thread_id: i64, ttl: i64 }
        response<'a> { response: Option<Data<'a>> }
    }

    get = 0x02, since 2.0, retryable: true, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, thread_id: i64 }
        response<'a> { response: Option<Data<'a>> }
    }

    remove = 0x03, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, thread_id: i64 }
        response<'a> { response: Option<Data<'a>> }
    }

    replace = 0x04, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, value: Data<'a>, thread_id: i64 }
        response<'a> { response: Option<Data<'a>> }
    }

    replace_if_same = 0x05, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, test_value: Data<'a>, value: Data<'a>, thread_id: i64 }
        response { response: bool }
    }

    contains_key = 0x06, since 2.0, retryable: true, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, thread_id: i64 }
        response { response: bool }
    }

    contains_value = 0x07, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, value: Data<'a> }
        response { response: bool }
    }

    remove_if_same = 0x08, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, value: Data<'a>, thread_id: i64 }
        response { response: bool }
    }

    delete = 0x09, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, thread_id: i64 }
        response { #[since(2.7)] response: bool }
    }

    flush = 0x0a, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str }
        response {}
    }

    try_remove = 0x0b, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, thread_id: i64, timeout: i64 }
        response { response: bool }
    }

    try_put = 0x0c, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, value: Data<'a>, thread_id: i64, timeout: i64 }
        response { response: bool }
    }

    put_transient = 0x0d, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, value: Data<'a>, thread_id: i64, ttl: i64 }
        response {}
    }

    put_if_absent = 0x0e, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, value: Data<'a>, thread_id: i64, ttl: i64 }
        response<'a> { response: Option<Data<'a>> }
    }

    set = 0x0f, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, value: Data<'a>, thread_id: i64, ttl: i64 }
        response {}
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

    add_interceptor = 0x14, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, interceptor: Data<'a> }
        response<'a> { response: &'a str }
    }

    remove_interceptor = 0x15, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, id: &'a str }
        response { response: bool }
    }

    add_entry_listener_to_key_with_predicate = 0x16, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, key: Data<'a>, predicate: Data<'a>, include_value: bool, listener_flags: i32,
            local_only: bool,
        }
        response { response: Uuid }
        event EntryEvent = 0x02, since 2.0 <'a> {
            key: Option<Data<'a>>, value: Option<Data<'a>>, old_value: Option<Data<'a>>,
            merging_value: Option<Data<'a>>, event_type: i32, uuid: Uuid, number_of_affected_entries: i32,
        }
    }

    add_entry_listener_with_predicate = 0x17, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, predicate: Data<'a>, include_value: bool, listener_flags: i32, local_only: bool }
        response { response: Uuid }
        event EntryEvent = 0x02, since 2.0 <'a> {
            key: Option<Data<'a>>, value: Option<Data<'a>>, old_value: Option<Data<'a>>,
            merging_value: Option<Data<'a>>, event_type: i32, uuid: Uuid, number_of_affected_entries: i32,
        }
    }

    add_entry_listener_to_key = 0x18, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, key: Data<'a>, include_value: bool, listener_flags: i32, local_only: bool }
        response { response: Uuid }
        event EntryEvent = 0x02, since 2.0 <'a> {
            key: Option<Data<'a>>, value: Option<Data<'a>>, old_value: Option<Data<'a>>,
            merging_value: Option<Data<'a>>, event_type: i32, uuid: Uuid, number_of_affected_entries: i32,
        }
    }

    add_entry_listener = 0x19, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, include_value: bool, listener_flags: i32, local_only: bool }
        response { response: Uuid }
        event EntryEvent = 0x02, since 2.0 <'a> {
            key: Option<Data<'a>>, value: Option<Data<'a>>, old_value: Option<Data<'a>>,
            merging_value: Option<Data<'a>>, event_type: i32, uuid: Uuid, number_of_affected_entries: i32,
        }
    }

    remove_entry_listener = 0x1a, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, registration_id: Uuid }
        response { response: bool }
    }

    add_partition_lost_listener = 0x1b, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, local_only: bool }
        response { response: Uuid }
        event MapPartitionLostEvent = 0x02, since 2.0 { partition_id: i32, uuid: Uuid }
    }

    remove_partition_lost_listener = 0x1c, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, registration_id: Uuid }
        response { response: bool }
    }

    get_entry_view = 0x1d, since 2.0, retryable: true, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, thread_id: i64 }
        response<'a> { response: Option<SimpleEntryView<'a>>, max_idle: i64 }
    }

    evict = 0x1e, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, thread_id: i64 }
        response { response: bool }
    }

    evict_all = 0x1f, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str }
        response {}
    }

    load_all = 0x20, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, replace_existing_values: bool }
        response {}
    }

    load_given_keys = 0x21, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, keys: Vec<Data<'a>>, replace_existing_values: bool }
        response {}
    }

    key_set = 0x22, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str }
        response<'a> { response: Vec<Data<'a>> }
    }

    get_all = 0x23, since 2.0, retryable: false, partition: AnyKey {
        request<'a> { name: &'a str, keys: Vec<Data<'a>> }
        response<'a> { response: Vec<(Data<'a>, Data<'a>)> }
    }

    values = 0x24, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str }
        response<'a> { response: Vec<Data<'a>> }
    }

    entry_set = 0x25, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str }
        response<'a> { response: Vec<(Data<'a>, Data<'a>)> }
    }

    key_set_with_predicate = 0x26, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, predicate: Data<'a> }
        response<'a> { response: Vec<Data<'a>> }
    }

    values_with_predicate = 0x27, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, predicate: Data<'a> }
        response<'a> { response: Vec<Data<'a>> }
    }

    entries_with_predicate = 0x28, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, predicate: Data<'a> }
        response<'a> { response: Vec<(Data<'a>, Data<'a>)> }
    }

    add_index = 0x29, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, index_config: IndexConfig<'a> }
        response {}
    }

    size = 0x2a, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str }
        response { response: i32 }
    }

    is_empty = 0x2b, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str }
        response { response: bool }
    }

    put_all = 0x2c, since 2.0, retryable: false, partition: AnyKey {
        request<'a> { name: &'a str, entries: Vec<(Data<'a>, Data<'a>)>, #[since(2.1)] trigger_map_loader: bool }
        response {}
    }

    clear = 0x2d, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str }
        response {}
    }

    execute_on_key = 0x2e, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, entry_processor: Data<'a>, key: Data<'a>, thread_id: i64 }
        response<'a> { response: Option<Data<'a>> }
    }

    submit_to_key = 0x2f, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, entry_processor: Data<'a>, key: Data<'a>, thread_id: i64 }
        response<'a> { response: Option<Data<'a>> }
    }

    execute_on_all_keys = 0x30, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, entry_processor: Data<'a> }
        response<'a> { response: Vec<(Data<'a>, Data<'a>)> }
    }

    execute_with_predicate = 0x31, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, entry_processor: Data<'a>, predicate: Data<'a> }
        response<'a> { response: Vec<(Data<'a>, Data<'a>)> }
    }

    execute_on_keys = 0x32, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, entry_processor: Data<'a>, keys: Vec<Data<'a>> }
        response<'a> { response: Vec<(Data<'a>, Data<'a>)> }
    }

    force_unlock = 0x33, since 2.0, retryable: true, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, reference_id: i64 }
        response {}
    }

    key_set_with_paging_predicate = 0x34, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, predicate: PagingPredicateHolder<'a> }
        response<'a> { response: Vec<Data<'a>>, anchor_data_list: AnchorDataListHolder<'a> }
    }

    values_with_paging_predicate = 0x35, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, predicate: PagingPredicateHolder<'a> }
        response<'a> { response: Vec<Data<'a>>, anchor_data_list: AnchorDataListHolder<'a> }
    }

    entries_with_paging_predicate = 0x36, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, predicate: PagingPredicateHolder<'a> }
        response<'a> { response: Vec<(Data<'a>, Data<'a>)>, anchor_data_list: AnchorDataListHolder<'a> }
    }

    fetch_keys = 0x37, since 2.0, retryable: true, partition: PartitionId {
        request<'a> { name: &'a str, iteration_pointers: Vec<(i32, i32)>, batch: i32 }
        response<'a> { iteration_pointers: Vec<(i32, i32)>, keys: Vec<Data<'a>> }
    }

    fetch_entries = 0x38, since 2.0, retryable: true, partition: PartitionId {
        request<'a> { name: &'a str, iteration_pointers: Vec<(i32, i32)>, batch: i32 }
        response<'a> { iteration_pointers: Vec<(i32, i32)>, entries: Vec<(Data<'a>, Data<'a>)> }
    }

    aggregate = 0x39, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, aggregator: Data<'a> }
        response<'a> { response: Option<Data<'a>> }
    }

    aggregate_with_predicate = 0x3a, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, aggregator: Data<'a>, predicate: Data<'a> }
        response<'a> { response: Option<Data<'a>> }
    }

    project = 0x3b, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, projection: Data<'a> }
        response<'a> { response: Vec<Option<Data<'a>>> }
    }

    project_with_predicate = 0x3c, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, projection: Data<'a>, predicate: Data<'a> }
        response<'a> { response: Vec<Option<Data<'a>>> }
    }

    fetch_near_cache_invalidation_metadata = 0x3d, since 2.0, retryable: false, partition: None {
        request<'a> { names: Vec<&'a str>, uuid: Uuid }
        response<'a> {
            name_partition_sequence_list: Vec<(&'a str, Vec<(i32, i64)>)>, partition_uuid_list: Vec<(i32, Uuid)>,
        }
    }

    remove_all = 0x3e, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, predicate: Data<'a> }
        response {}
    }

    add_near_cache_invalidation_listener = 0x3f, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, listener_flags: i32, local_only: bool }
        response { response: Uuid }
        event IMapInvalidationEvent = 0x02, since 2.0 <'a> {
            key: Option<Data<'a>>, source_uuid: Uuid, partition_uuid: Uuid, sequence: i64,
        }
        event IMapBatchInvalidationEvent = 0x03, since 2.0 <'a> {
            keys: Vec<Data<'a>>, source_uuids: Vec<Uuid>, partition_uuids: Vec<Uuid>, sequences: Vec<i64>,
        }
    }

    fetch_with_query = 0x40, since 2.0, retryable: true, partition: PartitionId {
        request<'a> {
            name: &'a str, iteration_pointers: Vec<(i32, i32)>, batch: i32, projection: Data<'a>,
            predicate: Data<'a>,
        }
        response<'a> { results: Vec<Option<Data<'a>>>, iteration_pointers: Vec<(i32, i32)> }
    }

    event_journal_subscribe = 0x41, since 2.0, retryable: true, partition: PartitionId {
        request<'a> { name: &'a str }
        response { oldest_sequence: i64, newest_sequence: i64 }
    }

    event_journal_read = 0x42, since 2.0, retryable: true, partition: PartitionId {
        request<'a> {
            name: &'a str, start_sequence: i64, min_size: i32, max_size: i32, predicate: Option<Data<'a>>,
            projection: Option<Data<'a>>,
        }
        response<'a> { read_count: i32, items: Vec<Data<'a>>, item_seqs: Option<Vec<i64>>, next_seq: i64 }
    }

    set_ttl = 0x43, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, ttl: i64 }
        response { response: bool }
    }

    put_with_max_idle = 0x44, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, value: Data<'a>, thread_id: i64, ttl: i64, max_idle: i64 }
        response<'a> { response: Option<Data<'a>> }
    }

    put_transient_with_max_idle = 0x45, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, value: Data<'a>, thread_id: i64, ttl: i64, max_idle: i64 }
        response<'a> { response: Option<Data<'a>> }
    }

    put_if_absent_with_max_idle = 0x46, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, value: Data<'a>, thread_id: i64, ttl: i64, max_idle: i64 }
        response<'a> { response: Option<Data<'a>> }
    }

    set_with_max_idle = 0x47, since 2.0, retryable: false, partition: Key {
        request<'a> { name: &'a str, key: Data<'a>, value: Data<'a>, thread_id: i64, ttl: i64, max_idle: i64 }
        response<'a> { response: Option<Data<'a>> }
    }

    replace_all = 0x48, since 2.4, retryable: true, partition: PartitionId {
        request<'a> { name: &'a str, function: Data<'a> }
        response {}
    }

    put_all_with_metadata = 0x49, since 2.7, retryable: false, partition: AnyKey {
        request<'a> { name: &'a str, entries: Vec<SimpleEntryView<'a>> }
        response {}
    }
}

//! `ContinuousQuery`: query caches on clients, updated by members.

use super::service;

service! {
    ContinuousQuery = 0x16;

    publisher_create_with_value = 0x01, since 2.0, retryable: true, partition: None {
        request<'a> {
            map_name: &'a str, cache_name: &'a str, predicate: Data<'a>, batch_size: i32, buffer_size: i32,
            delay_seconds: i64, populate: bool, coalesce: bool,
        }
        response<'a> { response: Vec<(Data<'a>, Data<'a>)> }
    }

    publisher_create = 0x02, since 2.0, retryable: true, partition: None {
        request<'a> {
            map_name: &'a str, cache_name: &'a str, predicate: Data<'a>, batch_size: i32, buffer_size: i32,
            delay_seconds: i64, populate: bool, coalesce: bool,
        }
        response<'a> { response: Vec<Data<'a>> }
    }

    made_publishable = 0x03, since 2.0, retryable: true, partition: None {
        request<'a> { map_name: &'a str, cache_name: &'a str }
        response { response: bool }
    }

    add_listener = 0x04, since 2.0, retryable: false, partition: None {
        request<'a> { listener_name: &'a str, local_only: bool }
        response { response: Uuid }
        event QueryCacheSingleEvent = 0x02, since 2.0 <'a> { data: QueryCacheEventData<'a> }
        event QueryCacheBatchEvent = 0x03, since 2.0 <'a> {
            events: Vec<QueryCacheEventData<'a>>, source: &'a str, partition_id: i32,
        }
    }

    set_read_cursor = 0x05, since 2.0, retryable: false, partition: Sequence {
        request<'a> { map_name: &'a str, cache_name: &'a str, sequence: i64 }
        response { response: bool }
    }

    destroy_cache = 0x06, since 2.0, retryable: false, partition: None {
        request<'a> { map_name: &'a str, cache_name: &'a str }
        response { response: bool }
    }
}

//! Structures about entries: their views, events, predicates and vectors.

use super::structure;
use crate::Data;

structure! {
    CacheEventData<'a>, since 2.0 {
        name: &'a str, cache_event_type: i32, data_key: Option<Data<'a>>, data_value: Option<Data<'a>>,
        data_old_value: Option<Data<'a>>, old_value_available: bool,
    }
    QueryCacheEventData<'a>, since 2.0 {
        data_key: Option<Data<'a>>, data_new_value: Option<Data<'a>>, sequence: i64, event_type: i32,
        partition_id: i32, #[since(2.7)] map_name: &'a str,
    }
    SimpleEntryView<'a>, since 2.0 {
        key: Data<'a>, value: Data<'a>, cost: i64, creation_time: i64, expiration_time: i64, hits: i64,
        last_access_time: i64, last_stored_time: i64, last_update_time: i64, version: i64, ttl: i64, max_idle: i64,
    }
    AnchorDataListHolder<'a>, since 2.0 { anchor_page_list: Vec<i32>, anchor_data_list: Vec<(Data<'a>, Data<'a>)> }
    PagingPredicateHolder<'a>, since 2.0 {
        anchor_data_list_holder: AnchorDataListHolder<'a>, predicate_data: Option<Data<'a>>,
        comparator_data: Option<Data<'a>>, page_size: i32, page: i32, iteration_type_id: u8,
        partition_key_data: Option<Data<'a>>, #[since(2.5)] partition_keys_data: Option<Vec<Data<'a>>>,
    }
    ReplicatedMapEntryViewHolder<'a>, since 2.7 {
        key: Data<'a>, value: Data<'a>, creation_time: i64, hits: i64, last_access_time: i64, last_update_time: i64,
        ttl_millis: i64,
    }
    VectorPair<'a>, since 2.8 { name: &'a str, kind: u8, vector: Option<Vec<f32>> }
    VectorDocument<'a>, since 2.8 { value: Data<'a>, vectors: Vec<VectorPair<'a>> }
    VectorSearchOptions<'a>, since 2.8 {
        include_value: bool, include_vectors: bool, limit: i32, hints: Option<Vec<(&'a str, &'a str)>>,
    }
    VectorSearchResult<'a>, since 2.8 {
        key: Data<'a>, value: Option<Data<'a>>, score: f32, vectors: Option<Vec<VectorPair<'a>>>,
    }
}

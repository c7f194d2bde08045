//! Structures for the configuration of data structures in a running cluster.

use super::{WanReplicationRef, structure};
use crate::Data;

structure! {
    CacheSimpleEntryListenerConfig<'a>, since 2.0 {
        old_value_required: bool, synchronous: bool, cache_entry_listener_factory: Option<&'a str>,
        cache_entry_event_filter_factory: Option<&'a str>,
    }
    EventJournalConfig, since 2.0 { enabled: bool, capacity: i32, time_to_live_seconds: i32 }
    EvictionConfigHolder<'a>, since 2.0 {
        size: i32, max_size_policy: &'a str, eviction_policy: &'a str, comparator_class_name: Option<&'a str>,
        comparator: Option<Data<'a>>,
    }
    HotRestartConfig, since 2.0 { enabled: bool, fsync: bool }
    ListenerConfigHolder<'a>, since 2.0 {
        listener_type: i32, listener_implementation: Option<Data<'a>>, class_name: Option<&'a str>,
        include_value: bool, local: bool,
    }
    AttributeConfig<'a>, since 2.0 { name: &'a str, extractor_class_name: &'a str }
    IndexConfig<'a>, since 2.0 {
        name: Option<&'a str>, kind: i32, attributes: Vec<&'a str>,
        bitmap_index_options: Option<BitmapIndexOptions<'a>>,
        #[since(2.5)] b_tree_index_config: Option<BTreeIndexConfig>,
    }
    BitmapIndexOptions<'a>, since 2.0 { unique_key: &'a str, unique_key_transformation: i32 }
    BTreeIndexConfig, since 2.5 { page_size: Capacity, memory_tier_config: MemoryTierConfig }
    MapStoreConfigHolder<'a>, since 2.0 {
        enabled: bool, write_coalescing: bool, write_delay_seconds: i32, write_batch_size: i32,
        class_name: Option<&'a str>, implementation: Option<Data<'a>>, factory_class_name: Option<&'a str>,
        factory_implementation: Option<Data<'a>>, properties: Option<Vec<(&'a str, &'a str)>>,
        initial_load_mode: &'a str, #[since(2.5)] offload: bool,
    }
    MerkleTreeConfig, since 2.0 { enabled: bool, depth: i32, #[since(2.3)] enabled_set: bool }
    NearCacheConfigHolder<'a>, since 2.0 {
        name: &'a str, in_memory_format: &'a str, serialize_keys: bool, invalidate_on_change: bool,
        time_to_live_seconds: i32, max_idle_seconds: i32, eviction_config_holder: EvictionConfigHolder<'a>,
        cache_local_entries: bool, local_update_policy: &'a str,
        preloader_config: Option<NearCachePreloaderConfig<'a>>,
    }
    NearCachePreloaderConfig<'a>, since 2.0 {
        enabled: bool, directory: &'a str, store_initial_delay_seconds: i32, store_interval_seconds: i32,
    }
    PredicateConfigHolder<'a>, since 2.0 {
        class_name: Option<&'a str>, sql: Option<&'a str>, implementation: Option<Data<'a>>,
    }
    QueryCacheConfigHolder<'a>, since 2.0 {
        batch_size: i32, buffer_size: i32, delay_seconds: i32, include_value: bool, populate: bool, coalesce: bool,
        in_memory_format: &'a str, name: &'a str, predicate_config_holder: PredicateConfigHolder<'a>,
        eviction_config_holder: EvictionConfigHolder<'a>, listener_configs: Option<Vec<ListenerConfigHolder<'a>>>,
        index_configs: Option<Vec<IndexConfig<'a>>>, #[since(2.4)] serialize_keys: bool,
    }
    QueueStoreConfigHolder<'a>, since 2.0 {
        class_name: Option<&'a str>, factory_class_name: Option<&'a str>, implementation: Option<Data<'a>>,
        factory_implementation: Option<Data<'a>>, properties: Option<Vec<(&'a str, &'a str)>>, enabled: bool,
    }
    RingbufferStoreConfigHolder<'a>, since 2.0 {
        class_name: Option<&'a str>, factory_class_name: Option<&'a str>, implementation: Option<Data<'a>>,
        factory_implementation: Option<Data<'a>>, properties: Option<Vec<(&'a str, &'a str)>>, enabled: bool,
    }
    DurationConfig, since 2.0 { duration_amount: i64, time_unit: i32 }
    TimedExpiryPolicyFactoryConfig, since 2.0 { expiry_policy_type: i32, duration_config: DurationConfig }
    MergePolicyConfig<'a>, since 2.0 { policy: &'a str, batch_size: i32 }
    CacheConfigHolder<'a>, since 2.0 {
        name: &'a str, manager_prefix: Option<&'a str>, uri_string: Option<&'a str>, backup_count: i32,
        async_backup_count: i32, in_memory_format: &'a str, eviction_config_holder: EvictionConfigHolder<'a>,
        wan_replication_ref: Option<WanReplicationRef<'a>>, key_class_name: &'a str, value_class_name: &'a str,
        cache_loader_factory: Option<Data<'a>>, cache_writer_factory: Option<Data<'a>>,
        expiry_policy_factory: Data<'a>, read_through: bool, write_through: bool, store_by_value: bool,
        management_enabled: bool, statistics_enabled: bool, hot_restart_config: Option<HotRestartConfig>,
        event_journal_config: Option<EventJournalConfig>, split_brain_protection_name: Option<&'a str>,
        listener_configurations: Option<Vec<Data<'a>>>, merge_policy_config: MergePolicyConfig<'a>,
        disable_per_entry_invalidation_events: bool,
        cache_partition_lost_listener_configs: Option<Vec<ListenerConfigHolder<'a>>>,
        #[since(2.3)] merkle_tree_config: Option<MerkleTreeConfig>,
        #[since(2.5)] data_persistence_config: DataPersistenceConfig,
        #[since(2.7)] user_code_namespace: Option<&'a str>,
    }
    DataPersistenceConfig, since 2.5 { enabled: bool, fsync: bool }
    Capacity, since 2.5 { value: i64, unit: i32 }
    MemoryTierConfig, since 2.5 { capacity: Capacity }
    DiskTierConfig<'a>, since 2.5 { enabled: bool, device_name: &'a str }
    TieredStoreConfig<'a>, since 2.5 {
        enabled: bool, memory_tier_config: MemoryTierConfig, disk_tier_config: DiskTierConfig<'a>,
    }
    PartitioningAttributeConfig<'a>, since 2.6 { attribute_name: &'a str }
    VectorIndexConfig<'a>, since 2.8 {
        name: Option<&'a str>, metric: i32, dimension: i32, max_degree: i32, ef_construction: i32,
        use_deduplication: bool,
    }
}

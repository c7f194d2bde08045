//! `DynamicConfig`: configuration of data structures in a running cluster.

use super::service;

service! {
    DynamicConfig = 0x1b;

    add_multi_map_config = 0x01, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, collection_type: &'a str, listener_configs: Option<Vec<ListenerConfigHolder<'a>>>,
            binary: bool, backup_count: i32, async_backup_count: i32, statistics_enabled: bool,
            split_brain_protection_name: Option<&'a str>, merge_policy: &'a str, merge_batch_size: i32,
            #[since(2.7)] user_code_namespace: Option<&'a str>,
        }
        response {}
    }

    add_ringbuffer_config = 0x02, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, capacity: i32, backup_count: i32, async_backup_count: i32, time_to_live_seconds: i32,
            in_memory_format: &'a str, ringbuffer_store_config: Option<RingbufferStoreConfigHolder<'a>>,
            split_brain_protection_name: Option<&'a str>, merge_policy: &'a str, merge_batch_size: i32,
            #[since(2.7)] user_code_namespace: Option<&'a str>,
        }
        response {}
    }

    add_cardinality_estimator_config = 0x03, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, backup_count: i32, async_backup_count: i32, split_brain_protection_name: Option<&'a str>,
            merge_policy: &'a str, merge_batch_size: i32,
        }
        response {}
    }

    add_list_config = 0x04, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, listener_configs: Option<Vec<ListenerConfigHolder<'a>>>, backup_count: i32,
            async_backup_count: i32, max_size: i32, statistics_enabled: bool,
            split_brain_protection_name: Option<&'a str>, merge_policy: &'a str, merge_batch_size: i32,
            #[since(2.7)] user_code_namespace: Option<&'a str>,
        }
        response {}
    }

    add_set_config = 0x05, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, listener_configs: Option<Vec<ListenerConfigHolder<'a>>>, backup_count: i32,
            async_backup_count: i32, max_size: i32, statistics_enabled: bool,
            split_brain_protection_name: Option<&'a str>, merge_policy: &'a str, merge_batch_size: i32,
            #[since(2.7)] user_code_namespace: Option<&'a str>,
        }
        response {}
    }

    add_replicated_map_config = 0x06, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, in_memory_format: &'a str, async_fillup: bool, statistics_enabled: bool,
            merge_policy: &'a str, listener_configs: Option<Vec<ListenerConfigHolder<'a>>>,
            split_brain_protection_name: Option<&'a str>, merge_batch_size: i32,
            #[since(2.7)] user_code_namespace: Option<&'a str>,
        }
        response {}
    }

    add_topic_config = 0x07, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, global_ordering_enabled: bool, statistics_enabled: bool, multi_threading_enabled: bool,
            listener_configs: Option<Vec<ListenerConfigHolder<'a>>>,
            #[since(2.7)] user_code_namespace: Option<&'a str>,
        }
        response {}
    }

    add_executor_config = 0x08, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, pool_size: i32, queue_capacity: i32, statistics_enabled: bool,
            split_brain_protection_name: Option<&'a str>, #[since(2.7)] user_code_namespace: Option<&'a str>,
        }
        response {}
    }

    add_durable_executor_config = 0x09, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, pool_size: i32, durability: i32, capacity: i32,
            split_brain_protection_name: Option<&'a str>, #[since(2.1)] statistics_enabled: bool,
            #[since(2.7)] user_code_namespace: Option<&'a str>,
        }
        response {}
    }

    add_scheduled_executor_config = 0x0a, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, pool_size: i32, durability: i32, capacity: i32,
            split_brain_protection_name: Option<&'a str>, merge_policy: &'a str, merge_batch_size: i32,
            #[since(2.1)] statistics_enabled: bool, #[since(2.5)] capacity_policy: u8,
            #[since(2.7)] user_code_namespace: Option<&'a str>,
        }
        response {}
    }

    add_queue_config = 0x0b, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, listener_configs: Option<Vec<ListenerConfigHolder<'a>>>, backup_count: i32,
            async_backup_count: i32, max_size: i32, empty_queue_ttl: i32, statistics_enabled: bool,
            split_brain_protection_name: Option<&'a str>, queue_store_config: Option<QueueStoreConfigHolder<'a>>,
            merge_policy: &'a str, merge_batch_size: i32,
            #[since(2.1)] priority_comparator_class_name: Option<&'a str>,
            #[since(2.7)] user_code_namespace: Option<&'a str>,
        }
        response {}
    }

    add_map_config = 0x0c, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, backup_count: i32, async_backup_count: i32, time_to_live_seconds: i32,
            max_idle_seconds: i32, eviction_config: Option<EvictionConfigHolder<'a>>, read_backup_data: bool,
            cache_deserialized_values: &'a str, merge_policy: &'a str, merge_batch_size: i32,
            in_memory_format: &'a str, listener_configs: Option<Vec<ListenerConfigHolder<'a>>>,
            partition_lost_listener_configs: Option<Vec<ListenerConfigHolder<'a>>>, statistics_enabled: bool,
            split_brain_protection_name: Option<&'a str>, map_store_config: Option<MapStoreConfigHolder<'a>>,
            near_cache_config: Option<NearCacheConfigHolder<'a>>,
            wan_replication_ref: Option<WanReplicationRef<'a>>, index_configs: Option<Vec<IndexConfig<'a>>>,
            attribute_configs: Option<Vec<AttributeConfig<'a>>>,
            query_cache_configs: Option<Vec<QueryCacheConfigHolder<'a>>>,
            partitioning_strategy_class_name: Option<&'a str>,
            partitioning_strategy_implementation: Option<Data<'a>>, hot_restart_config: Option<HotRestartConfig>,
            event_journal_config: Option<EventJournalConfig>, merkle_tree_config: Option<MerkleTreeConfig>,
            metadata_policy: i32, #[since(2.2)] per_entry_stats_enabled: bool,
            #[since(2.5)] data_persistence_config: DataPersistenceConfig,
            #[since(2.5)] tiered_store_config: TieredStoreConfig<'a>,
            #[since(2.6)] partitioning_attribute_configs: Option<Vec<PartitioningAttributeConfig<'a>>>,
            #[since(2.7)] user_code_namespace: Option<&'a str>,
        }
        response {}
    }

    add_reliable_topic_config = 0x0d, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, listener_configs: Option<Vec<ListenerConfigHolder<'a>>>, read_batch_size: i32,
            statistics_enabled: bool, topic_overload_policy: &'a str, executor: Option<Data<'a>>,
            #[since(2.7)] user_code_namespace: Option<&'a str>,
        }
        response {}
    }

    add_cache_config = 0x0e, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, key_type: Option<&'a str>, value_type: Option<&'a str>, statistics_enabled: bool,
            management_enabled: bool, read_through: bool, write_through: bool,
            cache_loader_factory: Option<&'a str>, cache_writer_factory: Option<&'a str>,
            cache_loader: Option<&'a str>, cache_writer: Option<&'a str>, backup_count: i32,
            async_backup_count: i32, in_memory_format: &'a str, split_brain_protection_name: Option<&'a str>,
            merge_policy: Option<&'a str>, merge_batch_size: i32, disable_per_entry_invalidation_events: bool,
            partition_lost_listener_configs: Option<Vec<ListenerConfigHolder<'a>>>,
            expiry_policy_factory_class_name: Option<&'a str>,
            timed_expiry_policy_factory_config: Option<TimedExpiryPolicyFactoryConfig>,
            cache_entry_listeners: Option<Vec<CacheSimpleEntryListenerConfig<'a>>>,
            eviction_config: Option<EvictionConfigHolder<'a>>, wan_replication_ref: Option<WanReplicationRef<'a>>,
            event_journal_config: Option<EventJournalConfig>, hot_restart_config: Option<HotRestartConfig>,
            #[since(2.3)] merkle_tree_config: Option<MerkleTreeConfig>,
            #[since(2.5)] data_persistence_config: DataPersistenceConfig,
            #[since(2.7)] user_code_namespace: Option<&'a str>,
        }
        response {}
    }

    add_flake_id_generator_config = 0x0f, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, prefetch_count: i32, prefetch_validity: i64, statistics_enabled: bool,
            node_id_offset: i64, epoch_start: i64, bits_sequence: i32, bits_node_id: i32,
            allowed_future_millis: i64,
        }
        response {}
    }

    add_pn_counter_config "addPNCounterConfig" = 0x10, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, replica_count: i32, statistics_enabled: bool,
            split_brain_protection_name: Option<&'a str>,
        }
        response {}
    }

    add_data_connection_config = 0x11, since 2.6, retryable: false, partition: None {
        request<'a> { name: &'a str, kind: &'a str, shared: bool, properties: Vec<(&'a str, &'a str)> }
        response {}
    }

    add_wan_replication_config = 0x12, since 2.7, retryable: false, partition: None {
        request<'a> {
            name: &'a str, consumer_config: Option<WanConsumerConfigHolder<'a>>,
            custom_publisher_configs: Vec<WanCustomPublisherConfigHolder<'a>>,
            batch_publisher_configs: Vec<WanBatchPublisherConfigHolder<'a>>,
        }
        response {}
    }

    add_user_code_namespace_config = 0x13, since 2.7, retryable: false, partition: None {
        request<'a> { name: &'a str, resources: Vec<ResourceDefinition<'a>> }
        response {}
    }

    add_vector_collection_config = 0x14, since 2.8, retryable: false, partition: None {
        request<'a> {
            name: &'a str, index_configs: Vec<VectorIndexConfig<'a>>, #[since(2.9)] backup_count: i32,
            #[since(2.9)] async_backup_count: i32, #[since(2.9)] split_brain_protection_name: Option<&'a str>,
            #[since(2.9)] merge_policy: &'a str, #[since(2.9)] merge_batch_size: i32,
            #[since(2.9)] user_code_namespace: Option<&'a str>,
        }
        response {}
    }
}

//! Structures for the configuration of WAN replication between clusters, and of the discovery of
//! members.

use super::structure;
use crate::Data;

structure! {
    WanReplicationRef<'a>, since 2.0 {
        name: &'a str, merge_policy_class_name: &'a str, filters: Option<Vec<&'a str>>, republishing_enabled: bool,
    }
    WanConsumerConfigHolder<'a>, since 2.7 {
        persist_wan_replicated_data: bool, class_name: Option<&'a str>, implementation: Option<Data<'a>>,
        properties: Vec<(&'a str, Data<'a>)>,
    }
    WanCustomPublisherConfigHolder<'a>, since 2.7 {
        publisher_id: Option<&'a str>, class_name: Option<&'a str>, implementation: Option<Data<'a>>,
        properties: Vec<(&'a str, Data<'a>)>,
    }
    WanBatchPublisherConfigHolder<'a>, since 2.7 {
        publisher_id: Option<&'a str>, class_name: Option<&'a str>, implementation: Option<Data<'a>>,
        properties: Vec<(&'a str, Data<'a>)>, cluster_name: Option<&'a str>, snapshot_enabled: bool,
        initial_publisher_state: u8, queue_capacity: i32, batch_size: i32, batch_max_delay_millis: i32,
        response_timeout_millis: i32, queue_full_behavior: i32, acknowledge_type: i32,
        discovery_period_seconds: i32, max_target_endpoints: i32, max_concurrent_invocations: i32,
        use_endpoint_private_address: bool, idle_min_park_ns: i64, idle_max_park_ns: i64, target_endpoints: &'a str,
        aws_config: AwsConfig<'a>, gcp_config: GcpConfig<'a>, azure_config: AzureConfig<'a>,
        kubernetes_config: KubernetesConfig<'a>, eureka_config: EurekaConfig<'a>,
        discovery_config: DiscoveryConfig<'a>, sync_config: WanSyncConfig, endpoint: Option<&'a str>,
    }
    AwsConfig<'a>, since 2.7 { tag: &'a str, enabled: bool, use_public_ip: bool, properties: Vec<(&'a str, &'a str)> }
    GcpConfig<'a>, since 2.7 { tag: &'a str, enabled: bool, use_public_ip: bool, properties: Vec<(&'a str, &'a str)> }
    AzureConfig<'a>, since 2.7 {
        tag: &'a str, enabled: bool, use_public_ip: bool, properties: Vec<(&'a str, &'a str)>,
    }
    KubernetesConfig<'a>, since 2.7 {
        tag: &'a str, enabled: bool, use_public_ip: bool, properties: Vec<(&'a str, &'a str)>,
    }
    EurekaConfig<'a>, since 2.7 {
        tag: &'a str, enabled: bool, use_public_ip: bool, properties: Vec<(&'a str, &'a str)>,
    }
    DiscoveryStrategyConfig<'a>, since 2.7 { class_name: &'a str, properties: Vec<(&'a str, Data<'a>)> }
    DiscoveryConfig<'a>, since 2.7 {
        discovery_strategy_configs: Vec<DiscoveryStrategyConfig<'a>>, discovery_service_provider: Data<'a>,
        node_filter: Data<'a>, node_filter_class: &'a str,
    }
    WanSyncConfig, since 2.7 { consistency_check_strategy: u8 }
}

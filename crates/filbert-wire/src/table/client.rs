//! `Client`: messages of the client connection itself: authentication, view of the cluster,
//! proxies, schemas, heartbeats.

use super::service;

service! {
    Client = 0x00;

    authentication = 0x01, since 2.0, retryable: true, partition: None {
        request<'a> {
            cluster_name: &'a str, username: Option<&'a str>, password: Option<&'a str>, uuid: Option<Uuid>,
            client_type: &'a str, serialization_version: u8, client_hazelcast_version: &'a str,
            client_name: &'a str, labels: Vec<&'a str>, #[since(2.8)] routing_mode: u8,
            #[since(2.8)] cp_direct_to_leader_routing: bool,
        }
        response<'a> {
            status: u8, address: Option<Address<'a>>, member_uuid: Option<Uuid>, serialization_version: u8,
            server_hazelcast_version: &'a str, partition_count: i32, cluster_id: Uuid, failover_supported: bool,
            #[since(2.7)] tpc_ports: Option<Vec<i32>>, #[since(2.7)] tpc_token: Option<&'a [u8]>,
            #[since(2.7)] member_list_version: i32, #[since(2.7)] member_infos: Vec<MemberInfo<'a>>,
            #[since(2.7)] partition_list_version: i32, #[since(2.7)] partitions: Vec<(Uuid, Vec<i32>)>,
            #[since(2.8)] key_value_pairs: Vec<(&'a str, &'a str)>,
        }
    }

    authentication_custom = 0x02, since 2.0, retryable: true, partition: None {
        request<'a> {
            cluster_name: &'a str, credentials: &'a [u8], uuid: Option<Uuid>, client_type: &'a str,
            serialization_version: u8, client_hazelcast_version: &'a str, client_name: &'a str,
            labels: Vec<&'a str>, #[since(2.8)] routing_mode: u8, #[since(2.8)] cp_direct_to_leader_routing: bool,
        }
        response<'a> {
            status: u8, address: Option<Address<'a>>, member_uuid: Option<Uuid>, serialization_version: u8,
            server_hazelcast_version: &'a str, partition_count: i32, cluster_id: Uuid, failover_supported: bool,
            #[since(2.7)] tpc_ports: Option<Vec<i32>>, #[since(2.7)] tpc_token: Option<&'a [u8]>,
            #[since(2.7)] member_list_version: i32, #[since(2.7)] member_infos: Option<Vec<MemberInfo<'a>>>,
            #[since(2.7)] partition_list_version: i32, #[since(2.7)] partitions: Option<Vec<(Uuid, Vec<i32>)>>,
            #[since(2.8)] key_value_pairs: Vec<(&'a str, &'a str)>,
        }
    }

    add_cluster_view_listener = 0x03, since 2.0, retryable: false, partition: None {
        request {}
        response {}
        event MembersViewEvent = 0x02, since 2.0 <'a> { version: i32, member_infos: Vec<MemberInfo<'a>> }
        event PartitionsViewEvent = 0x03, since 2.0 { version: i32, partitions: Vec<(Uuid, Vec<i32>)> }
        event MemberGroupsViewEvent = 0x04, since 2.8 { version: i32, member_groups: Vec<Vec<Uuid>> }
        event ClusterVersionEvent = 0x05, since 2.8 { version: Version }
    }

    create_proxy = 0x04, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, service_name: &'a str }
        response {}
    }

    destroy_proxy = 0x05, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, service_name: &'a str }
        response {}
    }

    add_partition_lost_listener = 0x06, since 2.0, retryable: false, partition: None {
        request { local_only: bool }
        response { response: Uuid }
        event PartitionLostEvent = 0x02, since 2.0 { partition_id: i32, lost_backup_count: i32, source: Option<Uuid> }
    }

    remove_partition_lost_listener = 0x07, since 2.0, retryable: true, partition: None {
        request { registration_id: Uuid }
        response { response: bool }
    }

    get_distributed_objects = 0x08, since 2.0, retryable: false, partition: None {
        request {}
        response<'a> { response: Vec<DistributedObjectInfo<'a>> }
    }

    add_distributed_object_listener = 0x09, since 2.0, retryable: false, partition: None {
        request { local_only: bool }
        response { response: Uuid }
        event DistributedObjectEvent = 0x02, since 2.0 <'a> {
            name: &'a str, service_name: &'a str, event_type: &'a str, source: Uuid,
        }
    }

    remove_distributed_object_listener = 0x0a, since 2.0, retryable: true, partition: None {
        request { registration_id: Uuid }
        response { response: bool }
    }

    ping = 0x0b, since 2.0, retryable: true, partition: None {
        request {}
        response {}
    }

    statistics = 0x0c, since 2.0, retryable: false, partition: None {
        request<'a> { timestamp: i64, client_attributes: &'a str, metrics_blob: &'a [u8] }
        response {}
    }

    deploy_classes = 0x0d, since 2.0, retryable: false, partition: None {
        request<'a> { class_definitions: Vec<(&'a str, &'a [u8])> }
        response {}
    }

    create_proxies = 0x0e, since 2.0, retryable: false, partition: None {
        request<'a> { proxies: Vec<(&'a str, &'a str)> }
        response {}
    }

    local_backup_listener = 0x0f, since 2.0, retryable: false, partition: None {
        request {}
        response { response: Uuid }
        event BackupEvent = 0x02, since 2.0 { source_invocation_correlation_id: i64 }
    }

    trigger_partition_assignment = 0x10, since 2.0, retryable: true, partition: None {
        request {}
        response {}
    }

    add_migration_listener = 0x11, since 2.2, retryable: false, partition: None {
        request { local_only: bool }
        response { response: Uuid }
        event MigrationEvent = 0x02, since 2.2 { migration_state: MigrationState, kind: i32 }
        event ReplicaMigrationEvent = 0x03, since 2.2 {
            migration_state: MigrationState, partition_id: i32, replica_index: i32, source_uuid: Option<Uuid>,
            dest_uuid: Option<Uuid>, success: bool, elapsed_time: i64,
        }
    }

    remove_migration_listener = 0x12, since 2.2, retryable: true, partition: None {
        request { registration_id: Uuid }
        response { response: bool }
    }

    send_schema = 0x13, since 2.5, retryable: true, partition: None {
        request<'a> { schema: Schema<'a> }
        response { replicated_members: Vec<Uuid> }
    }

    fetch_schema = 0x14, since 2.5, retryable: true, partition: None {
        request { schema_id: i64 }
        response<'a> { schema: Option<Schema<'a>> }
    }

    send_all_schemas = 0x15, since 2.5, retryable: true, partition: None {
        request<'a> { schemas: Vec<Schema<'a>> }
        response {}
    }

    tpc_authentication = 0x16, since 2.7, retryable: true, partition: None {
        request<'a> { uuid: Uuid, token: &'a [u8] }
        response {}
    }

    add_cp_group_view_listener "addCPGroupViewListener" = 0x17, since 2.8, retryable: false, partition: None {
        request {}
        response {}
        event GroupsViewEvent = 0x02, since 2.8 <'a> {
            version: i64, groups_info: Vec<RaftGroupInfo<'a>>, cp_to_ap_uuids: Vec<(Uuid, Uuid)>,
        }
    }
}

//! `MC`: requests of the Management Center to a member.

use super::service;

service! {
    MC = 0x20;

    read_metrics = 0x01, since 2.0, retryable: true, partition: None {
        request { uuid: Uuid, from_sequence: i64 }
        response<'a> { elements: Vec<(i64, &'a [u8])>, next_sequence: i64 }
    }

    change_cluster_state = 0x02, since 2.0, retryable: false, partition: None {
        request { new_state: i32 }
        response {}
    }

    get_map_config = 0x03, since 2.0, retryable: true, partition: None {
        request<'a> { map_name: &'a str }
        response<'a> {
            in_memory_format: i32, backup_count: i32, async_backup_count: i32, time_to_live_seconds: i32,
            max_idle_seconds: i32, max_size: i32, max_size_policy: i32, read_backup_data: bool,
            eviction_policy: i32, merge_policy: &'a str, #[since(2.4)] global_indexes: Vec<IndexConfig<'a>>,
            #[since(2.7)] wan_replication_ref: Option<WanReplicationRef<'a>>,
        }
    }

    update_map_config = 0x04, since 2.0, retryable: false, partition: None {
        request<'a> {
            map_name: &'a str, time_to_live_seconds: i32, max_idle_seconds: i32, eviction_policy: i32,
            read_backup_data: bool, max_size: i32, max_size_policy: i32,
            #[since(2.7)] wan_replication_ref: Option<WanReplicationRef<'a>>,
        }
        response {}
    }

    get_member_config = 0x05, since 2.0, retryable: true, partition: None {
        request {}
        response<'a> { config_xml: &'a str }
    }

    run_gc = 0x06, since 2.0, retryable: false, partition: None {
        request {}
        response {}
    }

    get_thread_dump = 0x07, since 2.0, retryable: false, partition: None {
        request { dump_dead_locks: bool }
        response<'a> { thread_dump: &'a str }
    }

    shutdown_member = 0x08, since 2.0, retryable: false, partition: None {
        request {}
        response {}
    }

    promote_lite_member = 0x09, since 2.0, retryable: false, partition: None {
        request {}
        response {}
    }

    get_system_properties = 0x0a, since 2.0, retryable: true, partition: None {
        request {}
        response<'a> { system_properties: Vec<(&'a str, &'a str)> }
    }

    get_timed_member_state = 0x0b, since 2.0, retryable: true, partition: None {
        request {}
        response<'a> { timed_member_state_json: Option<&'a str> }
    }

    match_mc_config "matchMCConfig" = 0x0c, since 2.0, retryable: false, partition: None {
        request<'a> { e_tag: &'a str }
        response { result: bool }
    }

    apply_mc_config "applyMCConfig" = 0x0d, since 2.0, retryable: false, partition: None {
        request<'a> { e_tag: &'a str, client_bw_list_mode: i32, client_bw_list_entries: Vec<ClientBwListEntry<'a>> }
        response {}
    }

    get_cluster_metadata = 0x0e, since 2.0, retryable: true, partition: None {
        request {}
        response<'a> {
            current_state: u8, member_version: &'a str, jet_version: Option<&'a str>, cluster_time: i64,
            #[since(2.5)] cluster_id: Uuid,
        }
    }

    shutdown_cluster = 0x0f, since 2.0, retryable: false, partition: None {
        request {}
        response {}
    }

    change_cluster_version = 0x10, since 2.0, retryable: false, partition: None {
        request { major_version: u8, minor_version: u8 }
        response {}
    }

    run_script = 0x11, since 2.0, retryable: false, partition: None {
        request<'a> { engine: &'a str, script: &'a str }
        response<'a> { result: Option<&'a str> }
    }

    run_console_command = 0x12, since 2.0, retryable: false, partition: None {
        request<'a> { namespace: Option<&'a str>, command: &'a str }
        response<'a> { result: &'a str }
    }

    change_wan_replication_state = 0x13, since 2.0, retryable: false, partition: None {
        request<'a> { wan_replication_name: &'a str, wan_publisher_id: &'a str, new_state: u8 }
        response {}
    }

    clear_wan_queues = 0x14, since 2.0, retryable: false, partition: None {
        request<'a> { wan_replication_name: &'a str, wan_publisher_id: &'a str }
        response {}
    }

    add_wan_batch_publisher_config = 0x15, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, target_cluster: &'a str, publisher_id: Option<&'a str>, endpoints: &'a str,
            queue_capacity: i32, batch_size: i32, batch_max_delay_millis: i32, response_timeout_millis: i32,
            ack_type: i32, queue_full_behavior: i32, #[since(2.7)] consistency_check_strategy: u8,
        }
        response<'a> { added_publisher_ids: Vec<&'a str>, ignored_publisher_ids: Vec<&'a str> }
    }

    wan_sync_map = 0x16, since 2.0, retryable: false, partition: None {
        request<'a> {
            wan_replication_name: &'a str, wan_publisher_id: &'a str, wan_sync_type: i32, map_name: Option<&'a str>,
        }
        response { uuid: Uuid }
    }

    check_wan_consistency = 0x17, since 2.0, retryable: false, partition: None {
        request<'a> { wan_replication_name: &'a str, wan_publisher_id: &'a str, map_name: Option<&'a str> }
        response { uuid: Option<Uuid> }
    }

    poll_mc_events "pollMCEvents" = 0x18, since 2.0, retryable: false, partition: None {
        request {}
        response<'a> { events: Vec<MCEvent<'a>> }
    }

    get_cp_members "getCPMembers" = 0x19, since 2.0, retryable: true, partition: None {
        request {}
        response { cp_members: Vec<(Uuid, Uuid)> }
    }

    promote_to_cp_member "promoteToCPMember" = 0x1a, since 2.0, retryable: false, partition: None {
        request {}
        response {}
    }

    remove_cp_member "removeCPMember" = 0x1b, since 2.0, retryable: false, partition: None {
        request { cp_member_uuid: Uuid }
        response {}
    }

    reset_cp_subsystem "resetCPSubsystem" = 0x1c, since 2.0, retryable: false, partition: None {
        request {}
        response {}
    }

    trigger_partial_start = 0x1d, since 2.0, retryable: false, partition: None {
        request {}
        response { result: bool }
    }

    trigger_force_start = 0x1e, since 2.0, retryable: false, partition: None {
        request {}
        response { result: bool }
    }

    trigger_hot_restart_backup = 0x1f, since 2.0, retryable: false, partition: None {
        request {}
        response {}
    }

    interrupt_hot_restart_backup = 0x20, since 2.0, retryable: false, partition: None {
        request {}
        response {}
    }

    reset_queue_age_statistics = 0x21, since 2.4, retryable: false, partition: Name {
        request<'a> { name: &'a str }
        response {}
    }

    reload_config = 0x22, since 2.4, retryable: false, partition: None {
        request {}
        response { config_reload_process_id: Uuid }
    }

    update_config = 0x23, since 2.4, retryable: false, partition: None {
        request<'a> { configuration: &'a str }
        response { config_update_process_id: Uuid }
    }

    force_close_cp_session "forceCloseCPSession" = 0x24, since 2.7, retryable: false, partition: None {
        request<'a> { group_name: &'a str, session_id: i64 }
        response { result: bool }
    }

    demote_data_member = 0x25, since 2.8, retryable: false, partition: None {
        request {}
        response {}
    }

    get_config_file_content = 0x26, since 2.8, retryable: true, partition: None {
        request {}
        response<'a> { config_file_content: Option<&'a str> }
    }

    set_diagnostics_config = 0x27, since 2.9, retryable: false, partition: None {
        request<'a> {
            enabled: bool, output_type: &'a str, include_epoch_time: bool, max_rolled_file_size_in_mb: f32,
            max_rolled_file_count: i32, log_directory: &'a str, file_name_prefix: Option<&'a str>,
            properties: Option<Vec<(&'a str, &'a str)>>, auto_off_duration_in_minutes: i32,
        }
        response {}
    }

    get_diagnostics_config = 0x28, since 2.9, retryable: true, partition: None {
        request {}
        response<'a> {
            enabled: bool, output_type: &'a str, include_epoch_time: bool, max_rolled_file_size_in_mb: f32,
            max_rolled_file_count: i32, log_directory: &'a str, file_name_prefix: Option<&'a str>,
            properties: Option<Vec<(&'a str, &'a str)>>, auto_off_duration_in_minutes: i32,
            can_be_configured_dynamically: bool,
        }
    }
}

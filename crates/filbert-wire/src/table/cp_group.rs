//! `CPGroup`: the Raft groups of CP objects.

use super::service;

service! {
    CPGroup = 0x1e;

    create_cp_group "createCPGroup" = 0x01, since 2.0, retryable: true, partition: None {
        request<'a> { proxy_name: &'a str }
        response<'a> { group_id: RaftGroupId<'a> }
    }

    destroy_cp_object "destroyCPObject" = 0x02, since 2.0, retryable: true, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, service_name: &'a str, object_name: &'a str }
        response {}
    }
}

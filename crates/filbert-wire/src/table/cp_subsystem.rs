//! `CPSubsystem`: members, groups and objects of the CP subsystem.

use super::service;

service! {
    CPSubsystem = 0x22;

    add_membership_listener = 0x01, since 2.1, retryable: false, partition: None {
        request { local: bool }
        response { response: Uuid }
        event MembershipEvent = 0x02, since 2.1 <'a> { member: CPMember<'a>, kind: u8 }
    }

    remove_membership_listener = 0x02, since 2.1, retryable: true, partition: None {
        request { registration_id: Uuid }
        response { response: bool }
    }

    add_group_availability_listener = 0x03, since 2.1, retryable: false, partition: None {
        request { local: bool }
        response { response: Uuid }
        event GroupAvailabilityEvent = 0x02, since 2.1 <'a> {
            group_id: RaftGroupId<'a>, members: Vec<CPMember<'a>>, unavailable_members: Vec<CPMember<'a>>,
            #[since(2.7)] is_shutdown: bool,
        }
    }

    remove_group_availability_listener = 0x04, since 2.1, retryable: true, partition: None {
        request { registration_id: Uuid }
        response { response: bool }
    }

    get_cp_group_ids "getCPGroupIds" = 0x05, since 2.7, retryable: true, partition: None {
        request {}
        response<'a> { response: Vec<RaftGroupId<'a>> }
    }

    get_cp_object_infos "getCPObjectInfos" = 0x06, since 2.7, retryable: true, partition: None {
        request<'a> { group_id: RaftGroupId<'a>, service_name: &'a str, tombstone: bool }
        response<'a> { response: Vec<&'a str> }
    }
}

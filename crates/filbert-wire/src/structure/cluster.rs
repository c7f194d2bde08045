//! Structures about members, CP groups, clients, schemas and transactions.

use super::structure;
use crate::Uuid;

structure! {
    Address<'a>, since 2.0 { host: &'a str, port: i32 }
    DistributedObjectInfo<'a>, since 2.0 { service_name: &'a str, name: &'a str }
    RaftGroupId<'a>, since 2.0 { name: &'a str, seed: i64, id: i64 }
    ScheduledTaskHandler<'a>, since 2.0 {
        uuid: Option<Uuid>, partition_id: i32, scheduler_name: &'a str, task_name: &'a str,
    }
    Xid<'a>, since 2.0 { format_id: i32, global_transaction_id: &'a [u8], branch_qualifier: &'a [u8] }
    ClientBwListEntry<'a>, since 2.0 { kind: i32, value: &'a str }
    MemberInfo<'a>, since 2.0 {
        address: Address<'a>, uuid: Uuid, attributes: Vec<(&'a str, &'a str)>, lite_member: bool,
        version: MemberVersion, #[since(2.1)] address_map: Vec<(EndpointQualifier<'a>, Address<'a>)>,
    }
    EndpointQualifier<'a>, since 2.1 { kind: i32, identifier: Option<&'a str> }
    MemberVersion, since 2.0 { major: u8, minor: u8, patch: u8 }
    MCEvent<'a>, since 2.0 { timestamp: i64, kind: i32, data_json: &'a str }
    CPMember<'a>, since 2.1 { uuid: Uuid, address: Address<'a>, #[since(2.10)] auto_step_down_when_leader: bool }
    MigrationState, since 2.2 {
        start_time: i64, planned_migrations: i32, completed_migrations: i32, total_elapsed_time: i64,
    }
    FieldDescriptor<'a>, since 2.3 { field_name: &'a str, kind: i32 }
    Schema<'a>, since 2.3 { type_name: &'a str, fields: Vec<FieldDescriptor<'a>> }
    ResourceDefinition<'a>, since 2.7 {
        id: &'a str, resource_type: i32, payload: Option<&'a [u8]>, resource_url: Option<&'a str>,
    }
    Version, since 2.8 { major: u8, minor: u8 }
    RaftGroupInfo<'a>, since 2.8 { group_id: RaftGroupId<'a>, leader: CPMember<'a>, followers: Vec<CPMember<'a>> }
}

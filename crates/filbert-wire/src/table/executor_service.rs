//! `ExecutorService`: tasks sent to partitions and members.

use super::service;

service! {
    ExecutorService = 0x08;

    shutdown = 0x01, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str }
        response {}
    }

    is_shutdown = 0x02, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str }
        response { response: bool }
    }

    cancel_on_partition = 0x03, since 2.0, retryable: false, partition: PartitionId {
        request { uuid: Uuid, interrupt: bool }
        response { response: bool }
    }

    cancel_on_member = 0x04, since 2.0, retryable: false, partition: None {
        request { uuid: Uuid, member_uuid: Uuid, interrupt: bool }
        response { response: bool }
    }

    submit_to_partition = 0x05, since 2.0, retryable: false, partition: PartitionId {
        request<'a> { name: &'a str, uuid: Uuid, callable: Data<'a> }
        response<'a> { response: Option<Data<'a>> }
    }

    submit_to_member = 0x06, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, uuid: Uuid, callable: Data<'a>, member_uuid: Uuid }
        response<'a> { response: Option<Data<'a>> }
    }
}

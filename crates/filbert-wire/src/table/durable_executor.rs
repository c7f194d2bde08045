//! `DurableExecutor`: tasks with results that are kept after the client disconnects.

use super::service;

service! {
    DurableExecutor = 0x18;

    shutdown = 0x01, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str }
        response {}
    }

    is_shutdown = 0x02, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str }
        response { response: bool }
    }

    submit_to_partition = 0x03, since 2.0, retryable: true, partition: PartitionId {
        request<'a> { name: &'a str, callable: Data<'a> }
        response { response: i32 }
    }

    retrieve_result = 0x04, since 2.0, retryable: true, partition: PartitionId {
        request<'a> { name: &'a str, sequence: i32 }
        response<'a> { response: Option<Data<'a>> }
    }

    dispose_result = 0x05, since 2.0, retryable: true, partition: PartitionId {
        request<'a> { name: &'a str, sequence: i32 }
        response {}
    }

    retrieve_and_dispose_result = 0x06, since 2.0, retryable: true, partition: PartitionId {
        request<'a> { name: &'a str, sequence: i32 }
        response<'a> { response: Option<Data<'a>> }
    }
}

//! `TransactionalQueue`: a queue within a transaction.

use super::service;

service! {
    TransactionalQueue = 0x12;

    offer = 0x01, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, item: Data<'a>, timeout: i64 }
        response { response: bool }
    }

    take = 0x02, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64 }
        response<'a> { response: Option<Data<'a>> }
    }

    poll = 0x03, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, timeout: i64 }
        response<'a> { response: Option<Data<'a>> }
    }

    peek = 0x04, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, timeout: i64 }
        response<'a> { response: Option<Data<'a>> }
    }

    size = 0x05, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64 }
        response { response: i32 }
    }
}

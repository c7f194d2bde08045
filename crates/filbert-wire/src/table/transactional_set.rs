//! `TransactionalSet`: a set within a transaction.

use super::service;

service! {
    TransactionalSet = 0x10;

    add = 0x01, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, item: Data<'a> }
        response { response: bool }
    }

    remove = 0x02, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, item: Data<'a> }
        response { response: bool }
    }

    size = 0x03, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64 }
        response { response: i32 }
    }
}

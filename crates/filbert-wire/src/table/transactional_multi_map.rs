//! `TransactionalMultiMap`: a multimap within a transaction.

use super::service;

service! {
    TransactionalMultiMap = 0x0f;

    put = 0x01, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, key: Data<'a>, value: Data<'a> }
        response { response: bool }
    }

    get = 0x02, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, key: Data<'a> }
        response<'a> { response: Vec<Data<'a>> }
    }

    remove = 0x03, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, key: Data<'a> }
        response<'a> { response: Vec<Data<'a>> }
    }

    remove_entry = 0x04, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, key: Data<'a>, value: Data<'a> }
        response { response: bool }
    }

    value_count = 0x05, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, key: Data<'a> }
        response { response: i32 }
    }

    size = 0x06, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64 }
        response { response: i32 }
    }
}

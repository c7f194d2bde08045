//! `TransactionalMap`: a map within a transaction.

use super::service;

service! {
    TransactionalMap = 0x0e;

    contains_key = 0x01, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, key: Data<'a> }
        response { response: bool }
    }

    get = 0x02, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, key: Data<'a> }
        response<'a> { response: Option<Data<'a>> }
    }

    get_for_update = 0x03, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, key: Data<'a> }
        response<'a> { response: Option<Data<'a>> }
    }

    size = 0x04, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64 }
        response { response: i32 }
    }

    is_empty = 0x05, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64 }
        response { response: bool }
    }

    put = 0x06, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, key: Data<'a>, value: Data<'a>, ttl: i64 }
        response<'a> { response: Option<Data<'a>> }
    }

    set = 0x07, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, key: Data<'a>, value: Data<'a> }
        response {}
    }

    put_if_absent = 0x08, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, key: Data<'a>, value: Data<'a> }
        response<'a> { response: Option<Data<'a>> }
    }

    replace = 0x09, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, key: Data<'a>, value: Data<'a> }
        response<'a> { response: Option<Data<'a>> }
    }

    replace_if_same = 0x0a, since 2.0, retryable: false, partition: None {
        request<'a> {
            name: &'a str, txn_id: Uuid, thread_id: i64, key: Data<'a>, old_value: Data<'a>, new_value: Data<'a>,
        }
        response { response: bool }
    }

    remove = 0x0b, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, key: Data<'a> }
        response<'a> { response: Option<Data<'a>> }
    }

    delete = 0x0c, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, key: Data<'a> }
        response {}
    }

    remove_if_same = 0x0d, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, key: Data<'a>, value: Data<'a> }
        response { response: bool }
    }

    key_set = 0x0e, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64 }
        response<'a> { response: Vec<Data<'a>> }
    }

    key_set_with_predicate = 0x0f, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, predicate: Data<'a> }
        response<'a> { response: Vec<Data<'a>> }
    }

    values = 0x10, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64 }
        response<'a> { response: Vec<Data<'a>> }
    }

    values_with_predicate = 0x11, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, predicate: Data<'a> }
        response<'a> { response: Vec<Data<'a>> }
    }

    contains_value = 0x12, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, txn_id: Uuid, thread_id: i64, value: Data<'a> }
        response { response: bool }
    }
}

//! `Transaction`: begin, commit and roll back.

use super::service;

service! {
    Transaction = 0x15;

    commit = 0x01, since 2.0, retryable: false, partition: None {
        request { transaction_id: Uuid, thread_id: i64 }
        response {}
    }

    create = 0x02, since 2.0, retryable: false, partition: None {
        request { timeout: i64, durability: i32, transaction_type: i32, thread_id: i64 }
        response { response: Uuid }
    }

    rollback = 0x03, since 2.0, retryable: false, partition: None {
        request { transaction_id: Uuid, thread_id: i64 }
        response {}
    }
}

//! `XATransaction`: transactions of an external coordinator.

use super::service;

service! {
    XATransaction = 0x14;

    clear_remote = 0x01, since 2.0, retryable: false, partition: Xid {
        request<'a> { xid: Xid<'a> }
        response {}
    }

    collect_transactions = 0x02, since 2.0, retryable: false, partition: None {
        request {}
        response<'a> { response: Vec<Xid<'a>> }
    }

    finalize = 0x03, since 2.0, retryable: false, partition: Xid {
        request<'a> { xid: Xid<'a>, is_commit: bool }
        response {}
    }

    commit = 0x04, since 2.0, retryable: false, partition: None {
        request { transaction_id: Uuid, one_phase: bool }
        response {}
    }

    create = 0x05, since 2.0, retryable: false, partition: None {
        request<'a> { xid: Xid<'a>, timeout: i64 }
        response { response: Uuid }
    }

    prepare = 0x06, since 2.0, retryable: false, partition: None {
        request { transaction_id: Uuid }
        response {}
    }

    rollback = 0x07, since 2.0, retryable: false, partition: None {
        request { transaction_id: Uuid }
        response {}
    }
}

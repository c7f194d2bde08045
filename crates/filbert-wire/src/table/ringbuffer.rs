//! `Ringbuffer`: a bounded log of items with sequence numbers.

use super::service;

service! {
    Ringbuffer = 0x17;

    size = 0x01, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str }
        response { response: i64 }
    }

    tail_sequence = 0x02, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str }
        response { response: i64 }
    }

    head_sequence = 0x03, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str }
        response { response: i64 }
    }

    capacity = 0x04, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str }
        response { response: i64 }
    }

    remaining_capacity = 0x05, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str }
        response { response: i64 }
    }

    add = 0x06, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, overflow_policy: i32, value: Data<'a> }
        response { response: i64 }
    }

    read_one = 0x07, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str, sequence: i64 }
        response<'a> { response: Option<Data<'a>> }
    }

    add_all = 0x08, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, value_list: Vec<Data<'a>>, overflow_policy: i32 }
        response { response: i64 }
    }

    read_many = 0x09, since 2.0, retryable: true, partition: Name {
        request<'a> { name: &'a str, start_sequence: i64, min_count: i32, max_count: i32, filter: Option<Data<'a>> }
        response<'a> { read_count: i32, items: Vec<Data<'a>>, item_seqs: Option<Vec<i64>>, next_seq: i64 }
    }
}

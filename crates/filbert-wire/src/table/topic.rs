//! `Topic`: messages to all listeners.

use super::service;

service! {
    Topic = 0x04;

    publish = 0x01, since 2.0, retryable: false, partition: Name {
        request<'a> { name: &'a str, message: Data<'a> }
        response {}
    }

    add_message_listener = 0x02, since 2.0, retryable: false, partition: None {
        request<'a> { name: &'a str, local_only: bool }
        response { response: Uuid }
        event TopicEvent = 0x02, since 2.0 <'a> { item: Data<'a>, publish_time: i64, uuid: Uuid }
    }

    remove_message_listener = 0x03, since 2.0, retryable: true, partition: None {
        request<'a> { name: &'a str, registration_id: Uuid }
        response { response: bool }
    }

    publish_all = 0x04, since 2.1, retryable: false, partition: Name {
        request<'a> { name: &'a str, messages: Vec<Data<'a>> }
        response {}
    }
}

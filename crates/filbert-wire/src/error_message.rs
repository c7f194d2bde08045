//! The error response to a request: an error and the chain of its causes.

use crate::{
    Response,
    id::{CorrelationId, Direction, MessageId},
    message::encode,
    payload::payload,
    structure::structure,
};

structure! {
    StackTraceElement<'a>, since 2.0 {
        class_name: &'a str, method_name: &'a str, file_name: Option<&'a str>, line_number: i32,
    }
    ErrorHolder<'a>, since 2.0 {
        code: i32, class_name: &'a str, message: Option<&'a str>, stack_trace: Vec<StackTraceElement<'a>>,
    }
}

payload! {
    "The error itself first, then its causes. Answers any request, in the place of its own response.",
    ErrorMessage 'a, MessageId::ERROR, Direction::Response, 2.0 {
        holders: Vec<ErrorHolder<'a>>,
    }
}

impl<'a> Response for ErrorMessage<'a> {
    const ID: MessageId = MessageId::ERROR;

    #[inline]
    fn encode(&self, correlation: CorrelationId, out: &mut Vec<u8>) {
        encode::<Self>(self, correlation, -1, out);
    }
}

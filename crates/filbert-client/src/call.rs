//! A call: sent when it is made, answered when it is awaited, sent again when that helps.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::Bytes;
use filbert_wire::{CorrelationId, Message, MessageId, Request, error_message::ErrorMessage};

use crate::{
    ClientError, ServerError,
    connection::Connection,
    inner::{Inner, Target},
    slots::SlotId,
};

/// How the fields of an answer become the result.
pub(crate) type DecodeFn<T> = fn(&Message<'_>) -> Result<T, ClientError>;

/// A call to the cluster. It was sent when it was made, so several calls that are made and then awaited are in flight
/// together, without a task for each.
///
/// Failures that may pass are retried while the call is awaited, until
/// [`ClientConfig::invocation_timeout`](crate::ClientConfig::invocation_timeout). Dropping a call takes nothing back:
/// the member may carry it out.
#[must_use = "the call is sent, but whether it succeeded shows only when it is awaited"]
pub struct Call<T> {
    client: Arc<Inner>,
    id: MessageId,
    /// The encoded request, kept until the answer is here.
    request: Vec<u8>,
    target: Target,
    /// Sending it twice does no harm.
    repeatable: bool,
    decode: DecodeFn<T>,
    made: Instant,
    attempt: u32,
    state: State,
}

enum State {
    Sent { connection: Arc<Connection>, slot: SlotId },
    Pausing(Pin<Box<tokio::time::Sleep>>),
    NotSent(ClientError),
    Over,
}

impl<T> Call<T> {
    /// Encodes and sends a request.
    pub(crate) fn send<R: Request>(client: &Arc<Inner>, target: Target, request: &R, decode: DecodeFn<T>) -> Self {
        let mut call = Self::new::<R>(client, target, decode);
        if client.is_shut_down() {
            call.state = State::NotSent(ClientError::Shutdown);
            return call;
        }
        request.encode(CorrelationId(0), target.partition(), &mut call.request);
        call.dispatch();
        call
    }

    /// A call that failed before there was anything to send.
    pub(crate) fn failed<R: Request>(client: &Arc<Inner>, error: ClientError, decode: DecodeFn<T>) -> Self {
        let mut call = Self::new::<R>(client, Target::Any, decode);
        call.state = State::NotSent(error);
        call
    }

    fn new<R: Request>(client: &Arc<Inner>, target: Target, decode: DecodeFn<T>) -> Self {
        Self {
            id: R::ID,
            request: Vec::new(),
            target,
            repeatable: R::SPEC.retryable || client.config.redo_operation,
            decode,
            made: Instant::now(),
            attempt: 0,
            state: State::Over,
            client: client.clone(),
        }
    }

    fn dispatch(&mut self) {
        self.state = match self.client.dispatch(self.target, self.id, &mut self.request) {
            Ok((connection, slot)) => State::Sent { connection, slot },
            Err(error) => State::NotSent(error),
        };
    }

    fn read(&self, answer: &Bytes) -> Result<T, ClientError> {
        let message = Message::parse(answer)?;
        if message.id() == MessageId::ERROR {
            let error = message.decode::<ErrorMessage<'_>>()?;
            return Err(ClientError::Server(Box::new(ServerError::new(self.id, &error))));
        }
        (self.decode)(&message)
    }

    /// Pauses before the next attempt, or says why there is none.
    fn retry(&mut self, error: ClientError) -> Result<(), ClientError> {
        if self.client.is_shut_down() {
            return Err(ClientError::Shutdown);
        }
        if !error.is_retryable(self.repeatable) {
            return Err(error);
        }
        let timeout = self.client.config.invocation_timeout;
        let left = timeout.saturating_sub(self.made.elapsed());
        if left == Duration::ZERO {
            return Err(ClientError::Timeout { request: self.id, timeout, last: Box::new(error) });
        }
        tracing::debug!(request = %self.id, attempt = self.attempt, %error, "a call is tried again");
        let pause = self.client.config.retry.pause(self.attempt, self.client.random()).min(left);
        self.attempt = self.attempt.saturating_add(1);
        self.state = State::Pausing(Box::pin(tokio::time::sleep(pause)));
        Ok(())
    }
}

impl<T> Future for Call<T> {
    type Output = Result<T, ClientError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let call = self.get_mut();
        loop {
            let failed = match &mut call.state {
                State::Sent { connection, slot } => {
                    let answer = ready!(connection.poll_answer(*slot, context));
                    let address = connection.address.clone();
                    call.state = State::Over;
                    match answer {
                        Ok(answer) => match call.read(&answer) {
                            Err(error @ ClientError::Server(_)) => error,
                            result => return Poll::Ready(result),
                        },
                        Err(reason) => ClientError::Disconnected { request: call.id, address, reason },
                    }
                }
                State::Pausing(sleep) => {
                    ready!(sleep.as_mut().poll(context));
                    call.dispatch();
                    continue;
                }
                State::NotSent(_) => match std::mem::replace(&mut call.state, State::Over) {
                    State::NotSent(error) => error,
                    _ => ClientError::Taken,
                },
                State::Over => return Poll::Ready(Err(ClientError::Taken)),
            };
            if let Err(error) = call.retry(failed) {
                return Poll::Ready(Err(error));
            }
        }
    }
}

impl<T> Drop for Call<T> {
    fn drop(&mut self) {
        if let State::Sent { connection, slot } = &self.state {
            connection.abandon(*slot);
        }
    }
}

//! A call: sent when it is created, and retried while it is awaited.

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

/// Converts a response into the result of a call.
pub(crate) type DecodeFn<T> = fn(&Message<'_>) -> Result<T, ClientError>;

/// A call to the cluster. It is sent when it is created. Several calls that are created before the
/// first is awaited are in flight together, without a task for each.
///
/// Transient failures are retried while the call is awaited, until
/// [`ClientConfig::invocation_timeout`](crate::ClientConfig::invocation_timeout). Dropping a call
/// does not cancel it: the member may still execute it.
#[must_use = "the call is sent, but whether it succeeded shows only when it is awaited"]
pub struct Call<T> {
    client: Arc<Inner>,
    id: MessageId,
    /// The encoded request, kept for retries.
    request: Vec<u8>,
    target: Target,
    /// Whether the request is safe to send twice.
    repeatable: bool,
    decode: DecodeFn<T>,
    created: Instant,
    attempt: u32,
    state: State,
}

enum State {
    Sent { connection: Arc<Connection>, slot: SlotId },
    Pausing(Pin<Box<tokio::time::Sleep>>),
    NotSent(ClientError),
    Completed,
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

    /// Creates a call that failed before it was sent.
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
            created: Instant::now(),
            attempt: 0,
            state: State::Completed,
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

    /// Starts the pause before the next attempt, or returns the error that ends the call.
    fn retry(&mut self, error: ClientError) -> Result<(), ClientError> {
        if self.client.is_shut_down() {
            return Err(ClientError::Shutdown);
        }
        if !error.is_retryable(self.repeatable) {
            return Err(error);
        }
        let timeout = self.client.config.invocation_timeout;
        let left = timeout.saturating_sub(self.created.elapsed());
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
                    call.state = State::Completed;
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
                State::NotSent(_) => match std::mem::replace(&mut call.state, State::Completed) {
                    State::NotSent(error) => error,
                    _ => ClientError::AlreadyCompleted,
                },
                State::Completed => return Poll::Ready(Err(ClientError::AlreadyCompleted)),
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

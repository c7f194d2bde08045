//! Serving a session: the dispatch of messages.
//!
//! Messages are handled one by one, in the order of their arrival.

use std::time::Duration;

use filbert_grid::query::TransactionState;
use tokio::sync::watch;
use tracing::Instrument;

use crate::{
    buffered_socket::Frame,
    error::{Failure, Outcome, PgError, sqlstate},
    session::Session,
    shared::Ending,
    wire::{Frontend, TransactionStatus, Violation},
};

impl Session {
    /// Serves the client until it disconnects or the door closes.
    pub(crate) async fn run(&mut self, mut ending: watch::Receiver<Ending>) -> Outcome {
        loop {
            while let Some(frame) = self.socket.frame(self.shared.config.message_bytes_max)? {
                let request = tracing::debug_span!("request", message = %char::from(frame.tag));
                self.handle(&frame).instrument(request).await?;
                if self.socket.out.len() >= self.shared.config.write_buffer_bytes {
                    self.socket.flush().await?;
                }
                if *ending.borrow() == Ending::Now {
                    break;
                }
            }
            self.socket.flush().await?;
            self.socket.release_buffers();
            if *ending.borrow() == Ending::Now {
                return Err(Failure::Fatal(PgError::shutting_down()));
            }
            let is_done = self.is_done();
            tokio::select! {
                biased;
                // Messages that the client sent before it could know of the shutdown are answered.
                read = self.socket.fill() => read?,
                _ = ending.wait_for(|ending| *ending == Ending::Now || (is_done && *ending == Ending::WhenDone)) => {
                    return Err(Failure::Fatal(PgError::shutting_down()));
                }
            }
        }
    }

    /// Whether the session can end without loss: no open transaction, no messages without their
    /// `Sync`, no incomplete message.
    fn is_done(&self) -> bool {
        self.state.transaction() == TransactionState::Idle && !self.is_in_batch && self.socket.input_bytes() == 0
    }

    /// Reports to the client why its connection is closed.
    pub(crate) async fn send_fatal(&mut self, error: &PgError, timeout: Duration) {
        error.write("FATAL", &mut self.socket.out);
        // A client that is not at fault is not waited for: when the member stops, there are many
        // clients.
        let lingers = error.sqlstate != sqlstate::SHUTDOWN;
        // An error is ignored: the connection is over in any case.
        let _ = tokio::time::timeout(timeout, self.socket.close(lingers)).await;
    }

    async fn handle(&mut self, frame: &Frame) -> Outcome {
        // In a transaction, ROLLBACK warns of its changes.
        if !self.is_in_batch || self.state.transaction() != TransactionState::Idle {
            self.changes_before_batch = self.state.changes();
        }
        self.is_in_batch =
            matches!(frame.tag, b'P' | b'B' | b'D' | b'E' | b'C' | b'H') || (self.is_in_batch && frame.tag != b'S');
        if self.is_skipping && !matches!(frame.tag, b'S' | b'X') {
            return Ok(());
        }
        let message = match Frontend::decode(frame.tag, &frame.body) {
            Err(violation @ Violation::NotUtf8 { .. }) => {
                let error = PgError::new(sqlstate::NOT_IN_REPERTOIRE, violation.to_string());
                return self.refuse_text(frame.tag, error);
            }
            decoded => decoded?,
        };
        let result = match message {
            Frontend::Query(text) => {
                let result = Box::pin(self.simple_query(text)).await;
                return self.end_query(result);
            }
            Frontend::Parse { name, text, types } => Box::pin(self.parse(name, text, types)).await,
            Frontend::Bind(bind) => self.bind(&bind),
            Frontend::Describe(target, name) => self.describe(target, name),
            Frontend::Execute { portal, rows_max } => Box::pin(self.execute(portal, rows_max)).await,
            Frontend::Close(target, name) => {
                self.close(target, name);
                Ok(())
            }
            Frontend::Flush => Ok(self.socket.flush().await?),
            Frontend::Sync => {
                self.sync();
                Ok(())
            }
            // Remaining messages of a COPY that failed.
            Frontend::CopyData(_) | Frontend::CopyDone | Frontend::CopyFail(_) => Ok(()),
            Frontend::Password => {
                Err(Failure::Fatal(PgError::protocol("a password came, and no authentication is going on")))
            }
            Frontend::Terminate => Err(Failure::Terminated),
        };
        match self.end_statement(result) {
            Err(Failure::Statement(error)) => {
                // In PostgreSQL all messages up to a `Sync` are one transaction. The client is
                // warned that earlier changes remain.
                if self.state.transaction() == TransactionState::Idle
                    && self.state.changes() != self.changes_before_batch
                {
                    self.state.tell_that_changes_stay();
                }
                self.fail(&error);
                self.is_skipping = true;
                Ok(())
            }
            result => result,
        }
    }

    /// A text that is not UTF-8 is an error of the statement, since the message itself is
    /// well-formed.
    fn refuse_text(&mut self, tag: u8, error: Box<PgError>) -> Outcome {
        if tag == b'Q' {
            return self.end_query(Err(error.into()));
        }
        self.fail(&error);
        self.is_skipping = true;
        Ok(())
    }

    /// If the session does not continue, its statement is cancelled: the engine may be producing
    /// the next page. A statement that was cancelled because the member stops ends the session, as
    /// in PostgreSQL: a pool of connections asks another member then.
    fn end_statement(&self, result: Outcome) -> Outcome {
        let result = match result {
            Err(Failure::Statement(error)) if error.sqlstate == sqlstate::CANCELLED && self.slot().is_stopped() => {
                Err(Failure::Fatal(PgError::shutting_down()))
            }
            result => result,
        };
        if !matches!(result, Ok(()) | Err(Failure::Statement(_))) {
            self.slot().cancel();
        }
        self.slot().end();
        result
    }

    fn end_query(&mut self, result: Outcome) -> Outcome {
        match self.end_statement(result) {
            Err(Failure::Statement(error)) => self.fail(&error),
            other => other?,
        }
        self.ready();
        Ok(())
    }

    fn sync(&mut self) {
        self.is_skipping = false;
        self.ready();
    }

    fn ready(&mut self) {
        self.send_notices();
        let status = match self.state.transaction() {
            TransactionState::Idle => {
                self.portals.end_transaction();
                TransactionStatus::Idle
            }
            TransactionState::Open => TransactionStatus::Open,
            TransactionState::Failed => TransactionStatus::Failed,
        };
        self.socket.out.ready(status);
    }
}

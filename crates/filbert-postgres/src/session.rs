//! A session: what it keeps, and which message goes where.
//!
//! Messages are handled one by one, in their order. While a statement runs on the engine's threads the session's task waits for it, and
//! reads ahead a little, so that it sees when the client goes.

use std::{sync::Arc, time::Duration};

use filbert_data::dates::Zone;
use filbert_grid::query::{self, QueryEngine, Severity, TransactionState};
use tokio::sync::{oneshot, watch};

use crate::{
    connection::{Ending, Opened, shutting_down},
    door::Shared,
    error::{Failure, Outcome, PgError, sqlstate},
    kept::{Keeper, Kept},
    link::{Frame, Link},
    portals::{Portals, Statements},
    registry::{Place, Slot},
    settings::{self, Reported},
    wire::{ErrorFields, Frontend, TransactionStatus, Violation},
};

/// One client's session.
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) link: Link,
    /// What the engine knows of it.
    pub(crate) state: Arc<query::Session>,
    pub(crate) statements: Statements,
    pub(crate) portals: Portals,
    /// Room for what they keep.
    pub(crate) keeper: Keeper,
    /// That of the settings with which the session began.
    _opening_room: Kept,
    /// How long a statement may run; `None` = as the engine's settings say.
    pub(crate) statement_timeout_ms: Option<u64>,
    /// The time zone of timestamps.
    pub(crate) zone: Zone,
    reported: Reported,
    place: Place,
    /// An error in the extended protocol: what comes is not looked at until `Sync`.
    is_skipping: bool,
    /// Messages of the extended protocol have come, and no `Sync` after them yet.
    is_in_batch: bool,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, mut link: Link, opened: Opened) -> Session {
        let Opened { opening, place, keeper, opening_room } = opened;
        let state = query::Session::new(opening.dialect, opening.user.as_str());
        let budget = shared.grid.budget();
        let state = state.within(shared.config.session_bytes_max, budget);
        let state = Arc::new(state.with_defaults(opening.defaults()));
        state.set_process(place.process);
        link.out.ready(TransactionStatus::Idle);
        let config = &shared.config;
        let statements = Statements::new(config.statements_max, config.kept_bytes_max);
        let portals = Portals::new(config.portals_max, config.kept_bytes_max);
        let reported = Reported::new(&state);
        let statement_timeout_ms = settings::statement_timeout_ms(&state);
        let zone = settings::zone(&state);
        Session {
            zone,
            link,
            state,
            statements,
            portals,
            keeper,
            _opening_room: opening_room,
            statement_timeout_ms,
            reported,
            place,
            is_skipping: false,
            is_in_batch: false,
            shared,
        }
    }

    pub(crate) fn slot(&self) -> &Slot {
        &self.place.slot
    }

    /// The same, to wait for beside the connection.
    pub(crate) fn shared_slot(&self) -> Arc<Slot> {
        self.place.slot.clone()
    }

    /// The engine, or that there is none.
    pub(crate) fn engine(&self) -> Result<Arc<dyn QueryEngine>, Box<PgError>> {
        let none = || PgError::new(sqlstate::FEATURE_NOT_SUPPORTED, "queries are not switched on in this server");
        self.shared.grid.queries().cloned().ok_or_else(none)
    }

    /// Serves the client until it goes or the door closes.
    pub(crate) async fn run(&mut self, mut ending: watch::Receiver<Ending>) -> Outcome {
        loop {
            while let Some(frame) = self.link.frame(self.shared.config.message_bytes_max)? {
                self.handle(&frame).await?;
                if self.link.out.len() >= self.shared.config.write_buffer_bytes {
                    self.link.flush().await?;
                }
                if *ending.borrow() == Ending::Now {
                    break;
                }
            }
            self.link.flush().await?;
            self.link.rest();
            if *ending.borrow() == Ending::Now {
                return Err(Failure::Fatal(shutting_down()));
            }
            let is_done = self.is_done();
            tokio::select! {
                biased;
                // What the client has sent before it could know is answered.
                read = self.link.fill() => read?,
                _ = ending.wait_for(|ending| *ending == Ending::Now || (is_done && *ending == Ending::WhenDone)) => {
                    return Err(Failure::Fatal(shutting_down()));
                }
            }
        }
    }

    /// Whether the client is in the middle of nothing: no transaction, no messages without their `Sync`, no message of which a part has come.
    fn is_done(&self) -> bool {
        self.state.transaction() == TransactionState::Idle && !self.is_in_batch && self.link.input_bytes() == 0
    }

    /// Tells the client why its connection is closed.
    pub(crate) async fn say_fatal(&mut self, error: &PgError, timeout: Duration) {
        error.write("FATAL", &mut self.link.out);
        // A client that is not at fault is not waited for: at the end of the member there are many.
        let lingers = error.sqlstate != sqlstate::SHUTDOWN;
        // Whatever goes wrong here, the connection is over.
        let _ = tokio::time::timeout(timeout, self.link.close(lingers)).await;
    }

    async fn handle(&mut self, frame: &Frame) -> Outcome {
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
            Frontend::Flush => Ok(self.link.flush().await?),
            Frontend::Sync => {
                self.sync();
                Ok(())
            }
            // What is left of a COPY that failed.
            Frontend::CopyData(_) | Frontend::CopyDone | Frontend::CopyFail(_) => Ok(()),
            Frontend::Password => {
                Err(Failure::Fatal(PgError::protocol("a password came, and no authentication is going on")))
            }
            Frontend::Terminate => Err(Failure::Terminated),
        };
        self.end_statement(&result);
        match result {
            Err(Failure::Statement(error)) => {
                self.fail(&error);
                self.is_skipping = true;
                Ok(())
            }
            result => result,
        }
    }

    /// A text that is not UTF-8 is the statement's fault, since the message around it is right.
    fn refuse_text(&mut self, tag: u8, error: Box<PgError>) -> Outcome {
        if tag == b'Q' {
            return self.end_query(Err(error.into()));
        }
        self.fail(&error);
        self.is_skipping = true;
        Ok(())
    }

    /// Tells the client what the engine has to tell beside results, as far as it wants to hear of it.
    pub(crate) fn send_notices(&mut self) {
        let notices = self.state.take_notices();
        if notices.is_empty() {
            return;
        }
        let least = match self.state.setting("client_min_messages").as_deref() {
            Some("error") => None,
            Some("warning") => Some(Severity::Warning),
            _ => Some(Severity::Notice),
        };
        for notice in notices.iter().filter(|notice| least.is_some_and(|least| notice.severity >= least)) {
            let (severity, sqlstate, message) = (notice.severity.name(), notice.sqlstate, notice.message.as_str());
            self.link.out.notice(ErrorFields { severity, sqlstate, message, ..ErrorFields::default() });
        }
    }

    /// Tells the client of an error, which ends what an open transaction can still do.
    pub(crate) fn fail(&mut self, error: &PgError) {
        self.send_notices();
        error.write("ERROR", &mut self.link.out);
        if self.state.transaction() == TransactionState::Open {
            self.state.set_transaction(TransactionState::Failed);
        }
    }

    /// What still runs when a session does not go on is cancelled: the engine may be making its next page.
    fn end_statement(&self, result: &Outcome) {
        if !matches!(result, Ok(()) | Err(Failure::Statement(_))) {
            self.slot().cancel();
        }
        self.slot().end();
    }

    fn end_query(&mut self, result: Outcome) -> Outcome {
        self.end_statement(&result);
        match result {
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
        self.link.out.ready(status);
    }

    /// Looks at settings that may have changed, and tells the client which have.
    pub(crate) fn report_settings(&mut self) {
        self.statement_timeout_ms = settings::statement_timeout_ms(&self.state);
        self.zone = settings::zone(&self.state);
        self.reported.report(&self.state, &mut self.link.out);
    }

    /// Waits for what another thread gives, and for the client to go.
    pub(crate) async fn wait<T>(&mut self, mut receiver: oneshot::Receiver<T>) -> Outcome<T> {
        loop {
            tokio::select! {
                biased;
                result = &mut receiver => {
                    let lost = |_| PgError::new(sqlstate::INTERNAL, "the engine gave the statement up without an answer");
                    return result.map_err(|error| lost(error).into());
                }
                read = self.link.read_ahead(self.shared.config.read_ahead_bytes_max) => read?,
            }
        }
    }
}

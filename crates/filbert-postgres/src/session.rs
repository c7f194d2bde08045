//! A session: its state, and the operations that every kind of message needs: access to the engine,
//! notices, errors, waiting.
//!
//! While a statement runs on the engine's threads, the session's task waits for it and reads ahead
//! a little, so that it notices when the client disconnects. This module must not know the kinds of
//! messages (`serving.rs`) and the execution of statements (`run.rs`).

use std::sync::Arc;

use filbert_data::dates::Zone;
use filbert_grid::query::{self, QueryEngine, Severity, TransactionState};
use tokio::sync::oneshot;

use crate::{
    buffered_socket::BufferedSocket,
    error::{Outcome, PgError, sqlstate},
    memory::{MemoryLease, SessionMemory},
    portals::{Portals, Statements},
    registry::{SessionRegistration, Slot},
    settings::{self, Opening, Reported},
    shared::Shared,
    wire::{ErrorFields, TransactionStatus},
};

/// The initial state of a session.
pub(crate) struct Opened {
    pub(crate) opening: Opening,
    pub(crate) registration: SessionRegistration,
    /// Counts the memory that the connection keeps.
    pub(crate) memory: SessionMemory,
    /// The memory reservation of the settings in the first message.
    pub(crate) opening_lease: MemoryLease,
}

/// One client's session.
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) socket: BufferedSocket,
    /// The engine's state of the session.
    pub(crate) state: Arc<query::Session>,
    pub(crate) statements: Statements,
    pub(crate) portals: Portals,
    /// Counts the memory that the statements and portals keep.
    pub(crate) memory: SessionMemory,
    /// The memory reservation of the settings with which the session began.
    _opening_lease: MemoryLease,
    /// The maximum duration of a statement. `None`: as in the engine's settings.
    pub(crate) statement_timeout_ms: Option<u64>,
    /// The time zone of timestamps.
    pub(crate) zone: Zone,
    reported: Reported,
    registration: SessionRegistration,
    /// An error occurred in the extended protocol. Messages are skipped until `Sync`.
    pub(crate) is_skipping: bool,
    /// Messages of the extended protocol have arrived, without a `Sync` after them yet.
    pub(crate) is_in_batch: bool,
    /// The session's number of changes when the messages since the last `Sync` began, or when a
    /// transaction among them ended.
    pub(crate) changes_before_batch: u64,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, mut socket: BufferedSocket, opened: Opened) -> Session {
        let Opened { opening, registration, memory, opening_lease } = opened;
        let state = query::Session::new(opening.dialect, opening.user.as_str());
        let budget = shared.grid.kept_budget();
        let state = state.within(shared.config.session_bytes_max, budget);
        let state = Arc::new(state.with_defaults(opening.defaults()));
        state.set_process(registration.process);
        socket.out.ready(TransactionStatus::Idle);
        let config = &shared.config;
        let statements = Statements::new(config.statements_max, config.kept_bytes_max);
        let portals = Portals::new(config.portals_max, config.kept_bytes_max);
        let reported = Reported::new(&state);
        let statement_timeout_ms = settings::statement_timeout_ms(&state);
        let zone = settings::zone(&state);
        Session {
            zone,
            socket,
            state,
            statements,
            portals,
            memory,
            _opening_lease: opening_lease,
            statement_timeout_ms,
            reported,
            registration,
            is_skipping: false,
            is_in_batch: false,
            changes_before_batch: 0,
            shared,
        }
    }

    pub(crate) fn slot(&self) -> &Slot {
        &self.registration.slot
    }

    /// The slot as a shared reference, to wait on it beside the connection.
    pub(crate) fn shared_slot(&self) -> Arc<Slot> {
        self.registration.slot.clone()
    }

    /// Returns the engine, or an error if there is none.
    pub(crate) fn engine(&self) -> Result<Arc<dyn QueryEngine>, Box<PgError>> {
        let none = || PgError::new(sqlstate::FEATURE_NOT_SUPPORTED, "queries are not switched on in this server");
        self.shared.grid.queries().cloned().ok_or_else(none)
    }

    /// Sends the engine's notices to the client, if `client_min_messages` lets them pass.
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
            self.socket.out.notice(ErrorFields { severity, sqlstate, message, ..ErrorFields::default() });
        }
    }

    /// Sends an error to the client. An open transaction becomes a failed one.
    pub(crate) fn fail(&mut self, error: &PgError) {
        self.send_notices();
        error.write("ERROR", &mut self.socket.out);
        if self.state.transaction() == TransactionState::Open {
            self.state.set_transaction(TransactionState::Failed);
        }
    }

    /// Reads settings that may have changed, and reports the changed ones to the client.
    pub(crate) fn report_settings(&mut self) {
        self.statement_timeout_ms = settings::statement_timeout_ms(&self.state);
        self.zone = settings::zone(&self.state);
        self.reported.report(&self.state, &mut self.socket.out);
    }

    /// Waits for a result from another thread. Fails if the client disconnects before.
    pub(crate) async fn wait<T>(&mut self, mut receiver: oneshot::Receiver<T>) -> Outcome<T> {
        loop {
            tokio::select! {
                biased;
                result = &mut receiver => {
                    let lost = |_| PgError::new(sqlstate::INTERNAL, "the engine gave the statement up without an answer");
                    return result.map_err(|error| lost(error).into());
                }
                read = self.socket.read_ahead(self.shared.config.read_ahead_bytes_max) => read?,
            }
        }
    }
}

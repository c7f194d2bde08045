//! Transactions. Each statement takes effect on its own. Differences from a transaction that can
//! roll back are reported or rejected.

use filbert_dialect::{Modes, SessionCommand};
use filbert_grid::query::{Session, Severity, SqlError, SqlErrorCode, TransactionState};

/// The transaction's own settings.
const READ_ONLY: &str = "transaction_read_only";
const ISOLATION: &str = "transaction_isolation";

/// Runs a statement about transactions.
///
/// # Errors
/// There is no transaction where one is required, no such savepoint, or it is too late to set the
/// transaction's modes.
pub(super) fn run(command: &SessionCommand, session: &Session) -> Result<(), SqlError> {
    let in_transaction = session.transaction() != TransactionState::Idle;
    match command {
        SessionCommand::Begin { modes, .. } => {
            if in_transaction {
                session.tell(Severity::Warning, "25001", "there is already a transaction in progress");
            } else {
                session.begin(None);
                session.set_transaction_began_us(chrono::Utc::now().timestamp_micros());
            }
            set_modes(session, modes)
        }
        SessionCommand::SetTransaction(modes) => match in_transaction {
            true => set_modes(session, modes),
            false => {
                warn_outside(session, "SET TRANSACTION");
                Ok(())
            }
        },
        SessionCommand::SetTransactions(modes) => {
            let on = |is_on: bool| if is_on { "on" } else { "off" };
            let settings = [
                ("default_transaction_read_only", modes.read_only.map(on)),
                ("default_transaction_isolation", modes.isolation),
                ("default_transaction_deferrable", modes.deferrable.map(on)),
            ];
            for (name, value) in settings.into_iter().filter_map(|(name, value)| Some((name, value?))) {
                session.set(name, Some(value.to_owned()))?;
            }
            Ok(())
        }
        SessionCommand::Commit { chain } => end(session, "COMMIT", *chain, false),
        SessionCommand::Rollback { chain } => end(session, "ROLLBACK", *chain, true),
        SessionCommand::Savepoint(name) => {
            inside(in_transaction, "SAVEPOINT")?;
            session.save(name.clone())
        }
        SessionCommand::Release(name) => {
            inside(in_transaction, "RELEASE SAVEPOINT")?;
            if session.release(name) { Ok(()) } else { Err(no_savepoint(name)) }
        }
        SessionCommand::RollbackTo(name) => {
            inside(in_transaction, "ROLLBACK TO SAVEPOINT")?;
            let has_changed = session.go_back_to(name).ok_or_else(|| no_savepoint(name))?;
            session.set_transaction(TransactionState::Open);
            if has_changed {
                session.tell_that_changes_stay();
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Ends the transaction. A transaction with a failed statement cannot be committed; its earlier
/// changes stay as well.
fn end(session: &Session, words: &str, chain: bool, is_rollback: bool) -> Result<(), SqlError> {
    let state = session.transaction();
    if state == TransactionState::Idle {
        inside(!chain, &format!("{words} AND CHAIN"))?;
        session.tell(Severity::Warning, "25P01", "there is no transaction in progress");
        return Ok(());
    }
    let is_taken_back = is_rollback || state == TransactionState::Failed;
    let (read_only, isolation) = (session.is_read_only(), session.setting(ISOLATION));
    if session.end(is_taken_back) && is_taken_back {
        session.tell_that_changes_stay();
    }
    session.set_transaction_began_us(chrono::Utc::now().timestamp_micros());
    if chain {
        session.begin(Some(read_only));
        if let Some(isolation) = isolation {
            session.set_local(ISOLATION, Some(isolation))?;
        }
    }
    Ok(())
}

/// Sets the modes of the open transaction.
fn set_modes(session: &Session, modes: &Modes) -> Result<(), SqlError> {
    if let Some(read_only) = modes.read_only {
        set(session, READ_ONLY, if read_only { "on" } else { "off" })?;
    }
    match modes.isolation {
        Some(isolation) => set(session, ISOLATION, isolation),
        None => Ok(()),
    }
}

/// Sets a setting of the open transaction itself.
pub(super) fn set(session: &Session, name: &str, value: &str) -> Result<(), SqlError> {
    let refused = |text: &str| Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("25001"));
    if name == READ_ONLY {
        if value == "off" && session.is_read_only() && session.has_run() {
            return refused("transaction read-write mode must be set before any query");
        }
        session.set_read_only(value == "on");
        return Ok(());
    }
    let before = session.setting(name).or_else(|| session.setting("default_transaction_isolation"));
    if session.has_run() && before.as_deref().unwrap_or("read committed") != value {
        return refused("SET TRANSACTION ISOLATION LEVEL must be called before any query");
    }
    session.set_local(name, Some(value.to_owned()))
}

/// Warns that a statement has no effect outside of a transaction.
pub(super) fn warn_outside(session: &Session, words: &str) {
    session.tell(Severity::Warning, "25P01", format!("{words} can only be used in transaction blocks"));
}

fn inside(in_transaction: bool, words: &str) -> Result<(), SqlError> {
    if in_transaction {
        return Ok(());
    }
    let text = format!("{words} can only be used in transaction blocks");
    Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("25P01"))
}

fn no_savepoint(name: &str) -> SqlError {
    SqlError::new(SqlErrorCode::Generic, format!("savepoint {name:?} does not exist")).with_sqlstate("3B001")
}

/// Fails if a session may not change anything now. `command` is PostgreSQL's name of the statement.
///
/// # Errors
/// SQLSTATE 25006.
#[inline]
pub(crate) fn check_may_change(session: Option<&Session>, command: &str) -> Result<(), SqlError> {
    match session {
        Some(session) if session.is_read_only() => {
            let text = format!("cannot execute {command} in a read-only transaction");
            Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("25006"))
        }
        _ => Ok(()),
    }
}

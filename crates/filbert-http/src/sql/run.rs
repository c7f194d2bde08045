//! Statements and cursors as futures. The engine replies by callbacks, and the futures wait for
//! them. A dropped future abandons the statement.

use std::sync::Arc;

use filbert_grid::query::{
    Cursor, Description, Page, QueryEngine, RowWriter, Running, SqlError, SqlErrorCode, Statement, StatementResult,
    WriteMode,
};
use tokio::sync::oneshot;

/// Cancels a statement when it is dropped, unless the statement has finished.
pub(crate) struct CancelOnDrop(Option<Running>);

impl CancelOnDrop {
    pub(crate) fn new(running: Option<Running>) -> CancelOnDrop {
        CancelOnDrop(running)
    }

    /// Prevents the cancellation, since the statement has finished or has another owner.
    pub(crate) fn disarm(&mut self) -> Option<Running> {
        self.0.take()
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(running) = self.0.take() {
            running.cancel();
        }
    }
}

/// The error of a statement when the thread that runs it is gone.
fn gone() -> SqlError {
    SqlError::new(
        SqlErrorCode::ConnectionProblem,
        "the answer is lost: this member is shutting down, or has failed at the statement",
    )
}

/// Runs a statement, in place if it is short. Cancel safety: dropping the future cancels the
/// statement.
pub(crate) async fn run(
    engine: &Arc<dyn QueryEngine>,
    statement: &Statement<'_>,
) -> Result<(StatementResult, Option<Running>), SqlError> {
    if let Some(result) = engine.execute_short(statement) {
        return Ok((result?, None));
    }
    let (sender, receiver) = oneshot::channel();
    // If the receiver is gone, the result is dropped, which ends the statement.
    let reply = Box::new(move |result| _ = sender.send(result));
    let mut guard = CancelOnDrop::new(Some(engine.execute(statement, reply)));
    let result = receiver.await.unwrap_or_else(|_| Err(gone()));
    let running = guard.disarm();
    Ok((result?, running))
}

/// Describes a statement. Cancel safety: as [`run`].
pub(crate) async fn describe(
    engine: &Arc<dyn QueryEngine>,
    statement: &Statement<'_>,
) -> Result<Arc<Description>, SqlError> {
    let (sender, receiver) = oneshot::channel();
    let reply = Box::new(move |description| _ = sender.send(description));
    let mut guard = CancelOnDrop::new(Some(engine.describe(statement, &[], reply)));
    let described = receiver.await.unwrap_or_else(|_| Err(gone()));
    guard.disarm();
    described
}

/// Prepares a statement for writing rows.
pub(crate) async fn row_writer(
    engine: &Arc<dyn QueryEngine>,
    statement: &Statement<'_>,
) -> Result<Box<dyn RowWriter>, SqlError> {
    let (sender, receiver) = oneshot::channel();
    engine.row_writer(statement, WriteMode::Each, Box::new(move |writer| _ = sender.send(writer)));
    receiver.await.unwrap_or_else(|_| Err(gone()))
}

/// Runs a job on the engine's threads, and waits for its result. The job can ask whether the
/// receiver is gone.
pub(crate) async fn later<T: Send + 'static>(
    engine: &Arc<dyn QueryEngine>,
    job: impl FnOnce(&dyn Fn() -> bool) -> T + Send + 'static,
) -> Result<T, SqlError> {
    let (sender, receiver) = oneshot::channel();
    engine.run_later(Box::new(move || {
        let made = job(&|| sender.is_closed());
        let _ = sender.send(made);
    }));
    receiver.await.map_err(|_| gone())
}

/// Receives the next page of a result, with its cursor.
pub(crate) type PageReceiver = oneshot::Receiver<(Box<dyn Cursor>, Result<Page, SqlError>)>;

/// Requests the next page.
pub(crate) fn ask_page(cursor: Box<dyn Cursor>, rows_max: usize) -> PageReceiver {
    let (sender, receiver) = oneshot::channel();
    cursor.page(rows_max, Box::new(move |cursor, page| _ = sender.send((cursor, page))));
    receiver
}

/// The error of a page that will never arrive.
pub(crate) fn page_gone() -> SqlError {
    gone()
}

//! SQL statements and their results.

use std::{future::Future, sync::Arc, time::Duration};

use filbert_data::{ToBlob, TypeId, Value};
use filbert_wire::{Message, structure::SqlQueryId, table::sql};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::{
    Call, Client, ClientError, SqlError,
    connection::ConnectionId,
    inner::Target,
    map::millis,
    sql_rows::{Page, SqlColumn, SqlRow},
};

/// The default number of rows per page, as in Hazelcast's own clients.
const PAGE_ROWS_DEFAULT: i32 = 4096;

/// The expected kind of result. A statement with another kind of result fails before it is
/// executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultKind {
    /// Any kind.
    #[default]
    Any = 0,
    /// Rows.
    Rows = 1,
    /// The number of changed rows.
    UpdateCount = 2,
}

/// A statement with its parameters and settings.
#[derive(Clone, Debug)]
pub struct Statement {
    text: String,
    /// The serialized parameters; `None` is null.
    parameters: Result<Vec<Option<Vec<u8>>>, ClientError>,
    timeout: Option<Duration>,
    page_rows: i32,
    schema: Option<String>,
    expected: ResultKind,
}

impl Statement {
    /// Creates a statement without parameters.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            parameters: Ok(Vec::new()),
            timeout: None,
            page_rows: PAGE_ROWS_DEFAULT,
            schema: None,
            expected: ResultKind::Any,
        }
    }

    /// Sets the value of the next `?`. If the value cannot be serialized, the execution of the
    /// statement fails.
    #[must_use]
    pub fn bind(mut self, value: &dyn ToBlob) -> Self {
        let mut blob = Vec::new();
        match (&mut self.parameters, value.write_blob(&mut blob)) {
            (Ok(parameters), Ok(())) => parameters.push((value.type_id() != TypeId::NULL).then_some(blob)),
            (Ok(_), Err(error)) => self.parameters = Err(error.into()),
            (Err(_), _) => {}
        }
        self
    }

    /// Sets the time limit of the statement. Zero means no limit. Without this setting the member's
    /// own limit applies.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the number of rows per page, at least 1. Default: 4096. A result holds at most two
    /// pages.
    #[must_use]
    pub fn page_rows(mut self, rows: usize) -> Self {
        self.page_rows = i32::try_from(rows.max(1)).unwrap_or(i32::MAX);
        self
    }

    /// Sets the schema of unqualified names.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// Sets the expected kind of result.
    #[must_use]
    pub fn expect(mut self, kind: ResultKind) -> Self {
        self.expected = kind;
        self
    }
}

/// The result of a statement: rows, read page by page, or the number of changed rows.
///
/// Dropping the result before the last page is read closes the cursor at the member.
pub struct SqlResult {
    client: Client,
    connection: ConnectionId,
    query_id: SqlQueryId,
    page_rows: i32,
    columns: Arc<[SqlColumn]>,
    update_count: Option<u64>,
    is_infinite: bool,
    page: Page,
    /// The next page, already requested.
    pending: Option<Call<Page>>,
    /// Whether the member may hold a cursor that must be closed.
    is_open: bool,
}

/// The response to an execute request.
struct Executed {
    columns: Option<Vec<SqlColumn>>,
    page: Option<Page>,
    update_count: i64,
    is_infinite: bool,
}

fn executed(answer: &Message<'_>) -> Result<Executed, ClientError> {
    let answer = answer.decode::<sql::execute::Response<'_>>()?;
    if let Some(error) = &answer.error {
        return Err(SqlError::new(error).into());
    }
    Ok(Executed {
        columns: answer.row_metadata.map(|columns| columns.iter().map(SqlColumn::new).collect()),
        page: answer.row_page.map(Page::new).transpose()?,
        update_count: answer.update_count,
        is_infinite: answer.is_infinite_rows,
    })
}

fn fetched(answer: &Message<'_>) -> Result<Page, ClientError> {
    let answer = answer.decode::<sql::fetch::Response<'_>>()?;
    match (answer.error, answer.row_page) {
        (Some(error), _) => Err(SqlError::new(&error).into()),
        (None, Some(page)) => Page::new(page),
        (None, None) => Ok(Page::end()),
    }
}

impl Client {
    /// Executes an SQL statement. Each `?` takes the next parameter. The statement is sent when the
    /// future is awaited.
    ///
    /// ```no_run
    /// # async fn example(
    /// #     client: filbert_client::Client,
    /// # ) -> Result<(), filbert_client::ClientError> {
    /// let mut people = client.sql("SELECT name, age FROM people WHERE age > ?", &[&30]).await?;
    /// while let Some(row) = people.next_row().await? {
    ///     let (name, age) = (row.get("name"), row.get("age"));
    /// #   drop((name, age));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ClientError::Sql`] with the code, message and suggestion of the member, or the request
    /// fails.
    pub fn sql(
        &self,
        text: &str,
        parameters: &[&dyn ToBlob],
    ) -> impl Future<Output = Result<SqlResult, ClientError>> + Send + use<> {
        let statement = parameters.iter().fold(Statement::new(text), |statement, value| statement.bind(*value));
        self.execute(statement)
    }

    /// Executes a statement with its own settings.
    ///
    /// # Errors
    ///
    /// As [`Client::sql`].
    pub fn execute(&self, statement: Statement) -> impl Future<Output = Result<SqlResult, ClientError>> + Send + use<> {
        let client = self.clone();
        async move { client.execute_now(statement).await }
    }

    async fn execute_now(self, statement: Statement) -> Result<SqlResult, ClientError> {
        let parameters = statement.parameters?;
        let limit = self.inner.config.limits.value_bytes_max;
        if let Some(bytes) = parameters.iter().flatten().map(Vec::len).find(|bytes| *bytes > limit) {
            return Err(ClientError::TooLarge { request: sql::execute::ID, bytes, limit });
        }
        let (connection, member) = self.cursor_connection().await?;
        let query_id = query_id(member);
        let request = sql::execute::Request {
            sql: &statement.text,
            parameters: parameters.iter().map(Option::as_deref).collect(),
            timeout_millis: millis(statement.timeout),
            cursor_buffer_size: statement.page_rows,
            schema: statement.schema.as_deref(),
            expected_result_type: statement.expected as u8,
            query_id: query_id.clone(),
            skip_update_statistics: false,
        };
        let call = Call::send(&self.inner, Target::Connection(connection), &request, executed);
        // From here on the member may hold a cursor, even if the caller drops this future.
        let mut result = SqlResult {
            client: self,
            connection,
            query_id,
            page_rows: statement.page_rows,
            columns: Arc::new([]),
            update_count: None,
            is_infinite: false,
            page: Page::end(),
            pending: None,
            is_open: true,
        };
        let answer = match call.await {
            Ok(answer) => answer,
            Err(error) => {
                // A member that returns an error holds no cursor.
                result.is_open = !matches!(error, ClientError::Sql(_) | ClientError::Server(_));
                return Err(error);
            }
        };
        result.is_infinite = answer.is_infinite;
        match answer.columns {
            None => {
                result.update_count = Some(u64::try_from(answer.update_count).unwrap_or(0));
                result.is_open = false;
            }
            Some(columns) => {
                result.columns = columns.into();
                result.take(answer.page.unwrap_or_default())?;
            }
        }
        Ok(result)
    }

    /// Selects an open connection, in rotation, because a cursor belongs to one member. Waits if no
    /// connection is open.
    async fn cursor_connection(&self) -> Result<(ConnectionId, Uuid), ClientError> {
        let deadline = Instant::now() + self.inner.config.invocation_timeout;
        let mut attempt = 0;
        loop {
            if self.inner.is_shut_down() {
                return Err(ClientError::Shutdown);
            }
            if let Some(found) = self.inner.next_connection() {
                return Ok(found);
            }
            let pause = self.inner.config.retry.pause(attempt, self.inner.random());
            if Instant::now() + pause > deadline {
                return Err(ClientError::NotConnected { request: sql::execute::ID });
            }
            sleep(pause).await;
            attempt += 1;
        }
    }
}

/// Returns a unique id for a cursor.
fn query_id(member: Uuid) -> SqlQueryId {
    let (member_high, member_low) = member.as_u64_pair();
    let (local_high, local_low) = Uuid::new_v4().as_u64_pair();
    SqlQueryId {
        member_id_high: member_high.cast_signed(),
        member_id_low: member_low.cast_signed(),
        local_id_high: local_high.cast_signed(),
        local_id_low: local_low.cast_signed(),
    }
}

impl SqlResult {
    /// The columns; empty if the result is a row count.
    pub fn columns(&self) -> &[SqlColumn] {
        &self.columns
    }

    /// The number of changed rows; `None` if the result has rows. Hazelcast reports 0 for most
    /// statements.
    pub fn update_count(&self) -> Option<u64> {
        self.update_count
    }

    /// Whether the result is infinite: the rows have no end.
    pub fn is_infinite(&self) -> bool {
        self.is_infinite
    }

    /// Returns the next row, or `None` after the last. The next page is requested while the current
    /// one is consumed.
    ///
    /// # Errors
    ///
    /// The statement failed. No more rows follow.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no row.
    pub async fn next_row(&mut self) -> Result<Option<SqlRow>, ClientError> {
        loop {
            if let Some(row) = self.page.next(&self.columns) {
                return Ok(Some(row));
            }
            if !self.turn_page().await? {
                return Ok(None);
            }
        }
    }

    /// Returns the remaining rows of the current page, or the rows of the next page that is not
    /// empty; `None` after the last page.
    ///
    /// # Errors
    ///
    /// As [`SqlResult::next_row`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no row.
    pub async fn next_page(&mut self) -> Result<Option<Vec<SqlRow>>, ClientError> {
        let Some(first) = self.next_row().await? else { return Ok(None) };
        let mut rows = vec![first];
        rows.extend(std::iter::from_fn(|| self.page.next(&self.columns)));
        Ok(Some(rows))
    }

    /// Returns all remaining rows. Never returns for an infinite result.
    ///
    /// # Errors
    ///
    /// As [`SqlResult::next_row`].
    pub async fn collect(mut self) -> Result<Vec<SqlRow>, ClientError> {
        let mut rows = Vec::new();
        while let Some(page) = self.next_page().await? {
            rows.extend(page);
        }
        Ok(rows)
    }

    /// Returns the first value of the first row, for statements such as `SELECT count(*) ...`;
    /// `None` if there is no row.
    ///
    /// # Errors
    ///
    /// As [`SqlResult::next_row`].
    pub async fn scalar(mut self) -> Result<Option<Value<'static>>, ClientError> {
        let row = self.next_row().await?;
        Ok(row.and_then(|row| row.into_values().into_iter().next()))
    }

    /// Closes the cursor and waits for the member's confirmation.
    ///
    /// # Errors
    ///
    /// The request fails.
    pub async fn close(mut self) -> Result<(), ClientError> {
        match self.send_close() {
            Some(call) => call.await,
            None => Ok(()),
        }
    }

    fn send_close(&mut self) -> Option<Call<()>> {
        self.pending = None;
        if !std::mem::take(&mut self.is_open) {
            return None;
        }
        let request = sql::close::Request { query_id: self.query_id.clone() };
        Some(Call::send(&self.client.inner, Target::Connection(self.connection), &request, |answer| {
            Ok(answer.decode::<sql::close::Response>().map(drop)?)
        }))
    }

    /// Moves to the next page. Returns false if there is none.
    async fn turn_page(&mut self) -> Result<bool, ClientError> {
        let Some(call) = self.pending.as_mut() else { return Ok(false) };
        let answer = call.await;
        self.pending = None;
        match answer {
            Ok(page) => self.take(page).map(|()| true),
            Err(error) => {
                self.is_open = !matches!(error, ClientError::Sql(_) | ClientError::Server(_));
                Err(error)
            }
        }
    }

    /// Sets the current page and requests the next one.
    fn take(&mut self, page: Page) -> Result<(), ClientError> {
        page.check(self.columns.len(), self.page_rows)?;
        if page.is_last() {
            self.is_open = false;
        } else {
            let request = sql::fetch::Request { query_id: self.query_id.clone(), cursor_buffer_size: self.page_rows };
            self.pending = Some(Call::send(&self.client.inner, Target::Connection(self.connection), &request, fetched));
        }
        self.page = page;
        Ok(())
    }
}

impl Drop for SqlResult {
    fn drop(&mut self) {
        // Sends the request at once and does not wait for the response.
        drop(self.send_close());
    }
}

impl std::fmt::Debug for SqlResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqlResult")
            .field("columns", &self.columns)
            .field("update_count", &self.update_count)
            .finish_non_exhaustive()
    }
}

//! SQL statements: sending one, and what it answers.

use std::{future::Future, sync::Arc, time::Duration};

use filbert_data::{FieldType, ToBlob, TypeId, Value};
use filbert_wire::{Message, structure::SqlColumnMetadata, structure::SqlQueryId, table::sql};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::{
    Call, Client, ClientError, SqlError,
    connection::ConnectionId,
    inner::Target,
    map::millis,
    sql_rows::{Page, SqlRow},
};

/// Rows of one page, unless told otherwise; as the stock clients ask for.
const PAGE_ROWS_DEFAULT: i32 = 4096;

/// What kind of result a statement must have; another one is an error before anything was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResultKind {
    /// Any.
    #[default]
    Any = 0,
    /// Rows.
    Rows = 1,
    /// A number of rows that were changed.
    UpdateCount = 2,
}

/// A statement and how it is to be executed.
#[derive(Clone, Debug)]
pub struct Statement {
    text: String,
    /// Null is none.
    parameters: Result<Vec<Option<Vec<u8>>>, ClientError>,
    timeout: Option<Duration>,
    page_rows: i32,
    schema: Option<String>,
    expected: ResultKind,
}

impl Statement {
    /// A statement without parameters.
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

    /// The value of the next `?`. A value that cannot be written is an error when the statement is executed.
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

    /// How long the statement may take; zero for without end, not set for the member's own limit.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Rows of one page, 4096 by default. Two pages are held at most.
    #[must_use]
    pub fn page_rows(mut self, rows: usize) -> Self {
        self.page_rows = i32::try_from(rows.max(1)).unwrap_or(i32::MAX);
        self
    }

    /// The schema in which names without one are looked up.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    /// What kind of result it must have.
    #[must_use]
    pub fn expect(mut self, kind: ResultKind) -> Self {
        self.expected = kind;
        self
    }
}

/// A column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlColumn {
    /// Its name.
    pub name: String,
    /// What it holds; none for a column of nothing but nulls.
    pub field_type: Option<FieldType>,
    /// Whether there may be nulls.
    pub is_nullable: bool,
}

impl SqlColumn {
    fn new(column: &SqlColumnMetadata<'_>) -> Self {
        use filbert_wire::sql_page::SqlColumn as Wire;
        let field_type = match column.kind {
            Wire::VARCHAR => FieldType::Varchar,
            Wire::BOOLEAN => FieldType::Boolean,
            Wire::TINYINT => FieldType::TinyInt,
            Wire::SMALLINT => FieldType::SmallInt,
            Wire::INTEGER => FieldType::Integer,
            Wire::BIGINT => FieldType::BigInt,
            Wire::DECIMAL => FieldType::Decimal(None),
            Wire::REAL => FieldType::Real,
            Wire::DOUBLE => FieldType::Double,
            Wire::DATE => FieldType::Date,
            Wire::TIME => FieldType::Time,
            Wire::TIMESTAMP => FieldType::Timestamp,
            Wire::TIMESTAMP_WITH_TIME_ZONE => FieldType::TimestampTz,
            Wire::JSON => FieldType::Json,
            Wire::NULL => return Self { name: column.name.to_owned(), field_type: None, is_nullable: column.nullable },
            _ => FieldType::Object,
        };
        Self { name: column.name.to_owned(), field_type: Some(field_type), is_nullable: column.nullable }
    }
}

/// What a statement answers: rows that are read page by page, or the number of rows that it changed.
///
/// Dropping it before the last page was read closes the cursor at the member.
pub struct SqlResult {
    client: Client,
    connection: ConnectionId,
    query_id: SqlQueryId,
    page_rows: i32,
    columns: Arc<[SqlColumn]>,
    update_count: Option<u64>,
    is_infinite: bool,
    page: Page,
    /// The next page, already asked for.
    pending: Option<Call<Page>>,
    /// Whether the member has a cursor to be closed.
    is_open: bool,
}

/// The first answer.
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
    /// Executes an SQL statement; each `?` takes the next of the parameters. It is sent when the result is awaited.
    ///
    /// ```no_run
    /// # async fn example(client: filbert_client::Client) -> Result<(), filbert_client::ClientError> {
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
    /// [`ClientError::Sql`] with code, text and suggestion of the member; or the request fails.
    pub fn sql(
        &self,
        text: &str,
        parameters: &[&dyn ToBlob],
    ) -> impl Future<Output = Result<SqlResult, ClientError>> + Send + use<> {
        let statement = parameters.iter().fold(Statement::new(text), |statement, value| statement.bind(*value));
        self.execute(statement)
    }

    /// Executes a statement with settings of its own.
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
        // From here on the member may have a cursor, also if nobody waits for the answer any more.
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
                // Who answers with an error has no cursor.
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

    /// One of the open connections, in turn, since a cursor lives at one member. Waits for one if there is none.
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

/// A name for a cursor that nobody else has.
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
    /// The columns; none if the statement answers a count.
    pub fn columns(&self) -> &[SqlColumn] {
        &self.columns
    }

    /// How many rows the statement changed; none if it answers rows. Hazelcast says 0 for most statements.
    pub fn update_count(&self) -> Option<u64> {
        self.update_count
    }

    /// Whether the rows never end by themselves.
    pub fn is_infinite(&self) -> bool {
        self.is_infinite
    }

    /// The next row; none behind the last. The next page is asked for while the rows of this one are used.
    ///
    /// # Errors
    ///
    /// The statement failed meanwhile; there are no more rows then.
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

    /// The rows of the next page that has any, or what is left of this one; none behind the last.
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

    /// All rows that are left. An infinite result never gets there.
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

    /// The only value of the only row: what `SELECT count(*) ...` answers; none if there is no row.
    ///
    /// # Errors
    ///
    /// As [`SqlResult::next_row`].
    pub async fn scalar(mut self) -> Result<Option<Value<'static>>, ClientError> {
        let row = self.next_row().await?;
        Ok(row.and_then(|row| row.into_values().into_iter().next()))
    }

    /// Closes the cursor and waits until the member has confirmed it.
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

    /// Goes on to the next page. False if there is none.
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

    /// Takes a page over, and asks for the one behind it.
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
        // The member is told at once; its answer is not waited for.
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

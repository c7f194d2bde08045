//! Members as databases for sqllogictest: within the process, and over Hazelcast's protocol.

use std::fmt;
use std::sync::Arc;

use filbert::{Config, Dialect, Error, ExpectedResult, Filbert, Session, SqlResult, Statement, Value};
use filbert_client::{Client, ClientConfig, ClientError, ToBlob};
use sqllogictest::{DB, DBOutput};
use tokio::runtime::Runtime;

use crate::values::{Kind, text_of, with_parameters};

/// The error of a statement: `code: text`, and a suggestion on the next line.
#[derive(Debug)]
pub(crate) struct Failed(pub(crate) String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

impl Failed {
    pub(crate) fn new(code: impl fmt::Display, message: &str, suggestion: Option<&str>) -> Self {
        let suggestion = suggestion.map(|suggestion| format!("\nsuggestion: {suggestion}")).unwrap_or_default();
        Failed(format!("{code}: {message}{suggestion}"))
    }
}

/// The result of a statement, with typed values.
pub(crate) enum Answer {
    Count(u64),
    Rows { kinds: Vec<Kind>, rows: Vec<Vec<Value<'static>>> },
}

/// A member that executes statements, over any interface.
pub(crate) trait Database {
    fn answer(&mut self, statement: &str, parameters: &[Value<'static>]) -> Result<Answer, Failed>;

    /// The protocol name for `skipif` and `onlyif`. Files use it to skip records that the protocol
    /// cannot represent.
    fn protocol() -> &'static str {
        ""
    }

    /// Maps a column kind to the kind that the protocol returns, if the protocol has fewer kinds.
    fn told(kind: Kind) -> Kind {
        kind
    }
}

/// The embedded API.
pub(crate) struct Embedded {
    member: Filbert,
    /// The session. `None` means Hazelcast's dialect.
    session: Option<Arc<Session>>,
}

impl Embedded {
    /// The member.
    pub(crate) fn member(&self) -> &Filbert {
        &self.member
    }

    pub(crate) fn start() -> Self {
        Embedded::with(Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        Embedded { member: Filbert::start(config).unwrap(), session: None }
    }

    /// A member with a session in the given dialect.
    pub(crate) fn of(dialect: Dialect) -> Self {
        Embedded { session: Some(Arc::new(Session::new(dialect, "tester"))), ..Embedded::start() }
    }
}

impl Database for Embedded {
    fn answer(&mut self, statement: &str, parameters: &[Value<'static>]) -> Result<Answer, Failed> {
        let failed = |error| match error {
            Error::Sql(error) if self.session.is_some() => Failed(format!("{}: {}", error.sqlstate(), error.message)),
            Error::Sql(error) => Failed::new(error.code as i32, &error.message, error.suggestion.as_deref()),
            other => Failed(other.to_string()),
        };
        let session = self.session.as_ref();
        let expected = ExpectedResult::Any;
        let statement =
            Statement { text: statement, parameters, types: &[], session, timeout_ms: None, expected, described: None };
        Ok(match self.member.execute(&statement).map_err(failed)? {
            SqlResult::Count(count) => Answer::Count(count),
            SqlResult::Rows(rows) => Answer::Rows {
                kinds: rows.columns().iter().map(|column| Kind::of(Some(&column.field_type))).collect(),
                rows: rows.collect::<Result<_, _>>().map_err(failed)?,
            },
        })
    }
}

/// Our own client, over a socket.
pub(crate) struct Wire {
    client: Client,
    runtime: Runtime,
    _member: Filbert,
}

impl Wire {
    pub(crate) fn start() -> Self {
        let member = Filbert::start(Config::default().with_listener(([127, 0, 0, 1], 0).into())).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let addresses = vec![member.address().unwrap().to_string()];
        let connect = Client::connect(ClientConfig { addresses, ..ClientConfig::default() });
        let client = runtime.block_on(connect).unwrap();
        Wire { client, runtime, _member: member }
    }
}

impl Database for Wire {
    fn answer(&mut self, statement: &str, parameters: &[Value<'static>]) -> Result<Answer, Failed> {
        let failed = |error| match error {
            ClientError::Sql(error) => Failed::new(error.code, &error.message, error.suggestion.as_deref()),
            other => Failed(other.to_string()),
        };
        let parameters: Vec<&dyn ToBlob> = parameters.iter().map(|value| value as &dyn ToBlob).collect();
        self.runtime.block_on(async {
            let result = self.client.sql(statement, &parameters).await.map_err(failed)?;
            if let Some(count) = result.update_count() {
                return Ok(Answer::Count(count));
            }
            let kinds = result.columns().iter().map(|column| Kind::of(column.field_type.as_ref())).collect();
            let rows = result.collect().await.map_err(failed)?;
            Ok(Answer::Rows { kinds, rows: rows.into_iter().map(|row| row.into_values()).collect() })
        })
    }
}

/// The adapter for sqllogictest.
pub(crate) struct Logic<D>(pub(crate) D);

impl<D: Database> DB for Logic<D> {
    type Error = Failed;
    type ColumnType = Kind;

    fn engine_name(&self) -> &str {
        D::protocol()
    }

    fn run(&mut self, statement: &str) -> Result<DBOutput<Kind>, Failed> {
        let (statement, parameters) = with_parameters(statement);
        Ok(match self.0.answer(statement, &parameters)? {
            Answer::Count(count) => DBOutput::StatementComplete(count),
            Answer::Rows { kinds, rows, .. } => DBOutput::Rows {
                types: kinds,
                rows: rows.iter().map(|row| row.iter().map(text_of).collect()).collect(),
            },
        })
    }
}

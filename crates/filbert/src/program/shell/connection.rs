//! The connection: statements are sent as text, and rows are received as text.

use std::io::{BufRead, Write};
use std::pin::pin;

use futures_util::StreamExt;
use tokio::runtime::Runtime;
use tokio_postgres::error::ErrorPosition;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, Error, NoTls, SimpleQueryMessage};

use super::ShellError;
use super::output::{Kind, Writer};

/// A connection to a member. Dropping it closes it.
pub(super) struct Connection {
    runtime: Runtime,
    client: Client,
    address: String,
    version: String,
}

impl Connection {
    /// Connects. `asks` permits a password prompt on the terminal.
    pub(super) fn open(host: &str, user: &str, asks: bool) -> Result<Connection, ShellError> {
        let failed = |reason: String| ShellError::Connect { address: host.to_owned(), reason };
        let (name, port) = split(host).map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        let mut config = Config::new();
        config.host(&name).port(port).user(user).dbname("filbert").application_name("filbert sql");
        if let Ok(password) = std::env::var("PGPASSWORD") {
            config.password(password);
        }
        let mut connected = runtime.block_on(config.connect(NoTls));
        if let Err(error) = &connected
            && config.get_password().is_none()
            && asks
            && error.to_string().contains("password")
        {
            config.password(ask_password(user)?);
            connected = runtime.block_on(config.connect(NoTls));
        }
        let (client, task) = connected.map_err(|error| failed(text_of(&error, "")))?;
        runtime.spawn(async move {
            // The running call reports the error.
            let _ = task.await;
        });
        let mut connection = Connection { runtime, client, address: host.to_owned(), version: String::new() };
        let version = connection.texts("SHOW server_version").into_iter().flatten().next().flatten();
        connection.version = match version.as_deref().and_then(|text| text.split_once('(')) {
            Some((_, inner)) => inner.trim_end_matches(')').to_owned(),
            None => "Filbert".to_owned(),
        };
        Ok(connection)
    }

    /// The address, as the user wrote it.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The server's name and version.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Executes a statement and passes its rows to the writer. Ctrl-C cancels the statement.
    /// Returns the number of changed or returned rows.
    pub(super) fn run(&self, statement: &str, typed: bool, writer: &mut Writer<'_>) -> Result<u64, ShellError> {
        self.runtime.block_on(async {
            let kinds = if typed { self.kinds(statement).await } else { Vec::new() };
            writer.kinds(kinds);
            let failed = |error: Error| ShellError::Statement(text_of(&error, statement));
            let mut messages = pin!(self.client.simple_query_raw(statement).await.map_err(failed)?);
            let cancel = self.client.cancel_token();
            let mut count = 0;
            loop {
                let message = tokio::select! {
                    message = messages.next() => message,
                    _ = tokio::signal::ctrl_c() => {
                        let _ = cancel.cancel_query(NoTls).await;
                        continue;
                    }
                };
                match message {
                    None => return Ok(count),
                    Some(Ok(SimpleQueryMessage::RowDescription(columns))) => {
                        let names = columns.iter().map(|column| column.name().to_owned()).collect();
                        writer.columns(names).map_err(ShellError::Write)?;
                    }
                    Some(Ok(SimpleQueryMessage::Row(row))) => {
                        let values = (0..row.len()).map(|at| row.get(at));
                        writer.row(values).map_err(ShellError::Write)?;
                    }
                    Some(Ok(SimpleQueryMessage::CommandComplete(rows))) => count = rows,
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(failed(error)),
                }
            }
        })
    }

    /// The kinds of the columns for JSON output. Empty if the statement cannot be prepared.
    async fn kinds(&self, statement: &str) -> Vec<Kind> {
        let Ok(prepared) = self.client.prepare(statement).await else { return Vec::new() };
        let kind = |column: &tokio_postgres::Column| match *column.type_() {
            Type::BOOL => Kind::Boolean,
            Type::INT2 | Type::INT4 | Type::INT8 | Type::FLOAT4 | Type::FLOAT8 | Type::NUMERIC | Type::OID => {
                Kind::Number
            }
            Type::JSON | Type::JSONB => Kind::Json,
            _ => Kind::Text,
        };
        prepared.columns().iter().map(kind).collect()
    }

    /// Returns the rows of an internal query of the shell. Empty if the query fails.
    pub(super) fn texts(&self, query: &str) -> Vec<Vec<Option<String>>> {
        let messages = self.runtime.block_on(self.client.simple_query(query)).unwrap_or_default();
        let row = |message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect::<Vec<_>>())
            }
            _ => None,
        };
        messages.into_iter().filter_map(row).collect()
    }
}

/// Parses host and port from `host`, `host:port` or `[::1]:port`.
fn split(address: &str) -> Result<(String, u16), String> {
    const PORT: u16 = 5432;
    let port = |text: &str| text.parse().map_err(|_| format!("the port {text:?} is no number up to 65535"));
    if let Some(rest) = address.strip_prefix('[') {
        let (host, after) = rest.split_once(']').ok_or("expected ] after the address")?;
        return Ok((host.to_owned(), after.strip_prefix(':').map_or(Ok(PORT), port)?));
    }
    match address.rsplit_once(':') {
        Some((host, text)) if !host.contains(':') => Ok((host.to_owned(), port(text)?)),
        _ => Ok((address.to_owned(), PORT)),
    }
}

fn ask_password(user: &str) -> Result<String, ShellError> {
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "Password of {user}: ");
    let _ = stderr.flush();
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(ShellError::Read)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Formats an error for the user: message, position in the statement, hint.
fn text_of(error: &Error, statement: &str) -> String {
    let Some(told) = error.as_db_error() else {
        return match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
    };
    let mut text = format!("{}: {} ({})", told.severity(), told.message(), told.code().code());
    if let Some(ErrorPosition::Original(position)) = told.position() {
        let before = usize::try_from(position.saturating_sub(1)).unwrap_or(usize::MAX);
        let head: String = statement.chars().take(before).collect();
        let line = statement.lines().nth(head.matches('\n').count()).unwrap_or_default();
        let column = head.chars().rev().take_while(|char| *char != '\n').count();
        text.push_str(&format!("\n{line}\n{:column$}^", ""));
    }
    if let Some(hint) = told.hint() {
        text.push_str(&format!("\nhint: {hint}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn an_address_is_a_host_and_maybe_a_port() {
        for (text, host, port) in [
            ("localhost", "localhost", 5432),
            ("10.0.0.1:99", "10.0.0.1", 99),
            ("[::1]:77", "::1", 77),
            ("::1", "::1", 5432),
        ] {
            assert_eq!(split(text), Ok((host.to_owned(), port)), "{text}");
        }
        assert!(split("host:port").is_err());
        assert!(split("[::1").is_err());
    }
}

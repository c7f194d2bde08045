//! PostgreSQL's protocol, version 3.0: a session that sends what it is told to. Rows are read and forgotten.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The largest message of the member that is read. Rows of the loads have values of 64 MiB at most.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// The code of a request to cancel, in the place of a version.
const CANCEL_REQUEST: i32 = 80_877_102;

/// What a statement came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It was run; so many rows came.
    Rows(u64),
    /// It was refused: SQLSTATE and text.
    Refused(String, String),
}

impl Answer {
    /// The SQLSTATE of a refusal.
    pub(crate) fn state(&self) -> Option<&str> {
        match self {
            Answer::Rows(_) => None,
            Answer::Refused(state, _) => Some(state),
        }
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Answer::Rows(rows) => write!(f, "{rows} rows"),
            Answer::Refused(state, _) => f.write_str(state),
        }
    }
}

/// What a session must show to cancel its statement.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CancelKey {
    pub(crate) session: i32,
    pub(crate) secret: i32,
}

/// A session.
pub(crate) struct Session {
    stream: BufStream<TcpStream>,
    address: SocketAddr,
    key: CancelKey,
    body: Vec<u8>,
}

/// A message with its tag and length.
pub(crate) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len() + 5);
    bytes.push(tag);
    bytes.extend_from_slice(&(body.len() as i32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// A simple query.
pub(crate) fn query(text: &str) -> Vec<u8> {
    message(b'Q', &[text.as_bytes(), &[0]].concat())
}

/// Prepares a statement under a name.
pub(crate) fn parse(name: &str, text: &str) -> Vec<u8> {
    message(b'P', &[name.as_bytes(), &[0], text.as_bytes(), &[0, 0, 0]].concat())
}

/// Binds a prepared statement to a portal, with these values as texts.
pub(crate) fn bind(portal: &str, statement: &str, values: &[&[u8]]) -> Vec<u8> {
    let mut body = [portal.as_bytes(), &[0], statement.as_bytes(), &[0, 0, 0]].concat();
    body.extend_from_slice(&(values.len() as u16).to_be_bytes());
    for value in values {
        body.extend_from_slice(&(value.len() as i32).to_be_bytes());
        body.extend_from_slice(value);
    }
    body.extend_from_slice(&[0, 0]);
    message(b'B', &body)
}

/// Runs a portal, at most so many rows of it; 0 is all.
pub(crate) fn execute(portal: &str, rows_max: i32) -> Vec<u8> {
    message(b'E', &[portal.as_bytes(), &[0], &rows_max.to_be_bytes()].concat())
}

/// The end of a series of messages.
pub(crate) fn sync() -> Vec<u8> {
    message(b'S', &[])
}

/// The first message of a session.
pub(crate) fn startup(parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = 196_608_i32.to_be_bytes().to_vec();
    for (name, value) in parameters {
        body.extend_from_slice(&[name.as_bytes(), &[0], value.as_bytes(), &[0]].concat());
    }
    body.push(0);
    [&(body.len() as i32 + 4).to_be_bytes(), &body[..]].concat()
}

impl Session {
    /// Connects and logs in.
    pub(crate) async fn open(address: SocketAddr) -> Result<Session> {
        let stream = TcpStream::connect(address).await.context("connecting to PostgreSQL's door")?;
        stream.set_nodelay(true)?;
        let mut session = Session {
            stream: BufStream::with_capacity(64 << 10, 8 << 10, stream),
            address,
            key: CancelKey::default(),
            body: Vec::new(),
        };
        session.send(&startup(&[("user", "siege"), ("database", "filbert")])).await?;
        match session.answer().await? {
            Answer::Rows(_) => Ok(session),
            Answer::Refused(state, text) => bail!("PostgreSQL's door refuses a session: {state} {text}"),
        }
    }

    /// Sends bytes as they are.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).await.context("writing to PostgreSQL's door")?;
        self.stream.flush().await.context("writing to PostgreSQL's door")
    }

    /// Runs a text and waits for its end.
    pub(crate) async fn run(&mut self, text: &str) -> Result<Answer> {
        self.send(&query(text)).await?;
        self.answer().await
    }

    /// As [`Session::run`]; a refusal is an error.
    pub(crate) async fn done(&mut self, text: &str) -> Result<u64> {
        match self.run(text).await? {
            Answer::Rows(rows) => Ok(rows),
            Answer::Refused(state, said) => bail!("{:.80}: {state} {said}", text),
        }
    }

    /// Reads until the member is ready for the next statement. Of several errors the first counts. The end of the connection after
    /// an error is the answer as well.
    pub(crate) async fn answer(&mut self) -> Result<Answer> {
        let mut answer = Answer::Rows(0);
        loop {
            let tag = match self.next().await {
                Ok(tag) => tag,
                Err(_) if answer.state().is_some() => return Ok(answer),
                Err(error) => return Err(error),
            };
            match (tag, &mut answer) {
                (b'Z', _) => return Ok(answer),
                (b'D', Answer::Rows(rows)) => *rows += 1,
                (b'E', Answer::Rows(_)) => answer = self.refusal(),
                (b'K', _) => self.key = self.cancel_key(),
                _ => {}
            }
        }
    }

    /// The tag of the next message; its body is in [`Session::body`].
    pub(crate) async fn next(&mut self) -> Result<u8> {
        let tag = self.stream.read_u8().await.context("reading from PostgreSQL's door")?;
        let length = self.stream.read_i32().await.context("reading from PostgreSQL's door")?;
        let length = usize::try_from(length).unwrap_or(0).saturating_sub(4);
        if length > MESSAGE_BYTES_MAX {
            bail!("PostgreSQL's door sends a message of {length} bytes, at most {MESSAGE_BYTES_MAX} are expected");
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body).await.context("reading from PostgreSQL's door")?;
        Ok(tag)
    }

    /// The body of the message that was read last.
    pub(crate) fn body(&self) -> &[u8] {
        &self.body
    }

    fn refusal(&self) -> Answer {
        let (mut state, mut text) = (String::new(), String::new());
        for field in self.body.split(|byte| *byte == 0) {
            let (Some(kind), rest) = (field.first(), field.get(1..).unwrap_or_default()) else { continue };
            match kind {
                b'C' => state = String::from_utf8_lossy(rest).into_owned(),
                b'M' => text = String::from_utf8_lossy(rest).chars().take(200).collect(),
                _ => {}
            }
        }
        Answer::Refused(state, text)
    }

    fn cancel_key(&self) -> CancelKey {
        let number = |at: usize| {
            self.body
                .get(at..at + 4)
                .and_then(|bytes| bytes.try_into().ok())
                .map(i32::from_be_bytes)
                .unwrap_or_default()
        };
        CancelKey { session: number(0), secret: number(4) }
    }

    /// Whether the member has said something that was not read yet.
    pub(crate) async fn has_answer(&self) -> bool {
        timeout(Duration::ZERO, self.stream.get_ref().peek(&mut [0])).await.is_ok()
    }

    /// What cancels this session's statements, also while an answer is awaited.
    pub(crate) fn canceller(&self) -> Canceller {
        Canceller { address: self.address, key: self.key }
    }
}

/// Ends what a session runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Canceller {
    address: SocketAddr,
    pub(crate) key: CancelKey,
}

impl Canceller {
    /// Asks the member to, on a connection of its own.
    pub(crate) async fn cancel(self) -> Result<()> {
        cancel(self.address, self.key).await
    }
}

/// A request to cancel, with any key.
pub(crate) async fn cancel(address: SocketAddr, key: CancelKey) -> Result<()> {
    let mut stream = TcpStream::connect(address).await.context("connecting to cancel a statement")?;
    let words = [16, CANCEL_REQUEST, key.session, key.secret];
    stream.write_all(&words.map(i32::to_be_bytes).concat()).await.context("cancelling a statement")?;
    // The member closes when it has understood.
    let _ = stream.read_u8().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_as_the_protocol_has_them() {
        assert_eq!(query("x"), [b'Q', 0, 0, 0, 6, b'x', 0]);
        assert_eq!(sync(), [b'S', 0, 0, 0, 4]);
        assert_eq!(execute("p", 1), [b'E', 0, 0, 0, 10, b'p', 0, 0, 0, 0, 1]);
        assert_eq!(startup(&[]), [0, 0, 0, 9, 0, 3, 0, 0, 0]);
        assert_eq!(bind("", "", &[b"7"]), [b'B', 0, 0, 0, 17, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, b'7', 0, 0]);
    }
}

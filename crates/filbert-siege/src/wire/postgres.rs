//! PostgreSQL's protocol, version 3.0: a session that sends any bytes. Rows are read and discarded.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The size limit of a message from the member. Rows of the loads have values of 64 MiB at most.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// The code of a cancel request, in place of the protocol version.
const CANCEL_REQUEST: i32 = 80_877_102;

/// The result of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The statement succeeded with this number of rows.
    Rows(u64),
    /// The statement failed: SQLSTATE and text.
    Refused(String, String),
}

impl Answer {
    /// The SQLSTATE of a failure.
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

/// The key that cancels a session's statement.
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

/// Encodes a message with tag and length.
pub(crate) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len() + 5);
    bytes.push(tag);
    bytes.extend_from_slice(&(body.len() as i32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// Encodes a simple query.
pub(crate) fn query(text: &str) -> Vec<u8> {
    message(b'Q', &[text.as_bytes(), &[0]].concat())
}

/// Encodes the preparation of a named statement.
pub(crate) fn parse(name: &str, text: &str) -> Vec<u8> {
    message(b'P', &[name.as_bytes(), &[0], text.as_bytes(), &[0, 0, 0]].concat())
}

/// Encodes the binding of a prepared statement to a portal, with these values as texts.
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

/// Encodes the execution of a portal, with a row limit. 0 means no limit.
pub(crate) fn execute(portal: &str, rows_max: i32) -> Vec<u8> {
    message(b'E', &[portal.as_bytes(), &[0], &rows_max.to_be_bytes()].concat())
}

/// Encodes the end of a message series.
pub(crate) fn sync() -> Vec<u8> {
    message(b'S', &[])
}

/// Encodes the first message of a session.
pub(crate) fn startup(parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = 196_608_i32.to_be_bytes().to_vec();
    for (name, value) in parameters {
        body.extend_from_slice(&[name.as_bytes(), &[0], value.as_bytes(), &[0]].concat());
    }
    body.push(0);
    [&(body.len() as i32 + 4).to_be_bytes(), &body[..]].concat()
}

impl Session {
    /// Makes the end of the session a reset: bytes that are not sent yet are dropped.
    pub(crate) fn resets(&self) -> Result<()> {
        self.stream.get_ref().set_zero_linger().context("the socket cannot be set to reset")
    }

    /// Connects and authenticates.
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

    /// Sends raw bytes.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).await.context("writing to PostgreSQL's door")?;
        self.stream.flush().await.context("writing to PostgreSQL's door")
    }

    /// Executes a text and waits for its end.
    pub(crate) async fn run(&mut self, text: &str) -> Result<Answer> {
        self.send(&query(text)).await?;
        self.answer().await
    }

    /// As [`Session::run`], but a failed statement is an error.
    pub(crate) async fn done(&mut self, text: &str) -> Result<u64> {
        match self.run(text).await? {
            Answer::Rows(rows) => Ok(rows),
            Answer::Refused(state, said) => bail!("{:.80}: {state} {said}", text),
        }
    }

    /// Reads until the member is ready for the next statement. Returns the first of several errors.
    /// If the connection closes after an error, the error is returned.
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

    /// Returns the tag of the next message. [`Session::body`] returns its body.
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

    /// The body of the last message.
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

    /// Whether the member has sent unread data.
    pub(crate) async fn has_answer(&self) -> bool {
        timeout(Duration::ZERO, self.stream.get_ref().peek(&mut [0])).await.is_ok()
    }

    /// Returns the handle to cancel this session's statements. It may be used while a reply is
    /// awaited.
    pub(crate) fn canceller(&self) -> Canceller {
        Canceller { address: self.address, key: self.key }
    }
}

/// Cancels the statement of a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Canceller {
    address: SocketAddr,
    pub(crate) key: CancelKey,
}

impl Canceller {
    /// Sends the cancel request on a separate connection.
    pub(crate) async fn cancel(self) -> Result<()> {
        cancel(self.address, self.key).await
    }
}

/// Sends a cancel request with any key.
pub(crate) async fn cancel(address: SocketAddr, key: CancelKey) -> Result<()> {
    let mut stream = TcpStream::connect(address).await.context("connecting to cancel a statement")?;
    let words = [16, CANCEL_REQUEST, key.session, key.secret];
    stream.write_all(&words.map(i32::to_be_bytes).concat()).await.context("cancelling a statement")?;
    // The member closes the connection after it has processed the request.
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

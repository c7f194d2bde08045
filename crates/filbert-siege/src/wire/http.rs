//! HTTP/1.1 without a client library: requests are bytes, replies are a status and the beginning of
//! a body.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;

/// The number of bytes of a body that are kept. The rest is read and discarded.
const BODY_BYTES_KEPT: usize = 256 << 10;

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
    /// Whether the member closes the connection after the reply.
    pub(crate) closes: bool,
}

/// A connection.
pub(crate) struct Connection {
    stream: BufStream<TcpStream>,
}

/// Encodes a POST to `/_sql` with this body and these additional headers.
pub(crate) fn post(headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /_sql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Encodes a request with a statement without arguments.
pub(crate) fn statement(text: &str) -> Vec<u8> {
    post("", serde_json::json!({ "stmt": text }).to_string().as_bytes())
}

impl Connection {
    /// Connects without sending anything.
    pub(crate) async fn open(address: SocketAddr) -> Result<Connection> {
        let stream = TcpStream::connect(address).await.context("connecting to HTTP's door")?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream: BufStream::with_capacity(64 << 10, 8 << 10, stream) })
    }

    /// Sends raw bytes.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).await.context("writing to HTTP's door")?;
        self.stream.flush().await.context("writing to HTTP's door")
    }

    /// Sends a request and reads its reply. A member that rejects a body need not read it. Then the
    /// reply is available even if the body could not be sent completely.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<Answer> {
        let sent = self.send(request).await;
        match (self.answer().await, sent) {
            (Err(_), Err(error)) => Err(error),
            (answer, _) => answer,
        }
    }

    /// Reads a reply.
    pub(crate) async fn answer(&mut self) -> Result<Answer> {
        let first = self.line().await?;
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
        let Some(status) = status else { bail!("HTTP's door answers {first:?}, a status line is expected") };
        let (mut length, mut chunked, mut closes) = (0_u64, false, false);
        loop {
            let line = self.line().await?.to_ascii_lowercase();
            match line.split_once(':') {
                None => break,
                Some(("content-length", value)) => length = value.trim().parse().context("a length of a body")?,
                Some(("transfer-encoding", value)) => chunked = value.contains("chunked"),
                Some(("connection", value)) => closes = value.contains("close"),
                Some(_) => {}
            }
        }
        let mut body = Vec::new();
        if chunked {
            loop {
                let size = self.line().await?;
                let size =
                    u64::from_str_radix(size.trim(), 16).with_context(|| format!("a chunk of {size:?} bytes"))?;
                self.read_body(size, &mut body).await?;
                self.line().await?;
                if size == 0 {
                    break;
                }
            }
        } else {
            self.read_body(length, &mut body).await?;
        }
        Ok(Answer { status, body: String::from_utf8_lossy(&body).into_owned(), closes })
    }

    async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let count = self.stream.read_line(&mut line).await.context("reading from HTTP's door")?;
        if count == 0 {
            bail!("HTTP's door closed the connection");
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }

    async fn read_body(&mut self, mut length: u64, kept: &mut Vec<u8>) -> Result<()> {
        let mut piece = [0; 16 << 10];
        while length > 0 {
            let count = usize::try_from(length).unwrap_or(usize::MAX).min(piece.len());
            let room = piece.get_mut(..count).unwrap_or_default();
            let count = self.stream.read(room).await.context("reading a body from HTTP's door")?;
            if count == 0 {
                bail!("HTTP's door closed the connection within a body");
            }
            length -= count as u64;
            let free = BODY_BYTES_KEPT.saturating_sub(kept.len()).min(count);
            kept.extend_from_slice(piece.get(..free).unwrap_or_default());
        }
        Ok(())
    }

    /// Reads until the member closes the connection. Returns the number of bytes.
    pub(crate) async fn drain(&mut self) -> u64 {
        let mut piece = [0; 16 << 10];
        let mut total = 0;
        while let Ok(count @ 1..) = self.stream.read(&mut piece).await {
            total += count as u64;
        }
        total
    }
}

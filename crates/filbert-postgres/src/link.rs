//! The bytes of one connection: what came and is not handled, what is written and not sent.

use std::{
    cell::RefCell,
    future::poll_fn,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::wire::{self, Out, Violation};

/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// A buffer for replies that is larger than this is not kept for the next ones.
const KEPT_BYTES_MAX: usize = 128 << 10;

/// A buffer for replies that an idle connection may keep.
const IDLE_BYTES_MAX: usize = 2 << 10;

thread_local! {
    /// All connections of a thread read into this buffer in turn, so that idle ones need none.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The socket, with TLS or without.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<Begun>>),
    /// Given away.
    Closed,
}

/// A socket of which the first bytes were read already.
#[derive(Debug)]
pub(crate) struct Begun {
    first: Bytes,
    stream: TcpStream,
}

impl AsyncRead for Begun {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let length = self.first.len().min(buffer.remaining());
        buffer.put_slice(&self.first.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Begun {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

fn closed<T>() -> Poll<io::Result<T>> {
    Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
}

impl Stream {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Closed => closed(),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Closed => closed(),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Closed => closed(),
        }
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Closed => closed(),
        }
    }
}

/// Bytes of requests that all connections of a door may hold together.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicUsize,
    max: usize,
}

impl Budget {
    pub(crate) fn new(max: usize) -> Budget {
        Budget { used: AtomicUsize::new(0), max }
    }

    /// Bytes that are used now.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// A whole message: its name and its body.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) tag: u8,
    pub(crate) body: Bytes,
}

/// A connection's bytes.
#[derive(Debug)]
pub(crate) struct Link {
    stream: Stream,
    input: BytesMut,
    pub(crate) out: Out,
    /// Bytes at the front of `out` that are sent.
    sent: usize,
    budget: Arc<Budget>,
    /// Bytes of the budget that this connection uses.
    counted: usize,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

impl Link {
    pub(crate) fn new(stream: Stream, budget: Arc<Budget>) -> Link {
        Link { stream, input: BytesMut::new(), out: Out::default(), sent: 0, budget, counted: 0 }
    }

    /// Takes what the requests at hand need out of the budget, or gives it back. Small ones are not counted.
    fn count(&mut self) -> io::Result<()> {
        let held = if self.input.len() > READ_BYTES { self.input.len() } else { 0 };
        let used = match held.checked_sub(self.counted) {
            Some(0) => return Ok(()),
            Some(more) => self.budget.used.fetch_add(more, Ordering::Relaxed) + more,
            None => {
                self.budget.used.fetch_sub(self.counted - held, Ordering::Relaxed);
                0
            }
        };
        self.counted = held;
        if used <= self.budget.max {
            return Ok(());
        }
        let text = format!(
            "requests of all clients have {used} bytes, more than the {} of requests_bytes_max",
            self.budget.max
        );
        Err(io::Error::new(io::ErrorKind::OutOfMemory, text))
    }

    /// Whether what came begins with this byte.
    pub(crate) fn begins_with(&self, byte: u8) -> bool {
        self.input.first() == Some(&byte)
    }

    pub(crate) fn is_tls(&self) -> bool {
        matches!(self.stream, Stream::Tls(_))
    }

    /// Goes on within TLS. What came and is not handled yet is the beginning of the handshake.
    ///
    /// # Errors
    /// The handshake failed, or it runs within TLS already.
    pub(crate) async fn begin_tls(&mut self, acceptor: &TlsAcceptor) -> io::Result<()> {
        let again = || io::Error::new(io::ErrorKind::InvalidData, "a second TLS handshake");
        let Stream::Plain(stream) = std::mem::replace(&mut self.stream, Stream::Closed) else { return Err(again()) };
        let begun = Begun { first: self.input.split().freeze(), stream };
        self.stream = Stream::Tls(Box::new(acceptor.accept(begun).await?));
        Ok(())
    }

    /// Bytes that came and are not handled yet.
    pub(crate) fn input_bytes(&self) -> usize {
        self.input.len()
    }

    /// The first message of a connection, without its length.
    pub(crate) fn startup(&mut self, bytes_max: usize) -> Result<Option<Bytes>, Violation> {
        match wire::startup_length(&self.input, bytes_max)? {
            Some(length) if length <= self.input.len() => {
                let message = self.input.split_to(length).freeze();
                Ok(Some(message.slice(4..)))
            }
            _ => Ok(None),
        }
    }

    /// The next message, if all of it is there.
    pub(crate) fn frame(&mut self, bytes_max: usize) -> Result<Option<Frame>, Violation> {
        match wire::frame(&self.input, bytes_max)? {
            Some((tag, length)) if length <= self.input.len() => {
                let message = self.input.split_to(length).freeze();
                // Less than before is never too much.
                let _ = self.count();
                if self.input.is_empty() {
                    // What is left is the end of a buffer that the message keeps; an idle connection is to hold none.
                    self.input = BytesMut::new();
                }
                Ok(Some(Frame { tag, body: message.slice(wire::HEADER_BYTES..) }))
            }
            _ => Ok(None),
        }
    }

    /// Reads what there is, waiting until there is something. Cancel safe.
    ///
    /// # Errors
    /// The client closed the connection, or the network did.
    pub(crate) async fn fill(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_fill(cx)).await
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.resize(READ_BYTES, 0);
            let mut buffer = ReadBuf::new(scratch);
            match self.stream.poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => {
                    Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()))
                }
                Poll::Ready(Ok(())) => {
                    self.input.extend_from_slice(buffer.filled());
                    Poll::Ready(self.count())
                }
                other => other,
            }
        })
    }

    /// Sends all that is written. Cancel safe.
    ///
    /// # Errors
    /// The network broke.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        if self.out.0.is_empty() {
            return Ok(());
        }
        poll_fn(|cx| self.poll_flush(cx)).await
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.out.0.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.poll_write(cx, rest) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(bytes)) => self.sent += bytes,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        if let Poll::Ready(result) = self.stream.poll_flush(cx) {
            self.sent = 0;
            if self.out.0.capacity() > KEPT_BYTES_MAX {
                self.out.0 = Vec::new();
            } else {
                self.out.0.clear();
            }
            return Poll::Ready(result);
        }
        Poll::Pending
    }

    /// Gives the buffers back, where they are empty: the connection is idle.
    pub(crate) fn rest(&mut self) {
        if self.out.0.is_empty() && self.out.0.capacity() > IDLE_BYTES_MAX {
            self.out.0 = Vec::new();
        }
        if self.input.is_empty() {
            self.input = BytesMut::new();
        }
    }

    /// Sends what is written and says that nothing more comes. Where the client goes on sending, what still comes is dropped until it
    /// closes in turn: the system would drop what was sent along with unread input.
    pub(crate) async fn close(&mut self, lingers: bool) -> io::Result<()> {
        self.flush().await?;
        poll_fn(|cx| self.stream.poll_shutdown(cx)).await?;
        if !lingers {
            return Ok(());
        }
        loop {
            self.input.clear();
            self.fill().await?;
        }
    }
}

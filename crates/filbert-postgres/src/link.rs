//! The bytes of one connection: what came and is not handled, what is written and not sent.

use std::{
    cell::RefCell,
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use filbert_grid::{Exhausted, MemoryBudget, Reservation, UNCOUNTED_BYTES_MAX};
use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::wire::{self, Out, Violation};

/// Between two looks whether a connection has ended behind bytes that are not read.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

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

fn out_of_memory(full: &Exhausted) -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, full.to_string())
}

fn closed<T>() -> Poll<io::Result<T>> {
    Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
}

impl Stream {
    fn socket(&self) -> Option<&TcpStream> {
        match self {
            Stream::Plain(stream) => Some(stream),
            Stream::Tls(stream) => Some(&stream.get_ref().0.stream),
            Stream::Closed => None,
        }
    }

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

/// A whole message: its name and its body.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) tag: u8,
    pub(crate) body: Bytes,
    /// That of a long one.
    _room: Option<Reservation>,
}

/// A connection's bytes.
#[derive(Debug)]
pub(crate) struct Link {
    stream: Stream,
    input: BytesMut,
    pub(crate) out: Out,
    /// Bytes at the front of `out` that are sent.
    sent: usize,
    budget: MemoryBudget,
    /// Room for what came and is not handled, if that is much.
    room: Reservation,
    /// Room for what is written and waits for the client to read, if that is much.
    out_room: Reservation,
}

impl Link {
    pub(crate) fn new(stream: Stream, budget: MemoryBudget) -> Link {
        let (room, out_room) = (budget.empty(), budget.empty());
        Link { stream, input: BytesMut::new(), out: Out::default(), sent: 0, budget, room, out_room }
    }

    /// Takes bytes in, for which there is room first. A long message's own length is believed when a quarter of it has come.
    fn take(&mut self, bytes: &[u8]) -> Result<(), Exhausted> {
        let needed = self.input.len() + bytes.len();
        if needed > self.input.capacity() && needed > UNCOUNTED_BYTES_MAX {
            let doubled = self.input.capacity().saturating_mul(2).max(needed);
            let length = wire::length_of(&self.input).unwrap_or(doubled).max(needed);
            let capacity = if needed.saturating_mul(4) >= length { length } else { doubled };
            // The old memory is there until all of it is in the new one.
            self.room.grow(capacity)?;
            let mut input = BytesMut::with_capacity(capacity);
            input.extend_from_slice(&self.input);
            self.input = input;
            self.room.shrink(capacity);
        }
        self.input.extend_from_slice(bytes);
        Ok(())
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
                let mut room = None;
                if self.room.bytes() > 0 {
                    // The message keeps the memory; what is behind it, which is no more than is read ahead, gets its own.
                    room = Some(std::mem::replace(&mut self.room, self.budget.empty()));
                    let behind = self.input.split();
                    self.input = BytesMut::from(&*behind);
                }
                if self.input.is_empty() {
                    // What is left is the end of a buffer that the message keeps; an idle connection is to hold none.
                    self.input = BytesMut::new();
                }
                Ok(Some(Frame { tag, body: message.slice(wire::HEADER_BYTES..), _room: room }))
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

    /// Reads what there is while less than so much was read ahead; beyond that, waits for the client to close the connection.
    /// Cancel safe.
    ///
    /// # Errors
    /// The client closed the connection, or the network did.
    pub(crate) async fn read_ahead(&mut self, bytes_max: usize) -> io::Result<()> {
        if self.input.len() < bytes_max {
            return self.fill().await;
        }
        // Unread bytes have the socket ready all the time: its end is looked for now and then.
        while let Some(socket) = self.stream.socket()
            && !socket.ready(Interest::READABLE).await?.is_read_closed()
        {
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
        Err(io::ErrorKind::UnexpectedEof.into())
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
                    let taken = self.take(buffer.filled());
                    Poll::Ready(taken.map_err(|full| out_of_memory(&full)))
                }
                other => other,
            }
        })
    }

    /// Sends all that is written. Cancel safe.
    ///
    /// # Errors
    /// The network broke, or the client does not read and there is no room for what it has to read.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        if self.out.0.is_empty() {
            return Ok(());
        }
        poll_fn(|cx| self.poll_flush(cx)).await
    }

    /// The same while there is something else of so many bytes that goes on when all is sent. It has room in `room` if the client does not
    /// read at once; if there is none, not all is sent.
    ///
    /// # Errors
    /// As [`Link::flush`].
    pub(crate) async fn flush_beside(
        &mut self,
        room: &mut Reservation,
        bytes: usize,
    ) -> io::Result<Result<(), Exhausted>> {
        poll_fn(|cx| match self.poll_flush(cx) {
            Poll::Ready(result) => Poll::Ready(result.map(Ok)),
            Poll::Pending => match room.follow(bytes) {
                Ok(()) => Poll::Pending,
                Err(exhausted) => Poll::Ready(Ok(Err(exhausted))),
            },
        })
        .await
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.out.0.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.poll_write(cx, rest) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(bytes)) => self.sent += bytes,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return self.wait_for_reader(),
            }
        }
        if let Poll::Ready(result) = self.stream.poll_flush(cx) {
            self.sent = 0;
            self.out_room.shrink(0);
            if self.out.0.capacity() > KEPT_BYTES_MAX {
                self.out.0 = Vec::new();
            } else {
                self.out.0.clear();
            }
            return Poll::Ready(result);
        }
        self.wait_for_reader()
    }

    /// A long answer that the client does not read at once has room. Others are bounded by the number of connections.
    fn wait_for_reader(&mut self) -> Poll<io::Result<()>> {
        let bytes = if self.out.0.capacity() > KEPT_BYTES_MAX { self.out.0.capacity() } else { 0 };
        match self.out_room.follow(bytes) {
            Ok(()) => Poll::Pending,
            Err(full) => Poll::Ready(Err(out_of_memory(&full))),
        }
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

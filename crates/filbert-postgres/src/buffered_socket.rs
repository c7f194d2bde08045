//! The buffers of one connection: received bytes that are not handled yet, and written bytes that
//! are not sent yet.

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

/// The interval between checks whether the client has closed a connection with unread bytes.
const CLOSE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The maximum number of bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// A send buffer that is larger than this is freed after it is sent.
const RETAINED_BYTES_MAX: usize = 128 << 10;

/// The maximum size of the send buffer of an idle connection.
const IDLE_BYTES_MAX: usize = 2 << 10;

thread_local! {
    /// All connections of a thread read into this buffer in turn, so that idle connections need no
    /// buffer.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The socket, with or without TLS.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<PrefixedStream>>),
    /// Moved out during a TLS handshake.
    Closed,
}

/// A socket with some bytes that were already read from it.
#[derive(Debug)]
pub(crate) struct PrefixedStream {
    prefix: Bytes,
    stream: TcpStream,
}

impl AsyncRead for PrefixedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.prefix.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let length = self.prefix.len().min(buffer.remaining());
        buffer.put_slice(&self.prefix.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PrefixedStream {
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

/// A whole message: its type byte and its body.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) tag: u8,
    pub(crate) body: Bytes,
    /// The memory reservation of a long message.
    _reservation: Option<Reservation>,
}

/// The socket and the buffers of a connection.
#[derive(Debug)]
pub(crate) struct BufferedSocket {
    stream: Stream,
    input: BytesMut,
    pub(crate) out: Out,
    /// The number of bytes at the front of `out` that are sent.
    sent: usize,
    budget: MemoryBudget,
    /// The memory reservation of a large `input`.
    reservation: Reservation,
    /// The memory reservation of a large `out` while it waits for the client to read.
    out_reservation: Reservation,
}

impl BufferedSocket {
    pub(crate) fn new(stream: Stream, budget: MemoryBudget) -> BufferedSocket {
        let (reservation, out_reservation) = (budget.empty(), budget.empty());
        BufferedSocket {
            stream,
            input: BytesMut::new(),
            out: Out::default(),
            sent: 0,
            budget,
            reservation,
            out_reservation,
        }
    }

    /// Appends received bytes after it has reserved memory for them. The claimed length of a long
    /// message sets the capacity as soon as a quarter of the message has arrived.
    fn take(&mut self, bytes: &[u8]) -> Result<(), Exhausted> {
        let needed = self.input.len() + bytes.len();
        if needed > self.input.capacity() && needed > UNCOUNTED_BYTES_MAX {
            let doubled = self.input.capacity().saturating_mul(2).max(needed);
            let length = wire::length_of(&self.input).unwrap_or(doubled).max(needed);
            let capacity = if needed.saturating_mul(4) >= length { length } else { doubled };
            // Old and new memory exist at the same time until the bytes are copied.
            self.reservation.grow(capacity)?;
            let mut input = BytesMut::with_capacity(capacity);
            input.extend_from_slice(&self.input);
            self.input = input;
            self.reservation.shrink(capacity);
        }
        self.input.extend_from_slice(bytes);
        Ok(())
    }

    /// Whether the unhandled input begins with this byte.
    pub(crate) fn begins_with(&self, byte: u8) -> bool {
        self.input.first() == Some(&byte)
    }

    pub(crate) fn is_tls(&self) -> bool {
        matches!(self.stream, Stream::Tls(_))
    }

    /// Continues within TLS. The unhandled input is the beginning of the handshake.
    ///
    /// # Errors
    /// The handshake failed, or the connection already runs within TLS.
    pub(crate) async fn begin_tls(&mut self, acceptor: &TlsAcceptor) -> io::Result<()> {
        let repeated = || io::Error::new(io::ErrorKind::InvalidData, "a second TLS handshake");
        let Stream::Plain(stream) = std::mem::replace(&mut self.stream, Stream::Closed) else { return Err(repeated()) };
        let prefixed = PrefixedStream { prefix: self.input.split().freeze(), stream };
        self.stream = Stream::Tls(Box::new(acceptor.accept(prefixed).await?));
        Ok(())
    }

    /// The number of received bytes that are not handled yet.
    pub(crate) fn input_bytes(&self) -> usize {
        self.input.len()
    }

    /// The first message of a connection, without its length. `None` until it is complete.
    pub(crate) fn startup(&mut self, bytes_max: usize) -> Result<Option<Bytes>, Violation> {
        match wire::startup_length(&self.input, bytes_max)? {
            Some(length) if length <= self.input.len() => {
                let message = self.input.split_to(length).freeze();
                Ok(Some(message.slice(4..)))
            }
            _ => Ok(None),
        }
    }

    /// The next message. `None` until it is complete.
    pub(crate) fn frame(&mut self, bytes_max: usize) -> Result<Option<Frame>, Violation> {
        match wire::frame(&self.input, bytes_max)? {
            Some((tag, length)) if length <= self.input.len() => {
                let message = self.input.split_to(length).freeze();
                let mut reservation = None;
                if self.reservation.bytes() > 0 {
                    // The message keeps the memory. The bytes after it, which are no more than the
                    // read-ahead, get their own.
                    reservation = Some(std::mem::replace(&mut self.reservation, self.budget.empty()));
                    let behind = self.input.split();
                    self.input = BytesMut::from(&*behind);
                }
                if self.input.is_empty() {
                    // The empty rest belongs to a buffer that the message keeps. An idle connection
                    // must hold no buffer.
                    self.input = BytesMut::new();
                }
                Ok(Some(Frame { tag, body: message.slice(wire::HEADER_BYTES..), _reservation: reservation }))
            }
            _ => Ok(None),
        }
    }

    /// Reads the available bytes, and waits if there are none. Cancel safe.
    ///
    /// # Errors
    /// The client or the network closed the connection.
    pub(crate) async fn fill(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_fill(cx)).await
    }

    /// Reads the available bytes if fewer than `bytes_max` were read ahead. Otherwise waits for the
    /// client to close the connection. Cancel safe.
    ///
    /// # Errors
    /// The client or the network closed the connection.
    pub(crate) async fn read_ahead(&mut self, bytes_max: usize) -> io::Result<()> {
        if self.input.len() < bytes_max {
            return self.fill().await;
        }
        // With unread bytes the socket is always ready. The end of the connection is checked
        // periodically instead.
        while let Some(socket) = self.stream.socket()
            && !socket.ready(Interest::READABLE).await?.is_read_closed()
        {
            tokio::time::sleep(CLOSE_CHECK_INTERVAL).await;
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_received(cx, BufferedSocket::take)
    }

    fn poll_received(
        &mut self,
        cx: &mut Context<'_>,
        take: impl FnOnce(&mut BufferedSocket, &[u8]) -> Result<(), Exhausted>,
    ) -> Poll<io::Result<()>> {
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.resize(READ_BYTES, 0);
            let mut buffer = ReadBuf::new(scratch);
            match self.stream.poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => {
                    Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()))
                }
                Poll::Ready(Ok(())) => {
                    let taken = take(self, buffer.filled());
                    Poll::Ready(taken.map_err(|full| out_of_memory(&full)))
                }
                other => other,
            }
        })
    }

    /// Sends all written bytes. Cancel safe.
    ///
    /// # Errors
    /// The network failed, or the client does not read and there is no memory left for the written
    /// bytes.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        if self.out.0.is_empty() {
            return Ok(());
        }
        poll_fn(|cx| self.poll_flush(cx)).await
    }

    /// Like [`BufferedSocket::flush`], while the caller holds something else of `bytes` bytes until
    /// all is sent. If the client does not read at once, memory for it is reserved in
    /// `reservation`. If there is none, the inner result is an error and not all is sent.
    ///
    /// # Errors
    /// As [`BufferedSocket::flush`].
    pub(crate) async fn flush_beside(
        &mut self,
        reservation: &mut Reservation,
        bytes: usize,
    ) -> io::Result<Result<(), Exhausted>> {
        poll_fn(|cx| match self.poll_flush(cx) {
            Poll::Ready(result) => Poll::Ready(result.map(Ok)),
            Poll::Pending => match reservation.follow(bytes) {
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
            self.out_reservation.shrink(0);
            if self.out.0.capacity() > RETAINED_BYTES_MAX {
                self.out.0 = Vec::new();
            } else {
                self.out.0.clear();
            }
            return Poll::Ready(result);
        }
        self.wait_for_reader()
    }

    /// Reserves memory for a long reply that the client does not read at once. The memory of short
    /// replies is bounded by the number of connections.
    fn wait_for_reader(&mut self) -> Poll<io::Result<()>> {
        let bytes = if self.out.0.capacity() > RETAINED_BYTES_MAX { self.out.0.capacity() } else { 0 };
        match self.out_reservation.follow(bytes) {
            Ok(()) => Poll::Pending,
            Err(full) => Poll::Ready(Err(out_of_memory(&full))),
        }
    }

    /// Frees empty buffers, since the connection is idle.
    pub(crate) fn release_buffers(&mut self) {
        if self.out.0.is_empty() && self.out.0.capacity() > IDLE_BYTES_MAX {
            self.out.0 = Vec::new();
        }
        if self.input.is_empty() {
            self.input = BytesMut::new();
        }
    }

    /// Sends all written bytes and shuts the sending side down. With `lingers`, all further input
    /// is read and dropped until the client closes: with unread input the operating system would
    /// discard the bytes that were sent last.
    pub(crate) async fn close(&mut self, lingers: bool) -> io::Result<()> {
        self.flush().await?;
        poll_fn(|cx| self.stream.poll_shutdown(cx)).await?;
        if !lingers {
            return Ok(());
        }
        // Input that is dropped takes no memory: a lack of memory may be why the connection ends.
        self.input = BytesMut::new();
        self.reservation.shrink(0);
        loop {
            poll_fn(|cx| self.poll_received(cx, |_, _| Ok(()))).await?;
        }
    }
}

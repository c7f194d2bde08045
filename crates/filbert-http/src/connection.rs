//! One connection: its socket, its session, and its requests, which are served one after the other.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use filbert_grid::query::{Dialect, Session, SqlError};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};
use tracing::debug;

use crate::shared::Shared;

/// The maximum number of bytes that are read and dropped from a client that continues to send a
/// refused body, so that it reads the response.
const LINGER_BYTES_MAX: usize = 64 << 20;

/// The state that a connection keeps from one request to the next.
#[derive(Default)]
pub(crate) struct ConnectionState {
    /// The session. Settings that `SET` changed last until the connection ends, as in CrateDB.
    session: Mutex<Option<UserSession>>,
    /// Whether a request was answered before its body was read.
    refused_body: AtomicBool,
    /// Whether the complete head of a request has arrived.
    has_request: AtomicBool,
    /// The client's address, if it is known.
    address: Option<IpAddr>,
}

struct UserSession {
    session: Arc<Session>,
    /// The schema in the last request's headers.
    schema: Option<String>,
}

impl ConnectionState {
    /// Returns the session of the next request. It is a new session if the user has changed.
    ///
    /// # Errors
    /// The schema's name is too long.
    pub(crate) fn session(&self, shared: &Shared, user: &str, schema: Option<&str>) -> Result<Arc<Session>, SqlError> {
        let mut current = self.session.lock();
        let current = match &mut *current {
            Some(current) if current.session.user() == user => current,
            other => {
                let session = Session::new(Dialect::Crate, user);
                let session = session.within(shared.config.session_bytes_max, shared.grid.kept_budget());
                other.insert(UserSession { session: Arc::new(session), schema: None })
            }
        };
        if current.schema.as_deref() != schema {
            current.session.set("search_path", schema.map(|schema| format!("\"{}\"", schema.replace('"', "\"\""))))?;
            current.schema = schema.map(str::to_owned);
        }
        Ok(current.session.clone())
    }

    /// Whether the client is on this machine.
    pub(crate) fn is_of_this_machine(&self) -> bool {
        self.address.is_some_and(|address| address.to_canonical().is_loopback())
    }

    /// The client's address.
    pub(crate) fn address(&self) -> IpAddr {
        self.address.unwrap_or(Ipv4Addr::UNSPECIFIED.into())
    }

    /// Notes that a body was refused without being read.
    pub(crate) fn set_refused_body(&self) {
        self.refused_body.store(true, Ordering::Relaxed);
    }
}

/// Adds the connection's [`ConnectionState`] to each request.
struct Requests {
    router: TowerToHyperService<Router>,
    state: Arc<ConnectionState>,
    shared: Arc<Shared>,
}

impl Service<Request<Incoming>> for Requests {
    type Response = Response;
    type Error = std::convert::Infallible;
    type Future = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        self.shared.counters.requests.fetch_add(1, Ordering::Relaxed);
        self.state.has_request.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(self.state.clone());
        self.router.call(request)
    }
}

/// Serves a connection until it ends, or until `closing` is true and the current request is
/// answered.
pub(crate) async fn serve(shared: Arc<Shared>, router: Router, stream: TcpStream, mut closing: watch::Receiver<bool>) {
    let address = stream.peer_addr().ok().map(|peer| peer.ip());
    let state = Arc::new(ConnectionState { address, ..ConnectionState::default() });
    let config = &shared.config;
    let requests = Requests { router: TowerToHyperService::new(router), state: state.clone(), shared: shared.clone() };
    let io = TokioIo::new(WriteTimeoutStream::new(stream, config.write_timeout));
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(config.idle_timeout)
        .max_header_size(config.head_bytes_max)
        .max_buf_size(config.buffer_bytes_max.max(8192))
        .serve_connection(io, requests);
    let mut stopping = false;
    let mut silence = std::pin::pin!(tokio::time::sleep(config.head_timeout));
    let mut is_awaited = true;
    let ended = loop {
        tokio::select! {
            () = &mut silence, if is_awaited => {
                is_awaited = false;
                if !state.has_request.load(Ordering::Relaxed) {
                    debug!("connection closed: no request came within {:?} (head_timeout)", config.head_timeout);
                    return;
                }
            }
            ended = std::future::poll_fn(|context| connection.poll_without_shutdown(context)) => break ended,
            changed = closing.changed(), if !stopping => {
                stopping = true;
                if changed.is_ok() {
                    Pin::new(&mut connection).graceful_shutdown();
                }
            }
        }
    };
    if let Err(error) = ended {
        debug!("connection ended: {error}");
    }
    let stream = connection.into_parts().io.into_inner().stream;
    linger(stream, config.close_timeout, state.refused_body.load(Ordering::Relaxed)).await;
}

/// Shuts the sending side down. If the client is still sending a refused body, waits a limited time
/// for it to stop: closing at once could discard the response before the client reads it.
async fn linger(mut stream: TcpStream, wait: Duration, is_sending: bool) {
    let ended = stream.shutdown().await;
    if !is_sending || ended.is_err() {
        return;
    }
    let drain = async {
        let mut buffer = vec![0; 64 << 10];
        let mut dropped = 0;
        while dropped < LINGER_BYTES_MAX {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(bytes) => dropped += bytes,
            }
        }
    };
    // An error is ignored: the connection is over in any case.
    let _ = tokio::time::timeout(wait, drain).await;
}

/// A socket with a timeout for writes to a peer that does not read.
struct WriteTimeoutStream {
    stream: TcpStream,
    wait: Duration,
    /// The deadline for progress of the pending write. Not used while no write waits.
    deadline: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl WriteTimeoutStream {
    fn new(stream: TcpStream, wait: Duration) -> WriteTimeoutStream {
        WriteTimeoutStream { stream, wait, deadline: None, is_waiting: false }
    }

    fn poll_write_timeout<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.is_waiting = false;
            return written;
        }
        let wait = self.wait;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(wait)));
        if !self.is_waiting {
            self.is_waiting = true;
            deadline.as_mut().reset(Instant::now() + wait);
        }
        ready!(deadline.as_mut().poll(context));
        let text = format!("the client did not read its answer for {} s (write_timeout)", wait.as_secs());
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, text)))
    }
}

impl AsyncRead for WriteTimeoutStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for WriteTimeoutStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.poll_write_timeout(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.poll_write_timeout(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.poll_write_timeout(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

//! One connection: its socket, its session, and its requests one after the other.

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

/// What is read and dropped of a client that goes on sending a body that was refused, so that it reads why.
const LINGER_BYTES_MAX: usize = 64 << 20;

/// What a connection keeps from one request to the next.
#[derive(Default)]
pub(crate) struct Link {
    /// Settings that `SET` changed last as long as the connection, as in CrateDB.
    session: Mutex<Option<Known>>,
    /// Whether a request was answered before its body was read.
    refused_body: AtomicBool,
    /// Whether a request came whose head was whole.
    was_asked: AtomicBool,
    /// The client's address, if it has one.
    address: Option<IpAddr>,
}

struct Known {
    session: Arc<Session>,
    /// The schema that the last request's headers named.
    schema: Option<String>,
}

impl Link {
    /// The session of the next request, which is another one if the user is.
    ///
    /// # Errors
    /// The schema's name is too long.
    pub(crate) fn session(&self, shared: &Shared, user: &str, schema: Option<&str>) -> Result<Arc<Session>, SqlError> {
        let mut known = self.session.lock();
        let known = match &mut *known {
            Some(known) if known.session.user() == user => known,
            other => {
                let session = Session::new(Dialect::Crate, user);
                let session = session.within(shared.config.session_bytes_max, shared.grid.budget());
                other.insert(Known { session: Arc::new(session), schema: None })
            }
        };
        if known.schema.as_deref() != schema {
            known.session.set("search_path", schema.map(|schema| format!("\"{}\"", schema.replace('"', "\"\""))))?;
            known.schema = schema.map(str::to_owned);
        }
        Ok(known.session.clone())
    }

    /// Whether the client is on this machine.
    pub(crate) fn is_of_this_machine(&self) -> bool {
        self.address.is_some_and(|address| address.to_canonical().is_loopback())
    }

    /// The client's address.
    pub(crate) fn address(&self) -> IpAddr {
        self.address.unwrap_or(Ipv4Addr::UNSPECIFIED.into())
    }

    /// Notes that a body was not read.
    pub(crate) fn set_refused_body(&self) {
        self.refused_body.store(true, Ordering::Relaxed);
    }
}

/// Gives each request its connection's link.
struct Requests {
    router: TowerToHyperService<Router>,
    link: Arc<Link>,
    shared: Arc<Shared>,
}

impl Service<Request<Incoming>> for Requests {
    type Response = Response;
    type Error = std::convert::Infallible;
    type Future = <TowerToHyperService<Router> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        self.shared.counters.requests.fetch_add(1, Ordering::Relaxed);
        self.link.was_asked.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(self.link.clone());
        self.router.call(request)
    }
}

/// Serves a connection until it ends, or until `closing` says so and its request is answered.
pub(crate) async fn serve(shared: Arc<Shared>, router: Router, stream: TcpStream, mut closing: watch::Receiver<bool>) {
    let address = stream.peer_addr().ok().map(|peer| peer.ip());
    let link = Arc::new(Link { address, ..Link::default() });
    let config = &shared.config;
    let requests = Requests { router: TowerToHyperService::new(router), link: link.clone(), shared: shared.clone() };
    let io = TokioIo::new(Impatient::new(stream, config.write_timeout));
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
                if !link.was_asked.load(Ordering::Relaxed) {
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
    linger(stream, config.close_timeout, link.refused_body.load(Ordering::Relaxed)).await;
}

/// Tells the client that nothing more comes. If it is still sending what was refused, waits a while for it to stop: to close at once
/// would take the answer from it.
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
    // Whatever goes wrong here, the connection is over.
    let _ = tokio::time::timeout(wait, drain).await;
}

/// A socket that gives up on a peer that does not read.
struct Impatient {
    stream: TcpStream,
    wait: Duration,
    /// Until when what is being written must have moved on; not armed while nothing waits.
    deadline: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl Impatient {
    fn new(stream: TcpStream, wait: Duration) -> Impatient {
        Impatient { stream, wait, deadline: None, is_waiting: false }
    }

    fn poll_patience<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
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

impl AsyncRead for Impatient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Impatient {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.poll_patience(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.poll_patience(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.poll_patience(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

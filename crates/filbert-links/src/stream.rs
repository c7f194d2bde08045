//! The stream of a connection after its handshake, with or without TLS.

use std::net::SocketAddr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

use crate::LinkError;

/// The interval of keep-alive probes. A peer on a dead machine is detected within some minutes,
/// even without outstanding calls.
const KEEPALIVE: Duration = Duration::from_secs(20);

pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

pub(crate) struct Halves {
    pub(crate) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) writer: Box<dyn AsyncWrite + Send + Unpin>,
}

/// A stream for both reading and writing.
pub(crate) trait Both: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Both for T {}

impl Stream {
    pub(crate) fn both(&mut self) -> &mut dyn Both {
        match self {
            Stream::Plain(stream) => stream,
            Stream::Tls(stream) => &mut **stream,
        }
    }

    pub(crate) fn split(self) -> Halves {
        match self {
            Stream::Plain(stream) => {
                let (reader, writer) = stream.into_split();
                Halves { reader: Box::new(reader), writer: Box::new(writer) }
            }
            Stream::Tls(stream) => {
                let (reader, writer) = tokio::io::split(*stream);
                Halves { reader: Box::new(reader), writer: Box::new(writer) }
            }
        }
    }
}

/// Sets the options of connections between members, and returns the peer's address.
pub(crate) fn prepare(stream: &TcpStream) -> Result<SocketAddr, LinkError> {
    let prepared = stream.set_nodelay(true).and_then(|()| {
        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
        SockRef::from(stream).set_tcp_keepalive(&keepalive)?;
        stream.peer_addr()
    });
    prepared.map_err(|error| LinkError::io("prepare a connection", &error))
}

//! A connection after its handshake: what is read and what is written, with or without TLS.

use std::net::SocketAddr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

use crate::LinkError;

/// A peer whose machine is gone is noticed, in some minutes, even where nobody waits for an answer.
const KEEPALIVE: Duration = Duration::from_secs(20);

pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

pub(crate) struct Halves {
    pub(crate) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) writer: Box<dyn AsyncWrite + Send + Unpin>,
}

/// What is read and written in turn.
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

/// Sets what connections between members have, and returns the peer's address.
pub(crate) fn prepare(stream: &TcpStream) -> Result<SocketAddr, LinkError> {
    let prepared = stream.set_nodelay(true).and_then(|()| {
        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
        SockRef::from(stream).set_tcp_keepalive(&keepalive)?;
        stream.peer_addr()
    });
    prepared.map_err(|error| LinkError::io("prepare a connection", &error))
}

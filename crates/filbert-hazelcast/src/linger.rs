//! The end of a connection while its peer may still be sending.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// The maximum number of bytes that are read from a client and dropped while its connection is
/// closed. They are read so that the client receives the error: if a socket is closed with unread
/// input, the operating system drops bytes that are written but not sent.
const LINGER_BYTES_MAX: usize = 64 << 20;

/// Shuts down the sending direction, and waits up to `timeout` until the client closes the
/// connection.
pub(crate) async fn linger_on(mut stream: TcpStream, timeout: Duration) {
    let drain = async {
        stream.shutdown().await?;
        let mut dropped = 0;
        let mut buffer = [0; 4096];
        while dropped < LINGER_BYTES_MAX {
            match stream.read(&mut buffer).await? {
                0 => break,
                bytes => dropped += bytes,
            }
        }
        io::Result::Ok(())
    };
    // The connection ends regardless of errors.
    let _ = tokio::time::timeout(timeout, drain).await;
}

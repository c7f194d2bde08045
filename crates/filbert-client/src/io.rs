//! Opens a connection and runs its two tasks: the reader delivers responses and events, the writer
//! writes the outbox.

use std::{io, sync::Arc};

use bytes::{Buf, Bytes, BytesMut};
use filbert_wire::{CorrelationId, Limits, Message, Split, Splitter, frame::flags};
use tokio::{net::TcpStream, sync::Notify};

use crate::{ClientLimits, connection::Connection};

/// The size of a read in bytes: about a thousand small responses.
const READ_BYTES: usize = 64 << 10;

/// The minimum free space of the read buffer in bytes. With less space the buffer grows before the
/// next read, so that no read returns only a few bytes.
const ROOM_BYTES_MIN: usize = 4 << 10;

/// The capacity that an outbox keeps after it was written, in bytes. Memory beyond it is freed.
const OUTBOX_BYTES_KEPT: usize = 1 << 20;

/// Creates a connection from a connected stream and starts its tasks. `on_close` is notified when
/// the connection closes.
pub(crate) fn open(
    stream: TcpStream,
    address: Arc<str>,
    limits: ClientLimits,
    on_close: Arc<Notify>,
) -> Arc<Connection> {
    let stream = Arc::new(stream);
    let connection = Arc::new(Connection::new(stream.clone(), address, limits, on_close));
    let reader = tokio::spawn(read(connection.clone(), stream.clone(), limits));
    let writer = tokio::spawn(write(connection.clone(), stream));
    connection.set_tasks(vec![reader.abort_handle(), writer.abort_handle()]);
    connection
}

/// Closes the connection when its reader stops, even after a panic of a listener. Without a reader,
/// calls would wait forever.
struct CloseAtEnd(Arc<Connection>);

impl Drop for CloseAtEnd {
    fn drop(&mut self) {
        self.0.close("its reader stopped");
    }
}

/// Reads until the connection closes.
async fn read(connection: Arc<Connection>, stream: Arc<TcpStream>, limits: ClientLimits) {
    let guard = CloseAtEnd(connection);
    let reason = read_messages(&guard.0, &stream, limits).await;
    guard.0.close(&reason);
}

async fn read_messages(connection: &Connection, stream: &TcpStream, limits: ClientLimits) -> String {
    let mut splitter = Splitter::new(Limits { message_bytes_max: limits.message_bytes_max, ..Limits::default() });
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    let (mut answers, mut wakers) = (Vec::new(), Vec::new());
    loop {
        if buffer.capacity() - buffer.len() < ROOM_BYTES_MIN {
            // The buffer doubles for a message that is larger, so that its bytes are copied only a
            // few times.
            buffer.reserve(READ_BYTES.max(buffer.len()));
        }
        match stream.try_read_buf(&mut buffer) {
            Ok(0) => return "closed by the member".to_owned(),
            Ok(_) => connection.note_read(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if let Err(error) = stream.readable().await {
                    return error.to_string();
                }
                continue;
            }
            Err(error) => return error.to_string(),
        }
        let whole = take_messages(connection, &mut splitter, &mut buffer, &mut answers);
        connection.answer(&mut answers, &mut wakers);
        if let Err(reason) = whole {
            return reason;
        }
    }
}

/// Removes complete messages from the front of the buffer. Passes events to their handlers and
/// appends responses to `answers`.
fn take_messages(
    connection: &Connection,
    splitter: &mut Splitter,
    buffer: &mut BytesMut,
    answers: &mut Vec<(CorrelationId, Bytes)>,
) -> Result<(), String> {
    while let Some(split) = splitter.split(buffer).map_err(|error| error.to_string())? {
        let message = match split {
            Split::Whole(bytes) => buffer.split_to(bytes).freeze(),
            Split::Fragment(bytes) => {
                buffer.advance(bytes);
                continue;
            }
            Split::Assembled(bytes, message) => {
                buffer.advance(bytes);
                Bytes::from(message)
            }
        };
        let (message_flags, correlation) = peek(&message).ok_or("a message without a header came")?;
        if message_flags & (flags::EVENT | flags::BACKUP_EVENT) == 0 {
            answers.push((correlation, message));
        } else if let Some(handler) = connection.handler(correlation) {
            let event = Message::parse(&message).map_err(|error| error.to_string())?;
            handler(&event);
        }
    }
    Ok(())
}

/// Returns the flags and the correlation id of a message. The receiver of the message parses the
/// rest.
fn peek(message: &[u8]) -> Option<(u16, CorrelationId)> {
    let header = message.first_chunk::<18>()?;
    let [_, _, _, _, e, f, _, _, _, _, correlation @ ..] = *header;
    Some((u16::from_le_bytes([e, f]), CorrelationId(i64::from_le_bytes(correlation))))
}

/// Writes the outbox until the connection closes.
async fn write(connection: Arc<Connection>, stream: Arc<TcpStream>) {
    let mut batch = Vec::new();
    loop {
        while connection.take_outbox(&mut batch) {
            if let Err(error) = write_all(&stream, &batch).await {
                connection.close(&error.to_string());
                return;
            }
            batch.clear();
            batch.shrink_to(OUTBOX_BYTES_KEPT);
        }
        connection.to_write.notified().await;
    }
}

async fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.try_write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

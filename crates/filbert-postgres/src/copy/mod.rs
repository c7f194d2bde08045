//! `COPY FROM STDIN` and `COPY TO STDOUT` in a session.
//!
//! ```text
//!  CopyData, .. ──► chunk of 256 KiB ──► engine's thread: rows ──► values ──► RowWriter::write
//!                   (meanwhile the next chunk fills)             CopyDone ──► RowWriter::finish
//! ```
//!
//! Nothing is written before `CopyDone`: a client that fails or disconnects leaves no row behind.

mod load;

use std::sync::Arc;

use filbert_data::Value;
use filbert_grid::Reservation;
use filbert_grid::query::{CopyFormat, QueryEngine, WriteMode};
use tokio::sync::oneshot;

use self::load::Loader;
use crate::{
    buffered_socket::Frame,
    copy_format::{CopyWriter, format_of},
    error::{Failure, Outcome, PgError, sqlstate},
    run::{Known, Started},
    sending::Sink,
    session::Session,
    wire::Frontend,
};

/// The number of bytes that are passed to the engine's threads at a time.
const CHUNK_BYTES: usize = 256 << 10;

/// Bytes for the engine's threads, with their memory reservation.
enum Chunk {
    /// The data of several messages.
    Gathered(Gathered),
    /// A single message of at least [`CHUNK_BYTES`] bytes.
    Message(Frame),
}

struct Gathered {
    bytes: Vec<u8>,
    reservation: Reservation,
}

impl Gathered {
    /// # Errors
    /// SQLSTATE 53200: there is not enough memory left.
    fn add(&mut self, bytes: &[u8]) -> Result<(), Box<PgError>> {
        // A vector that grows by doubling can have twice the capacity that it needs.
        self.reservation.follow(2 * (self.bytes.len() + bytes.len())).map_err(|exhausted| load::refused(&exhausted))?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

impl Chunk {
    fn bytes(&self) -> &[u8] {
        match self {
            Chunk::Gathered(gathered) => &gathered.bytes,
            // The data is the whole body.
            Chunk::Message(frame) => &frame.body,
        }
    }
}

/// Receives the loader from its thread, with the result of its work.
type Returned = oneshot::Receiver<(Box<Loader>, Result<(), Box<PgError>>)>;

/// The location of a COPY's loader: in the session, or on one of the engine's threads.
enum Load {
    Here(Box<Loader>),
    Away(Returned),
}

impl Session {
    /// `COPY FROM STDIN`: reads rows from the client.
    pub(crate) async fn copy_in(&mut self, text: &str, values: &[Value<'_>], format: &CopyFormat) -> Outcome {
        let engine = self.engine()?;
        let (sender, receiver) = oneshot::channel();
        let reply = Box::new(move |writer| drop(sender.send(writer)));
        engine.row_writer(&self.statement(text, values, Known::default()), WriteMode::All, reply);
        let writer = self.wait(receiver).await??;
        let (budget, row_bytes_max) = (&self.shared.budget, self.shared.config.copy_row_bytes_max);
        let reservations = [budget.empty(), budget.empty()];
        let loader = Box::new(Loader::new(writer, format, row_bytes_max, self.zone.clone(), reservations)?);
        self.socket.out.copy_response(true, format_of(format), loader.columns());
        self.socket.flush().await?;
        let count = self.receive(&engine, loader).await?;
        self.socket.out.command_complete(&format!("COPY {count}"));
        Ok(())
    }

    async fn receive(&mut self, engine: &Arc<dyn QueryEngine>, loader: Box<Loader>) -> Outcome<u64> {
        let mut load = Load::Here(loader);
        let mut gathered = self.nothing_gathered();
        loop {
            let frame = self.next_frame().await?;
            let mut message = None;
            match Frontend::decode(frame.tag, &frame.body)? {
                // The message has its own memory reservation, and is not copied.
                Frontend::CopyData(bytes) if bytes.len() >= CHUNK_BYTES => message = Some(frame),
                Frontend::CopyData(bytes) => gathered.add(bytes)?,
                Frontend::CopyDone => break,
                Frontend::CopyFail(reason) => {
                    let message = format!("COPY from stdin failed: {reason}");
                    return Err(PgError::new(sqlstate::CANCELLED, message).into());
                }
                Frontend::Flush | Frontend::Sync => {}
                Frontend::Terminate => return Err(Failure::Terminated),
                _ => {
                    let message = format!("unexpected message {:?} during COPY from stdin", char::from(frame.tag));
                    return Err(Failure::Fatal(PgError::protocol(message)));
                }
            }
            if gathered.bytes.len() >= CHUNK_BYTES || (message.is_some() && !gathered.bytes.is_empty()) {
                let loader = self.returned(load).await?;
                let chunk = std::mem::replace(&mut gathered, self.nothing_gathered());
                load = Load::Away(work(engine, loader, Chunk::Gathered(chunk), Loader::load));
            }
            if let Some(message) = message {
                let loader = self.returned(load).await?;
                load = Load::Away(work(engine, loader, Chunk::Message(message), Loader::load));
            }
        }
        let loader = self.returned(load).await?;
        let finish = |loader: &mut Loader, bytes: &[u8]| {
            loader.load(bytes)?;
            loader.finish()
        };
        let rest = Chunk::Gathered(gathered);
        Ok(self.returned(Load::Away(work(engine, loader, rest, finish))).await?.written())
    }

    fn nothing_gathered(&self) -> Gathered {
        Gathered { bytes: Vec::new(), reservation: self.shared.budget.empty() }
    }

    /// Returns the loader after it has finished its last chunk.
    async fn returned(&mut self, load: Load) -> Outcome<Box<Loader>> {
        match load {
            Load::Here(loader) => Ok(loader),
            Load::Away(receiver) => {
                let (loader, result) = self.wait(receiver).await?;
                if self.slot().is_cancelled() {
                    return Err(PgError::cancelled().into());
                }
                result?;
                Ok(loader)
            }
        }
    }

    /// Returns the next message. Fails if the statement is cancelled before it arrives.
    async fn next_frame(&mut self) -> Outcome<Frame> {
        let slot = self.shared_slot();
        loop {
            if slot.is_cancelled() {
                return Err(PgError::cancelled().into());
            }
            if let Some(frame) = self.socket.frame(self.shared.config.message_bytes_max)? {
                return Ok(frame);
            }
            tokio::select! {
                biased;
                () = slot.cancelled() => {}
                read = self.socket.fill() => read?,
            }
        }
    }

    /// `COPY TO STDOUT`: sends rows to the client.
    pub(crate) async fn copy_out(&mut self, text: &str, values: &[Value<'_>], format: &CopyFormat) -> Outcome {
        let Started::Rows(mut rows) = self.start(text, values, Known::default()).await? else {
            return Err(PgError::new(sqlstate::INTERNAL, "COPY TO STDOUT gave no rows").into());
        };
        let writer = CopyWriter::new(format, &rows.columns)?;
        self.socket.out.copy_response(false, format_of(format), rows.columns.len());
        writer.begin(&rows.columns, &mut self.socket.out);
        let mut sink = Sink::Copy(writer);
        self.send_rows(&mut rows, &mut sink, 0).await?;
        if let Sink::Copy(writer) = &mut sink {
            writer.end(&mut self.socket.out);
        }
        self.socket.out.copy_done();
        self.socket.out.command_complete(&format!("COPY {}", rows.count));
        Ok(())
    }
}

/// Runs a job of the loader on one of the engine's threads.
fn work(
    engine: &Arc<dyn QueryEngine>,
    mut loader: Box<Loader>,
    chunk: Chunk,
    job: impl FnOnce(&mut Loader, &[u8]) -> Result<(), Box<PgError>> + Send + 'static,
) -> Returned {
    let (sender, receiver) = oneshot::channel();
    engine.run_later(Box::new(move || {
        if sender.is_closed() {
            // The client disconnected: its rows must not be written.
            return;
        }
        let result = job(&mut loader, chunk.bytes());
        drop(chunk);
        // If the receiver is gone now, the loader is dropped with all rows that are not written.
        let _ = sender.send((loader, result));
    }));
    receiver
}

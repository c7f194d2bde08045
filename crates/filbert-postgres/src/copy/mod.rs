//! `COPY FROM STDIN` and `COPY TO STDOUT`.
//!
//! ```text
//!  CopyData, CopyData, .. ──► chunk of 256 KiB ──► engine's thread: rows ──► values ──► RowWriter::write
//!                             (the next one fills meanwhile)                CopyDone ──► RowWriter::finish
//! ```
//!
//! Nothing is written before `CopyDone`: a client that fails or goes leaves no row behind.

mod binary;
mod load;
pub(crate) mod out;

use std::sync::Arc;

use filbert_data::{Value, rows::RowFormat};
use filbert_grid::Reservation;
use filbert_grid::query::{CopyFormat, CopyKind, QueryEngine, WriteMode};
use tokio::sync::oneshot;

use self::load::Loader;
use self::out::CopyWriter;
use crate::{
    error::{Failure, Outcome, PgError, sqlstate},
    link::Frame,
    rows::Sink,
    run::Started,
    session::Session,
    wire::{Format, Frontend},
};

/// Bytes that are handed to the engine's threads at a time.
const CHUNK_BYTES: usize = 256 << 10;

/// Bytes for the engine's threads, with their room.
enum Chunk {
    /// Those of several messages.
    Gathered(Gathered),
    /// A message that is long enough by itself.
    Message(Frame),
}

struct Gathered {
    bytes: Vec<u8>,
    room: Reservation,
}

impl Gathered {
    /// # Errors
    /// SQLSTATE 53200: there is no room.
    fn add(&mut self, bytes: &[u8]) -> Result<(), Box<PgError>> {
        // A list that grows by doubling takes as much again.
        self.room.follow(2 * (self.bytes.len() + bytes.len())).map_err(|exhausted| load::refused(&exhausted))?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

impl Chunk {
    fn bytes(&self) -> &[u8] {
        match self {
            Chunk::Gathered(gathered) => &gathered.bytes,
            // All of its body.
            Chunk::Message(frame) => &frame.body,
        }
    }
}

/// A loader that comes back from a thread, and how it went.
type Returned = oneshot::Receiver<(Box<Loader>, Result<(), Box<PgError>>)>;

/// Where a COPY's loader is.
enum Load {
    Here(Box<Loader>),
    Away(Returned),
}

/// How `CopyInResponse` and `CopyOutResponse` tell a format.
fn format_of(format: &CopyFormat) -> Format {
    if format.kind == CopyKind::Binary { Format::Binary } else { Format::Text }
}

/// The format of rows that are text.
fn row_format(format: &CopyFormat) -> Result<RowFormat, Box<PgError>> {
    let single = |char: char, name: &str| {
        let message = || format!("COPY {name} must be a single one-byte character, found {char:?}");
        u8::try_from(char)
            .ok()
            .filter(u8::is_ascii)
            .ok_or_else(|| PgError::new(sqlstate::FEATURE_NOT_SUPPORTED, message()))
    };
    Ok(RowFormat {
        is_csv: format.kind == CopyKind::Csv,
        delimiter: single(format.delimiter, "delimiter")?,
        null: format.null.clone(),
        header: format.header,
        quote: single(format.quote, "quote")?,
        escape: single(format.escape, "escape")?,
    })
}

impl Session {
    /// Takes rows from the client.
    pub(crate) async fn copy_in(&mut self, text: &str, values: &[Value<'_>], format: &CopyFormat) -> Outcome {
        let engine = self.engine()?;
        let (sender, receiver) = oneshot::channel();
        let reply = Box::new(move |writer| drop(sender.send(writer)));
        engine.row_writer(&self.statement(text, values, &[]), WriteMode::All, reply);
        let writer = self.wait(receiver).await??;
        let (budget, row_bytes_max) = (&self.shared.budget, self.shared.config.copy_row_bytes_max);
        let rooms = [budget.empty(), budget.empty()];
        let loader = Box::new(Loader::new(writer, format, row_bytes_max, self.zone.clone(), rooms)?);
        self.link.out.copy_response(true, format_of(format), loader.columns());
        self.link.flush().await?;
        let count = self.receive(&engine, loader).await?;
        self.link.out.command_complete(&format!("COPY {count}"));
        Ok(())
    }

    async fn receive(&mut self, engine: &Arc<dyn QueryEngine>, loader: Box<Loader>) -> Outcome<u64> {
        let mut load = Load::Here(loader);
        let mut gathered = self.nothing_gathered();
        loop {
            let frame = self.next_frame().await?;
            let mut message = None;
            match Frontend::decode(frame.tag, &frame.body)? {
                // It has its room, and is not copied.
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
        Gathered { bytes: Vec::new(), room: self.shared.budget.empty() }
    }

    /// The loader, when it is done with what it was given.
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

    /// The next message, unless the statement is cancelled before it comes.
    async fn next_frame(&mut self) -> Outcome<Frame> {
        let slot = self.shared_slot();
        loop {
            if slot.is_cancelled() {
                return Err(PgError::cancelled().into());
            }
            if let Some(frame) = self.link.frame(self.shared.config.message_bytes_max)? {
                return Ok(frame);
            }
            tokio::select! {
                biased;
                () = slot.cancelled() => {}
                read = self.link.fill() => read?,
            }
        }
    }

    /// Gives rows to the client.
    pub(crate) async fn copy_out(&mut self, text: &str, values: &[Value<'_>], format: &CopyFormat) -> Outcome {
        let Started::Rows(mut rows) = self.start(text, values, &[]).await? else {
            return Err(PgError::new(sqlstate::INTERNAL, "COPY TO STDOUT gave no rows").into());
        };
        let writer = CopyWriter::new(format, &rows.columns)?;
        self.link.out.copy_response(false, format_of(format), rows.columns.len());
        writer.begin(&rows.columns, &mut self.link.out);
        let mut sink = Sink::Copy(writer);
        self.send_rows(&mut rows, &mut sink, 0).await?;
        if let Sink::Copy(writer) = &mut sink {
            writer.end(&mut self.link.out);
        }
        self.link.out.copy_done();
        self.link.out.command_complete(&format!("COPY {}", rows.count));
        Ok(())
    }
}

/// Has a loader work on bytes on one of the engine's threads.
fn work(
    engine: &Arc<dyn QueryEngine>,
    mut loader: Box<Loader>,
    chunk: Chunk,
    job: impl FnOnce(&mut Loader, &[u8]) -> Result<(), Box<PgError>> + Send + 'static,
) -> Returned {
    let (sender, receiver) = oneshot::channel();
    engine.run_later(Box::new(move || {
        if sender.is_closed() {
            // The client is gone: what it sent is not to be written.
            return;
        }
        let result = job(&mut loader, chunk.bytes());
        drop(chunk);
        // If it is gone now, the loader is dropped, and with it all rows that are not written.
        let _ = sender.send((loader, result));
    }));
    receiver
}

/// Reads the bytes as binary rows, whole and in parts, which must give the same.
pub(crate) fn fuzz_binary(parts: usize, data: &[u8]) {
    let read = |parts: usize| {
        let mut fields_seen = 0;
        let mut reader = binary::BinaryReader::new(1 << 12);
        let mut on_row = |_: u64, fields: &[Option<&[u8]>]| {
            fields_seen += fields.len() + 1;
            Ok(())
        };
        let result = data.chunks(parts).try_for_each(|part| reader.feed(part, &mut on_row));
        (result.and_then(|()| reader.finish()).is_ok(), fields_seen)
    };
    let (whole, in_parts) = (read(usize::MAX), read(parts + 1));
    assert!(whole == in_parts || !whole.0, "{whole:?} {in_parts:?}");
}

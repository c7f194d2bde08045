//! A client of PostgreSQL's protocol with access to all details: column types, value bytes, error
//! fields.
//!
//! It is blocking, supports only trust authentication, and times out if the server is silent. A
//! stock driver would convert values and query the server for types; this client adds nothing.

mod message;

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use self::message::{Fields, Outgoing, failure};
use crate::outcome::{Answer, Column, Outcome};

/// The maximum silence of a server during a statement. The server's own timeout ends a statement
/// earlier.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// The maximum size of a message. Replies to the generated statements are smaller.
const MESSAGE_BYTES_MAX: usize = 256 << 20;

/// A parameter: the OID of its declared type (0 means undeclared), and its value as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) oid: u32,
    pub(crate) value: Option<String>,
}

/// A connection to a server.
pub(crate) struct Connection {
    address: SocketAddr,
    database: String,
    startup: Vec<String>,
    stream: Option<Stream>,
}

struct Stream {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

impl Connection {
    /// Connects. The statements of `startup` are executed now and after each reconnect.
    pub(crate) fn open(address: SocketAddr, database: &str, startup: &[&str]) -> Result<Connection> {
        let startup = startup.iter().map(|text| (*text).to_owned()).collect();
        let mut connection = Connection { address, database: database.to_owned(), startup, stream: None };
        connection.connect()?;
        Ok(connection)
    }

    fn connect(&mut self) -> Result<()> {
        let socket = TcpStream::connect(self.address).with_context(|| format!("connecting to {}", self.address))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(SILENCE_MAX))?;
        let mut stream = Stream { reader: BufReader::new(socket.try_clone()?), writer: socket };
        let mut hello = Outgoing::new();
        hello.startup(&[("user", "postgres"), ("database", &self.database), ("client_encoding", "UTF8")]);
        stream.writer.write_all(&hello.bytes)?;
        match stream.answers()?.pop() {
            Some(Outcome::Failure { message, .. }) => bail!("{} refused the login: {message}", self.address),
            _ => self.stream = Some(stream),
        }
        for text in self.startup.clone() {
            if let Outcome::Failure { message, .. } = self.run(&text) {
                bail!("{} refused {text:?}: {message}", self.address);
            }
        }
        Ok(())
    }

    /// Executes one statement with the simple query protocol.
    pub(crate) fn run(&mut self, text: &str) -> Outcome {
        let mut query = Outgoing::new();
        query.message(b'Q', |body| body.text(text));
        self.exchange(&query.bytes).pop().unwrap_or(Outcome::Lost("no answer at all".to_owned()))
    }

    /// Prepares a statement and executes it `times` times, with the extended query protocol.
    pub(crate) fn prepare_and_run(
        &mut self,
        text: &str,
        parameters: &[Parameter],
        binary: bool,
        times: usize,
    ) -> Vec<Outcome> {
        let mut prepare = Outgoing::new();
        prepare.parse("s", text, parameters);
        prepare.message(b'S', |_| ());
        if let Some(refused) = self.exchange(&prepare.bytes).into_iter().find(|outcome| !outcome.is_answer()) {
            return vec![refused];
        }
        let mut outcomes = Vec::new();
        for _ in 0..times {
            let mut run = Outgoing::new();
            run.bind_and_execute("s", parameters, binary);
            run.message(b'S', |_| ());
            outcomes.extend(self.exchange(&run.bytes).pop());
        }
        let mut close = Outgoing::new();
        close.close("s");
        close.message(b'S', |_| ());
        self.exchange(&close.bytes);
        outcomes
    }

    /// Sends messages and reads until the server is ready. After a lost connection the next call
    /// reconnects.
    fn exchange(&mut self, bytes: &[u8]) -> Vec<Outcome> {
        if self.stream.is_none()
            && let Err(error) = self.connect()
        {
            return vec![Outcome::Lost(format!("{error:#}"))];
        }
        let Some(stream) = &mut self.stream else { return Vec::new() };
        let answers = stream.writer.write_all(bytes).map_err(Into::into).and_then(|()| stream.answers());
        match answers {
            Ok(answers) => answers,
            Err(error) => {
                self.stream = None;
                let silent = error.downcast_ref::<std::io::Error>().is_some_and(|error| {
                    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
                });
                vec![if silent { Outcome::Timeout } else { Outcome::Lost(format!("{error:#}")) }]
            }
        }
    }
}

impl Stream {
    fn message(&mut self) -> Result<(u8, Vec<u8>)> {
        let mut head = [0_u8; 5];
        self.reader.read_exact(&mut head)?;
        let [kind, a, b, c, d] = head;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if !(4..MESSAGE_BYTES_MAX).contains(&length) {
            bail!("a message {:?} of {length} bytes", char::from(kind));
        }
        let mut body = vec![0; length - 4];
        self.reader.read_exact(&mut body)?;
        Ok((kind, body))
    }

    /// Reads until the server is ready for the next query. Returns one outcome for each executed
    /// statement.
    fn answers(&mut self) -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        let mut answer = Answer::default();
        loop {
            let (kind, body) = self.message()?;
            let mut fields = Fields::new(&body);
            match kind {
                b'R' if fields.int32() != 0 => bail!("the server asks for a password"),
                b'T' => answer.columns = columns(&mut fields),
                b'D' => {
                    let count = fields.int16();
                    answer.rows.push((0..count).map(|_| fields.value()).collect());
                }
                b'C' => {
                    answer.tag = fields.text();
                    outcomes.push(Outcome::Answer(std::mem::take(&mut answer)));
                }
                b'I' => outcomes.push(Outcome::Answer(std::mem::take(&mut answer))),
                b'E' => {
                    answer = Answer::default();
                    outcomes.push(failure(&mut fields));
                }
                b'N' => {
                    if let Outcome::Failure { message, .. } = failure(&mut fields) {
                        answer.notices.push(message);
                    }
                }
                b'Z' => return Ok(outcomes),
                // Session parameters, cancel keys, and completions of Parse, Bind and Close.
                _ => {}
            }
        }
    }
}

fn columns(fields: &mut Fields<'_>) -> Vec<Column> {
    let count = fields.int16();
    let column = |fields: &mut Fields<'_>| {
        let name = fields.text();
        let _table_and_position = (fields.int32(), fields.int16());
        let oid = fields.int32();
        let _size_modifier_and_format = (fields.int16(), fields.int32(), fields.int16());
        Column { name, oid }
    };
    (0..count).map(|_| column(fields)).collect()
}

//! One connection, from its first message to the end of its session.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, atomic::Ordering},
};

use filbert_grid::query::SETTING_BYTES;
use tokio::{net::TcpStream, sync::watch};
use tracing::{debug, info};

use crate::{
    buffered_socket::{BufferedSocket, Stream},
    error::{Failure, Outcome, PgError, sqlstate},
    memory::SessionMemory,
    registry::SessionRegistration,
    scram::{Exchange, MECHANISM, Refusal},
    session::{Opened, Session},
    settings::Opening,
    shared::{Ending, Shared},
    wire::{Body, Frontend, GSS_REQUEST, KeyData, SSL_REQUEST, Startup},
};

/// The first byte of a client that begins with a TLS handshake at once.
const TLS_HANDSHAKE: u8 = 0x16;
/// The minimum size of a setting in the first message, in bytes: a name of one letter, an empty
/// value, and the zero byte after each. A setting within the options takes more.
const SETTING_IN_MESSAGE_BYTES: usize = 3;
/// The newest supported minor version of the protocol.
const NEWEST_MINOR: u16 = 2;

/// Serves a connection to its end.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    stream: TcpStream,
    peer: SocketAddr,
    mut ending: watch::Receiver<Ending>,
) {
    let timeout = shared.config.authentication_timeout;
    // In a box, so that its memory is freed when the session begins.
    let opening = Box::pin(tokio::time::timeout(timeout, open(&shared, stream, peer.ip(), &mut ending)));
    let mut session = match opening.await {
        Ok(Ok(Some(session))) => session,
        Ok(Ok(None)) => return,
        Ok(Err(error)) => return debug!(%peer, "connection ended before its session began: {error:?}"),
        Err(_) => return info!(%peer, "connection closed: no session began within {timeout:?}"),
    };
    match session.run(ending).await {
        Ok(()) | Err(Failure::Terminated | Failure::Statement(_)) => {}
        Err(Failure::Gone(error)) => debug!(%peer, "connection ended: {error}"),
        Err(Failure::Fatal(error)) => {
            debug!(%peer, "connection closed: {}", error.message);
            session.send_fatal(&error, shared.config.close_timeout).await;
        }
    }
}

/// Negotiates a connection up to the start of its session. Returns `None` if the connection ends
/// regularly before a session, such as after a cancel request.
async fn open(
    shared: &Arc<Shared>,
    stream: TcpStream,
    peer: IpAddr,
    ending: &mut watch::Receiver<Ending>,
) -> Outcome<Option<Session>> {
    let mut socket = BufferedSocket::new(Stream::Plain(stream), shared.budget.clone());
    let result = tokio::select! {
        biased;
        result = negotiate(shared, &mut socket, peer) => result,
        _ = ending.changed() => Err(Failure::Fatal(PgError::shutting_down())),
    };
    match result {
        Ok(Some(opened)) => Ok(Some(Session::new(shared.clone(), socket, opened))),
        Ok(None) => Ok(None),
        Err(Failure::Fatal(error) | Failure::Statement(error)) => {
            error.write("FATAL", &mut socket.out);
            let _ = tokio::time::timeout(shared.config.close_timeout, socket.close(true)).await;
            Err(Failure::Fatal(error))
        }
        Err(other) => Err(other),
    }
}

async fn negotiate(shared: &Arc<Shared>, socket: &mut BufferedSocket, peer: IpAddr) -> Outcome<Option<Opened>> {
    let bytes_max = shared.config.unauthenticated_message_bytes_max;
    socket.fill().await?;
    if socket.begins_with(TLS_HANDSHAKE) {
        begin_tls(shared, socket).await?;
    }
    let mut requested = RequestedEncryption::default();
    loop {
        let Some(message) = socket.startup(bytes_max)? else {
            socket.fill().await?;
            continue;
        };
        let startup = Startup::decode(&message)?;
        requested.note(&startup, socket.is_tls())?;
        match startup {
            Startup::Ssl if shared.tls.is_some() && !socket.is_tls() => {
                if socket.input_bytes() > 0 {
                    // Bytes that arrived before encryption must not count as encrypted bytes.
                    return Err(Failure::Fatal(PgError::protocol("received unencrypted data after SSL request")));
                }
                socket.out.u8(b'S');
                socket.flush().await?;
                begin_tls(shared, socket).await?;
            }
            Startup::Ssl | Startup::Gss => {
                socket.out.u8(b'N');
                socket.flush().await?;
            }
            Startup::Cancel { process, key } => {
                // The connection is closed whether or not a statement was cancelled.
                match shared.keys.begin(peer, "") {
                    Ok(guess) if shared.registry.cancel(process, key) => guess.right(),
                    Ok(_wrong) => {}
                    Err(error) => info!(%peer, "cancel request refused: {error}"),
                }
                return Ok(None);
            }
            Startup::Session { major, minor, parameters } => {
                if major != 3 {
                    return Err(unsupported(major, minor));
                }
                let memory = SessionMemory::new(shared.grid.kept_budget());
                // Memory for the largest number of settings that a message of this length can have,
                // until their real number is known.
                let lease = memory.reserve(message.len() / SETTING_IN_MESSAGE_BYTES * SETTING_BYTES + message.len());
                let mut lease = lease.map_err(Failure::Fatal)?;
                let mut opening = Opening::read(parameters)?;
                lease.resize(opening.bytes()).map_err(Failure::Fatal)?;
                opening.minor = choose_version(socket, minor, &opening);
                let registration = admit(shared, socket, &opening, peer).await?;
                return Ok(Some(Opened { opening, registration, memory, opening_lease: lease }));
            }
        }
    }
}

/// The kinds of encryption that a client has requested.
#[derive(Debug, Default)]
struct RequestedEncryption {
    tls: bool,
    gss: bool,
}

impl RequestedEncryption {
    /// Notes an encryption request. A client may request each kind once, and none within TLS.
    /// Otherwise a client could continue without ever beginning a session.
    ///
    /// # Errors
    /// The kind was requested before, or the connection already runs within TLS. As in PostgreSQL,
    /// the code of such a request is then taken as a protocol version, which is not supported.
    fn note(&mut self, startup: &Startup<'_>, is_tls: bool) -> Outcome {
        let (was_requested, code) = match startup {
            Startup::Ssl => (&mut self.tls, SSL_REQUEST),
            Startup::Gss => (&mut self.gss, GSS_REQUEST),
            Startup::Cancel { .. } | Startup::Session { .. } => return Ok(()),
        };
        if std::mem::replace(was_requested, true) || is_tls {
            let [high, low, third, fourth] = code.to_be_bytes();
            return Err(unsupported(u16::from_be_bytes([high, low]), u16::from_be_bytes([third, fourth])));
        }
        Ok(())
    }
}

fn unsupported(major: u16, minor: u16) -> Failure {
    let message = format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.{NEWEST_MINOR}");
    Failure::Fatal(PgError::new(sqlstate::FEATURE_NOT_SUPPORTED, message))
}

/// Chooses the protocol version, and reports it to the client if it is not the requested version.
fn choose_version(socket: &mut BufferedSocket, requested: u16, opening: &Opening) -> u16 {
    // There is no version 3.1.
    let minor = if requested >= NEWEST_MINOR { NEWEST_MINOR } else { 0 };
    if minor != requested || !opening.unknown_options.is_empty() {
        let unknown: Vec<&str> = opening.unknown_options.iter().map(String::as_str).collect();
        socket.out.negotiate_version(minor, &unknown);
    }
    minor
}

async fn begin_tls(shared: &Shared, socket: &mut BufferedSocket) -> Outcome {
    let Some(acceptor) = &shared.tls else {
        return Err(Failure::Fatal(PgError::protocol("a TLS handshake came, and this server has no certificate")));
    };
    socket.begin_tls(&acceptor.0).await?;
    Ok(())
}

async fn admit(
    shared: &Arc<Shared>,
    socket: &mut BufferedSocket,
    opening: &Opening,
    peer: IpAddr,
) -> Outcome<SessionRegistration> {
    let config = &shared.config;
    if config.tls.as_ref().is_some_and(|tls| tls.required) && !socket.is_tls() {
        let message = "this server takes connections within TLS only";
        return Err(Failure::Fatal(
            PgError::new(sqlstate::INVALID_AUTHORIZATION, message).with_hint("Use sslmode=require."),
        ));
    }
    if !shared.users.is_empty() {
        authenticate(shared, socket, &opening.user, peer).await?;
    }
    let Some(registration) = shared.registry.register(config.connections_max, opening.minor >= 2) else {
        shared.refused.fetch_add(1, Ordering::Relaxed);
        let message = format!("sorry, too many clients already: connections_max is {}", config.connections_max);
        return Err(Failure::Fatal(PgError::new(sqlstate::TOO_MANY_CONNECTIONS, message)));
    };
    socket.out.authentication_ok();
    for (name, value) in opening.reported(&config.program_version) {
        socket.out.parameter_status(name, &value);
    }
    socket.out.key_data(KeyData { process: registration.process, key: &registration.key });
    Ok(registration)
}

/// Authenticates the client with SCRAM.
async fn authenticate(shared: &Shared, socket: &mut BufferedSocket, user: &str, peer: IpAddr) -> Outcome {
    let wrong = |refusal| match refusal {
        Refusal::Wrong => {
            let message = format!("password authentication failed for user \"{user}\"");
            Failure::Fatal(PgError::new(sqlstate::INVALID_PASSWORD, message))
        }
        Refusal::Malformed(reason) => Failure::Fatal(PgError::protocol(format!("malformed SCRAM message: {reason}"))),
    };
    socket.out.sasl_mechanisms(&[MECHANISM]);
    let answer = answer(shared, socket).await?;
    let mut body = Body::new(b'p', &answer);
    let mechanism = body.text("mechanism")?;
    if mechanism != MECHANISM {
        let message = format!("client selected the SASL mechanism {mechanism:?}, expected {MECHANISM}");
        return Err(Failure::Fatal(PgError::protocol(message)));
    }
    let length = body.i32("length of the first message")?;
    let first = body.take(usize::try_from(length).unwrap_or_default(), "first message")?;
    body.end()?;
    let exchange = Exchange::begin(&shared.users, user, text(first)?).map_err(wrong)?;
    socket.out.sasl_continue(&exchange.challenge());
    let answer = self::answer(shared, socket).await?;
    let guess = shared.passwords.begin(peer, user).map_err(|error| {
        info!(%peer, user, "authentication refused: {error}");
        Failure::Fatal(PgError::new(sqlstate::INVALID_AUTHORIZATION, error.to_string()))
    })?;
    let proof = exchange.finish(text(&answer)?).map_err(wrong)?;
    guess.right();
    socket.out.sasl_final(&proof);
    Ok(())
}

fn text(bytes: &[u8]) -> Outcome<&str> {
    std::str::from_utf8(bytes).map_err(|_| Failure::Fatal(PgError::protocol("a SCRAM message is not UTF-8")))
}

/// Waits for the client's next authentication message.
async fn answer(shared: &Shared, socket: &mut BufferedSocket) -> Outcome<bytes::Bytes> {
    socket.flush().await?;
    loop {
        let Some(frame) = socket.frame(shared.config.unauthenticated_message_bytes_max)? else {
            socket.fill().await?;
            continue;
        };
        return match Frontend::decode(frame.tag, &frame.body)? {
            Frontend::Password => Ok(frame.body),
            Frontend::Terminate => Err(Failure::Terminated),
            _ => {
                let message = format!("expected a SASL response, got message {:?}", char::from(frame.tag));
                Err(Failure::Fatal(PgError::protocol(message)))
            }
        };
    }
}

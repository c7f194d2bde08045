//! One connection: from its first message to its session, and to its end.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, atomic::Ordering},
};

use filbert_grid::query::SETTING_BYTES;
use tokio::{net::TcpStream, sync::watch};
use tracing::{debug, info};

use crate::{
    door::Shared,
    error::{Failure, Outcome, PgError, sqlstate},
    kept::{Keeper, Kept},
    link::{Link, Stream},
    registry::Place,
    scram::{Exchange, MECHANISM, Refusal},
    session::Session,
    settings::Opening,
    wire::{Body, Frontend, GSS_REQUEST, KeyData, SSL_REQUEST, Startup},
};

/// The first byte of a client that begins with TLS at once.
const TLS_HANDSHAKE: u8 = 0x16;
/// Bytes that a setting takes in the first message at least: a name of one letter, an empty value, and the zero bytes that end them; one
/// within the options takes more.
const SETTING_IN_MESSAGE_BYTES: usize = 3;
/// The newest minor version of the protocol that is spoken here.
const NEWEST_MINOR: u16 = 2;

/// Whether the door is about to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// No.
    NotYet,
    /// Sessions end when they have nothing to do, and no transaction is open.
    WhenDone,
    /// They end at once.
    Now,
}

/// Serves a connection to its end.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    stream: TcpStream,
    peer: SocketAddr,
    mut ending: watch::Receiver<Ending>,
) {
    let timeout = shared.config.authentication_timeout;
    // In a box of its own, which is gone when the session begins.
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
            session.say_fatal(&error, shared.config.close_timeout).await;
        }
    }
}

/// Brings a connection to where its session begins; none if it is over before, as it should be.
async fn open(
    shared: &Arc<Shared>,
    stream: TcpStream,
    peer: IpAddr,
    ending: &mut watch::Receiver<Ending>,
) -> Outcome<Option<Session>> {
    let mut link = Link::new(Stream::Plain(stream), shared.budget.clone());
    let result = tokio::select! {
        biased;
        result = negotiate(shared, &mut link, peer) => result,
        _ = ending.changed() => Err(Failure::Fatal(shutting_down())),
    };
    match result {
        Ok(Some(opened)) => Ok(Some(Session::new(shared.clone(), link, opened))),
        Ok(None) => Ok(None),
        Err(Failure::Fatal(error) | Failure::Statement(error)) => {
            error.write("FATAL", &mut link.out);
            let _ = tokio::time::timeout(shared.config.close_timeout, link.close(true)).await;
            Err(Failure::Fatal(error))
        }
        Err(other) => Err(other),
    }
}

pub(crate) fn shutting_down() -> Box<PgError> {
    PgError::new(sqlstate::SHUTDOWN, "terminating connection because this member is shutting down")
}

/// Who is there: all that a session begins with.
pub(crate) struct Opened {
    pub(crate) opening: Opening,
    pub(crate) place: Place,
    /// Counts what the connection keeps.
    pub(crate) keeper: Keeper,
    /// Room for the settings of the first message.
    pub(crate) opening_room: Kept,
}

async fn negotiate(shared: &Arc<Shared>, link: &mut Link, peer: IpAddr) -> Outcome<Option<Opened>> {
    let bytes_max = shared.config.unauthenticated_message_bytes_max;
    link.fill().await?;
    if link.begins_with(TLS_HANDSHAKE) {
        begin_tls(shared, link).await?;
    }
    let mut asked = Asked::default();
    loop {
        let Some(message) = link.startup(bytes_max)? else {
            link.fill().await?;
            continue;
        };
        let startup = Startup::decode(&message)?;
        asked.note(&startup, link.is_tls())?;
        match startup {
            Startup::Ssl if shared.tls.is_some() && !link.is_tls() => {
                if link.input_bytes() > 0 {
                    // Bytes that came before encryption must not count as if they came within it.
                    return Err(Failure::Fatal(PgError::protocol("received unencrypted data after SSL request")));
                }
                link.out.u8(b'S');
                link.flush().await?;
                begin_tls(shared, link).await?;
            }
            Startup::Ssl | Startup::Gss => {
                link.out.u8(b'N');
                link.flush().await?;
            }
            Startup::Cancel { process, key } => {
                // The connection is closed whether there was something to cancel or not.
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
                let keeper = Keeper::new(shared.grid.budget());
                // As many settings as there can be in so many bytes, until it is known how many there are.
                let room = keeper.keep(message.len() / SETTING_IN_MESSAGE_BYTES * SETTING_BYTES + message.len());
                let mut room = room.map_err(Failure::Fatal)?;
                let mut opening = Opening::read(parameters)?;
                room.resize(opening.bytes()).map_err(Failure::Fatal)?;
                opening.minor = choose_version(link, minor, &opening);
                let place = admit(shared, link, &opening, peer).await?;
                return Ok(Some(Opened { opening, place, keeper, opening_room: room }));
            }
        }
    }
}

/// Which encryption a client has asked for.
#[derive(Debug, Default)]
struct Asked {
    tls: bool,
    gss: bool,
}

impl Asked {
    /// Notes what a message asks for: each kind may be asked for once, and none when there is one already. Otherwise a client could go on
    /// without ever beginning a session.
    ///
    /// # Errors
    /// It was asked for before. As in PostgreSQL, the request is a version of the protocol then, one that nobody speaks.
    fn note(&mut self, startup: &Startup<'_>, is_tls: bool) -> Outcome {
        let (was_asked, code) = match startup {
            Startup::Ssl => (&mut self.tls, SSL_REQUEST),
            Startup::Gss => (&mut self.gss, GSS_REQUEST),
            Startup::Cancel { .. } | Startup::Session { .. } => return Ok(()),
        };
        if std::mem::replace(was_asked, true) || is_tls {
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

/// Agrees on a version, and tells the client if it is not the one asked for.
fn choose_version(link: &mut Link, asked: u16, opening: &Opening) -> u16 {
    // There is no 3.1.
    let minor = if asked >= NEWEST_MINOR { NEWEST_MINOR } else { 0 };
    if minor != asked || !opening.unknown_options.is_empty() {
        let unknown: Vec<&str> = opening.unknown_options.iter().map(String::as_str).collect();
        link.out.negotiate_version(minor, &unknown);
    }
    minor
}

async fn begin_tls(shared: &Shared, link: &mut Link) -> Outcome {
    let Some(acceptor) = &shared.tls else {
        return Err(Failure::Fatal(PgError::protocol("a TLS handshake came, and this server has no certificate")));
    };
    link.begin_tls(&acceptor.0).await?;
    Ok(())
}

async fn admit(shared: &Arc<Shared>, link: &mut Link, opening: &Opening, peer: IpAddr) -> Outcome<Place> {
    let config = &shared.config;
    if config.tls.as_ref().is_some_and(|tls| tls.required) && !link.is_tls() {
        let message = "this server takes connections within TLS only";
        return Err(Failure::Fatal(
            PgError::new(sqlstate::INVALID_AUTHORIZATION, message).with_hint("Use sslmode=require."),
        ));
    }
    if !shared.users.is_empty() {
        authenticate(shared, link, &opening.user, peer).await?;
    }
    let Some(place) = shared.registry.enter(config.connections_max, opening.minor >= 2) else {
        shared.refused.fetch_add(1, Ordering::Relaxed);
        let message = format!("sorry, too many clients already: connections_max is {}", config.connections_max);
        return Err(Failure::Fatal(PgError::new(sqlstate::TOO_MANY_CONNECTIONS, message)));
    };
    link.out.authentication_ok();
    for (name, value) in opening.reported(&config.program_version) {
        link.out.parameter_status(name, &value);
    }
    link.out.key_data(KeyData { process: place.process, key: &place.key });
    Ok(place)
}

/// Has the client prove who it is.
async fn authenticate(shared: &Shared, link: &mut Link, user: &str, peer: IpAddr) -> Outcome {
    let wrong = |refusal| match refusal {
        Refusal::Wrong => {
            let message = format!("password authentication failed for user \"{user}\"");
            Failure::Fatal(PgError::new(sqlstate::INVALID_PASSWORD, message))
        }
        Refusal::Malformed(reason) => Failure::Fatal(PgError::protocol(format!("malformed SCRAM message: {reason}"))),
    };
    link.out.sasl_mechanisms(&[MECHANISM]);
    let answer = answer(shared, link).await?;
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
    link.out.sasl_continue(&exchange.challenge());
    let answer = self::answer(shared, link).await?;
    let guess = shared.passwords.begin(peer, user).map_err(|error| {
        info!(%peer, user, "authentication refused: {error}");
        Failure::Fatal(PgError::new(sqlstate::INVALID_AUTHORIZATION, error.to_string()))
    })?;
    let proof = exchange.finish(text(&answer)?).map_err(wrong)?;
    guess.right();
    link.out.sasl_final(&proof);
    Ok(())
}

fn text(bytes: &[u8]) -> Outcome<&str> {
    std::str::from_utf8(bytes).map_err(|_| Failure::Fatal(PgError::protocol("a SCRAM message is not UTF-8")))
}

/// The client's next answer.
async fn answer(shared: &Shared, link: &mut Link) -> Outcome<bytes::Bytes> {
    link.flush().await?;
    loop {
        let Some(frame) = link.frame(shared.config.unauthenticated_message_bytes_max)? else {
            link.fill().await?;
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

//! Password guesses against a separate member with users.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use filbert_wire::table::client;
use filbert_wire::{Message, PREAMBLE};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::load::HOLD;
use crate::loads::crowd;
use crate::member::{Member, Settings};
use crate::target::Target;
use crate::wire::grid;

const CONFIGURATION: &str = "\
hazelcast:
  security:
    enabled: true
    realms:
      - name: people
        authentication:
          simple:
            users:
              - username: ada
                password: the-right-one
    client-authentication:
      realm: people
";

/// The guessing clients have a separate address, because each address waits only for its own
/// failures.
const GUESSER: &str = "127.0.0.2:0";

/// Clients without a password guess at all front doors, as fast as they can. Meanwhile clients with
/// the right password are admitted, and no guess succeeds.
pub(super) async fn passwords(target: Target) -> Result<String> {
    let settings = Settings {
        program: target.program,
        memory: "128MiB".to_owned(),
        address_space: None,
        seed: target.seed,
        patience: Duration::ZERO,
        configuration: Some(CONFIGURATION),
    };
    let member = Member::start(&settings)?;
    let doors = member.target();
    let guessing = tokio::spawn(async move {
        tokio::try_join!(
            crowd(20, |_| guess(doors, Guess::Hazelcast)),
            crowd(20, |_| guess(doors, Guess::Http)),
            crowd(20, |_| guess(doors, Guess::Postgres)),
        )
    });
    let (mut logins, mut slowest) = (0, Duration::ZERO);
    while !guessing.is_finished() {
        let begun = Instant::now();
        timeout(Duration::from_secs(10), log_in(doors)).await??;
        slowest = slowest.max(begun.elapsed());
        logins += 1;
    }
    let (hazelcast, http, postgres) = guessing.await??;
    ensure!(member.end().is_none(), "the member with users {}", member.end().unwrap_or_default());
    let guesses: usize = [hazelcast, http, postgres].iter().flatten().sum();
    Ok(format!("{guesses} guesses, {logins} logins in {} ms at most", slowest.as_millis()))
}

#[derive(Clone, Copy)]
enum Guess {
    Hazelcast,
    Http,
    Postgres,
}

/// Guesses for a while. Returns the number of guesses.
async fn guess(doors: Target, door: Guess) -> Result<usize> {
    let (begun, mut guesses) = (Instant::now(), 0);
    while begun.elapsed() < 2 * HOLD {
        let let_in = match door {
            Guess::Hazelcast => over_hazelcast(doors.hazelcast, &format!("wrong{guesses}")).await?,
            Guess::Http => over_http(doors.http).await?,
            Guess::Postgres => over_postgres(doors.postgres, &format!("wrong{guesses}")).await?,
        };
        ensure!(!let_in, "a guess was right");
        guesses += 1;
    }
    Ok(guesses)
}

async fn connect(address: SocketAddr) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(GUESSER.parse()?)?;
    Ok(socket.connect(address).await?)
}

async fn over_hazelcast(address: SocketAddr, password: &str) -> Result<bool> {
    let mut stream = connect(address).await?;
    stream.write_all(&[&PREAMBLE[..], &grid::login(Some("ada"), Some(password))].concat()).await?;
    let mut answer = vec![0; 4_096];
    let count = stream.read(&mut answer).await.unwrap_or(0);
    // The reply is a status, an error, or the end of the connection. Only status 0 is a success.
    let Ok(message) = Message::parse(answer.get(..count).unwrap_or_default()) else { return Ok(false) };
    Ok(message.decode::<client::authentication::Response<'_>>().is_ok_and(|answer| answer.status == 0))
}

async fn over_http(address: SocketAddr) -> Result<bool> {
    let mut stream = connect(address).await?;
    // The credentials are ada:wrong.
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic YWRhOndyb25n\r\n\r\n").await?;
    let mut answer = [0; 16];
    let count = stream.read(&mut answer).await.unwrap_or(0);
    Ok(answer.get(..count).unwrap_or_default().starts_with(b"HTTP/1.1 200"))
}

async fn over_postgres(address: SocketAddr, password: &str) -> Result<bool> {
    let stream = connect(address).await?;
    let mut config = tokio_postgres::Config::new();
    config.user("ada").password(password).dbname("filbert");
    Ok(config.connect_raw(stream, tokio_postgres::NoTls).await.is_ok())
}

/// A client with the right password, from another address.
async fn log_in(doors: Target) -> Result<()> {
    let words = format!(
        "host={} port={} user=ada password=the-right-one dbname=filbert",
        doors.postgres.ip(),
        doors.postgres.port()
    );
    let (client, connection) = tokio_postgres::connect(&words, tokio_postgres::NoTls).await?;
    let connection = tokio::spawn(connection);
    let row = client.query_one("SELECT 7", &[]).await?;
    ensure!(row.try_get::<_, i32>(0)? == 7, "SELECT 7 is something else");
    connection.abort();
    Ok(())
}

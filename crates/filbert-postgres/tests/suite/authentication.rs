//! Access of clients: SCRAM-SHA-256, TLS, and both.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use crate::common::{Raw, Server, error_field};
use filbert_listen::GuessLimits;
use filbert_postgres::{PostgresConfig, PostgresSecret, PostgresTls, PostgresUser};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_postgres::{NoTls, error::SqlState};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{ClientConfig, RootCertStore},
};

fn users(config: &mut PostgresConfig) {
    let user = |name: &str, secret| PostgresUser { name: name.to_owned(), secret };
    // PostgreSQL's verifier of the password "hazel".
    let verifier = concat!(
        "SCRAM-SHA-256$4096:MDEyMzQ1Njc4OWFiY2RlZg==$",
        "RiFpdVXUS+jgP5evOMA6lboohgMS2xaO5/kR6zPgafU=:",
        "xpsWIsuXYXkGRuuAsaaIxrposgRujM3yx2ARWsfyzpM="
    );
    let verifier = PostgresSecret::Verifier(verifier.to_owned());
    config.users = vec![user("ann", PostgresSecret::Password("secret".into())), user("eve", verifier)];
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/certificates").join(name)
}

fn tls(config: &mut PostgresConfig, required: bool) {
    config.tls = Some(PostgresTls { certificate: file("localhost.pem"), key: file("localhost.key"), required });
}

async fn sign_in(server: &Server, user: &str, password: Option<&str>) -> Result<(), tokio_postgres::Error> {
    let mut config = server.config();
    config.user(user);
    if let Some(password) = password {
        config.password(password);
    }
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    client.simple_query("insert 1").await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_right_password_opens() {
    let server = Server::with(users);
    sign_in(&server, "ann", Some("secret")).await.unwrap();
    sign_in(&server, "eve", Some("hazel")).await.unwrap();
    let mut messages = Vec::new();
    for (user, password) in [("ann", "Secret"), ("bob", "secret"), ("ann", "")] {
        let error = sign_in(&server, user, Some(password)).await.unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code(), &SqlState::INVALID_PASSWORD, "{user}");
        messages.push(error.message().replace(user, "user"));
    }
    assert_eq!(messages[0], messages[1]);
    assert_eq!(server.monitor.statistics().connections_total, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_passwords_are_slowed() {
    let server = Server::with(|config| {
        users(config);
        config.guesses = GuessLimits { free: 3, pause: Duration::from_secs(3_600), ..GuessLimits::default() };
    });
    for _ in 0..10 {
        sign_in(&server, "ann", Some("secret")).await.unwrap();
    }
    let mut codes = Vec::new();
    for password in ["a", "b", "c", "d", "secret"] {
        let error = sign_in(&server, "ann", Some(password)).await.unwrap_err();
        codes.push(error.code().unwrap().clone());
    }
    let (wrong, slowed) = (SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION);
    assert_eq!(codes, [wrong.clone(), wrong.clone(), wrong, slowed.clone(), slowed]);
    sign_in(&server, "eve", Some("hazel")).await.unwrap();
}

#[test]
fn an_authentication_out_of_order_is_refused() {
    let server = Server::with(users);
    for (tag, body) in [
        ('Q', &b"insert 1\0"[..]),
        ('p', b"PLAIN\0\0\0\0\0"),
        ('p', b"SCRAM-SHA-256\0\0\0\0\x05n,,n="),
        ('p', b"SCRAM-SHA-256\0\xff\xff\xff\xff"),
        ('p', b"SCRAM-SHA-256\0\0\0\0\x0bp=x,,n=,r=x"),
        ('p', b"secret\0"),
        ('p', &[b'x'; 20_000]),
    ] {
        let mut raw = Raw::open(&server);
        raw.startup(0x0003_0000, &[("user", "ann")]);
        assert_eq!(raw.read(), ('R', b"\0\0\0\x0aSCRAM-SHA-256\0\0".to_vec()));
        raw.send(tag, body);
        let (tag, body) = raw.read();
        assert_eq!((tag, error_field(&body, 'C').as_str(), error_field(&body, 'S').as_str()), ('E', "08P01", "FATAL"));
        assert_eq!(raw.read().0, '-');
    }
}

/// Begins TLS. With `asks`, the client sends an `SSLRequest` first.
async fn encrypt(address: SocketAddr, asks: bool) -> TlsStream<TcpStream> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    if asks {
        stream.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), b'S');
    }
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("localhost.pem")).unwrap()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = versions.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_runs_within_tls() {
    let server = Server::with(|config| tls(config, true));
    for asks in [true, false] {
        let mut stream = encrypt(server.address, asks).await;
        stream.write_all(b"\0\0\0\x12\0\x03\0\0user\0ann\0\0").await.unwrap();
        stream.flush().await.unwrap();
        let mut answer = [0; 9];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"R\0\0\0\x08\0\0\0\0", "asks: {asks}");
    }
    let mut raw = Raw::open(&server);
    raw.startup(0x0003_0000, &[("user", "ann")]);
    assert_eq!(raw.until_ready(), "E28000 -");
}

#[test]
fn bytes_in_front_of_the_encryption_are_not_taken_as_encrypted() {
    let server = Server::with(|config| tls(config, false));
    let mut raw = Raw::open(&server);
    raw.bytes(b"\0\0\0\x08\x04\xd2\x16\x2f\0\0\0\x12\0\x03\0\0user\0ann\0\0");
    assert_eq!(raw.until_ready(), "E08P01 -");
}

#[test]
fn an_invalid_certificate_is_reported() {
    let grid = filbert_grid::Grid::new(
        filbert_grid::GridConfig::default(),
        filbert_grid::Environment { clock: Arc::new(filbert_grid::SystemClock::new()), random_seed: 1 },
    )
    .unwrap();
    let bind = |certificate: &str, key: &str| {
        let mut config = PostgresConfig { listen: ([127, 0, 0, 1], 0).into(), ..PostgresConfig::default() };
        config.tls = Some(PostgresTls { certificate: file(certificate), key: file(key), required: false });
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(filbert_postgres::PostgresDoor::bind(grid.clone(), config)).unwrap_err().to_string()
    };
    for (certificate, key, expected) in [
        ("nothing.pem", "localhost.key", "cannot read the PEM file"),
        ("README.md", "localhost.key", "has no certificate in PEM"),
        ("localhost.pem", "localhost.pem", "has no private key in PEM"),
    ] {
        let error = bind(certificate, key);
        assert!(error.contains(expected), "{error}");
    }
}

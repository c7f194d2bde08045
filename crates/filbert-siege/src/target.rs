//! The data that a load has about the member: the addresses of its front doors, and a seed.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use filbert_client::{Client, ClientConfig};

use crate::wire::grid;
use crate::wire::http;
use crate::wire::postgres::Session;

/// The addresses of a member's front doors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) postgres: SocketAddr,
    pub(crate) http: SocketAddr,
    pub(crate) hazelcast: SocketAddr,
    /// The seed of a load's random choices.
    pub(crate) seed: u64,
    /// The program, for loads that start a member with other settings.
    pub(crate) program: &'static Path,
}

impl Target {
    /// Opens a session over PostgreSQL's protocol.
    pub(crate) async fn session(&self) -> Result<Session> {
        Session::open(self.postgres).await
    }

    /// Opens a connection over HTTP.
    pub(crate) async fn http(&self) -> Result<http::Connection> {
        http::Connection::open(self.http).await
    }

    /// Connects our own client, with short retries.
    pub(crate) async fn client(&self) -> Result<Client> {
        let config = ClientConfig {
            addresses: vec![self.hazelcast.to_string()],
            cluster_connect_timeout: Duration::from_secs(10),
            invocation_timeout: Duration::from_secs(60),
            ..ClientConfig::default()
        };
        Client::connect(config).await.context("connecting over the client protocol")
    }

    /// Opens an authenticated connection over the client protocol. It reads only on request.
    pub(crate) async fn raw_client(&self) -> Result<grid::Connection> {
        grid::Connection::open(self.hazelcast).await
    }
}

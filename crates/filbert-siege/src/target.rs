//! What a load knows of the member: where its doors are, and a seed.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use filbert_client::{Client, ClientConfig};

use crate::wire::grid;
use crate::wire::http;
use crate::wire::postgres::Session;

/// The addresses of a member's doors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) postgres: SocketAddr,
    pub(crate) http: SocketAddr,
    pub(crate) hazelcast: SocketAddr,
    /// Decides what a load draws at random.
    pub(crate) seed: u64,
    /// The program, for loads that need a member with other settings.
    pub(crate) program: &'static Path,
}

impl Target {
    /// A session over PostgreSQL's protocol.
    pub(crate) async fn session(&self) -> Result<Session> {
        Session::open(self.postgres).await
    }

    /// A connection over HTTP.
    pub(crate) async fn http(&self) -> Result<http::Connection> {
        http::Connection::open(self.http).await
    }

    /// Our client, which does not try again for long.
    pub(crate) async fn client(&self) -> Result<Client> {
        let config = ClientConfig {
            addresses: vec![self.hazelcast.to_string()],
            cluster_connect_timeout: Duration::from_secs(10),
            invocation_timeout: Duration::from_secs(60),
            ..ClientConfig::default()
        };
        Client::connect(config).await.context("connecting over the client protocol")
    }

    /// A connection over the client protocol that is logged in, and reads only what it is told to.
    pub(crate) async fn raw_client(&self) -> Result<grid::Connection> {
        grid::Connection::open(self.hazelcast).await
    }
}

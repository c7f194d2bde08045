//! The program under test, on ephemeral ports.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};

use super::{Process, address, bound, lines_until_ready};

/// A running Filbert member.
pub(crate) struct Filbert {
    _process: Process,
    /// The listen address for PostgreSQL's clients.
    pub(crate) postgres: SocketAddr,
    /// The listen address for Hazelcast's clients.
    pub(crate) hazelcast: SocketAddr,
}

impl Filbert {
    /// Starts the program and waits until it serves.
    pub(crate) fn start(program: &Path) -> Result<Filbert> {
        let any = "127.0.0.1:0";
        let child = bound(program)
            .args(["--listen", any, "--postgres", any, "--http", "off"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let mut process = Process(child);
        let lines = lines_until_ready(&mut process, "filbert")?;
        let postgres = address(&lines, "serves: PostgreSQL on ")?;
        let hazelcast = address(&lines, "ready: ")?;
        Ok(Filbert { _process: process, postgres, hazelcast })
    }
}

//! A real Hazelcast member, started with a command that xtask provides.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};

use super::{Process, address, bound, lines_until_ready};

/// A running member.
pub(crate) struct Hazelcast {
    _process: Process,
    pub(crate) address: SocketAddr,
}

impl Hazelcast {
    /// Starts a member. The command is a JSON array of words.
    pub(crate) fn start(command: &str) -> Result<Hazelcast> {
        let words: Vec<String> = serde_json::from_str(command).context("reading the member's command")?;
        let (program, arguments) = words.split_first().context("the member's command is empty")?;
        let mut process = bound(Path::new(program));
        process.args(arguments).args(["--listen", "127.0.0.1:0"]);
        let child = process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut process = Process(child.with_context(|| format!("starting {program}"))?);
        let lines = lines_until_ready(&mut process, "the Hazelcast member")?;
        let address = address(&lines, "ready: ")?;
        Ok(Hazelcast { _process: process, address })
    }
}

//! The servers that are asked: started by the run, on ports of their own, and ended with it, also when it fails.

mod filbert;
mod hazelcast;
mod postgres;

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail};

pub(crate) use filbert::Filbert;
pub(crate) use hazelcast::Hazelcast;
pub(crate) use postgres::Postgres;

/// How long a server may take until it serves. A JVM on a busy machine takes some ten seconds.
const START_MAX: Duration = Duration::from_secs(120);

/// A process that ends with its value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The command of a program that the kernel ends when this process ends, however it ends.
fn bound(program: &Path) -> Command {
    let setpriv = Path::new("/usr/bin/setpriv");
    if !setpriv.is_file() {
        return Command::new(program);
    }
    let mut command = Command::new(setpriv);
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// Reads a started program's lines until one says that it is ready; all lines up to there. What it prints later is read
/// and forgotten, so that it never waits for a reader.
fn lines_until_ready(process: &mut Process, name: &str) -> Result<Vec<String>> {
    let output = process.0.stdout.take().with_context(|| format!("{name} has no output"))?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    let mut lines = Vec::new();
    loop {
        match receiver.recv_timeout(START_MAX) {
            Ok(line) => {
                let is_ready = line.starts_with("ready: ");
                lines.push(line);
                if is_ready {
                    return Ok(lines);
                }
            }
            Err(_) => bail!("{name} did not get ready; it said: {}", lines.join(" / ")),
        }
    }
}

/// The address at the end of the line that begins so.
fn address(lines: &[String], begin: &str) -> Result<SocketAddr> {
    let line = lines.iter().find(|line| line.starts_with(begin));
    let line = line.with_context(|| format!("no line begins with {begin:?}"))?;
    let word = line.split_whitespace().next_back().unwrap_or_default();
    word.parse().with_context(|| format!("no address ends {line:?}"))
}

/// A loopback port that nothing listens on at the moment.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("finding a free port")?;
    Ok(listener.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_the_address() {
        let lines =
            ["serves: PostgreSQL on 127.0.0.1:5".to_owned(), "ready: Hazelcast clients on 127.0.0.1:6".to_owned()];
        assert_eq!(address(&lines, "serves: PostgreSQL").unwrap().port(), 5);
        assert_eq!(address(&lines, "ready: ").unwrap().port(), 6);
        assert!(address(&lines, "serves: HTTP").is_err());
    }
}

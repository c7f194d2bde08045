//! The servers of a run. The run starts them on free ports and stops them at its end, even if it
//! fails.

mod filbert;
mod hazelcast;
mod postgres;

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

pub(crate) use filbert::Filbert;
pub(crate) use hazelcast::Hazelcast;
pub(crate) use postgres::Postgres;

/// The interval of progress messages about a server that does not serve yet. The wait has no
/// timeout: a JVM that starts while compilers run takes minutes, and the messages show the reason.
const PATIENCE: Duration = Duration::from_secs(30);

/// The maximum number of lines that are kept of a starting server.
const LINES_MAX: usize = 100;

/// A process that is killed when the value is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have exited by itself. Then the kill fails, and this is not an error.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The command of a program that the kernel kills when this process ends for any reason.
fn bound(program: &Path) -> Command {
    let setpriv = Path::new("/usr/bin/setpriv");
    if !setpriv.is_file() {
        return Command::new(program);
    }
    let mut command = Command::new(setpriv);
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// Reads the lines of a started program until its ready line. Returns all lines up to the ready
/// line. The wait ends only with the ready line or with the end of the program, which is an error
/// with its last lines. Later output is read and discarded, so that the program never blocks on its
/// output.
fn lines_until_ready(process: &mut Process, name: &str) -> Result<Vec<String>> {
    let output = process.0.stdout.take().with_context(|| format!("{name} has no output"))?;
    let errors = process.0.stderr.take();
    let (sender, receiver) = mpsc::channel();
    read_on(output, sender.clone());
    if let Some(errors) = errors {
        read_on(errors, sender.clone());
    }
    drop(sender);
    let begun = Instant::now();
    let mut lines = Vec::new();
    loop {
        match receiver.recv_timeout(PATIENCE) {
            Ok(line) => {
                let is_ready = line.starts_with("ready: ");
                lines.push(line);
                if is_ready {
                    return Ok(lines);
                }
                if lines.len() > LINES_MAX {
                    lines.remove(0);
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                println!("{name} does not serve yet after {} s: waiting on", begun.elapsed().as_secs());
            }
            Err(RecvTimeoutError::Disconnected) => {
                bail!("{name} ended before it served; it said: {}", lines.join(" / "));
            }
        }
    }
}

/// Reads lines until the end of the output. Lines without a receiver are discarded.
fn read_on(output: impl Read + Send + 'static, lines: mpsc::Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let _ = lines.send(line);
        }
    });
}

/// Parses the address at the end of the line with this prefix.
fn address(lines: &[String], begin: &str) -> Result<SocketAddr> {
    let line = lines.iter().find(|line| line.starts_with(begin));
    let line = line.with_context(|| format!("no line begins with {begin:?}"))?;
    let word = line.split_whitespace().next_back().unwrap_or_default();
    word.parse().with_context(|| format!("no address ends {line:?}"))
}

/// Returns a loopback port that currently has no listener. It is below the ports that the operating
/// system gives to connections: any connection could take such a port before its server listens.
fn free_port() -> Result<u16> {
    let first = 15_000 + (std::process::id() % 8_500) as u16;
    let mut ports = first..32_000;
    ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()).context("no port is free")
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

//! A PostgreSQL server for this run: Debian's programs, with a new database cluster in a temporary
//! directory.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{PATIENCE, Process, bound, free_port};
use crate::postgres::Connection;

/// The directory in which Debian installs the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// A running server.
pub(crate) struct Postgres {
    /// Declared before the directory, so that the server ends first.
    _process: Process,
    _directory: Directory,
    pub(crate) address: SocketAddr,
}

/// A directory that is removed when the value is dropped.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        // A directory that cannot be removed remains in the system's temporary directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Postgres {
    /// Creates a database cluster and starts its server.
    pub(crate) fn start() -> Result<Postgres> {
        let programs = programs()?;
        let port = free_port()?;
        let directory =
            Directory(std::env::temp_dir().join(format!("filbert-differential-{}-{port}", std::process::id())));
        fs::create_dir_all(&directory.0).with_context(|| format!("creating {}", directory.0.display()))?;
        let account = account(&directory.0)?;
        if let Some((user, group)) = account {
            chown(&directory.0, Some(user), Some(group)).context("giving the directory to PostgreSQL's user")?;
        }
        let data = directory.0.join("data");
        let mut initdb = Command::new(programs.join("initdb"));
        // Texts are ordered by bytes. Case conversion supports all characters.
        initdb.args([
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--lc-collate=C",
            "--lc-ctype=C.UTF-8",
            "--no-sync",
            "-D",
        ]);
        let made = run_as(initdb.arg(&data), account).current_dir(&directory.0).output().context("starting initdb")?;
        if !made.status.success() {
            bail!("initdb failed: {}", String::from_utf8_lossy(&made.stderr));
        }
        let mut server = bound(&programs.join("postgres"));
        server.arg("-D").arg(&data).args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
        server.arg("-c").arg(format!("unix_socket_directories={}", directory.0.display()));
        for setting in [
            "fsync=off",
            "synchronous_commit=off",
            "full_page_writes=off",
            "jit=off",
            "autovacuum=off",
            "shared_memory_type=mmap",
        ] {
            server.args(["-c", setting]);
        }
        let child = run_as(&mut server, account)
            .current_dir(&directory.0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("starting PostgreSQL")?;
        let mut process = Process(child);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (begun, mut told) = (Instant::now(), PATIENCE);
        // The server listens before it accepts clients.
        while Connection::open(address, "postgres", &[]).is_err() {
            if let Ok(Some(status)) = process.0.try_wait() {
                bail!("PostgreSQL ended with {status} before it served");
            }
            if begun.elapsed() > told {
                println!("PostgreSQL lets nobody in after {} s: waiting on", told.as_secs());
                told += PATIENCE;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(Postgres { _process: process, _directory: directory, address })
    }
}

/// The program directory of the newest version.
fn programs() -> Result<PathBuf> {
    let versions =
        fs::read_dir(VERSIONS).with_context(|| format!("no PostgreSQL in {VERSIONS} (Debian's package postgresql)"))?;
    let mut found: Vec<PathBuf> = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin"))).collect();
    found.retain(|directory| directory.join("initdb").is_file());
    found.sort();
    found.pop().with_context(|| format!("no initdb below {VERSIONS}"))
}

/// The user and group of the server, because PostgreSQL does not run as root. `None` keeps the
/// current ones.
fn account(own_directory: &Path) -> Result<Option<(u32, u32)>> {
    if fs::metadata(own_directory)?.uid() != 0 {
        return Ok(None);
    }
    let accounts = fs::read_to_string("/etc/passwd").context("reading the accounts")?;
    let line = accounts.lines().find(|line| line.starts_with("postgres:"));
    let mut fields = line.context("no account postgres to run PostgreSQL as")?.split(':').skip(2);
    let mut number = || fields.next().and_then(|field| field.parse().ok()).context("reading the account postgres");
    Ok(Some((number()?, number()?)))
}

fn run_as(command: &mut Command, account: Option<(u32, u32)>) -> &mut Command {
    match account {
        Some((user, group)) => command.gid(group).uid(user),
        None => command,
    }
}

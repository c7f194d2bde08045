//! The member under siege: the real program on ephemeral ports, with a separate directory. Dropping
//! the value stops the process.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::Pid;
use crate::target::Target;

/// A member with more memory than this is killed, to protect the machine. Such a member has failed
/// anyway.
pub(crate) const RESIDENT_MAX: u64 = 6 << 30;

/// The interval between checks of the member's memory.
const WATCH_INTERVAL: Duration = Duration::from_millis(50);

/// The start settings of a member.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) program: &'static Path,
    /// The value of `--memory-max`.
    pub(crate) memory: String,
    /// The limit of the address space in bytes (`ulimit -v`).
    pub(crate) address_space: Option<u64>,
    pub(crate) seed: u64,
    /// The timeout of an attack.
    pub(crate) patience: Duration,
    /// The text of its hazelcast.yaml, if any.
    pub(crate) configuration: Option<&'static str>,
}

/// A directory that is removed when the value is dropped.
#[derive(Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    fn new() -> Result<Directory> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("filbert-siege-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
        Ok(Directory(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A directory that cannot be removed remains in the system's temporary directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The process. Both the run and the memory watch may kill it.
#[derive(Debug)]
struct Process(Mutex<Child>);

impl Process {
    fn ended(&self) -> Option<ExitStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).try_wait().ok().flatten()
    }

    fn kill(&self) {
        let mut child = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The process may have exited by itself. Then the kill fails, and this is not an error.
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// A running member.
#[derive(Debug)]
pub(crate) struct Member {
    process: Arc<Process>,
    pid: Pid,
    target: Target,
    log: PathBuf,
    outgrown: Arc<AtomicBool>,
    stopped: Arc<AtomicBool>,
    _directory: Directory,
}

impl Member {
    /// Starts the program and waits until it serves. Fails if the process exits.
    pub(crate) fn start(settings: &Settings) -> Result<Member> {
        let directory = Directory::new()?;
        let log = directory.0.join("log");
        let errors = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        if let Some(text) = settings.configuration {
            // The member finds the file in its working directory.
            fs::write(directory.0.join("hazelcast.yaml"), text).context("writing the member's configuration")?;
        }
        let any = "127.0.0.1:0";
        let mut command = bound(settings.program, settings.address_space);
        command
            .args(["--listen", any, "--http", any, "--postgres", any, "--memory-max", &settings.memory])
            .current_dir(&directory.0)
            .env("TMPDIR", &directory.0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors);
        let child = command.spawn().with_context(|| format!("starting {}", settings.program.display()))?;
        let pid = Pid(child.id());
        let process = Arc::new(Process(Mutex::new(child)));
        let mut member = Member {
            target: Target {
                postgres: nowhere(),
                http: nowhere(),
                hazelcast: nowhere(),
                seed: settings.seed,
                program: settings.program,
            },
            outgrown: Arc::default(),
            stopped: Arc::default(),
            process,
            pid,
            log,
            _directory: directory,
        };
        member.read_addresses()?;
        member.watch();
        Ok(member)
    }

    /// Reads the lines with the listen addresses. Later output is read and discarded, so that the
    /// member never blocks on its output.
    fn read_addresses(&mut self) -> Result<()> {
        let output = self.process.0.lock().unwrap_or_else(PoisonError::into_inner).stdout.take();
        let mut lines = BufReader::new(output.context("the member has no output")?).lines();
        loop {
            let Some(line) = lines.next().transpose().context("reading what the member prints")? else {
                bail!("the member ended before it served; it said:\n{}", self.log_tail());
            };
            let address = || {
                let word = line.split_whitespace().next_back().unwrap_or_default();
                word.parse::<SocketAddr>().with_context(|| format!("no address ends {line:?}"))
            };
            if line.starts_with("serves: HTTP on ") {
                self.target.http = address()?;
            } else if line.starts_with("serves: PostgreSQL on ") {
                self.target.postgres = address()?;
            } else if line.starts_with("ready: ") {
                self.target.hazelcast = address()?;
                break;
            }
        }
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Ok(())
    }

    /// Kills the member if its memory exceeds [`RESIDENT_MAX`].
    fn watch(&self) {
        let (pid, process) = (self.pid, self.process.clone());
        let (outgrown, stopped) = (self.outgrown.clone(), self.stopped.clone());
        std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let Ok(resident) = pid.resident() else { return };
                if resident > RESIDENT_MAX {
                    outgrown.store(true, Ordering::Relaxed);
                    process.kill();
                    return;
                }
                std::thread::sleep(WATCH_INTERVAL);
            }
        });
    }

    pub(crate) fn target(&self) -> Target {
        self.target
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// The reason for the end of the process, if it ended.
    pub(crate) fn end(&self) -> Option<String> {
        let status = self.process.ended()?;
        if self.outgrown.load(Ordering::Relaxed) {
            return Some(format!("outgrew {} GiB and was killed for it", RESIDENT_MAX >> 30));
        }
        Some(format!("ended with {status}"))
    }

    /// The last lines of the log.
    pub(crate) fn log_tail(&self) -> String {
        const LINES: usize = 25;
        let text = fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default().join("\n")
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.process.kill();
    }
}

/// A placeholder until the address is known.
fn nowhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// The command of a program that the kernel kills when this process ends for any reason. Its
/// address space may be limited.
fn bound(program: &Path, address_space: Option<u64>) -> Command {
    let mut words: Vec<String> = Vec::new();
    if Path::new("/usr/bin/setpriv").is_file() {
        words.extend(["/usr/bin/setpriv", "--pdeathsig", "KILL", "--"].map(str::to_owned));
    }
    if let Some(bytes) = address_space {
        // Set before the program starts, so that the limit applies from the first allocation.
        words.extend(["/bin/sh", "-c", r#"ulimit -v "$0" && exec "$@""#].map(str::to_owned));
        words.push((bytes / 1024).to_string());
    }
    let mut words = words.into_iter();
    let Some(first) = words.next() else { return Command::new(program) };
    let mut command = Command::new(first);
    command.args(words).arg(program);
    command
}

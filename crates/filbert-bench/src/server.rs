//! Starts and stops servers: the echo server, Filbert, Hazelcast members.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::address::free_address;
use crate::error::{BenchError, Result};
use crate::java::JavaProject;
use crate::process::Usage;
use crate::session::{Session, Target};

/// The maximum time until a server accepts a client. A JVM on a busy machine needs some ten
/// seconds.
pub(crate) const START_MAX: Duration = Duration::from_secs(120);

/// The interval between connection attempts.
pub(crate) const RETRY: Duration = Duration::from_millis(20);

/// The cluster name of all servers. It is Hazelcast's default.
pub const CLUSTER: &str = "dev";

/// A server on this machine. Dropping the value stops the server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    target: Target,
    started_in: Duration,
}

impl Server {
    /// Starts a program that will listen on `address`, and waits until a client can authenticate.
    /// The output of the program is written to the file `log`.
    pub fn start(name: &str, mut command: Command, address: SocketAddr, log: &Path) -> Result<Server> {
        let file = File::create(log).map_err(BenchError::io(format!("creating {}", log.display())))?;
        let errors = file.try_clone().map_err(BenchError::io(format!("creating {}", log.display())))?;
        let begun = Instant::now();
        let child = command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .map_err(BenchError::io(format!("starting {name} ({})", command.get_program().display())))?;
        let target = Target { cluster: CLUSTER.to_owned(), ..Target::new(name, address) };
        let mut server = Server { child, target, started_in: Duration::ZERO };
        loop {
            // A session proves more than an open port: the server speaks the protocol.
            let error = match Session::open(&server.target) {
                Ok(_) => break,
                Err(error) => error,
            };
            let failed = |what: String| BenchError::Program { program: name.to_owned(), what };
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(failed(format!("ended with {status} before it served, see {}", log.display())));
            }
            if begun.elapsed() > START_MAX {
                return Err(failed(format!(
                    "lets nobody in after {START_MAX:?} ({}), see {}",
                    error.chain(),
                    log.display()
                )));
            }
            std::thread::sleep(RETRY);
        }
        server.started_in = begun.elapsed();
        Ok(server)
    }

    /// Starts the echo server of this program, with values of `value_characters`.
    pub fn echo(value_characters: usize, results: &Path) -> Result<Server> {
        let program = std::env::current_exe().map_err(BenchError::io("finding this program"))?;
        let address = free_address()?;
        let mut command = Command::new(program);
        command.args(["echo", "--listen", &address.to_string(), "--value-bytes", &value_characters.to_string()]);
        Server::start("echo", command, address, &results.join("echo.log"))
    }

    /// Starts a Filbert member.
    pub fn filbert(program: &Path, results: &Path) -> Result<Server> {
        let address = free_address()?;
        let command = filbert_member(program, address, None);
        Server::start("filbert", command, address, &results.join("filbert.log"))
    }

    /// Starts a Filbert member with an HTTP front door, and returns its HTTP address too.
    pub fn filbert_with_http(program: &Path, results: &Path) -> Result<(Server, SocketAddr)> {
        let (address, http) = (free_address()?, free_address()?);
        let command = filbert_member(program, address, Some(http));
        Ok((Server::start("filbert", command, address, &results.join("filbert.log"))?, http))
    }

    /// Starts a stock Hazelcast member: no join, no backups, no statistics, no phone home, no
    /// logging, and a heap of fixed size.
    pub fn hazelcast(java: &JavaProject, heap_bytes: u64, results: &Path) -> Result<Server> {
        let address = free_address()?;
        let command = member(java, heap_bytes, address, None, 0, false);
        Server::start("hazelcast", command, address, &results.join("hazelcast.log"))
    }

    /// Starts a Hazelcast member with SQL, which needs Hazelcast's job engine and its threads.
    pub fn hazelcast_sql(java: &JavaProject, heap_bytes: u64, results: &Path) -> Result<Server> {
        let address = free_address()?;
        let command = member(java, heap_bytes, address, None, 0, true);
        Server::start("hazelcast", command, address, &results.join("hazelcast.log"))
    }

    /// Starts several Hazelcast members that form a cluster, with `backups` backups of each entry.
    /// Returns when all members have joined.
    pub fn hazelcast_cluster(
        java: &JavaProject,
        heap_bytes: u64,
        size: usize,
        backups: usize,
        results: &Path,
    ) -> Result<Vec<Server>> {
        let addresses = (0..size).map(|_| free_address()).collect::<Result<Vec<_>>>()?;
        let list = addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(",");
        let mut members = Vec::new();
        for (index, address) in addresses.into_iter().enumerate() {
            let command = member(java, heap_bytes, address, Some(&list), backups, false);
            let name = format!("hazelcast x {size}");
            members.push(Server::start(&name, command, address, &results.join(format!("hazelcast-{index}.log")))?);
        }
        Ok(members)
    }

    /// The connection data for clients.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The time from the start of the process to the first authentication.
    pub fn started_in(&self) -> Duration {
        self.started_in
    }

    /// The resource usage so far.
    pub fn usage(&self) -> Result<Usage> {
        Usage::of(self.pid())
    }
}

/// The command of a Filbert member: without the PostgreSQL front door, and with an HTTP front door
/// only if an address is given.
pub(crate) fn filbert_member(program: &Path, address: SocketAddr, http: Option<SocketAddr>) -> Command {
    let http = http.map_or_else(|| "off".to_owned(), |http| http.to_string());
    let mut command = Command::new(program);
    command.args(["--listen", &address.to_string(), "--cluster-name", CLUSTER, "--http", &http, "--postgres", "off"]);
    command
}

/// The command of a Hazelcast member. `cluster` contains the addresses of all members of its
/// cluster.
fn member(
    java: &JavaProject,
    heap_bytes: u64,
    address: SocketAddr,
    cluster: Option<&str>,
    backups: usize,
    sql: bool,
) -> Command {
    let mut command = java.command(heap_bytes);
    command
        .args(java.member_options(address.port(), cluster, backups, sql))
        .arg("com.hazelcast.core.server.HazelcastMemberStarter");
    command
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have exited by itself. Then the kill fails, and this is not an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the `filbert` program: the given path, or the file next to the running executable.
pub fn find_filbert(given: Option<&Path>) -> Result<PathBuf> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => std::env::current_exe()
            .map_err(BenchError::io("finding this program"))?
            .with_file_name(format!("filbert{}", std::env::consts::EXE_SUFFIX)),
    };
    if path.is_file() {
        return Ok(path);
    }
    Err(BenchError::Program {
        program: "filbert".to_owned(),
        what: format!("{} is not there, build it with `cargo build --release -p filbert`", path.display()),
    })
}

//! Starting servers and ending them: the echo server, Filbert, a Hazelcast member.

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

/// How long a server may take until it lets a client in. A JVM on a busy machine takes some ten seconds.
pub(crate) const START_MAX: Duration = Duration::from_secs(120);

/// Between two attempts to get in.
pub(crate) const RETRY: Duration = Duration::from_millis(20);

/// The cluster's name for all servers, Hazelcast's default.
pub const CLUSTER: &str = "dev";

/// A server on this machine. Ends with its value.
#[derive(Debug)]
pub struct Server {
    child: Child,
    target: Target,
    started_in: Duration,
}

impl Server {
    /// Starts a program that will serve `address` and waits until a client can log in. What the program prints goes to
    /// the file `log`.
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
            // A session also proves that the server speaks the protocol, not only that the port is open.
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

    /// The echo server of this very program, answering with values of `value_characters`.
    pub fn echo(value_characters: usize, results: &Path) -> Result<Server> {
        let program = std::env::current_exe().map_err(BenchError::io("finding this program"))?;
        let address = free_address()?;
        let mut command = Command::new(program);
        command.args(["echo", "--listen", &address.to_string(), "--value-bytes", &value_characters.to_string()]);
        Server::start("echo", command, address, &results.join("echo.log"))
    }

    /// Filbert.
    pub fn filbert(program: &Path, results: &Path) -> Result<Server> {
        let address = free_address()?;
        let command = filbert_member(program, address, None);
        Server::start("filbert", command, address, &results.join("filbert.log"))
    }

    /// Filbert, and the address of its HTTP door.
    pub fn filbert_with_http(program: &Path, results: &Path) -> Result<(Server, SocketAddr)> {
        let (address, http) = (free_address()?, free_address()?);
        let command = filbert_member(program, address, Some(http));
        Ok((Server::start("filbert", command, address, &results.join("filbert.log"))?, http))
    }

    /// A stock Hazelcast member: no join, no backups, no statistics, no phone home, no logging; a heap of fixed size.
    pub fn hazelcast(java: &JavaProject, heap_bytes: u64, results: &Path) -> Result<Server> {
        let address = free_address()?;
        let command = member(java, heap_bytes, address, None, 0, false);
        Server::start("hazelcast", command, address, &results.join("hazelcast.log"))
    }

    /// The same with SQL, which needs Hazelcast's job engine and its threads.
    pub fn hazelcast_sql(java: &JavaProject, heap_bytes: u64, results: &Path) -> Result<Server> {
        let address = free_address()?;
        let command = member(java, heap_bytes, address, None, 0, true);
        Server::start("hazelcast", command, address, &results.join("hazelcast.log"))
    }

    /// Several such members that form a cluster, with so many backups of each entry; all are there when it returns.
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

    /// Where it is reached.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// From its start to the first login.
    pub fn started_in(&self) -> Duration {
        self.started_in
    }

    /// What it has used so far.
    pub fn usage(&self) -> Result<Usage> {
        Usage::of(self.pid())
    }
}

/// The command of a member of Filbert: without PostgreSQL's door, and with an HTTP door only where one is wanted.
pub(crate) fn filbert_member(program: &Path, address: SocketAddr, http: Option<SocketAddr>) -> Command {
    let http = http.map_or_else(|| "off".to_owned(), |http| http.to_string());
    let mut command = Command::new(program);
    command.args(["--listen", &address.to_string(), "--cluster-name", CLUSTER, "--http", &http, "--postgres", "off"]);
    command
}

/// The command of a member of Hazelcast; `cluster` holds the addresses of all members of its cluster.
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
        // It may have ended by itself; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The `filbert` program: as given, or beside the running executable.
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

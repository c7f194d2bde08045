//! Java programs: the Maven project bench/java and its class path. Also drivers, in Java or in
//! other languages, which read one command per line.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;

use crate::error::{BenchError, Result};
use crate::latency::LatencySummary;

/// The options that Hazelcast's manual recommends for the best performance on JVM 9 or later.
const MODULE_OPTIONS: &[&str] = &[
    "--add-modules=java.se",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.management/sun.management=ALL-UNNAMED",
    "--add-opens=jdk.management/com.sun.management.internal=ALL-UNNAMED",
];

/// Two threads for the common pool of the JVM. With two cores or fewer a JVM creates one thread.
/// Hazelcast's client then starts a thread for every asynchronous completion, which makes its
/// pipelining slower than single calls.
const COMMON_POOL_OPTION: &str = "-Djava.util.concurrent.ForkJoinPool.common.parallelism=2";

/// The directory `bench/NAME` of this repository, in the current directory or an ancestor. It must
/// contain `file`.
pub fn bench_directory(name: &str, file: &str) -> Result<PathBuf> {
    let here = std::env::current_dir().map_err(BenchError::io("finding the current directory"))?;
    here.ancestors()
        .map(|ancestor| ancestor.join("bench").join(name))
        .find(|directory| directory.join(file).is_file())
        .ok_or_else(|| BenchError::Program {
            program: format!("bench/{name}"),
            what: format!("no {file} in bench/{name} at or above {}", here.display()),
        })
}

/// The built Maven project.
#[derive(Debug, Clone)]
pub struct JavaProject {
    directory: PathBuf,
}

impl JavaProject {
    /// Finds `bench/java` and builds it with Maven. The first build downloads Hazelcast's jar from
    /// Maven Central.
    pub fn build() -> Result<JavaProject> {
        let directory = bench_directory("java", "pom.xml")?;
        let output = Command::new("mvn")
            .args(["--quiet", "--batch-mode", "package"])
            .current_dir(&directory)
            .output()
            .map_err(BenchError::io("starting mvn (the Debian package is called maven)"))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stdout);
            let tail: Vec<&str> = text.lines().rev().take(10).collect();
            let what = format!("failed: {}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
            return Err(BenchError::Program { program: "mvn package".to_owned(), what });
        }
        Ok(JavaProject { directory })
    }

    /// A `java` command with heap, modules and class path. The caller adds the main class.
    pub fn command(&self, heap_bytes: u64) -> Command {
        let target = self.directory.join("target");
        let heap = heap_bytes / (1024 * 1024);
        let mut command = Command::new("java");
        command
            .args([format!("-Xms{heap}m"), format!("-Xmx{heap}m")])
            .args(MODULE_OPTIONS)
            .args(["-Dhazelcast.phone.home.enabled=false", "-Dhazelcast.logging.type=none"])
            .arg("-cp")
            .arg(format!("{}:{}/*", target.join("classes").display(), target.join("lib").display()));
        command
    }

    /// The JVM options of a member: configuration file, port, addresses of its cluster if it has
    /// one, number of backups, and whether SQL is enabled.
    pub fn member_options(&self, port: u16, cluster: Option<&str>, backups: usize, sql: bool) -> [String; 6] {
        [
            format!("-Dhazelcast.config={}", self.directory.join("member.yaml").display()),
            format!("-Dfilbert.bench.port={port}"),
            format!("-Dfilbert.bench.join={}", cluster.is_some()),
            format!("-Dfilbert.bench.members={}", cluster.unwrap_or("127.0.0.1")),
            format!("-Dfilbert.bench.backups={backups}"),
            format!("-Dfilbert.bench.jet={sql}"),
        ]
    }

    /// Starts a driver: a main class that executes commands.
    pub fn driver(&self, name: &str, class: &str, arguments: &[String], heap_bytes: u64, log: &Path) -> Result<Driver> {
        let port = crate::address::free_address()?.port();
        let mut command = self.command(heap_bytes);
        command.arg(COMMON_POOL_OPTION).args(self.member_options(port, None, 0, false)).arg(class).args(arguments);
        Driver::start(name, command, log)
    }
}

/// A program that reads one command per line and answers each with a line of JSON.
#[derive(Debug)]
pub struct Driver {
    child: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    name: String,
    log: PathBuf,
}

/// The answer of a driver: the number of calls and their time.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Answer {
    /// The number of calls. All their results were right.
    #[serde(default)]
    pub calls: u64,
    /// Nanoseconds from the first call to the last result.
    #[serde(default)]
    pub nanos: u64,
    /// Latencies of single calls, if measured.
    pub latency: Option<LatencySummary>,
    /// The reason of a failed command.
    pub error: Option<String>,
    /// Whether the command failed because of a wrong result.
    #[serde(default)]
    pub wrong: bool,
}

impl Answer {
    /// The elapsed time.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.nanos)
    }
}

impl Driver {
    /// Starts a driver. Its standard error is written to the file `log`.
    pub fn start(name: &str, mut command: Command, log: &Path) -> Result<Driver> {
        let errors = File::create(log).map_err(BenchError::io(format!("creating {}", log.display())))?;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map_err(BenchError::io(format!("starting {name}")))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (commands, answers) = pipes.ok_or_else(|| BenchError::Program {
            program: name.to_owned(),
            what: "has no pipes for commands and answers".to_owned(),
        })?;
        let answers = BufReader::new(answers);
        let mut driver =
            Driver { child, commands: Some(commands), answers, name: name.to_owned(), log: log.to_owned() };
        driver.command("hello")?;
        Ok(driver)
    }

    /// Sends a command and waits for its answer.
    pub fn command(&mut self, command: &str) -> Result<Answer> {
        let attempt = format!("telling {} to {command}", self.name);
        let Some(commands) = &mut self.commands else {
            return Err(BenchError::Program { program: self.name.clone(), what: "was told to end".to_owned() });
        };
        writeln!(commands, "{command}").and_then(|()| commands.flush()).map_err(BenchError::io(attempt.clone()))?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(BenchError::io(attempt))?;
        let failed = |what: String| BenchError::Program { program: self.name.clone(), what };
        if line.is_empty() {
            return Err(failed(format!("ended at the command {command:?}, see {}", self.log.display())));
        }
        let answer: Answer =
            serde_json::from_str(&line).map_err(|error| failed(format!("answered {:?}: {error}", line.trim_end())))?;
        match answer.error {
            Some(what) if answer.wrong => Err(BenchError::Wrong { target: self.name.clone(), what }),
            Some(what) => Err(BenchError::Command { program: self.name.clone(), command: command.to_owned(), what }),
            None => Ok(answer),
        }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // A driver exits at the end of its input. It is killed if it has not exited yet.
        self.commands = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `jcmd PID COMMAND` of the JDK.
pub fn jcmd(pid: u32, command: &str) -> Result<String> {
    let output = Command::new("jcmd")
        .args([&pid.to_string(), command])
        .output()
        .map_err(BenchError::io("starting jcmd (it belongs to the JDK)"))?;
    if !output.status.success() {
        let what = format!("{command} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        return Err(BenchError::Program { program: "jcmd".to_owned(), what });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the used bytes of a JVM's heap, from `jcmd PID GC.heap_info`. The first line of its
/// output has the form `garbage-first heap   total 2097152K, used 13312K [0x..., 0x...)`.
pub fn heap_used_bytes(pid: u32) -> Result<u64> {
    let info = jcmd(pid, "GC.heap_info")?;
    parse_heap_used(&info).ok_or_else(|| BenchError::Program {
        program: "jcmd GC.heap_info".to_owned(),
        what: format!("says no used heap: {info}"),
    })
}

fn parse_heap_used(info: &str) -> Option<u64> {
    let used: Vec<u64> = info
        .lines()
        .filter(|line| line.contains("total") && !line.contains("Metaspace"))
        .filter_map(|line| {
            let (_, rest) = line.split_once("used ")?;
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            let unit = match rest.chars().nth(digits.len())? {
                'K' => 1024,
                'M' => 1024 * 1024,
                _ => 1,
            };
            Some(digits.parse::<u64>().ok()? * unit)
        })
        .collect();
    (!used.is_empty()).then(|| used.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_used_heap_is_read_from_what_the_collectors_print() {
        let g1 = "12:\n garbage-first heap   total 2097152K, used 13312K [0x0, 0x1)\n  region size 1024K, 5 young\n Metaspace       used 30205K, committed 30656K, reserved 1114112K\n";
        assert_eq!(parse_heap_used(g1), Some(13_312 * 1024));
        let serial = " def new generation   total 76800K, used 10K [0x0, 0x1)\n tenured generation   total 170688K, used 20K [0x0)\n";
        assert_eq!(parse_heap_used(serial), Some(30 * 1024));
        assert_eq!(parse_heap_used("nothing"), None);
    }
}

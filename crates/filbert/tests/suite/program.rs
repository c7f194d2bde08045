//! Tests of the program as a user or a script runs it: the real binary, on ephemeral loopback
//! ports.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

const BINARY: &str = env!("CARGO_BIN_EXE_filbert");

/// A separate directory for one test. It is removed at the end of the test.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("filbert-program-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn with(self, name: &str, text: &str) -> Directory {
        std::fs::write(self.0.join(name), text).unwrap();
        self
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(args).current_dir(&self.0);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("FILBERT_")) {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A serving program. It is stopped at the end of its test.
struct Program {
    child: Child,
    stdout: BufReader<ChildStdout>,
    welcome: String,
    address: SocketAddr,
}

impl Program {
    fn start(command: Command) -> Program {
        Program::start_logging(command, Stdio::null())
    }

    /// Starts a program that writes its log to `log`.
    fn start_logging(mut command: Command, log: Stdio) -> Program {
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let address = (Ipv4Addr::UNSPECIFIED, 0).into();
        let mut program = Program { child, stdout, welcome: String::new(), address };
        loop {
            let before = program.welcome.len();
            if program.stdout.read_line(&mut program.welcome).unwrap() == 0 {
                panic!("the program ended before it was ready: {}", program.welcome);
            }
            if let Some(address) = program.welcome[before..].strip_prefix("ready: Hazelcast clients on ") {
                program.address = address.trim().parse().unwrap();
                return program;
            }
        }
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn check_failure(output: &Output, code: i32, expect: &str) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert!(stderr.contains(expect), "{expect:?} is not in {stderr:?}");
}

#[test]
fn help_tells_flags_variables_examples_and_exit_codes() {
    let output = Directory::new().run(&["--help"]);
    assert!(output.status.success());
    let help = text(&output.stdout);
    for expected in [
        "--config <FILE>",
        "--listen <ADDRESS[:PORT]>",
        "--cluster-name <NAME>",
        "--memory-max <SIZE>",
        "--threads <COUNT>",
        "--strict",
        "--check-config",
        "--log <FILTER>",
        "FILBERT_LISTEN",
        "Examples:",
        "Exit codes:",
    ] {
        assert!(help.contains(expected), "{expected} is not in {help}");
    }
    assert!(!help.contains("settings --markdown"));
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    let directory = Directory::new();
    for args in [
        &["--listen", "nowhere"][..],
        &["--memory-max", "lots"],
        &["--threads", "0"],
        &["--log", "a=b=c"],
        &["--no-such-flag"],
        &["settings"],
    ] {
        assert_eq!(directory.run(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn check_config_tells_what_is_not_supported() {
    let directory = Directory::new().with("hazelcast.yaml", "hazelcast:\n  cluster-name: a\n  queue:\n    q: {}\n");
    let output = directory.run(&["--check-config"]);
    assert!(output.status.success());
    assert_eq!(
        text(&output.stdout),
        "hazelcast.yaml: line 3: queue is not supported: only maps are served\n\
         hazelcast.yaml: usable; 1 setting is not supported\n"
    );
    let strict = directory.run(&["--check-config", "--strict"]);
    check_failure(&strict, 3, "line 3: queue is not supported: only maps are served");
    assert!(strict.stdout.is_empty());
    let strict = directory.command(&["--check-config"]).env("FILBERT_STRICT", "true").output().unwrap();
    check_failure(&strict, 3, "line 3: queue is not supported");
    let lenient = directory.command(&["--check-config"]).env("FILBERT_STRICT", "false").output().unwrap();
    assert!(lenient.status.success());
}

#[test]
fn strict_refuses_to_serve() {
    let directory = Directory::new().with("my.xml", "<hazelcast><queue name=\"q\"/></hazelcast>");
    let output = directory.run(&["--config", "my.xml", "--strict", "--listen", "127.0.0.1:0"]);
    check_failure(&output, 3, "1 setting of my.xml not supported, and --strict refuses that");
}

#[test]
fn a_wrong_configuration_ends_with_3_and_its_place() {
    let directory = Directory::new().with("hazelcast.yaml", "hazelcast:\n  network:\n    port: many\n");
    check_failure(
        &directory.run(&[]),
        3,
        "filbert: hazelcast.yaml:3:11: network.port: found \"many\", expected a whole number from 0 to 65535",
    );
    check_failure(
        &directory.run(&["--config", "missing.yaml"]),
        3,
        "filbert: cannot read the configuration file missing.yaml: No such file",
    );
    let ambiguous = directory.with("hazelcast.yaml", "hazelcast:\n  map:\n    a**: {}\n");
    check_failure(&ambiguous.run(&[]), 3, "expected at most one * in a name");
}

#[test]
fn a_member_without_configuration_tells_how_to_connect() {
    let directory = Directory::new();
    let program = Program::start(directory.command(&["--listen", "127.0.0.1:0"]));
    let port = program.address.port();
    assert!(program.address.ip().is_loopback());
    assert_ne!(port, 0);
    for expected in [
        "cluster \"dev\"",
        "271 partitions",
        "no configuration file",
        "pip install hazelcast-python-client",
        "HazelcastClient.newHazelcastClient",
        "Only this machine can connect",
        &format!("cluster_members=[\"127.0.0.1:{port}\"]"),
    ] {
        assert!(program.welcome.contains(expected), "{expected} is not in {}", program.welcome);
    }
    TcpStream::connect(program.address).unwrap();
}

#[test]
fn flags_win_over_variables_and_variables_over_the_file() {
    let file =
        "hazelcast:\n  cluster-name: of-file\n  network:\n    port: 0\n  properties:\n    filbert.memory.max: 1GiB\n";
    let directory = Directory::new().with("hazelcast.yaml", file);
    let welcome = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = directory.command(args);
        command.envs(variables.iter().copied());
        Program::start(command).welcome.clone()
    };
    let of_file = welcome(&[], &[]);
    assert!(of_file.contains("cluster \"of-file\"") && of_file.contains("at most 1GiB"), "{of_file}");
    assert!(of_file.contains("hazelcast.yaml: everything in it is supported"), "{of_file}");
    let variables = [("FILBERT_CLUSTER_NAME", "of-variable"), ("FILBERT_MEMORY_MAX", "2GiB")];
    let of_variable = welcome(&[], &variables);
    assert!(of_variable.contains("cluster \"of-variable\"") && of_variable.contains("at most 2GiB"), "{of_variable}");
    let of_flag = welcome(&["--cluster-name", "of-flag", "--memory-max", "3GiB"], &variables);
    assert!(of_flag.contains("cluster \"of-flag\"") && of_flag.contains("at most 3GiB"), "{of_flag}");
}

#[test]
fn a_port_in_use_is_passed_over_where_the_file_allows_it() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let file = |count: u32, increment: bool| {
        format!(
            "hazelcast:\n  network:\n    port:\n      port: {port}\n      port-count: {count}\n      \
             auto-increment: {increment}\n"
        )
    };
    let directory = Directory::new().with("hazelcast.yaml", &file(100, true));
    if port < u16::MAX - 100 {
        let program = Program::start(directory.command(&[]));
        assert!((port + 1..port + 100).contains(&program.address.port()), "{}", program.address);
    }
    let directory = directory.with("hazelcast.yaml", &file(1, true));
    check_failure(&directory.run(&[]), 4, &port.to_string());
    let directory = directory.with("hazelcast.yaml", &file(100, false));
    check_failure(&directory.run(&[]), 4, &port.to_string());
    // An explicit port is used exactly.
    let directory = directory.with("hazelcast.yaml", &file(100, true));
    check_failure(&directory.run(&["--listen", &format!("127.0.0.1:{port}")]), 4, &port.to_string());
}

#[test]
fn a_signal_ends_the_program_in_order_with_clients_connected() {
    for signal in ["-TERM", "-INT"] {
        let mut program = Program::start(Directory::new().command(&["--listen", "127.0.0.1:0"]));
        let mut client = TcpStream::connect(program.address).unwrap();
        client.write_all(b"CP2").unwrap();
        program.signal(signal);
        // The connection of the client is closed and does not hang.
        let mut rest = Vec::new();
        let _ = client.read_to_end(&mut rest);
        drop(client);
        let mut output = String::new();
        program.stdout.read_to_string(&mut output).unwrap();
        assert_eq!(output, "", "nothing follows the ready line");
        assert_eq!(program.child.wait().unwrap().code(), Some(0), "{signal}");
    }
}

#[test]
fn a_member_comes_up_at_once_on_the_port_it_had() {
    let directory = Directory::new();
    let mut program = Program::start(directory.command(&["--listen", "127.0.0.1:0"]));
    let address = program.address.to_string();
    let _client = TcpStream::connect(&address).unwrap();
    program.signal("-TERM");
    assert!(program.wait().success());
    let again = Program::start(directory.command(&["--listen", &address]));
    assert_eq!(again.address.to_string(), address);
}

#[cfg(target_os = "linux")]
#[test]
fn connections_are_not_bound_by_the_files_that_a_shell_allows() {
    let directory = Directory::new();
    let mut command = Command::new("sh");
    let line = "ulimit -S -n 200 && exec \"$0\" --listen 127.0.0.1:0";
    command.args(["-c", line, BINARY]).current_dir(&directory.0);
    let program = Program::start(command);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", program.child.id())).unwrap();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let numbers: Vec<&str> = files.split_whitespace().take(2).collect();
    assert_eq!(numbers[0], numbers[1], "the soft limit and the hard one");
}

#[test]
fn slow_statements_are_logged_as_json_and_without_literals() {
    let directory = Directory::new();
    let log = directory.0.join("log");
    let mut command = directory.command(&["--listen", "127.0.0.1:0", "--log", "debug", "--log-format", "json"]);
    command.env("FILBERT_SLOW_STATEMENT_MILLIS", "1").env("FILBERT_LOG_HIDE_LITERALS", "true");
    let mut program = Program::start_logging(command, std::fs::File::create(&log).unwrap().into());
    let served = program.welcome.lines().find_map(|line| line.strip_prefix("serves: PostgreSQL on "));
    let mut shell = directory.command(&["sql", "--host", served.unwrap()]);
    let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let statement = "SELECT count(*) FROM generate_series(1, 3000000) AS g(v) WHERE v::text <> 'secret';";
    shell.stdin.take().unwrap().write_all(statement.as_bytes()).unwrap();
    assert!(shell.wait().unwrap().success());
    program.signal("-TERM");
    assert!(program.wait().success());
    let log = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // The shell asks for the version of the server, which may be slow as well.
    let is_slow = |line: &&serde_json::Value| line["message"] == "a slow statement" && line["took_ms"].is_u64();
    let slow: Vec<_> = lines.iter().filter(is_slow).filter(|line| line["statement"] != "SHOW server_version").collect();
    assert_eq!(slow.len(), 1, "{log}");
    assert_eq!(slow[0]["level"], "WARN");
    assert_eq!(slow[0]["failed"], false);
    assert!(slow[0]["took_ms"].as_u64().unwrap() >= 1);
    let shown = "SELECT count(*) FROM generate_series(?, ?) AS g(v) WHERE v::text <> ?";
    assert_eq!(slow[0]["statement"], shown);
    assert!(!log.contains("secret"), "{log}");
    let spans: Vec<&str> = lines.iter().filter_map(|line| line["span"]["name"].as_str()).collect();
    assert!(spans.contains(&"request") && spans.contains(&"plan"), "{spans:?}");
}

#[test]
fn the_committed_reference_of_settings_is_up_to_date() {
    let output = Directory::new().run(&["settings", "--markdown"]);
    assert!(output.status.success());
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/settings.md");
    let committed = std::fs::read_to_string(page).unwrap();
    assert!(
        text(&output.stdout) == committed,
        "docs/reference/settings.md is old: filbert settings --markdown writes it"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn huge_pages_are_taken_only_if_the_setting_says_so() {
    for (value, expected) in [(None, "THP_enabled:\t0"), (Some("true"), "THP_enabled:\t1")] {
        let directory = Directory::new();
        let mut command = directory.command(&["--listen", "127.0.0.1:0"]);
        command.envs(value.map(|value| ("FILBERT_MEMORY_HUGE_PAGES", value)));
        let program = Program::start(command);
        let status = std::fs::read_to_string(format!("/proc/{}/status", program.child.id())).unwrap();
        assert!(status.lines().any(|line| line == expected), "{value:?}: {status}");
    }
}

#[test]
fn a_directory_of_spill_files_that_cannot_be_made_is_told() {
    let directory = Directory::new().with("file", "");
    let mut command = directory.command(&["--listen", "127.0.0.1:0"]);
    command.env("FILBERT_QUERIES_SPILL_DIRECTORY", directory.0.join("file").join("below"));
    check_failure(&command.output().unwrap(), 3, "spill_directory");
}

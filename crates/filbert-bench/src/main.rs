//! The command line of the load generator.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use filbert_bench::distribution::{Distribution, Mix, Operation};
use filbert_bench::experiment::{self, Experiment, Options, query::Format, report::grouped};
use filbert_bench::latency::LatencySummary;
use filbert_bench::load::{Limit, Load, LoadReport, Pace, Workload};
use filbert_bench::requests::ValueShape;
use filbert_bench::session::{Session, Target};
use filbert_bench::{BenchError, Result, echo};

#[derive(Debug, Parser)]
#[command(version, about = "Measures servers that speak Hazelcast's client protocol")]
struct Command {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Runs a workload against a server and reports rate, latencies, CPU per call and memory
    Load(Box<LoadArguments>),
    /// Serves the protocol with pre-encoded replies: the limit of the network and the runtime
    Echo(EchoArguments),
    /// Runs an experiment against Filbert and its peers, started by this program
    Experiment(ExperimentArguments),
    /// The same as `experiment memory`
    Memory(CommonArguments),
}

#[derive(Debug, Args)]
struct LoadArguments {
    /// Address of the server
    #[arg(long, default_value = "127.0.0.1:5701")]
    target: String,
    /// Name of the cluster
    #[arg(long, default_value = "dev")]
    cluster: String,
    /// User name, if the server requires one
    #[arg(long, requires = "password")]
    user: Option<String>,
    /// Password of the user
    #[arg(long, requires = "user", env = "FILBERT_BENCH_PASSWORD", hide_env_values = true)]
    password: Option<String>,
    /// Name of the map
    #[arg(long, default_value = "bench")]
    map: String,
    /// Shares of get, set and put
    #[arg(long, default_value = "get=80,set=20")]
    mix: Mix,
    /// Number of keys, integers from 0
    #[arg(long, default_value_t = 100_000)]
    keys: u64,
    /// Distribution of keys: uniform, zipf (exponent 0.99) or sequential
    #[arg(long, default_value = "uniform")]
    distribution: Distribution,
    /// Characters of a value [default: the value is the key as text]
    #[arg(long)]
    value_bytes: Option<usize>,
    /// Connections, each a separate client
    #[arg(long, default_value_t = 1)]
    connections: usize,
    /// Threads that drive the connections of a closed loop [default: one per connection up to 16,
    /// then one per core]
    #[arg(long)]
    threads: Option<usize>,
    /// Calls in flight per connection
    #[arg(long, default_value_t = 1)]
    depth: usize,
    /// Closed loop: each reply permits the next call (the default)
    #[arg(long, conflicts_with = "rate")]
    closed: bool,
    /// Fixed rate in calls per second over all connections; latencies start at the due time of a
    /// call
    #[arg(long)]
    rate: Option<f64>,
    /// Duration of the measurement, in seconds
    #[arg(long, default_value_t = 10.0, conflicts_with = "operations")]
    seconds: f64,
    /// Number of measured calls
    #[arg(long)]
    operations: Option<u64>,
    /// Duration of the warm-up, in seconds
    #[arg(long, default_value_t = 2.0)]
    warm_up: f64,
    /// Calls of a connection after which it waits for all replies, as a pipeline's results() does
    #[arg(long)]
    iteration: Option<u64>,
    /// Compare every n-th reply with the value of its key; 0 compares none
    #[arg(long, default_value_t = 100)]
    check_every: u64,
    /// Do not set every key before the measurement
    #[arg(long)]
    no_fill: bool,
    /// Process id of the server, for CPU per call and memory
    #[arg(long)]
    server_pid: Option<u32>,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the report to this file as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct EchoArguments {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1:5701")]
    listen: SocketAddr,
    /// Characters of the value in replies to get and put
    #[arg(long, default_value_t = 5)]
    value_bytes: usize,
    /// Worker threads of the runtime [default: one per core]
    #[arg(long)]
    threads: Option<usize>,
}

#[derive(Debug, Args)]
struct ExperimentArguments {
    /// The experiment
    #[arg(ignore_case = true)]
    experiment: Experiment,
    #[command(flatten)]
    common: CommonArguments,
}

#[derive(Debug, Args)]
struct CommonArguments {
    /// A fraction of the work: a functional test; its figures mean little
    #[arg(long)]
    quick: bool,
    /// Directory for the report and the servers' output
    #[arg(long, default_value = "results")]
    out: PathBuf,
    /// The filbert program [default: next to this program]
    #[arg(long)]
    filbert: Option<PathBuf>,
    /// Leave out Hazelcast and the Java client
    #[arg(long)]
    no_java: bool,
    /// Also measure a Hazelcast cluster of this many members (experiment S); members of the
    /// clusters (experiment cluster) [default: 3]
    #[arg(long, default_value_t = 1)]
    members: usize,
    /// Fraction of the published number of entries (experiment Q) [default: all, but a tenth of the
    /// 10,000,000 with an index]
    #[arg(long)]
    scale: Option<f64>,
    /// Formats of values (experiment Q), separated by commas
    #[arg(long, value_delimiter = ',', default_values_t = Format::ALL)]
    formats: Vec<Format>,
    /// Number of rounds
    #[arg(long)]
    rounds: Option<u32>,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    let outcome = match Command::parse().action {
        Action::Load(arguments) => load(&arguments),
        Action::Echo(arguments) => {
            echo::serve(arguments.listen, arguments.value_bytes, arguments.threads).map(|()| String::new())
        }
        Action::Experiment(arguments) => run_experiment(arguments.experiment, arguments.common),
        Action::Memory(common) => run_experiment(Experiment::Memory, common),
    };
    let (text, code) = match outcome {
        Ok(text) => (text, ExitCode::SUCCESS),
        Err(error) => {
            // The error cannot be reported if standard error is closed.
            let _ = writeln!(std::io::stderr(), "filbert-bench: {}", error.chain());
            (String::new(), ExitCode::FAILURE)
        }
    };
    let _ = write!(std::io::stdout(), "{text}");
    code
}

fn run_experiment(experiment: Experiment, common: CommonArguments) -> Result<String> {
    let options = Options {
        quick: common.quick,
        results: common.out,
        filbert: common.filbert,
        no_java: common.no_java,
        members: common.members,
        rounds: common.rounds,
        scale: common.scale,
        formats: common.formats,
        seed: common.seed,
    };
    Ok(experiment::run(experiment, &options)?.text())
}

fn load(arguments: &LoadArguments) -> Result<String> {
    let address = arguments
        .target
        .to_socket_addrs()
        .map_err(BenchError::io(format!("looking up {}", arguments.target)))?
        .next()
        .ok_or_else(|| BenchError::Setting(format!("{} has no address", arguments.target)))?;
    let credentials = arguments.user.clone().zip(arguments.password.clone());
    let target = Target { cluster: arguments.cluster.clone(), credentials, ..Target::new(&arguments.target, address) };
    let values = arguments.value_bytes.map_or(ValueShape::KeyText, ValueShape::Text);
    let workload = Workload {
        mix: arguments.mix.clone(),
        distribution: arguments.distribution,
        connections: arguments.connections,
        threads: arguments.threads,
        depth: arguments.depth,
        pace: arguments.rate.map_or(Pace::Closed, Pace::Rate),
        iteration: arguments.iteration,
        check_every: arguments.check_every,
        seed: arguments.seed,
        server_pid: arguments.server_pid,
        ..Workload::new(&arguments.map, Operation::Get, arguments.keys, values)
    };
    if !arguments.no_fill {
        fill(&target, &workload)?;
    }
    let mut load = Load::connect(&target, workload)?;
    let mut first = 0;
    if arguments.warm_up > 0.0 {
        first = load.run(0, Limit::Time(seconds("--warm-up", arguments.warm_up)?))?.operations;
    }
    let limit = match arguments.operations {
        Some(operations) => Limit::Operations(operations),
        None => Limit::Time(seconds("--seconds", arguments.seconds)?),
    };
    let report = load.run(first, limit)?;
    if let Some(path) = &arguments.json {
        let json = serde_json::to_string_pretty(&report)
            .map_err(|error| BenchError::Setting(format!("writing the report as JSON: {error}")))?;
        std::fs::write(path, json + "\n").map_err(BenchError::io(format!("writing {}", path.display())))?;
    }
    Ok(describe(&report))
}

fn seconds(name: &str, value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|_| BenchError::Setting(format!("{name} {value}: expected a number of seconds of at least 0")))
}

/// Sets every key once and checks the number of entries. The map may contain more entries from an
/// earlier use.
fn fill(target: &Target, workload: &Workload) -> Result<()> {
    let filling = Workload::load(&workload.map, workload.keys, workload.values);
    let filling = Workload { seed: workload.seed, ..filling };
    Load::connect(target, filling)?.run(0, Limit::Operations(workload.keys))?;
    let size = Session::open(target)?.map_size(&workload.map)?;
    if size < workload.keys {
        let what = format!("map {} has {size} entries after setting {} keys", workload.map, workload.keys);
        return Err(BenchError::Wrong { target: target.name.clone(), what });
    }
    Ok(())
}

fn describe(report: &LoadReport) -> String {
    let mut text = String::new();
    let latency = |l: &LatencySummary| {
        format!(
            "p50 {:.1} us, p99 {:.1} us, p99.9 {:.1} us, max {:.1} us, mean {:.1} us",
            l.p50_us, l.p99_us, l.p999_us, l.max_us, l.mean_us
        )
    };
    let _ = writeln!(text, "target     {}", report.target);
    let _ = writeln!(text, "calls      {} in {:.3} s", grouped(report.operations as f64), report.seconds);
    let _ = writeln!(text, "rate       {} calls/s", grouped(report.operations_per_second));
    let _ = writeln!(text, "latency    {}", latency(&report.latency));
    if let Some(lateness) = &report.lateness {
        let _ = writeln!(text, "lateness   {} (of the generator itself)", latency(lateness));
    }
    let _ = writeln!(text, "checked    {} values, all right", grouped(report.checked as f64));
    if let Some(server) = &report.server {
        let _ = writeln!(
            text,
            "server     {:.3} us CPU per call ({:.3} user, {:.3} system), {:.1} MiB resident",
            server.cpu_us(),
            server.user_us,
            server.system_us,
            server.resident_bytes as f64 / 1_048_576.0
        );
    }
    let _ = writeln!(text, "generator  {:.3} us CPU per call", report.generator.cpu_us());
    text
}

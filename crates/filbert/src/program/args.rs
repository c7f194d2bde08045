//! The command line: flags, their environment variables, and the help text.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::FalseyValueParser;
use clap::{Parser, Subcommand, ValueEnum};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::cluster::ClusterArgs;
use super::shell::ShellArgs;

const EXAMPLES: &str = "\
Examples:
  filbert                                      serve clients of this machine on 127.0.0.1:5701
  filbert --listen 0.0.0.0 --memory-max 4GiB   serve everyone, with at most 4 GiB of data
  filbert --config hazelcast.yaml              use the configuration of a Hazelcast member
  filbert --config hazelcast.xml --check-config --strict
                                               tell whether everything in it is supported
  filbert --listen 127.0.0.1:0                 take any free port, which the ready line tells

Exit codes:
  0  ended in order (SIGTERM or SIGINT), or the configuration is usable
  1  failed while running
  2  wrong command line
  3  wrong or unreadable configuration
  4  cannot listen on the address
  5  taken out of its cluster: the others have not heard of it for too long, or an operator has ordered it;
     started again, it joins as a new member

Every flag wins over its variable, and both win over the file. All settings: docs/reference/settings.md";

/// In-memory data grid that Hazelcast's clients connect to unmodified
#[derive(Debug, Parser)]
#[command(name = "filbert", version, about, after_long_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    /// Configuration file: the hazelcast.yaml or hazelcast.xml of a Hazelcast member
    ///
    /// Without it, hazelcast.yaml, hazelcast.yml and hazelcast.xml are looked for in the working
    /// directory; without those, everything has its default.
    #[arg(short, long, value_name = "FILE", env = "FILBERT_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// Address to serve clients on
    ///
    /// With a port, exactly that port is used, and 0 takes any free one. Without a port, the file's
    /// settings count: 5701 and, when it is in use, the next ones. Without this flag only this
    /// machine can connect, unless the file says otherwise.
    #[arg(short, long, value_name = "ADDRESS[:PORT]", env = "FILBERT_LISTEN")]
    pub(crate) listen: Option<Listen>,

    /// Address to serve CrateDB's tools and the console on, or `off` [default: port 4200]
    ///
    /// Without a port, 4200 and, when it is in use, the next ones. Without this flag, the address
    /// of --listen counts, and its port 0 means any free port here as well.
    #[arg(long, value_name = "ADDRESS[:PORT]|off", env = "FILBERT_HTTP")]
    pub(crate) http: Option<Door>,

    /// Address to serve PostgreSQL's drivers on, or `off` [default: port 5432]
    ///
    /// Without a port, 5432 and, when it is in use, the next ones. Without this flag, the address
    /// of --listen counts, and its port 0 means any free port here as well.
    #[arg(long, value_name = "ADDRESS[:PORT]|off", env = "FILBERT_POSTGRES")]
    pub(crate) postgres: Option<Door>,

    /// Name of the cluster, which clients must know [default: dev]
    #[arg(short = 'n', long, value_name = "NAME", env = "FILBERT_CLUSTER_NAME")]
    pub(crate) cluster_name: Option<String>,

    /// Be one of a cluster: addresses of its members, separated by commas, such as
    /// a:5701,b:5701,c:5701
    ///
    /// One of them founds the cluster once most of them are there; others join it. The same on all
    /// members that start together, each of them at one of the addresses.
    #[arg(long, value_name = "ADDRESS[:PORT],..", env = "FILBERT_JOIN", value_delimiter = ',')]
    pub(crate) join: Vec<String>,

    /// Address to serve other members on, in a cluster [default: that of --listen, on the same port
    /// as clients; else port 5801]
    #[arg(long, value_name = "ADDRESS[:PORT]", env = "FILBERT_MEMBER_LISTEN")]
    pub(crate) member_listen: Option<Listen>,

    /// Where other members reach this one, host and port, in a cluster [default: where it listens]
    #[arg(long, value_name = "ADDRESS:PORT", env = "FILBERT_MEMBER_ADDRESS")]
    pub(crate) member_address: Option<String>,

    /// Members that hold each partition, in a cluster [default: 3]
    #[arg(long, value_name = "COUNT", env = "FILBERT_REPLICAS", value_parser = clap::value_parser!(u32).range(1..=7))]
    pub(crate) replicas: Option<u32>,

    /// File with a secret that all members know and nobody else, in a cluster
    ///
    /// Members prove to each other that they know it; without it, whoever reaches a member's port
    /// can join.
    #[arg(long, value_name = "FILE", env = "FILBERT_SECRET_FILE")]
    pub(crate) secret_file: Option<PathBuf>,

    /// PEM file with the authority that signs the certificates of members, in a cluster
    ///
    /// Members show each other certificates then, and all connections between them are encrypted.
    /// Whoever has no certificate of this authority is refused.
    #[arg(long, value_name = "FILE", env = "FILBERT_CLUSTER_TLS_AUTHORITY")]
    pub(crate) member_tls_authority: Option<PathBuf>,

    /// PEM file with this member's certificate, in a cluster
    #[arg(long, value_name = "FILE", env = "FILBERT_CLUSTER_TLS_CERTIFICATE")]
    pub(crate) member_tls_certificate: Option<PathBuf>,

    /// PEM file with the private key of that certificate
    #[arg(long, value_name = "FILE", env = "FILBERT_CLUSTER_TLS_KEY")]
    pub(crate) member_tls_key: Option<PathBuf>,

    /// Memory of maps, statements and clients' buffers, such as 512MiB or 4GiB [default: up to
    /// three quarters of the machine's]
    ///
    /// Maps may take all of it: a write beyond it fails with an error; reads and removals go on. In
    /// a container, up to three quarters of what the container may use.
    #[arg(short, long, value_name = "SIZE", env = "FILBERT_MEMORY_MAX", value_parser = memory)]
    pub(crate) memory_max: Option<usize>,

    /// Threads that serve clients [default: one per CPU]
    #[arg(short, long, value_name = "COUNT", env = "FILBERT_THREADS", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    /// Refuse to start when the file asks for anything that is not supported
    ///
    /// Otherwise each such setting is listed by name and line.
    #[arg(long, env = "FILBERT_STRICT", value_parser = FalseyValueParser::new())]
    pub(crate) strict: bool,

    /// Read the configuration, tell what is not supported, and exit
    #[arg(long)]
    pub(crate) check_config: bool,

    /// What to log on standard error: a level (error, warn, info, debug), or levels by module
    ///
    /// Of openraft, the library by which members agree, errors alone are logged unless a level
    /// names it: info,openraft=debug.
    #[arg(long, value_name = "FILTER", env = "FILBERT_LOG", default_value = "info", value_parser = log_filter)]
    pub(crate) log: String,

    /// The form of the log: lines of text, or an object of JSON for each line
    #[arg(long, value_name = "FORM", env = "FILBERT_LOG_FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// The form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines of text
    Text,
    /// One JSON object for each line
    Json,
}

/// The subcommands. Without a subcommand the program serves.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run SQL on a member: typed, with history and completion, or from a pipe
    Sql(ShellArgs),
    /// Look at a cluster, and have members leave it, over a member's HTTP door
    Cluster(ClusterArgs),
    /// Print the reference of all settings
    #[command(hide = true)]
    Settings {
        /// As Markdown, which is the one form there is
        #[arg(long, required = true)]
        markdown: bool,
    },
}

/// A listen address with an optional port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listen {
    pub(crate) address: IpAddr,
    pub(crate) port: Option<u16>,
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Listen, String> {
        // The only host name with the same meaning on every machine.
        let text = match text.strip_prefix("localhost") {
            Some(rest) => format!("{}{rest}", Ipv4Addr::LOCALHOST),
            None => text.to_owned(),
        };
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Listen { address: address.ip(), port: Some(address.port()) });
        }
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(&text);
        match bare.parse() {
            Ok(address) => Ok(Listen { address, port: None }),
            Err(_) => Err("expected an address such as 127.0.0.1:5701, 0.0.0.0 or [::1]:5701".to_owned()),
        }
    }
}

/// Whether a front door is opened, and on which address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Closed,
    Open(Listen),
}

impl FromStr for Door {
    type Err = String;

    fn from_str(text: &str) -> Result<Door, String> {
        match text {
            "off" => Ok(Door::Closed),
            address => address.parse().map(Door::Open).map_err(|error| format!("{error}, or off")),
        }
    }
}

fn memory(text: &str) -> Result<usize, String> {
    filbert::parse_bytes(text)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or_else(|| "expected an amount of memory such as 512MiB or 4GiB".to_owned())
}

fn log_filter(text: &str) -> Result<String, String> {
    text.parse::<Targets>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

impl Args {
    /// Sends the member's log to standard error.
    pub(crate) fn start_logging(&self) {
        // The parser of the flag has already validated the text.
        let filter = without_details(self.log.parse().unwrap_or_default());
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            // The time of a span is logged at its end.
            .with_span_events(FmtSpan::CLOSE)
            .with_target(false);
        let registry = tracing_subscriber::registry();
        match self.log_format {
            LogFormat::Text => {
                let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
                registry.with(lines.with_ansi(is_terminal)).with(filter).init();
            }
            LogFormat::Json => registry.with(lines.json().flatten_event(true)).with(filter).init(),
        }
    }
}

/// Limits the log of openraft to errors, unless the filter names openraft. It logs every election
/// and warns about late messages.
fn without_details(filter: Targets) -> Targets {
    let is_named = filter.iter().any(|(target, _)| target.starts_with("openraft"));
    let tells_more = filter.default_level().is_some_and(|level| level > LevelFilter::ERROR);
    if is_named || !tells_more { filter } else { filter.with_target("openraft", LevelFilter::ERROR) }
}

/// The flags for the settings reference: flag, environment variable and explanation.
pub(crate) fn flags(command: &clap::Command) -> Vec<(String, String, String)> {
    command
        .get_arguments()
        .filter_map(|argument| {
            let long = argument.get_long()?;
            let takes_value = argument.get_action().takes_values();
            let value = argument.get_value_names().and_then(|names| names.first()).filter(|_| takes_value);
            let flag = value.map_or_else(|| format!("--{long}"), |value| format!("--{long} {value}"));
            let variable = argument.get_env().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let help = argument.get_long_help().or_else(|| argument.get_help())?.to_string();
            // The summary and the following paragraphs become sentences of one table cell.
            let sentences: Vec<_> = help.split("\n\n").map(|text| text.trim_end_matches('.')).collect();
            let meaning = format!("{}.", sentences.join(". "));
            Some((flag, variable, meaning.split_whitespace().collect::<Vec<_>>().join(" ")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Args, Listen, without_details};
    use clap::CommandFactory;
    use tracing::Level;
    use tracing_subscriber::filter::Targets;

    #[test]
    fn the_declarations_hold_together() {
        Args::command().debug_assert();
    }

    #[test]
    fn addresses_to_listen_on() {
        let check = |text: &str, expect: Option<(&str, Option<u16>)>| {
            let expect = expect.map(|(address, port)| Listen { address: address.parse().unwrap(), port });
            assert_eq!(text.parse::<Listen>().ok(), expect, "{text:?}");
        };
        check("127.0.0.1:5701", Some(("127.0.0.1", Some(5701))));
        check("127.0.0.1:0", Some(("127.0.0.1", Some(0))));
        check("0.0.0.0", Some(("0.0.0.0", None)));
        check("localhost", Some(("127.0.0.1", None)));
        check("localhost:9", Some(("127.0.0.1", Some(9))));
        check("[::1]:5701", Some(("::1", Some(5701))));
        check("[::]", Some(("::", None)));
        check("::1", Some(("::1", None)));
        check("", None);
        check(":5701", None);
        check("5701", None);
        check("example.org:5701", None);
        check("127.0.0.1:99999", None);
        check("localhostile", None);
    }

    #[test]
    fn openraft_tells_no_details_unless_it_is_named() {
        let check = |text: &str, of_openraft: Level, of_members: Level| {
            let filter = without_details(text.parse::<Targets>().unwrap());
            for (target, level) in [("openraft::engine", of_openraft), ("filbert_member", of_members)] {
                let most = [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE]
                    .into_iter()
                    .rfind(|level| filter.would_enable(target, level));
                assert_eq!(most, Some(level), "{text} of {target}");
            }
        };
        check("info", Level::ERROR, Level::INFO);
        check("debug", Level::ERROR, Level::DEBUG);
        check("error", Level::ERROR, Level::ERROR);
        check("info,openraft=debug", Level::DEBUG, Level::INFO);
        check("info,openraft::engine=debug", Level::DEBUG, Level::INFO);
        check("debug,filbert_member=info", Level::ERROR, Level::INFO);
    }
}

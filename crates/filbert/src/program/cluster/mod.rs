//! `filbert cluster`: queries and orders of an operator to a running member, over its HTTP front
//! door.
//!
//! It is an ordinary client: users, passwords and addresses are those of the HTTP front door.

mod report;

use std::io::Write;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use serde_json::{Value, json};

/// The polling interval while a member leaves.
const PAUSE: Duration = Duration::from_millis(200);
/// The timeout of a request. It is longer than an order takes, including a failover.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// The default port of the HTTP front door.
const PORT: u16 = 4_200;

/// The member, and the order to it.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct ClusterArgs {
    /// HTTP address of any running member
    #[arg(
        long,
        short = 'H',
        value_name = "HOST[:PORT]",
        env = "FILBERT_CLUSTER_HOST",
        default_value = "127.0.0.1:4200",
        global = true
    )]
    host: String,

    /// User name, if the HTTP front door has users; FILBERT_PASSWORD contains the password
    #[arg(long, short = 'U', value_name = "NAME", env = "FILBERT_USER", global = true)]
    user: Option<String>,

    #[command(subcommand)]
    order: Order,
}

/// An order to a cluster.
#[derive(Debug, Clone, Subcommand)]
enum Order {
    /// Show members, partition groups, and warnings
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Show every group, with the lag of each voter
        #[arg(long)]
        groups: bool,
    },
    /// Let a member leave in order: other members take over its data, then its process exits
    Leave {
        /// The member's number, UUID or address
        member: String,
    },
    /// Remove a dead member now, instead of after a minute
    ///
    /// The order is rejected if the member answers, or if a group would lose its majority without
    /// it.
    Remove {
        /// The member's number, UUID or address
        member: String,
    },
    /// Continue groups that have lost their majority for good, with the data of the remaining
    /// members
    ///
    /// Shows the resulting losses, and acts only with --accept-data-loss. The order is rejected
    /// while each group has a majority of its voters. Missing members return as new members,
    /// without their data.
    Recover {
        /// Accept the loss of changes that only the missing members have acknowledged
        #[arg(long)]
        accept_data_loss: bool,
    },
}

/// An error of `filbert cluster`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    /// The member does not answer.
    #[error("cannot reach {host} over HTTP: {why}")]
    Unreachable {
        /// The member.
        host: String,
        /// The reason.
        why: String,
    },
    /// The member rejects the order.
    #[error("{host} refuses: {why}")]
    Refused {
        /// The member.
        host: String,
        /// The reason.
        why: String,
    },
    /// The answer is invalid.
    #[error("{host} answers, and not as a member of a cluster does: {why}")]
    Answer {
        /// The member.
        host: String,
        /// The problem.
        why: String,
    },
    /// No member has this name.
    #[error("there is no member {named:?}, expected a number, UUID or address of: {known}")]
    NoMember {
        /// The requested name.
        named: String,
        /// The known members.
        known: String,
    },
    /// The flag `--accept-data-loss` is missing.
    #[error("nothing was done: say --accept-data-loss if that is meant")]
    NotConfirmed,
    /// The output cannot be written.
    #[error("cannot write to standard output: {0}")]
    Write(#[from] std::io::Error),
}

/// The HTTP client of a member.
struct Asked<'a> {
    args: &'a ClusterArgs,
    agent: ureq::Agent,
    url: String,
}

pub(crate) fn main(args: &ClusterArgs) -> Result<(), ClusterError> {
    let asked = Asked::new(args);
    let mut out = std::io::stdout().lock();
    match &args.order {
        Order::Status { json, groups } => {
            let status = asked.status()?;
            let text = if *json { format!("{status:#}\n") } else { report::text(&status, *groups) };
            match out.write_all(text.as_bytes()) {
                // A closed pipe (`| head`) is not an error.
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => return Err(error.into()),
                _ => {}
            }
        }
        Order::Leave { member } => {
            let id = asked.member(member)?;
            asked.order(&json!({"order": "leave", "member": id}))?;
            writeln!(out, "member {id} is leaving: others take over what it holds")?;
            asked.until_gone(id);
            writeln!(out, "member {id} has left")?;
        }
        Order::Remove { member } => {
            let id = asked.member(member)?;
            asked.order(&json!({"order": "remove", "member": id}))?;
            writeln!(out, "member {id} is taken out: others take its place where there are enough")?;
        }
        Order::Recover { accept_data_loss } => {
            let done = asked.order(&json!({"order": "recover", "accept_data_loss": accept_data_loss}))?;
            out.write_all(done.get("said").and_then(serde_json::Value::as_str).unwrap_or_default().as_bytes())?;
            if !accept_data_loss {
                return Err(ClusterError::NotConfirmed);
            }
        }
    }
    Ok(())
}

impl<'a> Asked<'a> {
    fn new(args: &'a ClusterArgs) -> Self {
        let config = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(ANSWER_MAX));
        let has_port = args.host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok())
            && (args.host.starts_with('[') || args.host.matches(':').count() == 1);
        let host = match &args.host {
            host if has_port => host.clone(),
            host if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{PORT}"),
            host => format!("{host}:{PORT}"),
        };
        Asked { args, agent: config.build().into(), url: format!("http://{host}/_filbert/cluster") }
    }

    fn unreachable(&self, error: &impl ToString) -> ClusterError {
        ClusterError::Unreachable { host: self.args.host.clone(), why: error.to_string() }
    }

    fn authorization(&self) -> Option<String> {
        let user = self.args.user.as_deref()?;
        let password = std::env::var("FILBERT_PASSWORD").unwrap_or_default();
        Some(format!("Basic {}", report::base64(format!("{user}:{password}").as_bytes())))
    }

    fn status(&self) -> Result<Value, ClusterError> {
        let mut request = self.agent.get(&self.url);
        if let Some(authorization) = self.authorization() {
            request = request.header("authorization", authorization);
        }
        self.read(request.call())
    }

    fn order(&self, order: &Value) -> Result<Value, ClusterError> {
        let mut request = self.agent.post(&self.url).header("content-type", "application/json");
        if let Some(authorization) = self.authorization() {
            request = request.header("authorization", authorization);
        }
        self.read(request.send(order.to_string()))
    }

    fn read(&self, answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Value, ClusterError> {
        let mut answer = answer.map_err(|error| self.unreachable(&error))?;
        let is_good = answer.status().is_success();
        let text = answer.body_mut().read_to_string().map_err(|error| self.unreachable(&error))?;
        let host = self.args.host.clone();
        let value: Value = match serde_json::from_str(&text) {
            Ok(value) => value,
            Err(error) => return Err(ClusterError::Answer { host, why: error.to_string() }),
        };
        if is_good {
            return Ok(value);
        }
        let why = value.pointer("/error/message").and_then(Value::as_str).unwrap_or(&text);
        // The member adds an exception name around the text for CrateDB's clients. It is removed
        // here.
        let inner = why.split_once('[').filter(|(name, _)| name.chars().all(char::is_alphanumeric));
        let why = inner.and_then(|(_, rest)| rest.strip_suffix(']')).unwrap_or(why).to_owned();
        Err(ClusterError::Refused { host, why })
    }

    /// Returns the number of the member with this name.
    fn member(&self, named: &str) -> Result<u64, ClusterError> {
        let status = self.status()?;
        let members = status.get("members").and_then(Value::as_array).cloned().unwrap_or_default();
        let texts =
            |member: &Value| ["uuid", "address", "client_address"].map(|key| member[key].as_str().map(str::to_owned));
        let fits = |member: &&Value| {
            member["id"].as_u64().is_some_and(|id| id.to_string() == named)
                || texts(member).iter().flatten().any(|text| text.eq_ignore_ascii_case(named))
        };
        members.iter().find(fits).and_then(|member| member["id"].as_u64()).ok_or_else(|| {
            let known =
                |member: &Value| format!("{} ({})", member["id"], member["address"].as_str().unwrap_or_default());
            let known: Vec<String> = members.iter().map(known).collect();
            ClusterError::NoMember { named: named.to_owned(), known: known.join(", ") }
        })
    }

    /// Waits until a member has left. If it is the queried member itself, it stops answering, which
    /// ends the wait too.
    fn until_gone(&self, id: u64) {
        while let Ok(status) = self.status() {
            let is_there = |members: &Vec<Value>| members.iter().any(|member| member["id"].as_u64() == Some(id));
            if !status.get("members").and_then(Value::as_array).is_some_and(is_there) {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

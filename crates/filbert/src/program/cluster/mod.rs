//! `filbert cluster`: what an operator asks of a running member, over its HTTP door, and orders of it.
//!
//! It is a client like any other: users, passwords and addresses are those of the HTTP door.

mod report;

use std::io::Write;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use serde_json::{Value, json};

/// Between two looks at a member that leaves.
const PAUSE: Duration = Duration::from_millis(200);
/// Longer than an order takes: a failover is waited for.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// The port of the HTTP door.
const PORT: u16 = 4_200;

/// Which member is asked, and what.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct ClusterArgs {
    /// A member's address for HTTP: any member that is there
    #[arg(
        long,
        short = 'H',
        value_name = "HOST[:PORT]",
        env = "FILBERT_CLUSTER_HOST",
        default_value = "127.0.0.1:4200",
        global = true
    )]
    host: String,

    /// The user's name, where the HTTP door has users; the password is taken from FILBERT_PASSWORD
    #[arg(long, short = 'U', value_name = "NAME", env = "FILBERT_USER", global = true)]
    user: Option<String>,

    #[command(subcommand)]
    order: Order,
}

/// What is asked.
#[derive(Debug, Clone, Subcommand)]
enum Order {
    /// Show members, groups of partitions, and what somebody should look at
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Every group by itself, with the lag of each voter
        #[arg(long)]
        groups: bool,
    },
    /// Have a member leave in order: others take over what it holds, then its process ends
    Leave {
        /// The member's number, UUID or address
        member: String,
    },
    /// Take a member out that is dead, now instead of after a minute
    ///
    /// A member that answers is refused, and so is one without which a group would have no majority.
    Remove {
        /// The member's number, UUID or address
        member: String,
    },
    /// Have groups go on that have lost their majority for good, with what the members that are left hold
    ///
    /// Tells what is lost by it, and does it only with --accept-data-loss. Refused while each group has a majority of its voters. The members that
    /// are not there come back as new members, without what they hold.
    Recover {
        /// What only the missing members have acknowledged is given up
        #[arg(long)]
        accept_data_loss: bool,
    },
}

/// Why it did not work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    /// Nobody answers.
    #[error("cannot reach {host} over HTTP: {why}")]
    Unreachable {
        /// The member.
        host: String,
        /// What stood in the way.
        why: String,
    },
    /// The member says no.
    #[error("{host} refuses: {why}")]
    Refused {
        /// The member.
        host: String,
        /// Its reason.
        why: String,
    },
    /// The answer cannot be read.
    #[error("{host} answers, and not as a member of a cluster does: {why}")]
    Answer {
        /// The member.
        host: String,
        /// What is wrong.
        why: String,
    },
    /// No member goes by the name.
    #[error("there is no member {named:?}, expected a number, UUID or address of: {known}")]
    NoMember {
        /// What was asked for.
        named: String,
        /// The members.
        known: String,
    },
    /// The flag is missing.
    #[error("nothing was done: say --accept-data-loss if that is meant")]
    NotConfirmed,
    /// The output cannot be written.
    #[error("cannot write to standard output: {0}")]
    Write(#[from] std::io::Error),
}

/// A member that is asked.
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
                // A reader that has gone (`| head`) is no failure.
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
        // The name of the exception around it is for CrateDB's clients.
        let inner = why.split_once('[').filter(|(name, _)| name.chars().all(char::is_alphanumeric));
        let why = inner.and_then(|(_, rest)| rest.strip_suffix(']')).unwrap_or(why).to_owned();
        Err(ClusterError::Refused { host, why })
    }

    /// The number of the member that goes by a name.
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

    /// Waits until a member is none any more. The one that is asked answers no more when it is that one.
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

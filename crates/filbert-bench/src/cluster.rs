//! A cluster of Filbert members on this machine: their processes, and the placement of their
//! groups.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::address::free_address;
use crate::error::{BenchError, Result};
use crate::http;
use crate::process::Usage;
use crate::server::{RETRY, START_MAX, Server, filbert_member};

/// The number of members that hold each partition, if the cluster has that many: the default of
/// `--replicas`.
const REPLICAS: usize = 3;

/// The members of a Filbert cluster. Each member holds its share of the replicas. Dropping the
/// value stops the members.
#[derive(Debug)]
pub struct Cluster {
    /// The name of the cluster in reports.
    name: String,
    program: PathBuf,
    results: PathBuf,
    /// The addresses for connections between members, of the first members.
    list: String,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    server: Server,
    http: SocketAddr,
}

impl Cluster {
    /// Starts members. Returns when all groups have their replicas.
    pub fn start(program: &Path, size: usize, results: &Path) -> Result<Cluster> {
        let addresses = (0..size).map(|_| free_address()).collect::<Result<Vec<_>>>()?;
        let list = addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(",");
        let mut cluster = Cluster {
            name: format!("filbert x {size}"),
            program: program.to_owned(),
            results: results.to_owned(),
            list,
            members: Vec::new(),
        };
        // No member serves before a majority of them is present.
        let started = std::thread::scope(|scope| {
            let starting: Vec<_> = (0..).zip(addresses).map(|(n, at)| scope.spawn(cluster.starting(n, at))).collect();
            starting.into_iter().map(|starting| cluster.joined(starting.join())).collect::<Result<Vec<_>>>()
        })?;
        cluster.members = started;
        cluster.await_spread()?;
        Ok(cluster)
    }

    /// Starts another member. Returns when the cluster has accepted it; the transfer of replicas
    /// may continue.
    pub fn join(&mut self) -> Result<()> {
        let member = self.starting(self.members.len(), free_address()?)()?;
        self.members.push(member);
        Ok(())
    }

    /// Returns a function that starts a member and waits until it serves.
    fn starting(&self, number: usize, of_members: SocketAddr) -> impl FnOnce() -> Result<Member> + Send + use<> {
        let (name, program, list) = (self.name.clone(), self.program.clone(), self.list.clone());
        let log = self.results.join(format!("filbert-{number}.log"));
        move || {
            let (address, http) = (free_address()?, free_address()?);
            let mut command = filbert_member(&program, address, Some(http));
            command.args(["--join", &list, "--member-listen", &of_members.to_string()]);
            Ok(Member { server: Server::start(&name, command, address, &log)?, http })
        }
    }

    fn joined(&self, member: std::thread::Result<Result<Member>>) -> Result<Member> {
        let what = "starting it panicked".to_owned();
        member.map_err(|_| BenchError::Program { program: self.name.clone(), what })?
    }

    /// The name in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The members, in start order.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = &Server> {
        self.members.iter().map(|member| &member.server)
    }

    /// The resource usage of each member so far.
    pub fn usage(&self) -> Result<Vec<Usage>> {
        self.servers().map(Server::usage).collect()
    }

    /// The sum of a metric over all members and labels.
    pub fn metric(&self, name: &str) -> Result<f64> {
        self.members.iter().map(|member| http::metric(member.http, name)).sum()
    }

    /// Whether every group has its replicas on the intended members, and each member holds its
    /// share.
    pub fn is_spread(&self) -> bool {
        // The member may not serve the status yet.
        let Some(member) = self.members.first() else { return false };
        http::cluster(member.http).is_ok_and(|status| is_spread(&status, self.members.len()))
    }

    /// Waits until the groups are spread evenly over the members.
    pub fn await_spread(&self) -> Result<()> {
        let begun = Instant::now();
        while !self.is_spread() {
            if begun.elapsed() > START_MAX {
                let status =
                    self.members.first().map(|member| http::cluster(member.http)).transpose()?.unwrap_or_default();
                let what =
                    format!("groups are not spread over {} members after {START_MAX:?}: {status}", self.members.len());
                return Err(BenchError::Program { program: self.name.clone(), what });
            }
            std::thread::sleep(RETRY);
        }
        Ok(())
    }

    /// Polls the resident memory of the current members while `work` runs. Returns the peak of
    /// their sum, in bytes.
    pub fn peak_while<R>(&mut self, work: impl FnOnce(&mut Cluster) -> Result<R>) -> Result<(R, u64)> {
        /// The polling interval. One poll reads some files of `/proc`, which takes 0.1 ms.
        const PERIOD: Duration = Duration::from_millis(50);
        let (working, worked) = mpsc::channel::<()>();
        let pids: Vec<u32> = self.servers().map(Server::pid).collect();
        std::thread::scope(|scope| {
            let reading = scope.spawn(move || {
                let mut peak = 0;
                loop {
                    let used = pids.iter().map(|pid| Usage::of(*pid)).collect::<Result<Vec<_>>>()?;
                    peak = peak.max(used.iter().map(|used| used.resident_bytes).sum());
                    if worked.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout) {
                        return Ok::<u64, BenchError>(peak);
                    }
                }
            });
            let done = work(self);
            drop(working);
            let ended = |_| BenchError::Setting("the thread that reads memory ended early".to_owned());
            Ok((done?, reading.join().map_err(ended)??))
        })
    }
}

fn is_spread(status: &Value, members: usize) -> bool {
    let list = |of: &Value, name: &str| of.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut groups = list(status, "groups");
    // Every member is a voter or a learner of the registry, so it is not part of the spread.
    groups.retain(|group| group.get("group").and_then(Value::as_str) != Some("registry"));
    let replicas = members.min(REPLICAS);
    let mut held = std::collections::BTreeMap::new();
    for group in &groups {
        let of_group = list(group, "voters");
        let is_settled = of_group.len() == replicas && list(group, "learners").is_empty();
        if !is_settled || group.get("changing").and_then(Value::as_bool) != Some(false) {
            return false;
        }
        for voter in of_group.iter().filter_map(|voter| voter.get("member").and_then(Value::as_u64)) {
            *held.entry(voter).or_insert(0_usize) += 1;
        }
    }
    let share = groups.len() * replicas;
    let fair = share / members..=share.div_ceil(members);
    held.len() == members && held.values().all(|held| fair.contains(held)) && list(status, "warnings").is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn group(voters: &[u64]) -> Value {
        let voters: Vec<Value> = voters.iter().map(|member| json!({"member": member, "lag": 0})).collect();
        json!({"voters": voters, "learners": [], "changing": false})
    }

    #[test]
    fn groups_are_spread_when_each_member_has_its_share() {
        let registry =
            json!({"group": "registry", "voters": [{"member": 1}], "learners": [{"member": 2}], "changing": false});
        let of = |groups: Vec<Value>| {
            let groups: Vec<Value> = groups.into_iter().chain([registry.clone()]).collect();
            json!({"groups": groups, "warnings": []})
        };
        let even = of(vec![group(&[1, 2, 3]), group(&[2, 3, 4]), group(&[3, 4, 1]), group(&[4, 1, 2])]);
        assert!(is_spread(&even, 4));
        assert!(!is_spread(&even, 3), "one more member than there should be");
        let uneven = of(vec![group(&[1, 2, 3]), group(&[1, 2, 3]), group(&[1, 2, 3]), group(&[1, 2, 4])]);
        assert!(!is_spread(&uneven, 4));
        let mut changing = even.clone();
        changing["groups"][0]["changing"] = json!(true);
        assert!(!is_spread(&changing, 4));
        let mut warned = even;
        warned["warnings"] = json!(["a member is not heard of"]);
        assert!(!is_spread(&warned, 4));
    }
}

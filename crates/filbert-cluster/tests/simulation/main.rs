//! Simulation of groups: the real crate over a simulated network, with clocks and randomness that
//! are derived from a seed. Histories of clients must be linearizable. Invariants are checked every
//! 23 ms of the simulation.
//!
//! `FILBERT_SIM_HISTORIES=1000 cargo test --release -p filbert-cluster --test simulation random`
//! runs more histories than usual, `FILBERT_SIM_SECONDS=600` as many as fit into the time;
//! `FILBERT_SIM_SEED=7` begins with the given seed. A failure prints its seed.
//!
//! # Invariants
//!
//! | | invariant | checked in |
//! |---|---|---|
//! | 1 | histories are linearizable (see below) | `checker.rs` |
//! | 2 | an expired entry or lock lease does not come back | `checker.rs`, `Register::aged` |
//! | 3 | no expiry is off by more than clocks differ, nor late by more than an entry was in flight | `checker.rs`, `Moment::end_after` |
//! | 4 | the time of reads never goes back, across leaders | `client.rs`, `get_at` |
//! | 5 | each term has at most one leader | `invariants.rs` |
//! | 6 | at most one member holds a lease at a time | `invariants.rs` |
//! | 7 | the term of a member never goes back | `invariants.rs`, `check_progress` |
//! | 8 | the commit index never goes back | there |
//! | 9 | the applied index never goes back, and applied entries are committed | there |
//! | 10 | the time of partitions never goes back | there |
//! | 11 | replicas at the same entry have the same state (see below) | there |
//! | 12 | applied entries stay in the log | `invariants.rs`, `check_log` |
//! | 13 | logs with a common entry are equal before it | there |
//! | 14 | a leader has all entries that were committed before | there |
//! | 15 | only applied entries are purged | there |
//! | 16 | a log stays within its memory limit | there |
//! | 17 | submissions that wait for an entry stay within their memory limit | there |
//! | 18 | majorities of consecutive configurations overlap | `invariants.rs`, `check_voters` |
//! | 19 | there are never fewer voters than configured | there |
//! | 20 | no group stops by itself | `invariants.rs` |
//! | 21 | without faults a group comes to rest, and its voters are equal | `cluster.rs`, `settle` |
//! | 22 | the same seed gives the same history | `random.rs` |
//! | 23 | a snapshot stays within its rate limit | `scenarios/members.rs` |
//! | 24 | the state machine of a lease holder knows the term of its leadership | `invariants.rs` |
//! | 25 | listeners receive each change (see below) | `event_reports.rs` |
//! | 26 | a hand-over keeps the order of events of each key | `event_reports.rs` |
//! | 27 | a replica that was given up has no entry, and its member keeps its term | `invariants.rs` |
//!
//! In 1, each acknowledged change takes effect, no refused change does, and no change takes effect
//! twice. The state in 11 includes entries, lifetimes, locks, claims, journals, and answers to
//! origins, from the log or from a snapshot. In 25, one member reports each change if leadership is
//! handed over, and at most two members do if a leader is lost.
//!
//! # Faults
//!
//! | | fault | injected in |
//! |---|---|---|
//! | 1 | a member crashes, and is replaced by a new one | `random.rs` |
//! | 2 | the leader crashes | `random.rs` |
//! | 3 | several members crash, one after the other | `random.rs`, `scenarios/members.rs` |
//! | 4 | a member is paused, and continues | `random.rs` |
//! | 5 | the leader is paused beyond its lease | `random.rs`, `scenarios/leases.rs` |
//! | 6 | a machine is suspended while its clock runs | `random.rs`, `scenarios/leases.rs` |
//! | 7 | clocks run at different rates | `cluster.rs`, `start_member` |
//! | 8 | wall clocks differ, and jump | `cluster.rs`, `jump_clock` |
//! | 9 | the leader is cut off | `random.rs` |
//! | 10 | a minority is cut off | `random.rs` |
//! | 11 | a bridge: two members do not see each other | `random.rs` |
//! | 12 | messages arrive in one direction only | `random.rs` |
//! | 13 | messages are lost | `network.rs` |
//! | 14 | messages are lost in bursts | `network.rs` |
//! | 15 | messages are repeated | `network.rs` |
//! | 16 | messages overtake each other | `network.rs` |
//! | 17 | messages are late | `network.rs` |
//! | 18 | leadership is handed over | `random.rs` |
//! | 19 | members change during another fault | `random.rs` |
//! | 20 | a member lags until it needs a snapshot, which is slow | `random.rs` |
//! | 21 | several members need a snapshot at the same time | `random.rs` |
//! | 22 | more is submitted than the limits allow | `random.rs` |
//! | 23 | clients lose answers, and retry at other members | `client.rs` |
//! | 24 | most voters die at once, and the survivors continue | `scenarios/recovery.rs` |
//! | 25 | a member moves its replica to another one, gives it up, and receives it again | `random.rs` |
//! | 26 | a member has no room for a snapshot, and has it later | `cluster.rs`, `start_member` |

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::panic, clippy::print_stderr, reason = "helpers of tests fail as tests do")]

mod checker;
mod client;
mod cluster;
mod event_reports;
mod invariants;
mod network;
mod random;
mod runtime;
mod scenarios;

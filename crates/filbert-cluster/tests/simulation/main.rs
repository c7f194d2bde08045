//! Groups under simulation: the real crate over a network, clocks and randomness that follow from a seed, clients whose history must be
//! linearizable, and invariants that are looked at every 23 ms of the simulation.
//!
//! `FILBERT_SIM_HISTORIES=1000 cargo test --release -p filbert-cluster --test simulation random` for more histories than usual,
//! `FILBERT_SIM_SECONDS=600` for as many as fit; `FILBERT_SIM_SEED=7` begins with one seed. A failure prints its seed.
//!
//! # What must hold
//!
//! | | invariant | looked at in |
//! |---|---|---|
//! | 1 | histories are linearizable: what was acknowledged is there, what was refused is not, nothing happens twice | `checker.rs` |
//! | 2 | what has expired, an entry or a lock's lease, does not come back | `checker.rs`, `Register::aged` |
//! | 3 | nothing expires earlier or later than clocks can differ by | `checker.rs`, `Moment::end_after` |
//! | 4 | the time of reads does not go back, whoever leads | `client.rs`, `get_at` |
//! | 5 | one leader in a term | `invariants.rs` |
//! | 6 | one holder of a lease at a moment | `invariants.rs` |
//! | 7 | the term of a member does not go back | `invariants.rs`, `check_progress` |
//! | 8 | what is committed does not go back | there |
//! | 9 | what is applied does not go back, and is committed | there |
//! | 10 | the time of partitions does not go back | there |
//! | 11 | replicas that have applied the same hold the same: entries, lifetimes, locks, claims, journals, answers to origins; from the log or a snapshot | there |
//! | 12 | what is applied stays in the log | `invariants.rs`, `check_log` |
//! | 13 | logs that have an entry in common are alike before it | there |
//! | 14 | a leader has all that was committed before | there |
//! | 15 | only what is applied is purged | there |
//! | 16 | a log keeps to its limit of memory | there |
//! | 17 | what waits for an entry keeps to its limit of memory | there |
//! | 18 | majorities of one configuration and the next overlap | `invariants.rs`, `check_voters` |
//! | 19 | never fewer voters than configured | there |
//! | 20 | no group stops by itself | `invariants.rs` |
//! | 21 | a group whose faults have ended comes to rest, and all voters are alike | `cluster.rs`, `settle` |
//! | 22 | the same seed gives the same history | `random.rs` |
//! | 23 | a snapshot keeps to its rate | `scenarios/members.rs` |
//! | 24 | the state machine of a member with a lease is told that it leads, and in which term | `invariants.rs` |
//! | 25 | listeners are told of each change of an entry, from one member where leadership is handed over, from two at most where a leader is lost | `told.rs` |
//! | 26 | where leadership is handed over, the changes of a key are told in their order | `told.rs` |
//!
//! # What goes wrong
//!
//! | | fault | made in |
//! |---|---|---|
//! | 1 | a member crashes, and is replaced by a new one | `random.rs` |
//! | 2 | the leader crashes | `random.rs` |
//! | 3 | several crash, one after the other | `random.rs`, `scenarios/members.rs` |
//! | 4 | a member is paused, and goes on | `random.rs` |
//! | 5 | the leader is paused beyond its lease | `random.rs`, `scenarios/leases.rs` |
//! | 6 | a machine is suspended: its clock runs on | `random.rs`, `scenarios/leases.rs` |
//! | 7 | clocks run at different rates | `cluster.rs`, `start_member` |
//! | 8 | times of day differ, and jump | `cluster.rs`, `jump_clock` |
//! | 9 | the leader is cut off | `random.rs` |
//! | 10 | a minority is cut off | `random.rs` |
//! | 11 | a bridge: two do not see each other | `random.rs` |
//! | 12 | messages arrive in one direction only | `random.rs` |
//! | 13 | messages are lost | `network.rs` |
//! | 14 | messages are lost in bursts | `network.rs` |
//! | 15 | messages are repeated | `network.rs` |
//! | 16 | messages overtake each other | `network.rs` |
//! | 17 | messages are late | `network.rs` |
//! | 18 | leadership is handed over | `random.rs` |
//! | 19 | members change while something else goes wrong | `random.rs` |
//! | 20 | a member lags until it needs a snapshot, which is slow | `random.rs` |
//! | 21 | several need a snapshot at once | `random.rs` |
//! | 22 | more is submitted than fits | `random.rs` |
//! | 23 | clients lose answers, and ask others again | `client.rs` |
//! | 24 | most voters die at once, and what is left goes on | `scenarios/recovery.rs` |

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::panic, clippy::print_stderr, reason = "helpers of tests fail as tests do")]

mod checker;
mod client;
mod cluster;
mod invariants;
mod network;
mod random;
mod runtime;
mod scenarios;
mod told;

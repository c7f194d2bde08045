//! The connections between the members of a cluster: requests and answers over TCP.
//!
//! This crate is the [`Transport`](filbert_cluster::Transport) of groups, and carries all other
//! requests between members. It must not know the contents of requests, groups, the choice of
//! members, the grid, or configuration files. The user of the crate provides an [`Identity`],
//! settings and a [`Service`] that answers requests, and sets the addresses of members in the
//! [`AddressBook`].
//!
//! ```text
//!  Links::call ──► peer_link (per member, kind) ───► queue ──► one write ──► TCP, TLS
//!       ▲            │ no connection: dial, handshake                           │
//!       │            ▼                                                          ▼
//!       └── outstanding calls, by number ◄── queue of answers ◄── Service::answer ◄── inbound
//!                                                                    (in order of arrival)
//! ```
//!
//! # Modules, from bottom to top
//!
//! Each module uses only the modules before it. `address` and `channel` are the addresses of
//! members and the kinds of requests; `held` counts memory; `wire`, `queue` and `error` handle
//! frames; `hello`, `proof`, `tls` and `handshake` begin a connection. `peer_link` has the calls to
//! one member, and does not know how connections are made. `shared` has all links and the settings.
//! `dial` connects a link and serves it, `inbound` serves connections from other members; `book`
//! cuts the links to members that have moved. `calls` finds a link and starts dialling; `links` is
//! the public interface.
//!
//! # Invariants
//!
//! - Requests of a channel reach the other member's service in the order of the calls, as long as
//!   the connection lasts.
//! - Each call ends: with an answer, with a refusal, or with an error when the connection breaks. A
//!   connection with outstanding calls breaks when nothing arrives for a while. A member with a
//!   slow answer meanwhile sends frames to show that it is alive.
//! - Nothing is sent to a peer or accepted from it before the handshake, which checks the cluster,
//!   the numbers of partitions and groups, a common version, and the secret, if there is one.
//! - Queues, outstanding calls, requests being answered, handshakes and connections have limits,
//!   which are settings. Memory grows with received bytes, never with a claimed length.
//! - Bytes from outside lead to errors, never to a panic.
//!
//! Start reading at [`Links`].

mod address;
mod book;
mod calls;
mod channel;
mod dial;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod handshake;
mod held;
mod hello;
mod inbound;
mod links;
mod logged_errors;
mod membership;
mod peer_link;
mod proof;
mod queue;
mod settings;
mod shared;
mod statistics;
mod stream;
mod tls;
mod wire;

pub use address::Address;
pub use book::AddressBook;
pub use channel::{Channel, Kind, Peer, Refusal, Service};
pub use error::{HelloError, LinkError, Refused};
pub use handshake::PREAMBLE;
pub use links::Links;
pub use settings::{Identity, LinkSettings, Secret, TlsSettings};
pub use statistics::{KindStatistics, LinkStatistics};
pub use tls::{TlsFiles, TlsFilesError};
pub use wire::FrameError;

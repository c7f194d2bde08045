//! How members of a cluster reach each other: requests and answers over TCP.
//!
//! It is the [`Transport`](filbert_cluster::Transport) of groups, and carries what else members ask of each other. It must not know what is in
//! a request, what a group is, how members are chosen, the grid, or configuration files: whoever uses it brings an [`Identity`], settings, a
//! [`Service`] that answers, and says in the [`AddressBook`] where members are.
//!
//! ```text
//!  Links::call ──► way (one for each member and kind) ──► queue ──► one write ──► TCP, TLS ──► inbound ──► Service::answer
//!       ▲                │ no connection: dial, handshake                                        │  in order of arrival
//!       └── answer ◄── outstanding calls, by number ◄────────────────────── queue of answers ◄──┘
//! ```
//!
//! # Invariants
//!
//! - Requests of a channel reach the other member's service in the order in which `call` was called, as long as the connection lasts.
//! - A call ends: with an answer, a refusal, or an error when the connection breaks. A connection on which answers are awaited breaks
//!   when nothing comes for a while; who answers for long says meanwhile that it is alive.
//! - Nothing is sent to or taken from a peer before the handshake: same cluster, same shape, a version that both speak, and the
//!   secret, if there is one.
//! - Queues, calls on their way, requests being answered, handshakes and connections have limits, which are settings. Memory grows with bytes that
//!   came, never with a length that is claimed.
//! - Bytes from outside give errors, never a panic.
//!
//! Start reading at [`Links`].

mod address;
mod channel;
mod dial;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod handshake;
mod hello;
mod inbound;
mod links;
mod notes;
mod proof;
mod queue;
mod settings;
mod shared;
mod statistics;
mod stream;
mod tls;
mod way;
mod wire;

pub use address::{Address, AddressBook};
pub use channel::{Channel, Kind, Peer, Refusal, Service};
pub use error::{LinkError, Refused};
pub use handshake::PREAMBLE;
pub use hello::HelloError;
pub use links::Links;
pub use settings::{Identity, LinkSettings, Secret, TlsSettings};
pub use statistics::{KindStatistics, LinkStatistics};
pub use tls::{TlsFiles, TlsFilesError};
pub use wire::FrameError;

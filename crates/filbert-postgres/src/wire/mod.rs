//! The messages of PostgreSQL's frontend/backend protocol, versions 3.0 and 3.2, without I/O.
//!
//! Source: "Message Formats" in PostgreSQL's documentation. All integers are big-endian. A message
//! consists of a type byte, its length as `i32` (the length field included, the type byte not), and
//! its body. The first message of a connection has no type byte.
//!
//! | from the client | | from the server | |
//! |---|---|---|---|
//! | (none) | startup, SSL, GSS, cancel | `R` | authentication |
//! | `p` | password, SASL | `S` | parameter status |
//! | `Q` | query | `K` | key data |
//! | `P` | parse | `1` | parse complete |
//! | `B` | bind | `2` | bind complete |
//! | `C` | close | `3` | close complete |
//! | `D` | describe | `T` `n` | row description, no data |
//! | | | `t` | parameter description |
//! | `E` | execute | `D` `s` | data row, portal suspended |
//! | | | `C` `I` | command complete, empty query |
//! | `H` | flush | `E` | error |
//! | `S` | sync | `Z` | ready for query |
//! | `d` `c` `f` | copy data, done, fail | `G` `H` `d` `c` | copy in, copy out, data, done |
//! | `X` | terminate | `v` | protocol version negotiation |
//!
//! Decoding borrows from the message's bytes, allocates nothing, and checks every length before it
//! is used. Malformed bytes are a [`Violation`].

mod backend;
mod body;
mod frontend;
mod startup;

pub(crate) use backend::{ErrorFields, Format, KeyData, Out, RowField, TransactionStatus};
pub(crate) use body::{Body, Violation};
pub(crate) use frontend::{Bind, Formats, Frontend, HEADER_BYTES, Oids, Target, frame, length_of};
pub(crate) use startup::{GSS_REQUEST, Parameters, SSL_REQUEST, Startup, startup_length};

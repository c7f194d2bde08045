//! The table of messages: one row per message, one module per service, from which types and codecs are made.
//!
//! A message is `table::<service>::<method>`; in it are the structs `Request`, `Response` and one struct per event
//! (for example [`map::add_entry_listener::EntryEvent`]), `ID` and `RESPONSE_ID` to match on, and `SPEC`, its row.
//!
//! Fields carry the names of the protocol in snake case, `type` being called `kind` as the word is taken. Units are
//! the protocol's: times are milliseconds unless the name says otherwise.

use std::fmt;

use crate::{
    CorrelationId, Family, Message, MessageId, Payload as _, WireError, encode, error_message::ErrorMessage,
    sample::Source,
};

mod rows;

pub(crate) use rows::{borrowed, label, payload, read_field, service, since};

macro_rules! services {
    ($($module:ident),* $(,)?) => {
        $(
            #[doc = concat!("The messages of the service `", stringify!($module), "`.")]
            pub mod $module;
        )*

        /// All services by id. A test checks the order, which [`find`] relies on.
        static SERVICES: &[&ServiceSpec] = &[$( &$module::SERVICE, )*];

        /// Shows every message of the table to `visitor`, the error first, with code made for each: for tests.
        #[inline]
        pub fn visit_all<V: Visitor>(visitor: &mut V) {
            visitor.visit::<ErrorMessage<'static>>();
            $( $module::visit_all(visitor); )*
        }

        /// Shows the one message with this id to `visitor`; false when there is none. For tests and fuzzing.
        #[inline]
        pub fn visit<V: Visitor>(id: MessageId, visitor: &mut V) -> bool {
            let mut only = Only { id, visitor, found: false };
            only.visit::<ErrorMessage<'static>>();
            $(
                if $module::SERVICE.id == id.service() {
                    $module::visit_all(&mut only);
                }
            )*
            only.found
        }
    };
}

// In the order of their ids.
services! {
    client, map, multi_map, queue, topic, list, set, fenced_lock, executor_service, atomic_long, atomic_ref,
    count_down_latch, semaphore, replicated_map, transactional_map, transactional_multi_map, transactional_set,
    transactional_list, transactional_queue, cache, xa_transaction, transaction, continuous_query, ringbuffer,
    durable_executor, cardinality_estimator, scheduled_executor, dynamic_config, flake_id_generator, pn_counter,
    cp_group, cp_session, mc, sql, cp_subsystem, cp_map, vector_collection, experimental, jet,
}

/// Code that is generic over all messages.
pub trait Visitor {
    /// Is shown one message.
    fn visit<F: Family>(&mut self);
}

/// Passes on the one message looked for.
struct Only<'v, V> {
    id: MessageId,
    visitor: &'v mut V,
    found: bool,
}

impl<V: Visitor> Visitor for Only<'_, V> {
    #[inline]
    fn visit<F: Family>(&mut self) {
        if F::ID == self.id {
            self.found = true;
            self.visitor.visit::<F>();
        }
    }
}

/// A version of the client protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProtocolVersion {
    /// 2 for all messages here.
    pub major: u8,
    /// Raised when messages or fields are added.
    pub minor: u8,
}

impl ProtocolVersion {
    /// Reads `2.7`; a row's literal is always of this form, which a test checks.
    pub(crate) const fn parse(text: &str) -> Self {
        let mut bytes = text.as_bytes();
        let mut version = ProtocolVersion { major: 0, minor: 0 };
        let mut behind_dot = false;
        while let [byte, rest @ ..] = bytes {
            if *byte == b'.' {
                behind_dot = true;
            } else if behind_dot {
                version.minor = version.minor * 10 + (*byte - b'0');
            } else {
                version.major = version.major * 10 + (*byte - b'0');
            }
            bytes = rest;
        }
        version
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// How a client finds the partition that a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Partitioning {
    /// It is about none, or any member can answer.
    None,
    /// By the hash of the field `key`.
    Key,
    /// By the hash of the object's name.
    Name,
    /// Given by the field `partition_id`.
    PartitionId,
    /// Any: spread over all.
    Random,
    /// By any of the keys, which all belong to one partition.
    AnyKey,
    /// By the hash of the task's name.
    TaskName,
    /// By the transaction's id.
    Xid,
    /// By the partition that the sequence number was made for.
    Sequence,
}

/// One service and its messages.
#[derive(Debug)]
pub struct ServiceSpec {
    /// As in `Map.put`.
    pub name: &'static str,
    /// See [`MessageId::service`].
    pub id: u8,
    /// By id.
    pub messages: &'static [&'static MessageSpec],
}

/// One row of the table. Its `Display` is the name that people know: `Map.putIfAbsent`.
#[derive(Debug)]
pub struct MessageSpec {
    /// The service's name.
    pub service: &'static str,
    /// The method's name in snake case.
    pub method: &'static str,
    /// The method's name where it is not [`MessageSpec::method`] in camel case.
    pub(crate) label: Option<&'static str>,
    /// The id of the request.
    pub id: MessageId,
    /// The protocol version that brought it.
    pub since: ProtocolVersion,
    /// Whether a client may send it again when it does not know what became of it.
    pub retryable: bool,
    /// Which partition it is about.
    pub partition: Partitioning,
    /// The request's fields.
    pub request: &'static [FieldSpec],
    /// The response's fields.
    pub response: &'static [FieldSpec],
    /// What members send to those who registered by this message.
    pub events: &'static [EventSpec],
}

impl fmt::Display for MessageSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.", self.service)?;
        match self.label {
            Some(label) => f.write_str(label),
            None => CamelCase(self.method).fmt(f),
        }
    }
}

/// An event of a row.
#[derive(Debug)]
pub struct EventSpec {
    /// The name of its struct, for example `EntryEvent`.
    pub name: &'static str,
    /// Its id.
    pub id: MessageId,
    /// The protocol version that brought it.
    pub since: ProtocolVersion,
    /// Its fields.
    pub fields: &'static [FieldSpec],
}

/// A field of a message.
#[derive(Debug)]
pub struct FieldSpec {
    /// Its name in snake case.
    pub name: &'static str,
    /// Its Rust type, as text.
    pub kind: &'static str,
    /// Whether a null may stand in its place.
    pub nullable: bool,
    /// The protocol version that brought it.
    pub since: ProtocolVersion,
}

/// The whole table, by id.
pub fn all() -> impl Iterator<Item = &'static MessageSpec> {
    SERVICES.iter().flat_map(|service| service.messages.iter().copied())
}

/// All services, by id.
pub fn services() -> impl Iterator<Item = &'static ServiceSpec> {
    SERVICES.iter().copied()
}

/// The row of a request, or of the response or event that belongs to it.
pub fn find(id: MessageId) -> Option<&'static MessageSpec> {
    if id.0 >> 24 != 0 {
        return None;
    }
    let at = SERVICES.binary_search_by_key(&id.service(), |service| service.id).ok()?;
    let messages = SERVICES.get(at)?.messages;
    let at = messages.binary_search_by_key(&id.method(), |spec| spec.id.method()).ok()?;
    messages.get(at).copied()
}

/// Reads any message by its id and appends it to `out` again, as this version of the protocol writes it: for tests,
/// fuzzing and tools. Code for every message is made where this is called; front doors decode by type.
///
/// # Errors
///
/// [`WireError::UnknownMessage`], or what is wrong with a field; nothing is appended then.
#[inline]
pub fn recode(message: &Message<'_>, out: &mut Vec<u8>) -> Result<(), WireError> {
    struct Recode<'m, 'a, 'o> {
        message: &'m Message<'a>,
        out: &'o mut Vec<u8>,
        result: Result<(), WireError>,
    }

    impl Visitor for Recode<'_, '_, '_> {
        #[inline(never)]
        fn visit<F: Family>(&mut self) {
            self.result = self.message.decode::<F::Of<'_>>().map(|payload| {
                encode(&payload, self.message.correlation_id(), self.message.partition_id(), self.out);
            });
        }
    }

    let mut recode = Recode { message, out, result: Err(WireError::UnknownMessage(message.id())) };
    visit(message.id(), &mut recode);
    recode.result
}

/// Appends a message made of random bytes, the same for the same bytes; false when there is no message of this id.
/// For tests, as [`recode`].
#[inline]
pub fn sample(id: MessageId, random: &[u8], correlation: CorrelationId, partition: i32, out: &mut Vec<u8>) -> bool {
    struct Sample<'r, 'o> {
        random: &'r [u8],
        correlation: CorrelationId,
        partition: i32,
        out: &'o mut Vec<u8>,
    }

    impl Visitor for Sample<'_, '_> {
        #[inline(never)]
        fn visit<F: Family>(&mut self) {
            let payload = F::Of::sample(&mut Source::new(self.random));
            encode(&payload, self.correlation, self.partition, self.out);
        }
    }

    visit(id, &mut Sample { random, correlation, partition, out })
}

/// The ids of all messages: the error, and every request, response and event.
pub fn ids() -> impl Iterator<Item = MessageId> {
    let of_spec = |spec: &'static MessageSpec| {
        [spec.id, spec.id.part(1)].into_iter().chain(spec.events.iter().map(|event| event.id))
    };
    std::iter::once(MessageId::ERROR).chain(all().flat_map(of_spec))
}

/// Snake case shown as camel case.
pub(crate) struct CamelCase(pub(crate) &'static str);

impl fmt::Display for CamelCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = self.0.split('_');
        f.write_str(words.next().unwrap_or_default())?;
        for word in words {
            let mut letters = word.chars();
            if let Some(first) = letters.next() {
                write!(f, "{}{}", first.to_ascii_uppercase(), letters.as_str())?;
            }
        }
        Ok(())
    }
}

//! The table of messages: one row per message, one module per service. Macros generate the types
//! and codecs from the rows.
//!
//! The module of a message is `table::<service>::<method>`. It contains the structs `Request` and
//! `Response`, one struct per event (for example [`map::add_entry_listener::EntryEvent`]), the
//! constants `ID` and `RESPONSE_ID` for matching, and the row `SPEC`.
//!
//! Fields have the names of the protocol in snake case. `type` is called `kind`, because `type` is
//! a keyword of Rust. Units are those of the protocol: times are in milliseconds, unless the name
//! contains another unit.

use std::fmt;

use crate::{
    CorrelationId, Family, Message, MessageId, Payload as _, WireError, encode, error_message::ErrorMessage,
    sample::Source,
};

mod rows;

pub use crate::spec::{EventSpec, FieldSpec, MessageSpec, Partitioning, ProtocolVersion, ServiceSpec};
pub(crate) use rows::{label, service};

macro_rules! services {
    ($($module:ident),* $(,)?) => {
        $(
            #[doc = concat!("The messages of the service `", stringify!($module), "`.")]
            pub mod $module;
        )*

        /// All services, ordered by id. [`find`] relies on the order; a test checks it.
        static SERVICES: &[&ServiceSpec] = &[$( &$module::SERVICE, )*];

        /// Calls `visitor` for every message of the table, the error first. Generates code for each
        /// message. For tests.
        #[inline]
        pub fn visit_all<V: Visitor>(visitor: &mut V) {
            visitor.visit::<ErrorMessage<'static>>();
            $( $module::visit_all(visitor); )*
        }

        /// Calls `visitor` for the message with this id. Returns false if there is no such message.
        /// For tests and fuzzing.
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

// In the order of the ids.
services! {
    client, map, multi_map, queue, topic, list, set, fenced_lock, executor_service, atomic_long, atomic_ref,
    count_down_latch, semaphore, replicated_map, transactional_map, transactional_multi_map, transactional_set,
    transactional_list, transactional_queue, cache, xa_transaction, transaction, continuous_query, ringbuffer,
    durable_executor, cardinality_estimator, scheduled_executor, dynamic_config, flake_id_generator, pn_counter,
    cp_group, cp_session, mc, sql, cp_subsystem, cp_map, vector_collection, experimental, jet,
}

/// Code that is generic over all messages.
pub trait Visitor {
    /// Visits one message.
    fn visit<F: Family>(&mut self);
}

/// A visitor that forwards only the message with one id.
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

/// Returns all messages, ordered by id.
pub fn all() -> impl Iterator<Item = &'static MessageSpec> {
    SERVICES.iter().flat_map(|service| service.messages.iter().copied())
}

/// Returns all services, ordered by id.
pub fn services() -> impl Iterator<Item = &'static ServiceSpec> {
    SERVICES.iter().copied()
}

/// Returns the row of a request, or of its response or event.
pub fn find(id: MessageId) -> Option<&'static MessageSpec> {
    if id.0 >> 24 != 0 {
        return None;
    }
    let at = SERVICES.binary_search_by_key(&id.service(), |service| service.id).ok()?;
    let messages = SERVICES.get(at)?.messages;
    let at = messages.binary_search_by_key(&id.method(), |spec| spec.id.method()).ok()?;
    messages.get(at).copied()
}

/// Shows the name in the protocol, such as `Map.put`, followed by `response` or the name of the
/// event if it is not a request. Shows the number of an unknown message.
impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == MessageId::ERROR {
            return f.write_str("error");
        }
        let Some(spec) = find(*self) else { return write!(f, "message 0x{:06x}", self.0) };
        match self.0 & 0xff {
            0 => write!(f, "{spec}"),
            1 => write!(f, "{spec} response"),
            _ => match spec.events.iter().find(|event| event.id == *self) {
                Some(event) => write!(f, "{spec} {}", event.name),
                None => write!(f, "{spec} message 0x{:06x}", self.0),
            },
        }
    }
}

/// Decodes any message by its id, encodes it in this version of the protocol, and appends it to
/// `out`. For tests, fuzzing and tools. Each call site generates code for every message; protocol
/// servers decode by type.
///
/// # Errors
///
/// [`WireError::UnknownMessage`], or the error of a field. Nothing is appended then.
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

/// Appends a message generated from random bytes. The same bytes produce the same message. Returns
/// false if there is no message with this id. For tests, as [`recode`].
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

/// Returns the ids of all messages: the error, and every request, response and event.
pub fn ids() -> impl Iterator<Item = MessageId> {
    let of_spec = |spec: &'static MessageSpec| {
        [spec.id, spec.id.part(1)].into_iter().chain(spec.events.iter().map(|event| event.id))
    };
    std::iter::once(MessageId::ERROR).chain(all().flat_map(of_spec))
}

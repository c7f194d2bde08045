//! Listeners for the changes of a map.

use std::{
    fmt, ops,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use filbert_data::{FromBlob, ToBlob, criteria::Predicate};
use filbert_wire::{CorrelationId, Message, MessageId, Request, table::map};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{
    ClientError, ListenerId, Map, SerializesAs, connection::EventHandler, listeners, map::value,
    registration::Registration,
};

/// A set of kinds of changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EntryKinds(i32);

impl EntryKinds {
    /// An entry was added.
    pub const ADDED: Self = Self(1);
    /// An entry was removed.
    pub const REMOVED: Self = Self(1 << 1);
    /// The value of an entry was replaced.
    pub const UPDATED: Self = Self(1 << 2);
    /// An entry was removed to free memory, or by `evict`.
    pub const EVICTED: Self = Self(1 << 3);
    /// An entry expired.
    pub const EXPIRED: Self = Self(1 << 4);
    /// The whole map was evicted.
    pub const ALL_EVICTED: Self = Self(1 << 5);
    /// The whole map was cleared.
    pub const ALL_CLEARED: Self = Self(1 << 6);
    /// An entry was merged after a split of the cluster.
    pub const MERGED: Self = Self(1 << 7);
    /// An entry was loaded.
    pub const LOADED: Self = Self(1 << 9);
    /// All kinds.
    pub const ALL: Self = Self(0b10_1111_1111);

    pub(crate) fn from_bits(bits: i32) -> Self {
        Self(bits)
    }

    /// Whether this set contains all kinds of `other`.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl ops::BitOr for EntryKinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for EntryKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(EntryKinds, &str); 9] = [
            (EntryKinds::ADDED, "ADDED"),
            (EntryKinds::REMOVED, "REMOVED"),
            (EntryKinds::UPDATED, "UPDATED"),
            (EntryKinds::EVICTED, "EVICTED"),
            (EntryKinds::EXPIRED, "EXPIRED"),
            (EntryKinds::ALL_EVICTED, "ALL_EVICTED"),
            (EntryKinds::ALL_CLEARED, "ALL_CLEARED"),
            (EntryKinds::MERGED, "MERGED"),
            (EntryKinds::LOADED, "LOADED"),
        ];
        let names: Vec<&str> = NAMES.iter().filter(|(kind, _)| self.contains(*kind)).map(|(_, name)| *name).collect();
        write!(f, "EntryKinds({})", names.join(" | "))
    }
}

/// A change of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryEvent<K, V> {
    /// The kind of change; exactly one.
    pub kind: EntryKinds,
    /// The key; `None` if the whole map changed.
    pub key: Option<K>,
    /// The new value; `None` if there is none, or if values were not requested.
    pub value: Option<V>,
    /// The old value; `None` if there was none, or if values were not requested.
    pub old_value: Option<V>,
    /// The member on which the change happened.
    pub member: Uuid,
    /// The number of affected entries, if the whole map changed.
    pub affected: usize,
}

impl<K: FromBlob, V: FromBlob> EntryEvent<K, V> {
    fn read(event: &Message<'_>) -> Result<Self, ClientError> {
        /// Reads the fields of an event. Each kind of registration has an event message of its own,
        /// with the same fields.
        macro_rules! fields {
            ($($message:ident),*) => {
                match event.id() {
                    $(id if id == map::$message::ID.part(2) => {
                        let it = event.decode::<map::$message::EntryEvent<'_>>()?;
                        (it.event_type, it.key, it.value, it.old_value, it.uuid, it.number_of_affected_entries)
                    })*
                    _ => {
                        let it = event.decode::<map::add_entry_listener::EntryEvent<'_>>()?;
                        (it.event_type, it.key, it.value, it.old_value, it.uuid, it.number_of_affected_entries)
                    }
                }
            };
        }
        let (kind, key, new, old, member, affected) = fields!(
            add_entry_listener_to_key,
            add_entry_listener_with_predicate,
            add_entry_listener_to_key_with_predicate
        );
        Ok(Self {
            kind: EntryKinds(kind),
            key: value(key)?,
            value: value(new)?,
            old_value: value(old)?,
            member,
            affected: usize::try_from(affected).unwrap_or(0),
        })
    }
}

/// The stream of changes of a map. Dropping it removes the listener.
///
/// It buffers at most [`events_waiting_max`](crate::ClientLimits::events_waiting_max) events.
/// Events that arrive while the buffer is full are dropped and counted.
pub struct EntryEvents<K: ToBlob + FromBlob, V: ToBlob + FromBlob> {
    map: Map<K, V>,
    id: ListenerId,
    receiver: mpsc::Receiver<Result<EntryEvent<K, V>, ClientError>>,
    lost: Arc<AtomicU64>,
}

impl<K: ToBlob + FromBlob, V: ToBlob + FromBlob> EntryEvents<K, V> {
    /// Waits for the next change. Returns `None` after
    /// [`Client::remove_listener`](crate::Client::remove_listener) removed the listener, or after a
    /// shutdown of the client, when all buffered changes are read. An error means that an event
    /// could not be read as `K` and `V`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Result<EntryEvent<K, V>, ClientError>> {
        self.receiver.recv().await
    }

    /// The listener's id.
    pub fn id(&self) -> ListenerId {
        self.id
    }

    /// The number of events that were dropped because the buffer was full.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Removes the listener and waits for the members' confirmations.
    pub async fn stop(self) {
        listeners::remove(&self.map.client.inner, self.id).await;
    }
}

impl<K: ToBlob + FromBlob, V: ToBlob + FromBlob> Drop for EntryEvents<K, V> {
    fn drop(&mut self) {
        // Sends the requests at once and does not wait for the responses.
        drop(listeners::remove(&self.map.client.inner, self.id));
    }
}

/// The selection of changes for a listener.
pub struct Listening<'a, Q: ?Sized> {
    /// The kinds of changes.
    pub kinds: EntryKinds,
    /// Only changes of this key; `None` for all keys.
    pub key: Option<&'a Q>,
    /// Only changes of entries that match this predicate; `None` for all entries. If an entry
    /// starts to match with an update, Filbert reports the update as added; if it ceases to match,
    /// as removed.
    pub predicate: Option<&'a Predicate>,
    /// Whether the events carry values.
    pub include_value: bool,
}

impl<K: ToBlob + FromBlob + Send + 'static, V: ToBlob + FromBlob + Send + 'static> Map<K, V> {
    /// Listens to all changes, with values.
    ///
    /// # Errors
    ///
    /// A member refuses the listener.
    pub async fn listen(&self) -> Result<EntryEvents<K, V>, ClientError> {
        self.listen_to(Listening::<K> { kinds: EntryKinds::ALL, key: None, predicate: None, include_value: true }).await
    }

    /// Listens to the selected changes.
    ///
    /// # Errors
    ///
    /// A member refuses the listener, or the key or the predicate cannot be serialized.
    pub async fn listen_to<Q: SerializesAs<K> + ?Sized>(
        &self,
        what: Listening<'_, Q>,
    ) -> Result<EntryEvents<K, V>, ClientError> {
        let (sender, receiver) = mpsc::channel(self.client.inner.config.limits.events_waiting_max.max(1));
        let lost = Arc::new(AtomicU64::new(0));
        let counter = lost.clone();
        let handler = move |event| {
            if sender.try_send(event).is_err() {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        };
        let id = self.add_listener(what, handler).await?;
        Ok(EntryEvents { map: self.clone(), id, receiver, lost })
    }

    /// Calls `handler` with each change, on the reader task of the connection. The handler must not
    /// block: its running time delays all calls. Events of one key arrive in the order of the
    /// changes.
    ///
    /// # Errors
    ///
    /// A member refuses the listener, or the key or the predicate cannot be serialized.
    pub async fn add_listener<Q: SerializesAs<K> + ?Sized>(
        &self,
        what: Listening<'_, Q>,
        handler: impl Fn(Result<EntryEvent<K, V>, ClientError>) + Send + Sync + 'static,
    ) -> Result<ListenerId, ClientError> {
        let handler: EventHandler = Arc::new(move |event| handler(EntryEvent::read(event)));
        let (request_id, request, decode) = self.encode_listener(&what)?;
        let name = self.name.clone();
        let removal = move |registration_id| {
            let mut out = Vec::new();
            map::remove_entry_listener::Request { name: &name, registration_id }.encode(CorrelationId(0), -1, &mut out);
            out
        };
        let registration = Registration {
            id: ListenerId(Uuid::new_v4()),
            request_id,
            request,
            decode,
            removal: Box::new(removal),
            handler,
            members: Default::default(),
        };
        listeners::add(&self.client.inner, registration).await
    }

    #[allow(clippy::type_complexity, reason = "used in one place")]
    fn encode_listener<Q: SerializesAs<K> + ?Sized>(
        &self,
        what: &Listening<'_, Q>,
    ) -> Result<(MessageId, Vec<u8>, fn(&Message<'_>) -> Result<Uuid, ClientError>), ClientError> {
        // If the client is connected to all members, each member reports the changes of its own
        // partitions. Otherwise one member reports all changes.
        let local_only = self.client.inner.config.routing == crate::Routing::AllMembers;
        let (name, include_value, listener_flags) = (&*self.name, what.include_value, what.kinds.0);
        let key = what.key.map(|key| self.serialize(map::add_entry_listener_to_key::ID, key)).transpose()?;
        let predicate = what.predicate;
        let predicate =
            predicate.map(|it| self.serialize(map::add_entry_listener_with_predicate::ID, it)).transpose()?;
        /// Returns the id of the registration message, the encoded request, and the decoder of the
        /// response.
        macro_rules! registration {
            ($message:ident { $($field:ident),* }) => {{
                let mut out = Vec::new();
                map::$message::Request { name, $($field,)* include_value, listener_flags, local_only }
                    .encode(CorrelationId(0), -1, &mut out);
                Ok((map::$message::ID, out, |answer| Ok(answer.decode::<map::$message::Response>()?.response)))
            }};
        }
        match (key.as_deref(), predicate.as_deref()) {
            (None, None) => registration!(add_entry_listener {}),
            (Some(key), None) => registration!(add_entry_listener_to_key { key }),
            (None, Some(predicate)) => registration!(add_entry_listener_with_predicate { predicate }),
            (Some(key), Some(predicate)) => {
                registration!(add_entry_listener_to_key_with_predicate { key, predicate })
            }
        }
    }
}

//! The distributed map: operations on single keys and on the whole map. Bulk operations, locks,
//! listeners and iteration are in other files.

use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

use filbert_data::{Blob, FromBlob, ToBlob};
use filbert_wire::{
    Data, MessageId, Request,
    table::{client, map},
};

use crate::{
    Call, Client, ClientError,
    call::DecodeFn,
    inner::{DEFAULT_THREAD, Target},
};

/// Hazelcast's name of the map service.
const MAP_SERVICE: &str = "hz:impl:mapService";

/// A type that serializes as a `T`: `T` itself, and the borrowed forms of owned strings and arrays.
pub trait SerializesAs<T: ?Sized>: ToBlob {}

impl<T: ToBlob + ?Sized> SerializesAs<T> for T {}
impl SerializesAs<String> for str {}
impl SerializesAs<String> for &str {}
impl SerializesAs<Vec<u8>> for [u8] {}
impl SerializesAs<Vec<i32>> for [i32] {}
impl SerializesAs<Vec<i64>> for [i64] {}
impl SerializesAs<Vec<f64>> for [f64] {}

/// The lifetime of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expiry {
    /// The time to live after the entry is stored; `None` is the map's default, zero is unlimited.
    /// Rounded up to whole milliseconds.
    pub ttl: Option<Duration>,
    /// The time to live after the last access; `None` is the map's default, zero is unlimited.
    /// Rounded up to whole milliseconds.
    pub max_idle: Option<Duration>,
}

impl Expiry {
    /// An expiry with this time to live.
    pub fn ttl(ttl: Duration) -> Self {
        Self { ttl: Some(ttl), max_idle: None }
    }

    /// An expiry with this maximum idle time.
    pub fn max_idle(max_idle: Duration) -> Self {
        Self { ttl: None, max_idle: Some(max_idle) }
    }
}

/// Converts a duration to the milliseconds of a message, rounded up; `None` is -1.
pub(crate) fn millis(duration: Option<Duration>) -> i64 {
    match duration {
        None => -1,
        Some(duration) => i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX),
    }
}

/// A distributed map with keys `K` and values `V`.
///
/// An operation is sent when its method is called. Awaiting the [`Call`] returns the result.
/// Methods with several round trips are `async` functions, which send nothing before they are
/// awaited.
///
/// Methods accept keys and values of types that [serialize as](SerializesAs) `K` and `V`: a map of
/// `String` accepts a `&str`.
pub struct Map<K, V> {
    pub(crate) client: Client,
    pub(crate) name: Arc<str>,
    pub(crate) thread: i64,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Clone for Map<K, V> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), name: self.name.clone(), thread: self.thread, types: PhantomData }
    }
}

impl<K, V> fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map").field("name", &self.name).field("thread", &self.thread).finish_non_exhaustive()
    }
}

/// Serializes a value. On an error, returns a failed call from the enclosing function.
macro_rules! blob {
    ($map:expr, $message:ident, $value:expr, $decode:expr) => {
        match $map.serialize(map::$message::ID, $value) {
            Ok(bytes) => bytes,
            Err(error) => {
                return Call::failed::<map::$message::Request<'_>>(&$map.client.inner, error, $decode);
            }
        }
    };
}

/// Methods of the form `fn name(key, ...) -> Call<T>`. They serialize the arguments, send the
/// request to the owner of the key, and decode the response.
macro_rules! key_calls {
    ($(
        $(#[$doc:meta])*
        fn $name:ident(key $(, $blob:ident: $like:ident)* $(; $arg:ident: $kind:ty)*) -> $out:ty =
            $message:ident { $($field:ident: $set:expr),* } |$this:ident| $decode:expr;
    )*) => {
        $(
            $(#[$doc])*
            pub fn $name<Q: SerializesAs<K> + ?Sized $(, $like: SerializesAs<V> + ?Sized)*>(
                &self,
                key: &Q $(, $blob: &$like)* $(, $arg: $kind)*
            ) -> Call<$out> {
                let $this = self;
                let decode: DecodeFn<$out> = $decode;
                let key = blob!(self, $message, key, decode);
                $(let $blob = blob!(self, $message, $blob, decode);)*
                let request = map::$message::Request {
                    name: &self.name, key: &key, $($blob: &$blob,)* $($field: $set),*
                };
                self.on_key(&key, &request, decode)
            }
        )*
    };
}

impl Client {
    /// Returns a map with keys `K` and values `V`. All clients that use the same name share the
    /// map. Nothing is sent: the cluster creates the map at its first use.
    pub fn map<K, V>(&self, name: &str) -> Map<K, V> {
        Map::new(self.clone(), name)
    }

    /// Returns a map of serialized keys and values, for tools that do not know their types.
    pub fn raw_map(&self, name: &str) -> Map<Blob, Blob> {
        self.map(name)
    }
}

impl<K, V> Map<K, V> {
    fn new(client: Client, name: &str) -> Self {
        Self { client, name: name.into(), thread: DEFAULT_THREAD, types: PhantomData }
    }

    /// The map's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a handle of the same map with another thread id. A lock belongs to a client and a
    /// thread id: operations of its owner on the locked key proceed, operations of all others wait.
    /// By default every operation has the thread id 1, so all users of one client share their
    /// locks. See also [`Map::locked`].
    pub fn on_thread(&self, thread: i64) -> Self {
        Self { thread, ..self.clone() }
    }

    /// The thread id of this handle's operations.
    pub fn thread(&self) -> i64 {
        self.thread
    }

    /// Serializes a value. Fails if the result exceeds the size limit.
    pub(crate) fn serialize<T: ToBlob + ?Sized>(&self, request: MessageId, value: &T) -> Result<Vec<u8>, ClientError> {
        let mut bytes = Vec::new();
        value.write_blob(&mut bytes)?;
        let limit = self.client.inner.config.limits.value_bytes_max;
        if bytes.len() > limit {
            return Err(ClientError::TooLarge { request, bytes: bytes.len(), limit });
        }
        Ok(bytes)
    }

    pub(crate) fn on_key<R: Request, T>(&self, key: &[u8], request: &R, decode: DecodeFn<T>) -> Call<T> {
        let inner = &self.client.inner;
        Call::send(inner, Target::Partition(inner.partition_of(key)), request, decode)
    }

    pub(crate) fn on_any<R: Request, T>(&self, request: &R, decode: DecodeFn<T>) -> Call<T> {
        Call::send(&self.client.inner, Target::Any, request, decode)
    }
}

/// Deserializes a value of a response.
pub(crate) fn value<V: FromBlob>(data: Option<Data<'_>>) -> Result<Option<V>, ClientError> {
    Ok(data.map(V::from_blob).transpose()?)
}

impl<K: ToBlob + FromBlob, V: ToBlob + FromBlob> Map<K, V> {
    key_calls! {
        /// Returns the value of a key.
        fn get(key) -> Option<V> = get { thread_id: this.thread }
            |this| |answer| value(answer.decode::<map::get::Response<'_>>()?.response);

        /// Stores a value and returns the old one. [`Map::set`] is cheaper.
        fn put(key, value: W) -> Option<V> = put { thread_id: this.thread, ttl: -1 }
            |this| |answer| self::value(answer.decode::<map::put::Response<'_>>()?.response);

        /// Stores a value.
        fn set(key, value: W) -> () = set { thread_id: this.thread, ttl: -1 }
            |this| |answer| Ok(answer.decode::<map::set::Response>().map(drop)?);

        /// As [`Map::put`], with an expiry.
        fn put_with(key, value: W; expiry: Expiry) -> Option<V> = put_with_max_idle {
            thread_id: this.thread, ttl: millis(expiry.ttl), max_idle: millis(expiry.max_idle)
        } |this| |answer| self::value(answer.decode::<map::put_with_max_idle::Response<'_>>()?.response);

        /// As [`Map::set`], with an expiry.
        fn set_with(key, value: W; expiry: Expiry) -> () = set_with_max_idle {
            thread_id: this.thread, ttl: millis(expiry.ttl), max_idle: millis(expiry.max_idle)
        } |this| |answer| Ok(answer.decode::<map::set_with_max_idle::Response<'_>>().map(drop)?);

        /// Stores a value if the key is absent. Returns the existing value otherwise.
        fn put_if_absent(key, value: W) -> Option<V> = put_if_absent { thread_id: this.thread, ttl: -1 }
            |this| |answer| self::value(answer.decode::<map::put_if_absent::Response<'_>>()?.response);

        /// As [`Map::put_if_absent`], with an expiry.
        fn put_if_absent_with(key, value: W; expiry: Expiry) -> Option<V> = put_if_absent_with_max_idle {
            thread_id: this.thread, ttl: millis(expiry.ttl), max_idle: millis(expiry.max_idle)
        } |this| |answer| self::value(answer.decode::<map::put_if_absent_with_max_idle::Response<'_>>()?.response);

        /// Stores a value without writing it to the map store.
        fn put_transient(key, value: W) -> () = put_transient { thread_id: this.thread, ttl: -1 }
            |this| |answer| Ok(answer.decode::<map::put_transient::Response>().map(drop)?);

        /// As [`Map::put_transient`], with an expiry.
        fn put_transient_with(key, value: W; expiry: Expiry) -> () = put_transient_with_max_idle {
            thread_id: this.thread, ttl: millis(expiry.ttl), max_idle: millis(expiry.max_idle)
        } |this| |answer| Ok(answer.decode::<map::put_transient_with_max_idle::Response<'_>>().map(drop)?);

        /// Stores a value, unless another owner holds the lock of the key for longer than
        /// `timeout`. Returns true if stored.
        fn try_put(key, value: W; timeout: Duration) -> bool = try_put {
            thread_id: this.thread, timeout: millis(Some(timeout))
        } |this| |answer| Ok(answer.decode::<map::try_put::Response>()?.response);

        /// Replaces the value of a key if the key is present. Returns the old value.
        fn replace(key, value: W) -> Option<V> = replace { thread_id: this.thread }
            |this| |answer| self::value(answer.decode::<map::replace::Response<'_>>()?.response);

        /// Stores `value` if the current value equals `test_value`, byte for byte. Returns true if
        /// stored.
        fn replace_if_same(key, test_value: E, value: W) -> bool = replace_if_same { thread_id: this.thread }
            |this| |answer| Ok(answer.decode::<map::replace_if_same::Response>()?.response);

        /// Removes a key and returns its value. [`Map::delete`] is cheaper.
        fn remove(key) -> Option<V> = remove { thread_id: this.thread }
            |this| |answer| self::value(answer.decode::<map::remove::Response<'_>>()?.response);

        /// Removes a key if its value equals `value`, byte for byte. Returns true if removed.
        fn remove_if_same(key, value: W) -> bool = remove_if_same { thread_id: this.thread }
            |this| |answer| Ok(answer.decode::<map::remove_if_same::Response>()?.response);

        /// Removes a key. Returns true if the key was present. Members before version 5.4 do not
        /// report this; the result is then false.
        fn delete(key) -> bool = delete { thread_id: this.thread }
            |this| |answer| Ok(answer.decode::<map::delete::Response>()?.response);

        /// Removes a key, unless another owner holds its lock for longer than `timeout`. Returns
        /// true if removed.
        fn try_remove(key; timeout: Duration) -> bool = try_remove {
            thread_id: this.thread, timeout: millis(Some(timeout))
        } |this| |answer| Ok(answer.decode::<map::try_remove::Response>()?.response);

        /// Removes a key from memory, but not from the map store. Returns true if the key was
        /// present and not locked.
        fn evict(key) -> bool = evict { thread_id: this.thread }
            |this| |answer| Ok(answer.decode::<map::evict::Response>()?.response);

        /// Sets the time to live of an entry, from now on; `None` is the map's default. Returns
        /// true if the key is present.
        fn set_ttl(key; ttl: Option<Duration>) -> bool = set_ttl { ttl: millis(ttl) }
            |_this| |answer| Ok(answer.decode::<map::set_ttl::Response>()?.response);

        /// Whether the key is present.
        fn contains_key(key) -> bool = contains_key { thread_id: this.thread }
            |this| |answer| Ok(answer.decode::<map::contains_key::Response>()?.response);

        /// Returns an entry with its statistics.
        fn entry_view(key) -> Option<EntryView<V>> = get_entry_view { thread_id: this.thread }
            |this| |answer| EntryView::read(&answer.decode()?);
    }

    /// Whether any key has this value, byte for byte.
    pub fn contains_value<W: SerializesAs<V> + ?Sized>(&self, value: &W) -> Call<bool> {
        let decode: DecodeFn<bool> = |answer| Ok(answer.decode::<map::contains_value::Response>()?.response);
        let value = blob!(self, contains_value, value, decode);
        self.on_any(&map::contains_value::Request { name: &self.name, value: &value }, decode)
    }

    /// The number of entries.
    pub fn size(&self) -> Call<usize> {
        self.on_any(&map::size::Request { name: &self.name }, |answer| {
            Ok(usize::try_from(answer.decode::<map::size::Response>()?.response).unwrap_or(0))
        })
    }

    /// Whether the map has no entries.
    pub fn is_empty(&self) -> Call<bool> {
        self.on_any(&map::is_empty::Request { name: &self.name }, |answer| {
            Ok(answer.decode::<map::is_empty::Response>()?.response)
        })
    }

    /// Removes all entries.
    pub fn clear(&self) -> Call<()> {
        self.on_any(&map::clear::Request { name: &self.name }, |answer| {
            Ok(answer.decode::<map::clear::Response>().map(drop)?)
        })
    }

    /// Removes all unlocked entries from memory, but not from the map store.
    pub fn evict_all(&self) -> Call<()> {
        self.on_any(&map::evict_all::Request { name: &self.name }, |answer| {
            Ok(answer.decode::<map::evict_all::Response>().map(drop)?)
        })
    }

    /// Writes all pending changes to the map store.
    pub fn flush(&self) -> Call<()> {
        self.on_any(&map::flush::Request { name: &self.name }, |answer| {
            Ok(answer.decode::<map::flush::Response>().map(drop)?)
        })
    }

    /// Destroys the map with its entries.
    pub fn destroy(&self) -> Call<()> {
        let request = client::destroy_proxy::Request { name: &self.name, service_name: MAP_SERVICE };
        self.on_any(&request, |answer| Ok(answer.decode::<client::destroy_proxy::Response>().map(drop)?))
    }
}

/// An entry with its statistics. Times are milliseconds since the Unix epoch, -1 or 0 where they do
/// not apply.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryView<V> {
    /// The value.
    pub value: V,
    /// The memory of the entry in bytes, as counted by the member.
    pub cost_bytes: i64,
    /// The creation time.
    pub created_ms: i64,
    /// The expiration time; the largest number means never.
    pub expires_ms: i64,
    /// The number of reads.
    pub hits: i64,
    /// The time of the last read.
    pub accessed_ms: i64,
    /// The time of the last write to the map store.
    pub stored_ms: i64,
    /// The time of the last change.
    pub updated_ms: i64,
    /// The number of changes.
    pub version: i64,
    /// The time to live after a change, in milliseconds; the largest number means unlimited.
    pub ttl_ms: i64,
    /// The time to live after an access, in milliseconds; the largest number means unlimited.
    pub max_idle_ms: i64,
}

impl<V: FromBlob> EntryView<V> {
    fn read(answer: &map::get_entry_view::Response<'_>) -> Result<Option<Self>, ClientError> {
        let Some(view) = &answer.response else { return Ok(None) };
        Ok(Some(Self {
            value: V::from_blob(view.value)?,
            cost_bytes: view.cost,
            created_ms: view.creation_time,
            expires_ms: view.expiration_time,
            hits: view.hits,
            accessed_ms: view.last_access_time,
            stored_ms: view.last_stored_time,
            updated_ms: view.last_update_time,
            version: view.version,
            ttl_ms: view.ttl,
            max_idle_ms: view.max_idle,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_up_so_that_none_turns_into_forever() {
        assert_eq!(millis(None), -1);
        assert_eq!(millis(Some(Duration::ZERO)), 0);
        assert_eq!(millis(Some(Duration::from_nanos(1))), 1);
        assert_eq!(millis(Some(Duration::from_micros(1500))), 2);
        assert_eq!(millis(Some(Duration::MAX)), i64::MAX);
    }
}

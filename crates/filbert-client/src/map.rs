//! The distributed map: operations on single keys and on the whole map. Bulk operations, locks, listeners and iteration
//! have files of their own.

use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

use filbert_data::{FromBlob, ToBlob};
use filbert_wire::{
    Data, MessageId, Request,
    table::{client, map},
};

use crate::{
    Call, Client, ClientError,
    call::DecodeFn,
    inner::{DEFAULT_THREAD, Target},
};

/// The service that maps belong to, by Hazelcast's name.
const MAP_SERVICE: &str = "hz:impl:mapService";

/// What can be given where a `T` is expected: a `T`, and for owned texts and arrays their borrowed forms.
pub trait Like<T: ?Sized>: ToBlob {}

impl<T: ToBlob + ?Sized> Like<T> for T {}
impl Like<String> for str {}
impl Like<String> for &str {}
impl Like<Vec<u8>> for [u8] {}
impl Like<Vec<i32>> for [i32] {}
impl Like<Vec<i64>> for [i64] {}
impl Like<Vec<f64>> for [f64] {}

/// How long an entry lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expiry {
    /// How long after it was put; none for the map's default, zero for without end. In whole milliseconds, rounded up.
    pub ttl: Option<Duration>,
    /// How long after it was last used; none for the map's default, zero for without end.
    pub max_idle: Option<Duration>,
}

impl Expiry {
    /// So long after it was put.
    pub fn ttl(ttl: Duration) -> Self {
        Self { ttl: Some(ttl), max_idle: None }
    }

    /// So long after it was last used.
    pub fn max_idle(max_idle: Duration) -> Self {
        Self { ttl: None, max_idle: Some(max_idle) }
    }
}

/// A duration as messages carry it; -1 for none.
pub(crate) fn millis(duration: Option<Duration>) -> i64 {
    match duration {
        None => -1,
        Some(duration) => i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX),
    }
}

/// A distributed map with keys `K` and values `V`.
///
/// Every operation is sent when it is called, and answered when the [`Call`] is awaited. Methods that take several
/// round trips are `async` functions instead, and send when they are awaited.
///
/// Keys and values are anything that is [`Like`] a `K` or a `V`: a map of `String` takes a `&str`.
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

/// The value as a serialized one, or returns a call that failed.
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

/// Methods of the look `fn name(key, ...) -> Call<T>`: serialize, send to the owner of the key, decode.
macro_rules! key_calls {
    ($(
        $(#[$doc:meta])*
        fn $name:ident(key $(, $blob:ident: $like:ident)* $(; $arg:ident: $kind:ty)*) -> $out:ty =
            $message:ident { $($field:ident: $set:expr),* } |$this:ident| $decode:expr;
    )*) => {
        $(
            $(#[$doc])*
            pub fn $name<Q: Like<K> + ?Sized $(, $like: Like<V> + ?Sized)*>(
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

impl<K, V> Map<K, V> {
    pub(crate) fn new(client: Client, name: &str) -> Self {
        Self { client, name: name.into(), thread: DEFAULT_THREAD, types: PhantomData }
    }

    /// The map's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same map for another thread id. Locks belong to a client and a thread id: operations on a locked key go
    /// through for the id that locked it and wait for all others. Without this every operation has the id 1, so that
    /// all users of one client hold its locks together; see also [`Map::locked`].
    pub fn on_thread(&self, thread: i64) -> Self {
        Self { thread, ..self.clone() }
    }

    /// The thread id of this handle's operations.
    pub fn thread(&self) -> i64 {
        self.thread
    }

    /// The serialized form, if it is not larger than the client sends.
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

/// A value of an answer.
pub(crate) fn value<V: FromBlob>(data: Option<Data<'_>>) -> Result<Option<V>, ClientError> {
    Ok(data.map(V::from_blob).transpose()?)
}

impl<K: ToBlob + FromBlob, V: ToBlob + FromBlob> Map<K, V> {
    key_calls! {
        /// The value of a key.
        fn get(key) -> Option<V> = get { thread_id: this.thread }
            |this| |answer| value(answer.decode::<map::get::Response<'_>>()?.response);

        /// Stores a value and returns the one before. [`Map::set`] costs less.
        fn put(key, value: W) -> Option<V> = put { thread_id: this.thread, ttl: -1 }
            |this| |answer| self::value(answer.decode::<map::put::Response<'_>>()?.response);

        /// Stores a value.
        fn set(key, value: W) -> () = set { thread_id: this.thread, ttl: -1 }
            |this| |answer| Ok(answer.decode::<map::set::Response>().map(drop)?);

        /// As [`Map::put`], for so long.
        fn put_with(key, value: W; expiry: Expiry) -> Option<V> = put_with_max_idle {
            thread_id: this.thread, ttl: millis(expiry.ttl), max_idle: millis(expiry.max_idle)
        } |this| |answer| self::value(answer.decode::<map::put_with_max_idle::Response<'_>>()?.response);

        /// As [`Map::set`], for so long.
        fn set_with(key, value: W; expiry: Expiry) -> () = set_with_max_idle {
            thread_id: this.thread, ttl: millis(expiry.ttl), max_idle: millis(expiry.max_idle)
        } |this| |answer| Ok(answer.decode::<map::set_with_max_idle::Response<'_>>().map(drop)?);

        /// Stores a value unless the key has one, and returns the one it has.
        fn put_if_absent(key, value: W) -> Option<V> = put_if_absent { thread_id: this.thread, ttl: -1 }
            |this| |answer| self::value(answer.decode::<map::put_if_absent::Response<'_>>()?.response);

        /// As [`Map::put_if_absent`], for so long.
        fn put_if_absent_with(key, value: W; expiry: Expiry) -> Option<V> = put_if_absent_with_max_idle {
            thread_id: this.thread, ttl: millis(expiry.ttl), max_idle: millis(expiry.max_idle)
        } |this| |answer| self::value(answer.decode::<map::put_if_absent_with_max_idle::Response<'_>>()?.response);

        /// Stores a value without passing it to a map store behind the map.
        fn put_transient(key, value: W) -> () = put_transient { thread_id: this.thread, ttl: -1 }
            |this| |answer| Ok(answer.decode::<map::put_transient::Response>().map(drop)?);

        /// As [`Map::put_transient`], for so long.
        fn put_transient_with(key, value: W; expiry: Expiry) -> () = put_transient_with_max_idle {
            thread_id: this.thread, ttl: millis(expiry.ttl), max_idle: millis(expiry.max_idle)
        } |this| |answer| Ok(answer.decode::<map::put_transient_with_max_idle::Response<'_>>().map(drop)?);

        /// Stores a value, unless the key stays locked by someone else for longer than `timeout`. True if stored.
        fn try_put(key, value: W; timeout: Duration) -> bool = try_put {
            thread_id: this.thread, timeout: millis(Some(timeout))
        } |this| |answer| Ok(answer.decode::<map::try_put::Response>()?.response);

        /// Stores a value if the key has one, and returns that.
        fn replace(key, value: W) -> Option<V> = replace { thread_id: this.thread }
            |this| |answer| self::value(answer.decode::<map::replace::Response<'_>>()?.response);

        /// Stores `value` if the key's value is `test_value`, byte for byte. True if it was.
        fn replace_if_same(key, test_value: E, value: W) -> bool = replace_if_same { thread_id: this.thread }
            |this| |answer| Ok(answer.decode::<map::replace_if_same::Response>()?.response);

        /// Removes a key and returns its value. [`Map::delete`] costs less.
        fn remove(key) -> Option<V> = remove { thread_id: this.thread }
            |this| |answer| self::value(answer.decode::<map::remove::Response<'_>>()?.response);

        /// Removes a key if its value is this one, byte for byte. True if it was.
        fn remove_if_same(key, value: W) -> bool = remove_if_same { thread_id: this.thread }
            |this| |answer| Ok(answer.decode::<map::remove_if_same::Response>()?.response);

        /// Removes a key. True if it was there, as far as the member says: those before version 5.4 do not.
        fn delete(key) -> bool = delete { thread_id: this.thread }
            |this| |answer| Ok(answer.decode::<map::delete::Response>()?.response);

        /// Removes a key, unless it stays locked by someone else for longer than `timeout`. True if removed.
        fn try_remove(key; timeout: Duration) -> bool = try_remove {
            thread_id: this.thread, timeout: millis(Some(timeout))
        } |this| |answer| Ok(answer.decode::<map::try_remove::Response>()?.response);

        /// Removes a key from memory, but not from a map store behind the map. True if it was there and not locked.
        fn evict(key) -> bool = evict { thread_id: this.thread }
            |this| |answer| Ok(answer.decode::<map::evict::Response>()?.response);

        /// Changes how long an entry lives from now on; none for the map's default. True if the key is there.
        fn set_ttl(key; ttl: Option<Duration>) -> bool = set_ttl { ttl: millis(ttl) }
            |_this| |answer| Ok(answer.decode::<map::set_ttl::Response>()?.response);

        /// Whether the key is there.
        fn contains_key(key) -> bool = contains_key { thread_id: this.thread }
            |this| |answer| Ok(answer.decode::<map::contains_key::Response>()?.response);

        /// An entry with its statistics.
        fn entry_view(key) -> Option<EntryView<V>> = get_entry_view { thread_id: this.thread }
            |this| |answer| EntryView::read(&answer.decode()?);
    }

    /// Whether any key has this value, byte for byte.
    pub fn contains_value<W: Like<V> + ?Sized>(&self, value: &W) -> Call<bool> {
        let decode: DecodeFn<bool> = |answer| Ok(answer.decode::<map::contains_value::Response>()?.response);
        let value = blob!(self, contains_value, value, decode);
        self.on_any(&map::contains_value::Request { name: &self.name, value: &value }, decode)
    }

    /// Number of entries.
    pub fn size(&self) -> Call<usize> {
        self.on_any(&map::size::Request { name: &self.name }, |answer| {
            Ok(usize::try_from(answer.decode::<map::size::Response>()?.response).unwrap_or(0))
        })
    }

    /// Whether there is no entry.
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

    /// Removes all entries that are not locked from memory, but not from a map store behind the map.
    pub fn evict_all(&self) -> Call<()> {
        self.on_any(&map::evict_all::Request { name: &self.name }, |answer| {
            Ok(answer.decode::<map::evict_all::Response>().map(drop)?)
        })
    }

    /// Writes what waits to be written to a map store behind the map.
    pub fn flush(&self) -> Call<()> {
        self.on_any(&map::flush::Request { name: &self.name }, |answer| {
            Ok(answer.decode::<map::flush::Response>().map(drop)?)
        })
    }

    /// Removes the map itself, with its entries.
    pub fn destroy(&self) -> Call<()> {
        let request = client::destroy_proxy::Request { name: &self.name, service_name: MAP_SERVICE };
        self.on_any(&request, |answer| Ok(answer.decode::<client::destroy_proxy::Response>().map(drop)?))
    }
}

/// An entry with its statistics. Times are milliseconds since the Unix epoch, -1 or 0 where they do not apply.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryView<V> {
    /// The value.
    pub value: V,
    /// Bytes that the entry takes in the member's memory, as far as the member counts them.
    pub cost_bytes: i64,
    /// When it was first put.
    pub created_ms: i64,
    /// When it expires; the largest number for never.
    pub expires_ms: i64,
    /// How often it was read.
    pub hits: i64,
    /// When it was last read.
    pub accessed_ms: i64,
    /// When it was last written to a map store.
    pub stored_ms: i64,
    /// When it was last changed.
    pub updated_ms: i64,
    /// How often it was changed.
    pub version: i64,
    /// Milliseconds that it lives after a change; the largest number for without end.
    pub ttl_ms: i64,
    /// Milliseconds that it lives after a use; the largest number for without end.
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

//! Typed sync maps: every operation of a Hazelcast map, executed on the calling thread.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use filbert_data::{FromBlob, ToBlob};
use filbert_grid::{Change, PutMode};

use super::asynchronous::AsyncMap;
use super::core::{Core, Decode, Started, Wait, decode};
use super::lifetime::{Lifetime, millis};
use super::view::{EntryView, MapStatistics};
use super::{Error, LockOwner};

/// A map with keys `K` and values `V`. All handles with the same name, and Hazelcast's clients,
/// share the map.
///
/// Keys and values are serialized exactly as clients serialize them. The types belong to the
/// handle, not to the map: reading a value of another type is an error.
///
/// An operation that changes a key waits while another thread, owner or client holds the lock of
/// the key. Reads never wait. Operations are cheap and run on the calling thread.
///
/// ```
/// use filbert::{Config, Filbert};
///
/// let filbert = Filbert::start(Config::default())?;
/// let stock = filbert.map::<String, i64>("stock")?;
/// assert_eq!(stock.put("nuts", &250)?, None);
/// assert_eq!(stock.put("nuts", &249)?, Some(250));
/// assert_eq!(stock.get("nuts")?, Some(249));
/// assert!(stock.replace_if_same("nuts", &249, &248)?);
/// # Ok::<(), filbert::Error>(())
/// ```
///
/// A key parameter accepts the borrowed form of the key type, as std's maps do: `&str` for
/// `String`, `&[u8]` for `Vec<u8>`.
pub struct Map<K, V> {
    pub(super) core: Core,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Clone for Map<K, V> {
    fn clone(&self) -> Map<K, V> {
        Map::new(self.core.clone())
    }
}

impl<K, V> fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Map").field(&self.name()).finish()
    }
}

impl<K, V> Map<K, V> {
    pub(super) fn new(core: Core) -> Map<K, V> {
        Map { core, types: PhantomData }
    }

    /// The map's name.
    pub fn name(&self) -> &str {
        self.core.map.name()
    }

    /// The same map for async programs. Each view is a separate lock owner. Clones of a view are
    /// the same owner.
    pub fn asynchronous(&self) -> AsyncMap<K, V> {
        AsyncMap::new(self.clone(), LockOwner::new())
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.core.map.size()
    }

    /// Whether the map has no entries.
    pub fn is_empty(&self) -> bool {
        self.core.map.is_empty()
    }

    /// Removes all entries except entries of locked keys. Returns the number of removed entries.
    ///
    /// # Errors
    /// The member is shut down or the map is destroyed.
    pub fn clear(&self) -> Result<usize, Error> {
        Ok(self.core.map.clear(self.core.caller(LockOwner::of_this_thread()))?)
    }

    /// Evicts all entries except entries of locked keys. Returns the number of evicted entries.
    /// Listeners receive an event.
    ///
    /// # Errors
    /// As [`Map::clear`].
    pub fn evict_all(&self) -> Result<usize, Error> {
        Ok(self.core.map.evict_all(self.core.caller(LockOwner::of_this_thread()))?)
    }

    /// Destroys the map with all its entries, for all clients too. A new handle with the same name
    /// creates a new map.
    ///
    /// # Errors
    /// The member is shut down, or other members of its cluster did not answer.
    pub fn destroy(self) -> Result<(), Error> {
        if !self.core.grid.is_active() {
            return Err(Error::ShutDown);
        }
        // A handle of a destroyed map must not destroy a new map with the same name.
        if !self.core.map.is_destroyed() {
            self.core.grid.destroy_map(self.name())?;
        }
        Ok(())
    }

    /// Counters and sizes of the map.
    pub fn statistics(&self) -> MapStatistics {
        MapStatistics::from_grid(&self.core.map.statistics())
    }
}

impl<K, V> Map<K, V> {
    /// Returns the value of a key.
    ///
    /// # Errors
    /// [`Error::Data`]: the key cannot be serialized, or the value is not a `V`.
    pub fn get<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        V: FromBlob,
    {
        self.core.with_key(key, |key| {
            let partition = self.core.partition(key);
            self.core.map.get(partition, key, |value| value.map(|blob| self.core.value(blob)).transpose())
        })
    }

    /// Returns the entries of several keys, in the order of the keys. Missing keys are omitted.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn get_all<'k, Q: ToBlob + ?Sized + 'k>(
        &self,
        keys: impl IntoIterator<Item = &'k Q>,
    ) -> Result<Vec<(&'k Q, V)>, Error>
    where
        K: Borrow<Q>,
        V: FromBlob,
    {
        let mut entries = Vec::new();
        for key in keys {
            if let Some(value) = self.get(key)? {
                entries.push((key, value));
            }
        }
        Ok(entries)
    }

    /// Whether the key has an entry.
    ///
    /// # Errors
    /// The key cannot be serialized.
    pub fn contains_key<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.core.with_key(key, |key| Ok(self.core.map.contains_key(self.core.partition(key), key)))
    }

    /// Whether any entry has this value. Scans the whole map.
    ///
    /// # Errors
    /// The value cannot be serialized.
    pub fn contains_value<W: ToBlob + ?Sized>(&self, value: &W) -> Result<bool, Error>
    where
        V: Borrow<W>,
    {
        self.core.with_key(value, |value| Ok(self.core.map.contains_value(value)))
    }

    /// Returns the entry of a key with its statistics.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub fn entry_view<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<Option<EntryView<K, V>>, Error>
    where
        K: Borrow<Q> + FromBlob,
        V: FromBlob,
    {
        self.core.with_key(key, |key| {
            let partition = self.core.partition(key);
            self.core
                .map
                .entry_view(partition, key, |view| view.map(|view| EntryView::read(&self.core, view)).transpose())
        })
    }

    /// Puts a value. Returns the old value.
    ///
    /// # Errors
    /// The key or the value cannot be serialized, the old value is not a `V` (the new value is
    /// stored nevertheless), or the memory limit of the member is reached.
    pub fn put<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(&self, key: &Q, value: &W) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        V: Borrow<W> + FromBlob,
    {
        self.put_with(key, value, Lifetime::DEFAULT)
    }

    /// As [`Map::put`], with a lifetime.
    ///
    /// # Errors
    /// As [`Map::put`].
    pub fn put_with<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(
        &self,
        key: &Q,
        value: &W,
        lifetime: Lifetime,
    ) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        V: Borrow<W> + FromBlob,
    {
        self.write(LockOwner::of_this_thread(), key, value, lifetime, PutMode::Put, decode::previous)?.wait()
    }

    /// Puts a value. Cheaper than [`Map::put`], because it does not read the old value.
    ///
    /// # Errors
    /// The key or the value cannot be serialized, or the memory limit of the member is reached.
    pub fn set<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(&self, key: &Q, value: &W) -> Result<(), Error>
    where
        K: Borrow<Q>,
        V: Borrow<W>,
    {
        self.set_with(key, value, Lifetime::DEFAULT)
    }

    /// As [`Map::set`], with a lifetime.
    ///
    /// # Errors
    /// As [`Map::set`].
    pub fn set_with<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(
        &self,
        key: &Q,
        value: &W,
        lifetime: Lifetime,
    ) -> Result<(), Error>
    where
        K: Borrow<Q>,
        V: Borrow<W>,
    {
        self.write(LockOwner::of_this_thread(), key, value, lifetime, PutMode::Set, decode::done)?.wait()
    }

    /// Puts several entries, each as [`Map::set`] does. If one entry fails, the preceding entries
    /// are stored.
    ///
    /// # Errors
    /// As [`Map::set`].
    pub fn put_all<'e, Q: ToBlob + ?Sized + 'e, W: ToBlob + ?Sized + 'e>(
        &self,
        entries: impl IntoIterator<Item = (&'e Q, &'e W)>,
    ) -> Result<(), Error>
    where
        K: Borrow<Q>,
        V: Borrow<W>,
    {
        entries.into_iter().try_for_each(|(key, value)| self.set(key, value))
    }

    /// Puts a value if the key has no value. Returns the existing value.
    ///
    /// # Errors
    /// As [`Map::put`].
    pub fn put_if_absent<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(&self, key: &Q, value: &W) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        V: Borrow<W> + FromBlob,
    {
        self.put_if_absent_with(key, value, Lifetime::DEFAULT)
    }

    /// As [`Map::put_if_absent`], with a lifetime.
    ///
    /// # Errors
    /// As [`Map::put`].
    pub fn put_if_absent_with<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(
        &self,
        key: &Q,
        value: &W,
        lifetime: Lifetime,
    ) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        V: Borrow<W> + FromBlob,
    {
        self.write(LockOwner::of_this_thread(), key, value, lifetime, PutMode::IfAbsent, decode::previous)?.wait()
    }

    /// Puts a value as [`Map::set`] does. In Hazelcast it bypasses the map store; Filbert has no
    /// map store.
    ///
    /// # Errors
    /// As [`Map::set`].
    pub fn put_transient<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(
        &self,
        key: &Q,
        value: &W,
        lifetime: Lifetime,
    ) -> Result<(), Error>
    where
        K: Borrow<Q>,
        V: Borrow<W>,
    {
        self.write(LockOwner::of_this_thread(), key, value, lifetime, PutMode::Transient, decode::done)?.wait()
    }

    /// Puts a value, waiting at most `wait` for a locked key. Returns whether the value was put.
    ///
    /// # Errors
    /// As [`Map::set`].
    pub fn try_put<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(
        &self,
        key: &Q,
        value: &W,
        wait: Duration,
    ) -> Result<bool, Error>
    where
        K: Borrow<Q>,
        V: Borrow<W>,
    {
        self.begin_try_put(LockOwner::of_this_thread(), key, value, wait)?.wait_or_false()
    }

    /// Replaces the value of an existing entry. Returns the old value, or `None` if there is no
    /// entry.
    ///
    /// # Errors
    /// As [`Map::put`].
    pub fn replace<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(&self, key: &Q, value: &W) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        V: Borrow<W> + FromBlob,
    {
        self.write(LockOwner::of_this_thread(), key, value, Lifetime::DEFAULT, PutMode::Replace, decode::previous)?
            .wait()
    }

    /// Replaces the value if it equals `expected`. Returns whether it was replaced.
    ///
    /// # Errors
    /// As [`Map::set`].
    pub fn replace_if_same<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(
        &self,
        key: &Q,
        expected: &W,
        value: &W,
    ) -> Result<bool, Error>
    where
        K: Borrow<Q>,
        V: Borrow<W>,
    {
        self.begin_replace_if_same(LockOwner::of_this_thread(), key, expected, value)?.wait()
    }

    /// Removes an entry. Returns its value.
    ///
    /// # Errors
    /// As [`Map::get`]. The entry is removed even if its value is not a `V`.
    pub fn remove<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        V: FromBlob,
    {
        self.on_key(LockOwner::of_this_thread(), key, |key| Change::Remove { key }, decode::previous)?.wait()
    }

    /// Removes an entry if its value equals `expected`. Returns whether it was removed.
    ///
    /// # Errors
    /// The key or the value cannot be serialized.
    pub fn remove_if_same<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(&self, key: &Q, expected: &W) -> Result<bool, Error>
    where
        K: Borrow<Q>,
        V: Borrow<W>,
    {
        self.begin_remove_if_same(LockOwner::of_this_thread(), key, expected)?.wait()
    }

    /// Removes an entry, waiting at most `wait` for a locked key. Returns whether an entry was
    /// removed.
    ///
    /// # Errors
    /// The key cannot be serialized.
    pub fn try_remove<Q: ToBlob + ?Sized>(&self, key: &Q, wait: Duration) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.begin_try_remove(LockOwner::of_this_thread(), key, wait)?.wait_or_false()
    }

    /// Removes an entry without reading its value. Returns whether there was an entry.
    ///
    /// # Errors
    /// The key cannot be serialized.
    pub fn delete<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.on_key(LockOwner::of_this_thread(), key, |key| Change::Delete { key }, decode::flag)?.wait()
    }

    /// Evicts an entry. Returns whether it was evicted. The entry of a locked key is kept.
    /// Listeners receive an event.
    ///
    /// # Errors
    /// The key cannot be serialized.
    pub fn evict<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.on_key(LockOwner::of_this_thread(), key, |key| Change::Evict { key }, decode::flag)?.wait()
    }

    /// Sets only the time to live of an entry, counted from now. Returns whether there is an entry.
    /// [`Duration::ZERO`] means for ever.
    ///
    /// # Errors
    /// The key cannot be serialized.
    pub fn set_ttl<Q: ToBlob + ?Sized>(&self, key: &Q, ttl: Duration) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        let ttl_ms = millis(ttl);
        self.on_key(LockOwner::of_this_thread(), key, |key| Change::SetTtl { key, ttl_ms }, decode::flag)?.wait()
    }
}

/// First steps of operations, shared by the sync and async API.
impl<K, V> Map<K, V> {
    pub(super) fn write<R>(
        &self,
        owner: LockOwner,
        key: &(impl ToBlob + ?Sized),
        value: &(impl ToBlob + ?Sized),
        lifetime: Lifetime,
        mode: PutMode,
        decode: Decode<R>,
    ) -> Result<Started<R>, Error> {
        self.core.with_entry(key, value, |key, value| {
            let change = Change::Put { key, value, expiry: lifetime.expiry(), mode };
            self.core.change(owner, change, Wait::Ever, decode)
        })
    }

    pub(super) fn on_key<R>(
        &self,
        owner: LockOwner,
        key: &(impl ToBlob + ?Sized),
        change: impl for<'a> FnOnce(&'a [u8]) -> Change<'a>,
        decode: Decode<R>,
    ) -> Result<Started<R>, Error> {
        self.core.with_key(key, |key| self.core.change(owner, change(key), Wait::Ever, decode))
    }

    pub(super) fn begin_try_put(
        &self,
        owner: LockOwner,
        key: &(impl ToBlob + ?Sized),
        value: &(impl ToBlob + ?Sized),
        wait: Duration,
    ) -> Result<Started<bool>, Error> {
        self.core.with_entry(key, value, |key, value| {
            let change = Change::Put { key, value, expiry: Lifetime::DEFAULT.expiry(), mode: PutMode::Try };
            self.core.try_change(owner, change, wait)
        })
    }

    pub(super) fn begin_try_remove(
        &self,
        owner: LockOwner,
        key: &(impl ToBlob + ?Sized),
        wait: Duration,
    ) -> Result<Started<bool>, Error> {
        self.core.with_key(key, |key| self.core.try_change(owner, Change::Delete { key }, wait))
    }

    pub(super) fn begin_replace_if_same(
        &self,
        owner: LockOwner,
        key: &(impl ToBlob + ?Sized),
        expected: &(impl ToBlob + ?Sized),
        value: &(impl ToBlob + ?Sized),
    ) -> Result<Started<bool>, Error> {
        let expected = expected.to_blob().map_err(|source| self.core.data_error("a value", source))?;
        self.core.with_entry(key, value, |key, value| {
            let change = Change::ReplaceIfSame { key, expected: &expected, value };
            self.core.change(owner, change, Wait::Ever, decode::flag)
        })
    }

    pub(super) fn begin_remove_if_same(
        &self,
        owner: LockOwner,
        key: &(impl ToBlob + ?Sized),
        expected: &(impl ToBlob + ?Sized),
    ) -> Result<Started<bool>, Error> {
        self.core.with_entry(key, expected, |key, expected| {
            self.core.change(owner, Change::RemoveIfSame { key, expected }, Wait::Ever, decode::flag)
        })
    }
}

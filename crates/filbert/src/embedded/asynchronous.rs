//! Typed maps for async programs: an operation that waits for a locked key yields instead of
//! blocking.

use std::borrow::Borrow;
use std::fmt;
use std::time::Duration;

use filbert_data::{FromBlob, ToBlob};
use filbert_grid::{Change, PutMode};

use super::core::decode;
use super::lifetime::{Lifetime, millis};
use super::map::Map;
use super::{Error, LockOwner};

/// A map with operations that are futures, for any executor. Operations on the whole map (`len`,
/// `iter`, `keys`, `clear`, listeners, ...) never wait. Call them on the [`Map`] that
/// [`AsyncMap::sync`] returns.
///
/// Each view that [`Map::asynchronous`] returns is a separate lock owner. Clones of a view are the
/// same owner.
///
/// Cancel safety: an operation is executed when its future is first polled, or when the key is
/// unlocked. If a future is dropped while it waits for a key, its change is still applied when the
/// key is unlocked.
///
/// ```
/// use filbert::{Config, Filbert};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), filbert::Error> {
/// let filbert = Filbert::start(Config::default())?;
/// let users = filbert.map::<i64, String>("users")?.asynchronous();
/// users.set(&1, "Ada").await?;
/// users.lock(&1).await?;
/// assert_eq!(users.put(&1, "Ada Lovelace").await?.as_deref(), Some("Ada"));
/// users.unlock(&1).await?;
/// assert_eq!(users.get(&1).await?.as_deref(), Some("Ada Lovelace"));
/// assert_eq!(users.sync().len(), 1);
/// # Ok(())
/// # }
/// ```
pub struct AsyncMap<K, V> {
    map: Map<K, V>,
    owner: LockOwner,
}

impl<K, V> Clone for AsyncMap<K, V> {
    fn clone(&self) -> AsyncMap<K, V> {
        AsyncMap { map: self.map.clone(), owner: self.owner }
    }
}

impl<K, V> fmt::Debug for AsyncMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AsyncMap").field(&self.map.name()).field(&self.owner).finish()
    }
}

impl<K, V> AsyncMap<K, V> {
    pub(super) fn new(map: Map<K, V>, owner: LockOwner) -> AsyncMap<K, V> {
        AsyncMap { map, owner }
    }

    /// The same map with sync operations. Their locks belong to threads.
    pub fn sync(&self) -> &Map<K, V> {
        &self.map
    }

    /// The owner of the locks that this view and its clones take.
    pub fn owner(&self) -> LockOwner {
        self.owner
    }
}

/// Entry operations.
impl<K, V> AsyncMap<K, V> {
    /// As [`Map::get`].
    ///
    /// # Errors
    /// As [`Map::get`].
    pub async fn get<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        V: FromBlob,
    {
        self.map.get(key)
    }

    /// As [`Map::contains_key`].
    ///
    /// # Errors
    /// As [`Map::contains_key`].
    pub async fn contains_key<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.map.contains_key(key)
    }

    /// As [`Map::is_locked`].
    ///
    /// # Errors
    /// As [`Map::is_locked`].
    pub async fn is_locked<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.map.is_locked(key)
    }

    /// As [`Map::put`].
    ///
    /// # Errors
    /// As [`Map::put`].
    pub async fn put<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(&self, key: &Q, value: &W) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        V: Borrow<W> + FromBlob,
    {
        self.put_with(key, value, Lifetime::DEFAULT).await
    }

    /// As [`Map::put_with`].
    ///
    /// # Errors
    /// As [`Map::put_with`].
    pub async fn put_with<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(
        &self,
        key: &Q,
        value: &W,
        lifetime: Lifetime,
    ) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        V: Borrow<W> + FromBlob,
    {
        self.map.write(self.owner, key, value, lifetime, PutMode::Put, decode::previous)?.finish().await
    }

    /// As [`Map::set`].
    ///
    /// # Errors
    /// As [`Map::set`].
    pub async fn set<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(&self, key: &Q, value: &W) -> Result<(), Error>
    where
        K: Borrow<Q>,
        V: Borrow<W>,
    {
        self.set_with(key, value, Lifetime::DEFAULT).await
    }

    /// As [`Map::set_with`].
    ///
    /// # Errors
    /// As [`Map::set_with`].
    pub async fn set_with<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(
        &self,
        key: &Q,
        value: &W,
        lifetime: Lifetime,
    ) -> Result<(), Error>
    where
        K: Borrow<Q>,
        V: Borrow<W>,
    {
        self.map.write(self.owner, key, value, lifetime, PutMode::Set, decode::done)?.finish().await
    }

    /// As [`Map::put_if_absent`].
    ///
    /// # Errors
    /// As [`Map::put_if_absent`].
    pub async fn put_if_absent<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(
        &self,
        key: &Q,
        value: &W,
    ) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        V: Borrow<W> + FromBlob,
    {
        self.put_if_absent_with(key, value, Lifetime::DEFAULT).await
    }

    /// As [`Map::put_if_absent_with`].
    ///
    /// # Errors
    /// As [`Map::put_if_absent_with`].
    pub async fn put_if_absent_with<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(
        &self,
        key: &Q,
        value: &W,
        lifetime: Lifetime,
    ) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        V: Borrow<W> + FromBlob,
    {
        self.map.write(self.owner, key, value, lifetime, PutMode::IfAbsent, decode::previous)?.finish().await
    }

    /// As [`Map::put_transient`].
    ///
    /// # Errors
    /// As [`Map::put_transient`].
    pub async fn put_transient<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(
        &self,
        key: &Q,
        value: &W,
        lifetime: Lifetime,
    ) -> Result<(), Error>
    where
        K: Borrow<Q>,
        V: Borrow<W>,
    {
        self.map.write(self.owner, key, value, lifetime, PutMode::Transient, decode::done)?.finish().await
    }

    /// As [`Map::try_put`].
    ///
    /// # Errors
    /// As [`Map::try_put`].
    pub async fn try_put<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(
        &self,
        key: &Q,
        value: &W,
        wait: Duration,
    ) -> Result<bool, Error>
    where
        K: Borrow<Q>,
        V: Borrow<W>,
    {
        self.map.begin_try_put(self.owner, key, value, wait)?.finish_or_false().await
    }

    /// As [`Map::replace`].
    ///
    /// # Errors
    /// As [`Map::replace`].
    pub async fn replace<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(&self, key: &Q, value: &W) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        V: Borrow<W> + FromBlob,
    {
        self.map.write(self.owner, key, value, Lifetime::DEFAULT, PutMode::Replace, decode::previous)?.finish().await
    }

    /// As [`Map::replace_if_same`].
    ///
    /// # Errors
    /// As [`Map::replace_if_same`].
    pub async fn replace_if_same<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(
        &self,
        key: &Q,
        expected: &W,
        value: &W,
    ) -> Result<bool, Error>
    where
        K: Borrow<Q>,
        V: Borrow<W>,
    {
        self.map.begin_replace_if_same(self.owner, key, expected, value)?.finish().await
    }

    /// As [`Map::remove`].
    ///
    /// # Errors
    /// As [`Map::remove`].
    pub async fn remove<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
        V: FromBlob,
    {
        self.map.on_key(self.owner, key, |key| Change::Remove { key }, decode::previous)?.finish().await
    }

    /// As [`Map::remove_if_same`].
    ///
    /// # Errors
    /// As [`Map::remove_if_same`].
    pub async fn remove_if_same<Q: ToBlob + ?Sized, W: ToBlob + ?Sized>(
        &self,
        key: &Q,
        expected: &W,
    ) -> Result<bool, Error>
    where
        K: Borrow<Q>,
        V: Borrow<W>,
    {
        self.map.begin_remove_if_same(self.owner, key, expected)?.finish().await
    }

    /// As [`Map::try_remove`].
    ///
    /// # Errors
    /// As [`Map::try_remove`].
    pub async fn try_remove<Q: ToBlob + ?Sized>(&self, key: &Q, wait: Duration) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.map.begin_try_remove(self.owner, key, wait)?.finish_or_false().await
    }

    /// As [`Map::delete`].
    ///
    /// # Errors
    /// As [`Map::delete`].
    pub async fn delete<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.map.on_key(self.owner, key, |key| Change::Delete { key }, decode::flag)?.finish().await
    }

    /// As [`Map::evict`].
    ///
    /// # Errors
    /// As [`Map::evict`].
    pub async fn evict<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.map.on_key(self.owner, key, |key| Change::Evict { key }, decode::flag)?.finish().await
    }

    /// As [`Map::set_ttl`].
    ///
    /// # Errors
    /// As [`Map::set_ttl`].
    pub async fn set_ttl<Q: ToBlob + ?Sized>(&self, key: &Q, ttl: Duration) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        let ttl_ms = millis(ttl);
        self.map.on_key(self.owner, key, |key| Change::SetTtl { key, ttl_ms }, decode::flag)?.finish().await
    }
}

/// Lock operations. The locks belong to this view and its clones.
impl<K, V> AsyncMap<K, V> {
    /// Locks a key for this view. Waits while another owner holds the lock.
    ///
    /// # Errors
    /// As [`Map::lock`].
    pub async fn lock<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<(), Error>
    where
        K: Borrow<Q>,
    {
        self.map.begin_lock(self.owner, key, None)?.finish().await
    }

    /// As [`AsyncMap::lock`]. The lock is released automatically after `lease`.
    ///
    /// # Errors
    /// As [`Map::lock_with_lease`].
    pub async fn lock_with_lease<Q: ToBlob + ?Sized>(&self, key: &Q, lease: Duration) -> Result<(), Error>
    where
        K: Borrow<Q>,
    {
        self.map.begin_lock(self.owner, key, Some(lease))?.finish().await
    }

    /// Locks a key for this view if no other owner holds the lock. Returns whether the key was
    /// locked.
    ///
    /// # Errors
    /// As [`Map::try_lock`].
    pub async fn try_lock<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.try_lock_within(key, Duration::ZERO, None).await
    }

    /// Locks a key for this view, waiting at most `wait`. Returns whether the key was locked.
    ///
    /// # Errors
    /// As [`Map::try_lock_within`].
    pub async fn try_lock_within<Q: ToBlob + ?Sized>(
        &self,
        key: &Q,
        wait: Duration,
        lease: Option<Duration>,
    ) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.map.begin_try_lock(self.owner, key, wait, lease)?.finish_or_false().await
    }

    /// Releases one hold of a lock of this view.
    ///
    /// # Errors
    /// As [`Map::unlock`].
    pub async fn unlock<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<(), Error>
    where
        K: Borrow<Q>,
    {
        self.map.begin_unlock(self.owner, key)?.finish().await
    }

    /// As [`Map::force_unlock`].
    ///
    /// # Errors
    /// As [`Map::force_unlock`].
    pub async fn force_unlock<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<(), Error>
    where
        K: Borrow<Q>,
    {
        self.map.begin_force_unlock(self.owner, key)?.finish().await
    }
}

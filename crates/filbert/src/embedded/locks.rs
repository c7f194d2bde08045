//! Locks of keys, as Hazelcast has them: reentrant, with leases, there with or without an entry.

use std::borrow::Borrow;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use filbert_data::ToBlob;
use filbert_grid::Change;

use super::core::{Started, decode};
use super::lifetime::millis;
use super::{Error, LockOwner, Map};

/// Numbers of lock calls, by which the grid tells a new call from a retried one. Embedded calls are never retried, so
/// each has its own.
static REFERENCE: AtomicI64 = AtomicI64::new(1);

fn reference() -> i64 {
    REFERENCE.fetch_add(1, Ordering::Relaxed)
}

/// Locks belong to the calling thread. A thread may lock a key several times, and unlocks it as often.
///
/// ```
/// use filbert::{Config, Filbert};
///
/// let filbert = Filbert::start(Config::default())?;
/// let accounts = filbert.map::<String, i64>("accounts")?;
/// accounts.set("a", &100)?;
/// accounts.lock("a")?;
/// let balance = accounts.get("a")?.unwrap_or(0);
/// accounts.set("a", &(balance - 10))?;
/// accounts.unlock("a")?;
/// # Ok::<(), filbert::Error>(())
/// ```
impl<K, V> Map<K, V> {
    /// Locks a key for this thread, waiting while someone else has it.
    ///
    /// # Errors
    /// The key cannot be written, or the member is shut down while this waits.
    pub fn lock<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<(), Error>
    where
        K: Borrow<Q>,
    {
        self.begin_lock(LockOwner::of_this_thread(), key, None)?.wait()
    }

    /// As [`Map::lock`]; the lock ends by itself after `lease`.
    ///
    /// # Errors
    /// As [`Map::lock`].
    pub fn lock_with_lease<Q: ToBlob + ?Sized>(&self, key: &Q, lease: Duration) -> Result<(), Error>
    where
        K: Borrow<Q>,
    {
        self.begin_lock(LockOwner::of_this_thread(), key, Some(lease))?.wait()
    }

    /// Locks a key if nobody else has it; whether it did.
    ///
    /// # Errors
    /// The key cannot be written.
    pub fn try_lock<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.try_lock_within(key, Duration::ZERO, None)
    }

    /// Locks a key, waiting at most `wait`; whether it did. The lock ends by itself after `lease`, if one is given.
    ///
    /// # Errors
    /// The key cannot be written, or the member is shut down while this waits.
    pub fn try_lock_within<Q: ToBlob + ?Sized>(
        &self,
        key: &Q,
        wait: Duration,
        lease: Option<Duration>,
    ) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.begin_try_lock(LockOwner::of_this_thread(), key, wait, lease)?.wait_or_false()
    }

    /// Gives back one hold of a lock.
    ///
    /// # Errors
    /// [`Error::NotLockOwner`]: this thread does not hold it.
    pub fn unlock<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<(), Error>
    where
        K: Borrow<Q>,
    {
        self.begin_unlock(LockOwner::of_this_thread(), key)?.wait()
    }

    /// Frees a key, whoever holds it and however often.
    ///
    /// # Errors
    /// The key cannot be written.
    pub fn force_unlock<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<(), Error>
    where
        K: Borrow<Q>,
    {
        self.begin_force_unlock(LockOwner::of_this_thread(), key)?.wait()
    }

    /// Whether anyone has locked the key.
    ///
    /// # Errors
    /// The key cannot be written.
    pub fn is_locked<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.core.with_key(key, |key| Ok(self.core.map.is_locked(self.core.partition(key), key)))
    }

    pub(super) fn begin_lock(
        &self,
        owner: LockOwner,
        key: &(impl ToBlob + ?Sized),
        lease: Option<Duration>,
    ) -> Result<Started<()>, Error> {
        let lease_ms = lease.map(millis);
        self.on_key(owner, key, |key| Change::Lock { key, lease_ms, reference: reference() }, decode::done)
    }

    pub(super) fn begin_try_lock(
        &self,
        owner: LockOwner,
        key: &(impl ToBlob + ?Sized),
        wait: Duration,
        lease: Option<Duration>,
    ) -> Result<Started<bool>, Error> {
        let lease_ms = lease.map(millis);
        self.core.with_key(key, |key| {
            let change = Change::Lock { key, lease_ms, reference: reference() };
            self.core.try_change(owner, change, wait)
        })
    }

    pub(super) fn begin_unlock(&self, owner: LockOwner, key: &(impl ToBlob + ?Sized)) -> Result<Started<()>, Error> {
        self.on_key(owner, key, |key| Change::Unlock { key, reference: reference() }, decode::done)
    }

    pub(super) fn begin_force_unlock(
        &self,
        owner: LockOwner,
        key: &(impl ToBlob + ?Sized),
    ) -> Result<Started<()>, Error> {
        self.on_key(owner, key, |key| Change::ForceUnlock { key, reference: reference() }, decode::done)
    }
}

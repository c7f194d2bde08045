//! Key locks as in Hazelcast: reentrant, with leases, for keys with or without an entry.

use std::borrow::Borrow;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use filbert_data::ToBlob;
use filbert_grid::Change;

use super::core::{Started, decode};
use super::lifetime::millis;
use super::{Error, LockOwner, Map};

/// The next reference number of a lock call. The grid uses it to detect retried calls. Embedded
/// calls are never retried, so each call has a new number.
static REFERENCE: AtomicI64 = AtomicI64::new(1);

fn reference() -> i64 {
    REFERENCE.fetch_add(1, Ordering::Relaxed)
}

/// Locks belong to the calling thread. Locks are reentrant: a thread may lock a key several times
/// and must unlock it as often.
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
    /// Locks a key for this thread. Waits while another owner holds the lock.
    ///
    /// # Errors
    /// The key cannot be serialized, or the member is shut down during the wait.
    pub fn lock<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<(), Error>
    where
        K: Borrow<Q>,
    {
        self.begin_lock(LockOwner::of_this_thread(), key, None)?.wait()
    }

    /// As [`Map::lock`]. The lock is released automatically after `lease`.
    ///
    /// # Errors
    /// As [`Map::lock`].
    pub fn lock_with_lease<Q: ToBlob + ?Sized>(&self, key: &Q, lease: Duration) -> Result<(), Error>
    where
        K: Borrow<Q>,
    {
        self.begin_lock(LockOwner::of_this_thread(), key, Some(lease))?.wait()
    }

    /// Locks a key if no other owner holds the lock. Returns whether the key was locked.
    ///
    /// # Errors
    /// The key cannot be serialized.
    pub fn try_lock<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.try_lock_within(key, Duration::ZERO, None)
    }

    /// Locks a key, waiting at most `wait`. Returns whether the key was locked. With a `lease`, the
    /// lock is released automatically after that time.
    ///
    /// # Errors
    /// The key cannot be serialized, or the member is shut down during the wait.
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

    /// Releases one hold of a lock.
    ///
    /// # Errors
    /// [`Error::NotLockOwner`]: this thread does not hold the lock.
    pub fn unlock<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<(), Error>
    where
        K: Borrow<Q>,
    {
        self.begin_unlock(LockOwner::of_this_thread(), key)?.wait()
    }

    /// Releases the lock of a key, regardless of its owner and its number of holds.
    ///
    /// # Errors
    /// The key cannot be serialized.
    pub fn force_unlock<Q: ToBlob + ?Sized>(&self, key: &Q) -> Result<(), Error>
    where
        K: Borrow<Q>,
    {
        self.begin_force_unlock(LockOwner::of_this_thread(), key)?.wait()
    }

    /// Whether the key is locked, by any owner.
    ///
    /// # Errors
    /// The key cannot be serialized.
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

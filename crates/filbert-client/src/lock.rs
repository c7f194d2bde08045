//! Locks on the keys of a map. A lock belongs to a client and a thread id. It is reentrant, and the
//! members release it when the client disconnects.

use std::time::Duration;

use filbert_data::{FromBlob, ToBlob};
use filbert_wire::table::map;

use crate::{Call, ClientError, Map, SerializesAs, call::DecodeFn, map::millis};

impl<K: ToBlob + FromBlob, V: ToBlob + FromBlob> Map<K, V> {
    /// Locks a key for a new thread id. Waits without a time limit. The guard gives access to the
    /// map under that id.
    ///
    /// # Errors
    ///
    /// The call fails.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped while it waits, the request stays at the member and may still
    /// acquire the lock. The lock is then held until the client disconnects. [`Map::try_locked`]
    /// with a lease avoids this.
    pub async fn locked<Q: SerializesAs<K> + ?Sized>(&self, key: &Q) -> Result<LockGuard<K, V>, ClientError> {
        let map = self.on_thread(self.client.new_thread());
        let key = self.serialize(map::lock::ID, key)?;
        map.lock_raw(&key, None).await?;
        Ok(LockGuard { map, key, is_held: true })
    }

    /// As [`Map::locked`], but returns `None` if the lock is not acquired within `wait`. The lock
    /// expires after `lease`, if one is given.
    ///
    /// # Errors
    ///
    /// The call fails.
    pub async fn try_locked<Q: SerializesAs<K> + ?Sized>(
        &self,
        key: &Q,
        wait: Duration,
        lease: Option<Duration>,
    ) -> Result<Option<LockGuard<K, V>>, ClientError> {
        let map = self.on_thread(self.client.new_thread());
        let key = self.serialize(map::try_lock::ID, key)?;
        let is_held = map.try_lock_raw(&key, wait, lease).await?;
        Ok(is_held.then_some(LockGuard { map, key, is_held }))
    }

    /// Locks a key for this handle's thread id. Waits without a time limit.
    pub fn lock<Q: SerializesAs<K> + ?Sized>(&self, key: &Q) -> Call<()> {
        self.lock_for(key, None)
    }

    /// As [`Map::lock`]. The lock expires after `lease`, if one is given.
    pub fn lock_for<Q: SerializesAs<K> + ?Sized>(&self, key: &Q, lease: Option<Duration>) -> Call<()> {
        match self.serialize(map::lock::ID, key) {
            Ok(key) => self.lock_raw(&key, lease),
            Err(error) => Call::failed::<map::lock::Request<'_>>(&self.client.inner, error, |_| Ok(())),
        }
    }

    fn lock_raw(&self, key: &[u8], lease: Option<Duration>) -> Call<()> {
        let request = map::lock::Request {
            name: &self.name,
            key,
            thread_id: self.thread,
            ttl: millis(lease),
            reference_id: self.client.inner.new_reference(),
        };
        self.on_key(key, &request, |answer| Ok(answer.decode::<map::lock::Response>().map(drop)?))
    }

    /// Locks a key for this handle's thread id. Returns false if the lock is not acquired within
    /// `wait`. The lock expires after `lease`, if one is given.
    pub fn try_lock<Q: SerializesAs<K> + ?Sized>(
        &self,
        key: &Q,
        wait: Duration,
        lease: Option<Duration>,
    ) -> Call<bool> {
        match self.serialize(map::try_lock::ID, key) {
            Ok(key) => self.try_lock_raw(&key, wait, lease),
            Err(error) => Call::failed::<map::try_lock::Request<'_>>(&self.client.inner, error, |_| Ok(false)),
        }
    }

    fn try_lock_raw(&self, key: &[u8], wait: Duration, lease: Option<Duration>) -> Call<bool> {
        let request = map::try_lock::Request {
            name: &self.name,
            key,
            thread_id: self.thread,
            lease: millis(lease),
            timeout: millis(Some(wait)),
            reference_id: self.client.inner.new_reference(),
        };
        self.on_key(key, &request, |answer| Ok(answer.decode::<map::try_lock::Response>()?.response))
    }

    /// Releases a lock of this handle's thread id. The member returns an error if the thread id
    /// does not hold the lock.
    pub fn unlock<Q: SerializesAs<K> + ?Sized>(&self, key: &Q) -> Call<()> {
        match self.serialize(map::unlock::ID, key) {
            Ok(key) => self.unlock_raw(&key),
            Err(error) => Call::failed::<map::unlock::Request<'_>>(&self.client.inner, error, |_| Ok(())),
        }
    }

    fn unlock_raw(&self, key: &[u8]) -> Call<()> {
        let request = map::unlock::Request {
            name: &self.name,
            key,
            thread_id: self.thread,
            reference_id: self.client.inner.new_reference(),
        };
        self.on_key(key, &request, |answer| Ok(answer.decode::<map::unlock::Response>().map(drop)?))
    }

    /// Releases a lock, regardless of its owner.
    pub fn force_unlock<Q: SerializesAs<K> + ?Sized>(&self, key: &Q) -> Call<()> {
        let decode: DecodeFn<()> = |answer| Ok(answer.decode::<map::force_unlock::Response>().map(drop)?);
        match self.serialize(map::force_unlock::ID, key) {
            Ok(key) => {
                let reference_id = self.client.inner.new_reference();
                let request = map::force_unlock::Request { name: &self.name, key: &key, reference_id };
                self.on_key(&key, &request, decode)
            }
            Err(error) => Call::failed::<map::force_unlock::Request<'_>>(&self.client.inner, error, decode),
        }
    }

    /// Whether a key is locked.
    pub fn is_locked<Q: SerializesAs<K> + ?Sized>(&self, key: &Q) -> Call<bool> {
        let decode: DecodeFn<bool> = |answer| Ok(answer.decode::<map::is_locked::Response>()?.response);
        match self.serialize(map::is_locked::ID, key) {
            Ok(key) => self.on_key(&key, &map::is_locked::Request { name: &self.name, key: &key }, decode),
            Err(error) => Call::failed::<map::is_locked::Request<'_>>(&self.client.inner, error, decode),
        }
    }
}

/// A held lock. Dropping the guard releases the lock without waiting for the member's response.
#[derive(Debug)]
pub struct LockGuard<K: ToBlob + FromBlob, V: ToBlob + FromBlob> {
    map: Map<K, V>,
    key: Vec<u8>,
    is_held: bool,
}

impl<K: ToBlob + FromBlob, V: ToBlob + FromBlob> LockGuard<K, V> {
    /// The map under the thread id that holds the lock. Its operations on the locked key do not
    /// wait for the lock.
    pub fn map(&self) -> &Map<K, V> {
        &self.map
    }

    /// Releases the lock and waits for the member's response.
    ///
    /// # Errors
    ///
    /// The call fails, or the lease of the lock has expired.
    pub async fn unlock(mut self) -> Result<(), ClientError> {
        self.is_held = false;
        self.map.unlock_raw(&self.key).await
    }
}

impl<K: ToBlob + FromBlob, V: ToBlob + FromBlob> Drop for LockGuard<K, V> {
    fn drop(&mut self) {
        if self.is_held {
            // The request is sent when the call is created. No caller waits for the response.
            drop(self.map.unlock_raw(&self.key));
        }
    }
}

//! Claims: the keys that statements have reserved for the moment in which they change several of them together.
//!
//! A claim holds hashes, not keys: it is small, made and dropped as a whole, and where two keys have the same hash, the one
//! waits a moment longer than it had to, in all replicas: the hashes are [`stable_hash`]es. It has no lease: who claims gives
//! back, or goes, and then `ReleaseLocks` frees it.

use std::sync::Arc;

use uuid::Uuid;

use crate::Caller;
use crate::hash::stable_hash;

/// What one command has claimed of one map in one partition.
#[derive(Clone)]
pub(crate) struct Claim {
    pub(crate) owner: Caller,
    /// In order. Shared with a snapshot that is being made.
    pub(crate) hashes: Arc<[u64]>,
}

/// The claims of one map, in the order in which they came.
#[derive(Default)]
pub(crate) struct Claims(Vec<Claim>);

impl Claims {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether someone other than the caller has claimed a key, or one with the same hash.
    pub(crate) fn has(&self, key: &[u8], caller: Caller) -> bool {
        let hash = stable_hash(key);
        self.0.iter().any(|claim| claim.owner != caller && claim.hashes.binary_search(&hash).is_ok())
    }

    /// Whether anyone has claimed a key, or one with the same hash.
    pub(crate) fn has_any(&self, key: &[u8]) -> bool {
        let hash = stable_hash(key);
        self.0.iter().any(|claim| claim.hashes.binary_search(&hash).is_ok())
    }

    /// Claims for a caller, beside what it has claimed before.
    pub(crate) fn claim(&mut self, owner: Caller, mut hashes: Vec<u64>) {
        hashes.sort_unstable();
        self.0.push(Claim { owner, hashes: hashes.into() });
    }

    /// Drops what a caller has claimed; whether there was something.
    pub(crate) fn release(&mut self, owner: Caller) -> bool {
        self.retain(|claim| claim.owner != owner)
    }

    /// Drops what a client's statements have claimed; whether there was something.
    pub(crate) fn release_client(&mut self, client: Uuid) -> bool {
        self.retain(|claim| claim.owner.client != client)
    }

    fn retain(&mut self, stays: impl Fn(&Claim) -> bool) -> bool {
        let before = self.0.len();
        self.0.retain(stays);
        let dropped = self.0.len() < before;
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
        dropped
    }

    /// Takes over a claim of another replica, behind those that are there.
    pub(crate) fn restore(&mut self, claim: Claim) {
        self.0.push(claim);
    }

    /// All claims, in the order in which they came.
    pub(crate) fn all(&self) -> &[Claim] {
        &self.0
    }

    pub(crate) fn bytes(&self) -> usize {
        let hashes: usize = self.0.iter().map(|claim| size_of_val(&*claim.hashes)).sum();
        self.0.capacity() * size_of::<Claim>() + hashes
    }
}

//! Claims: keys that a statement has reserved while it changes several of them together.
//!
//! A claim contains hashes instead of keys: it is small, and is created and dropped as a whole. If
//! two keys have the same hash, one waits a little longer than necessary, in all replicas, because
//! the hashes are [`stable_hash`]es. A claim without hashes is of all keys, existing and new ones.
//! A claim has no lease: its owner releases it, or a leader that knows that the owner does not run
//! any more.

use std::sync::Arc;

use uuid::Uuid;

use crate::Caller;
use crate::hash::stable_hash;

/// The claim of one command on keys of one map in one partition.
#[derive(Clone)]
pub(crate) struct Claim {
    pub(crate) owner: Caller,
    /// Sorted; empty = the claim is of all keys. Shared with a snapshot in progress.
    pub(crate) hashes: Arc<[u64]>,
}

impl Claim {
    fn has(&self, hash: u64) -> bool {
        self.is_of_all() || self.hashes.binary_search(&hash).is_ok()
    }

    /// Whether it is a claim of all keys.
    pub(crate) fn is_of_all(&self) -> bool {
        self.hashes.is_empty()
    }
}

/// The claims of one map, in the order of their creation.
#[derive(Default)]
pub(crate) struct Claims(Vec<Claim>);

impl Claims {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether another caller has claimed the key, or a key with the same hash.
    pub(crate) fn has(&self, key: &[u8], caller: Caller) -> bool {
        let hash = stable_hash(key);
        self.0.iter().any(|claim| claim.owner != caller && claim.has(hash))
    }

    /// Whether a caller has claimed any key.
    pub(crate) fn has_of(&self, owner: Caller) -> bool {
        self.0.iter().any(|claim| claim.owner == owner)
    }

    /// Whether any caller has claimed the key, or a key with the same hash.
    pub(crate) fn has_any(&self, key: &[u8]) -> bool {
        let hash = stable_hash(key);
        self.0.iter().any(|claim| claim.has(hash))
    }

    /// Whether another caller has claimed any key.
    pub(crate) fn has_of_others(&self, caller: Caller) -> bool {
        self.0.iter().any(|claim| claim.owner != caller)
    }

    /// Whether another caller has claimed all keys.
    pub(crate) fn has_all_of_others(&self, caller: Caller) -> bool {
        self.0.iter().any(|claim| claim.owner != caller && claim.is_of_all())
    }

    /// Adds a claim of some keys for a caller, in addition to its earlier claims.
    pub(crate) fn claim(&mut self, owner: Caller, mut hashes: Vec<u64>) {
        debug_assert!(!hashes.is_empty(), "a claim without hashes is of all keys");
        hashes.sort_unstable();
        self.0.push(Claim { owner, hashes: hashes.into() });
    }

    /// Adds a claim of all keys for a caller, if it has none.
    pub(crate) fn claim_all(&mut self, owner: Caller) {
        if !self.0.iter().any(|claim| claim.owner == owner && claim.is_of_all()) {
            self.0.push(Claim { owner, hashes: Arc::default() });
        }
    }

    /// Drops the claims of a caller. Returns whether there were any.
    pub(crate) fn release(&mut self, owner: Caller) -> bool {
        self.retain(|claim| claim.owner != owner)
    }

    /// Drops the claims of a client's statements. Returns whether there were any.
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

    /// Restores a claim from another replica, after the existing ones.
    pub(crate) fn restore(&mut self, claim: Claim) {
        self.0.push(claim);
    }

    /// All claims, in the order of their creation.
    pub(crate) fn all(&self) -> &[Claim] {
        &self.0
    }

    pub(crate) fn bytes(&self) -> usize {
        let hashes: usize = self.0.iter().map(|claim| size_of_val(&*claim.hashes)).sum();
        self.0.capacity() * size_of::<Claim>() + hashes
    }
}

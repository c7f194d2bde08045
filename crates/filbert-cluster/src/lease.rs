//! The lease of a group: whether this member may serve reads, as two atomics that a read checks
//! before and after.
//!
//! The lease ends with a margin before the time from which another member could lead: voters that
//! have acknowledged a request sent at `t` do not vote before `t + lease` by their clocks. The
//! lease is withdrawn before leadership is handed over, because the next leader does not wait for
//! it. It does not return in the same term, because the message that hands over may be late.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// The usable part of the lease in percent: clocks may run at different rates, and the margin of 20
/// % covers the difference.
const USED_PERCENT: u64 = 80;

#[derive(Debug, Default)]
pub(crate) struct Lease {
    /// The term in which reads may be served. 0 = none. Terms begin at 1.
    term: AtomicU64,
    /// The end of the lease, in nanoseconds of the group's clock. 0 = it has ended.
    until_ns: AtomicU64,
    /// The last term that has handed over. Held while either of the above changes.
    revoked: Mutex<u64>,
}

impl Lease {
    /// Extends the lease in a term after an acknowledgement of a quorum. Returns its end before, in
    /// nanoseconds of the group's clock; `u64::MAX` if the lease is revoked.
    pub(crate) fn extend(&self, term: u64, acknowledged_ns: u64, lease_ns: u64) -> u64 {
        let revoked = self.revoked.lock();
        if term <= *revoked {
            return u64::MAX;
        }
        if self.term.load(Ordering::Acquire) != term {
            // A read that began in another term must not complete in this one.
            self.until_ns.store(0, Ordering::SeqCst);
            self.term.store(term, Ordering::SeqCst);
        }
        let until = acknowledged_ns.saturating_add(lease_ns.saturating_mul(USED_PERCENT) / 100);
        self.until_ns.fetch_max(until, Ordering::SeqCst)
    }

    /// Ends the lease until the next acknowledgement.
    pub(crate) fn withdraw(&self) {
        let _changing = self.revoked.lock();
        self.until_ns.store(0, Ordering::SeqCst);
    }

    /// Ends the lease for the rest of a term.
    pub(crate) fn revoke(&self, term: u64) {
        let mut revoked = self.revoked.lock();
        *revoked = term.max(*revoked);
        self.until_ns.store(0, Ordering::SeqCst);
    }

    /// Returns the term with a valid lease at `now_ns`.
    pub(crate) fn check(&self, now_ns: u64) -> Option<u64> {
        let term = self.term.load(Ordering::SeqCst);
        (now_ns < self.until_ns.load(Ordering::SeqCst)).then_some(term)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_ends_early_and_does_not_return_in_a_term_that_handed_over() {
        let lease = Lease::default();
        assert_eq!(lease.check(0), None);
        assert_eq!(lease.extend(3, 100, 1_000), 0);
        assert_eq!((lease.check(899), lease.check(900)), (Some(3), None));
        assert_eq!(lease.extend(3, 50, 1_000), 900);
        assert_eq!(lease.check(899), Some(3));
        lease.revoke(3);
        assert_eq!(lease.extend(3, 200, 1_000), u64::MAX);
        assert_eq!(lease.check(300), None);
        lease.extend(4, 400, 1_000);
        assert_eq!(lease.check(500), Some(4));
        lease.withdraw();
        assert_eq!(lease.check(500), None);
    }
}

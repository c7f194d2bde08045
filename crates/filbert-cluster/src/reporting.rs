//! The entries for which this member reports changes to listeners: a leader reports the changes of
//! the entries that it has committed.
//!
//! This is more than the entries that it applies while it knows that it leads: it may learn of the
//! next leader in between. It is also more than its own entries: a new leader commits entries of
//! the previous leader that were in flight. So a change is reported by one member. It is reported
//! by two members if a leader had committed an entry and was lost before the next leader learned of
//! the commit: no member can know whether the change was reported. It is reported by no member only
//! if its leader stops before it has applied the entry. A leader that hands over has applied all
//! its entries, and sends the index of the last one.

use parking_lot::Mutex;

#[derive(Debug, Default)]
pub(crate) struct Reporting(Mutex<ReportRange>);

/// Terms and indexes that decide which entries are reported. Terms begin at 1. 0 = none.
#[derive(Debug, Default)]
struct ReportRange {
    /// The latest term in which this member has led.
    own_term: u64,
    /// The index that other members had committed when that term began. They report the entries up
    /// to it.
    since: Option<u64>,
    /// The end of this member's leadership, once another member leads in a later term.
    until: Until,
    /// The latest term in which another member has led.
    other_term: u64,
    /// The index that other members have committed.
    other_committed: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Until {
    /// This member leads, as far as it knows.
    #[default]
    Open,
    /// The index that this member had committed by then. `None` if it had committed no entry.
    Ended(Option<u64>),
}

impl Reporting {
    /// Records that this member leads in a term. Called before an entry can be committed in it.
    pub(crate) fn record_own_term(&self, term: u64) {
        let mut range = self.0.lock();
        if range.own_term < term {
            range.own_term = term;
            range.since = range.other_committed;
            range.until = Until::Open;
        }
    }

    /// Records that another member leads in a term, and has committed the log up to an index.
    /// Called before its request is handled. `own` returns the index that is committed here so far.
    pub(crate) fn record_other_term(&self, term: u64, committed: Option<u64>, own: impl FnOnce() -> Option<u64>) {
        let mut range = self.0.lock();
        if term < range.other_term.max(range.own_term) {
            return;
        }
        if range.other_term < term && range.until == Until::Open {
            range.until = Until::Ended(own());
        }
        range.other_term = term;
        range.other_committed = range.other_committed.max(committed);
    }

    /// Records that the log was cut off after an index, and continues with entries that differ from
    /// the entries that other members had committed.
    pub(crate) fn cut_after(&self, last: Option<u64>) {
        let mut range = self.0.lock();
        range.other_committed = range.other_committed.min(last);
        range.since = range.since.min(last);
    }

    /// Whether this member reports the changes of an entry that it applies.
    pub(crate) fn reports(&self, term: u64, index: u64) -> bool {
        let range = self.0.lock();
        let has_ended = |until| matches!(until, Until::Ended(upto) if Some(index) > upto);
        range.own_term >= term && Some(index) > range.since && !has_ended(range.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_has_never_led_reports_nothing() {
        let reporting = Reporting::default();
        assert!(!reporting.reports(1, 0));
        reporting.record_other_term(1, Some(5), || None);
        assert!(!reporting.reports(1, 5));
    }

    #[test]
    fn a_leader_reports_its_entries_and_those_that_the_previous_leader_had_not_committed() {
        let reporting = Reporting::default();
        reporting.record_other_term(1, Some(5), || None);
        reporting.record_own_term(2);
        let reported: Vec<u64> = (0..9).filter(|index| reporting.reports(1, *index)).collect();
        assert_eq!(reported, [6, 7, 8]);
        assert!(reporting.reports(2, 9) && !reporting.reports(3, 10), "another member leads in term 3");
    }

    #[test]
    fn entries_committed_before_another_member_led_are_reported_afterwards_and_no_others() {
        let reporting = Reporting::default();
        reporting.record_own_term(1);
        reporting.record_other_term(2, Some(3), || Some(7));
        // The next request of the same leader.
        reporting.record_other_term(2, Some(9), || Some(9));
        let reported: Vec<u64> = (0..12).filter(|index| reporting.reports(1, *index)).collect();
        assert_eq!(reported, [0, 1, 2, 3, 4, 5, 6, 7]);
        // This member leads again, and continues after the commit index of the other one.
        reporting.record_own_term(3);
        let reported: Vec<u64> = (0..12).filter(|index| reporting.reports(2, *index)).collect();
        assert_eq!(reported, [10, 11]);
    }

    #[test]
    fn an_earlier_leader_that_does_not_know_it_yet_ends_nothing() {
        let reporting = Reporting::default();
        reporting.record_own_term(4);
        reporting.record_other_term(3, Some(90), || Some(2));
        assert!(reporting.reports(4, 5));
        reporting.record_own_term(3);
        assert!(reporting.reports(4, 5));
    }

    #[test]
    fn entries_that_others_had_committed_beyond_the_remaining_copy_are_reported_when_replaced() {
        let reporting = Reporting::default();
        reporting.record_other_term(1, Some(100), || None);
        reporting.cut_after(Some(50));
        reporting.record_own_term(2);
        let reported: Vec<u64> = (0..55).filter(|index| reporting.reports(2, *index)).collect();
        assert_eq!(reported, [51, 52, 53, 54]);
    }

    #[test]
    fn a_leader_that_had_committed_nothing_leaves_all_to_the_next_one() {
        let reporting = Reporting::default();
        reporting.record_own_term(1);
        reporting.record_other_term(2, None, || None);
        assert!(!reporting.reports(1, 0));
    }
}

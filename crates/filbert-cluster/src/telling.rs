//! Which entries' changes this member tells listeners of: a leader tells of what it has committed.
//!
//! That is more than what it applies while it knows that it leads: it may hear of the next leader in between. And it is more than its own
//! entries: a new leader commits what was on its way under the one before. So a change is told by one member, and by two
//! where a leader had committed an entry and was lost before the next one had heard of it: nobody can know whether it was told.
//! It is told by nobody only if its leader ends before it has applied it. Who hands over has applied all its entries, and says where they end.

use parking_lot::Mutex;

#[derive(Debug, Default)]
pub(crate) struct Telling(Mutex<Tells>);

/// What an account of terms and indexes says; terms begin at 1, 0 = none.
#[derive(Debug, Default)]
struct Tells {
    /// The latest term in which this member has led.
    led: u64,
    /// What others had committed when that began: they tell of it.
    since: Option<u64>,
    /// Once another member leads in a later term: what this one had committed until then.
    until: Until,
    /// The latest term in which another member has led.
    heard: u64,
    /// What others have committed.
    others: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Until {
    /// It leads, as far as it knows.
    #[default]
    Open,
    /// Index of an entry; nothing, if it had committed none.
    Ended(Option<u64>),
}

impl Telling {
    /// This member leads in a term. Said before anything can be committed in it.
    pub(crate) fn leads(&self, term: u64) {
        let mut tells = self.0.lock();
        if tells.led < term {
            tells.led = term;
            tells.since = tells.others;
            tells.until = Until::Open;
        }
    }

    /// Another member leads in a term, and has committed the log up to an index. Said before it is followed; `own` is what is committed
    /// here so far.
    pub(crate) fn heard(&self, term: u64, committed: Option<u64>, own: impl FnOnce() -> Option<u64>) {
        let mut tells = self.0.lock();
        if term < tells.heard.max(tells.led) {
            return;
        }
        if tells.heard < term && tells.until == Until::Open {
            tells.until = Until::Ended(own());
        }
        tells.heard = term;
        tells.others = tells.others.max(committed);
    }

    /// The log has been cut off after an index, and goes on with other entries than others had committed.
    pub(crate) fn cut_after(&self, last: Option<u64>) {
        let mut tells = self.0.lock();
        tells.others = tells.others.min(last);
        tells.since = tells.since.min(last);
    }

    /// Whether this member tells of an entry, which it applies.
    pub(crate) fn tells(&self, term: u64, index: u64) -> bool {
        let tells = self.0.lock();
        let has_ended = |until| matches!(until, Until::Ended(upto) if Some(index) > upto);
        tells.led >= term && Some(index) > tells.since && !has_ended(tells.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_never_led_tells_nothing() {
        let telling = Telling::default();
        assert!(!telling.tells(1, 0));
        telling.heard(1, Some(5), || None);
        assert!(!telling.tells(1, 5));
    }

    #[test]
    fn a_leader_tells_of_its_entries_and_of_those_that_the_one_before_had_not_committed() {
        let telling = Telling::default();
        telling.heard(1, Some(5), || None);
        telling.leads(2);
        let told: Vec<u64> = (0..9).filter(|index| telling.tells(1, *index)).collect();
        assert_eq!(told, [6, 7, 8]);
        assert!(telling.tells(2, 9) && !telling.tells(3, 10), "another member leads in term 3");
    }

    #[test]
    fn what_was_committed_before_another_one_led_is_told_after_it_as_well_and_no_more() {
        let telling = Telling::default();
        telling.leads(1);
        telling.heard(2, Some(3), || Some(7));
        // The next request says the same.
        telling.heard(2, Some(9), || Some(9));
        let told: Vec<u64> = (0..12).filter(|index| telling.tells(1, *index)).collect();
        assert_eq!(told, [0, 1, 2, 3, 4, 5, 6, 7]);
        // It leads again, and goes on after what the other one has committed.
        telling.leads(3);
        let told: Vec<u64> = (0..12).filter(|index| telling.tells(2, *index)).collect();
        assert_eq!(told, [10, 11]);
    }

    #[test]
    fn an_earlier_leader_that_does_not_know_it_yet_ends_nothing() {
        let telling = Telling::default();
        telling.leads(4);
        telling.heard(3, Some(90), || Some(2));
        assert!(telling.tells(4, 5));
        telling.leads(3);
        assert!(telling.tells(4, 5));
    }

    #[test]
    fn what_others_had_committed_beyond_the_copy_that_is_left_is_told_as_it_comes_anew() {
        let telling = Telling::default();
        telling.heard(1, Some(100), || None);
        telling.cut_after(Some(50));
        telling.leads(2);
        let told: Vec<u64> = (0..55).filter(|index| telling.tells(2, *index)).collect();
        assert_eq!(told, [51, 52, 53, 54]);
    }

    #[test]
    fn a_leader_that_had_committed_nothing_leaves_all_to_the_next_one() {
        let telling = Telling::default();
        telling.leads(1);
        telling.heard(2, None, || None);
        assert!(!telling.tells(1, 0));
    }
}

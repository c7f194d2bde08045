//! What was logged already: a peer that is refused tries again every two seconds, and one line about it is enough.

use std::mem::{Discriminant, discriminant};
use std::net::IpAddr;

use parking_lot::Mutex;

use crate::{Address, LinkError, Refused};

/// Peers and causes that are remembered; when there are more, it begins anew.
const NOTES_MAX: usize = 1_024;

/// Which peer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum About {
    /// One that this member dials.
    Dialled(Address),
    /// One that dials this member. Its port is another one at each try.
    From(IpAddr),
}

#[derive(Default)]
pub(crate) struct Notes(Mutex<Vec<(About, Cause)>>);

type Cause = (Discriminant<LinkError>, Option<Discriminant<Refused>>);

fn cause(error: &LinkError) -> Cause {
    let refused = if let LinkError::Refused(refused) = error { Some(discriminant(refused)) } else { None };
    (discriminant(error), refused)
}

impl Notes {
    /// Logs it, if it is the first time.
    pub(crate) fn tell(&self, about: &About, error: &LinkError) {
        if !self.is_new(about, error) {
            return;
        }
        let told = error.to_string();
        match (about, error.wants_a_person()) {
            (About::Dialled(address), true) => tracing::warn!(%address, "cannot connect to a member: {told}"),
            (About::Dialled(address), false) => tracing::info!(%address, "cannot connect to a member: {told}"),
            (About::From(address), true) => tracing::warn!(%address, "a connection was refused: {told}"),
            (About::From(address), false) => tracing::info!(%address, "a connection came to nothing: {told}"),
        }
    }

    fn is_new(&self, about: &About, error: &LinkError) -> bool {
        let note = (about.clone(), cause(error));
        let mut notes = self.0.lock();
        if notes.contains(&note) {
            return false;
        }
        if notes.len() >= NOTES_MAX {
            notes.clear();
        }
        notes.push(note);
        true
    }

    /// The peer was reached: what goes wrong from now on is new.
    pub(crate) fn forget(&self, about: &About) {
        self.0.lock().retain(|(other, _)| other != about);
    }

    #[cfg(test)]
    fn peers(&self) -> Vec<About> {
        self.0.lock().iter().map(|(about, _)| about.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once_for_each_peer_until_it_was_reached() {
        let notes = Notes::default();
        let (here, there) = (About::From(IpAddr::from([127, 0, 0, 1])), About::Dialled("db:1".into()));
        assert!(notes.is_new(&here, &Refused::Secret.into()));
        assert!(!notes.is_new(&here, &Refused::Secret.into()));
        assert!(notes.is_new(&here, &Refused::Itself.into()));
        assert!(notes.is_new(&there, &Refused::Secret.into()));
        notes.forget(&here);
        assert_eq!(notes.peers(), std::slice::from_ref(&there));
        assert!(notes.is_new(&here, &Refused::Secret.into()));
        assert!(!notes.is_new(&there, &Refused::Secret.into()));
    }

    #[test]
    fn notes_have_a_limit() {
        let notes = Notes::default();
        for port in 0..5_000 {
            notes.is_new(&About::Dialled(format!("db:{port}").into()), &LinkError::Closed);
        }
        assert!(notes.peers().len() <= NOTES_MAX);
    }
}

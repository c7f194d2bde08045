//! The errors that were already logged: a refused peer retries every two seconds, and one line
//! about it is enough.

use std::mem::{Discriminant, discriminant};
use std::net::IpAddr;

use parking_lot::Mutex;

use crate::{Address, LinkError, Refused};

/// The maximum number of remembered peers and causes. Beyond it, all are forgotten.
const LOGGED_MAX: usize = 1_024;

/// The peer of an error.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PeerAddress {
    /// A peer that this member dials.
    Dialled(Address),
    /// A peer that dials this member. Its port differs at each attempt.
    From(IpAddr),
}

#[derive(Default)]
pub(crate) struct LoggedErrors(Mutex<Vec<(PeerAddress, Cause)>>);

type Cause = (Discriminant<LinkError>, Option<Discriminant<Refused>>);

fn cause(error: &LinkError) -> Cause {
    let refused = if let LinkError::Refused(refused) = error { Some(discriminant(refused)) } else { None };
    (discriminant(error), refused)
}

impl LoggedErrors {
    /// Logs an error, if it is new.
    pub(crate) fn log(&self, peer: &PeerAddress, error: &LinkError) {
        if !self.is_new(peer, error) {
            return;
        }
        let text = error.to_string();
        match (peer, error.needs_operator()) {
            (PeerAddress::Dialled(address), true) => tracing::warn!(%address, "cannot connect to a member: {text}"),
            (PeerAddress::Dialled(address), false) => tracing::info!(%address, "cannot connect to a member: {text}"),
            (PeerAddress::From(address), true) => tracing::warn!(%address, "a connection was refused: {text}"),
            (PeerAddress::From(address), false) => tracing::info!(%address, "a connection came to nothing: {text}"),
        }
    }

    fn is_new(&self, peer: &PeerAddress, error: &LinkError) -> bool {
        let entry = (peer.clone(), cause(error));
        let mut logged = self.0.lock();
        if logged.contains(&entry) {
            return false;
        }
        if logged.len() >= LOGGED_MAX {
            logged.clear();
        }
        logged.push(entry);
        true
    }

    /// Forgets the errors of a peer that was reached: later errors are logged again.
    pub(crate) fn forget(&self, peer: &PeerAddress) {
        self.0.lock().retain(|(other, _)| other != peer);
    }

    #[cfg(test)]
    fn peers(&self) -> Vec<PeerAddress> {
        self.0.lock().iter().map(|(peer, _)| peer.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_logged_once_for_each_peer_until_it_was_reached() {
        let logged = LoggedErrors::default();
        let (here, there) = (PeerAddress::From(IpAddr::from([127, 0, 0, 1])), PeerAddress::Dialled("db:1".into()));
        assert!(logged.is_new(&here, &Refused::Secret.into()));
        assert!(!logged.is_new(&here, &Refused::Secret.into()));
        assert!(logged.is_new(&here, &Refused::Itself.into()));
        assert!(logged.is_new(&there, &Refused::Secret.into()));
        logged.forget(&here);
        assert_eq!(logged.peers(), std::slice::from_ref(&there));
        assert!(logged.is_new(&here, &Refused::Secret.into()));
        assert!(!logged.is_new(&there, &Refused::Secret.into()));
    }

    #[test]
    fn logged_errors_have_a_limit() {
        let logged = LoggedErrors::default();
        for port in 0..5_000 {
            logged.is_new(&PeerAddress::Dialled(format!("db:{port}").into()), &LinkError::Closed);
        }
        assert!(logged.peers().len() <= LOGGED_MAX);
    }
}

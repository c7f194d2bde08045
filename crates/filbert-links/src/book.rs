//! The address book. Connections to a member are closed when its address changes.

use std::fmt;
use std::sync::Arc;

use filbert_cluster::MemberId;

use crate::Address;
use crate::shared::Shared;

/// The addresses of members, as set by the user of the links.
#[derive(Clone)]
pub struct AddressBook(pub(crate) Arc<Shared>);

impl fmt::Debug for AddressBook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AddressBook").field(&*self.0.addresses.read()).finish()
    }
}

impl AddressBook {
    /// Sets the address of a member. If the member had another address before, the connections to
    /// it are closed, and the next call dials the new address at once.
    pub fn set(&self, member: MemberId, address: impl Into<Address>) {
        let address = address.into();
        let before = self.0.addresses.write().insert(member, address.clone());
        if before.is_some_and(|before| before != address) {
            self.0.cut(member);
        }
    }

    /// Removes a member, and closes the connections to it.
    pub fn remove(&self, member: MemberId) {
        self.0.addresses.write().remove(&member);
        self.0.cut(member);
    }

    /// The address of a member, if it is known.
    #[must_use]
    pub fn get(&self, member: MemberId) -> Option<Address> {
        self.0.addresses.read().get(&member).cloned()
    }
}

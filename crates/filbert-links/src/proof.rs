//! The proof that a peer knows the secret: HMAC-SHA256 over the messages of the handshake, with a
//! label for each role, so that a proof cannot be sent back to its author.

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::Secret;

/// The size of a proof in bytes.
pub(crate) const PROOF_BYTES: usize = 32;

/// The role of the member that makes the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Dials,
    Answers,
}

fn mac(secret: &Secret, role: Role, said: &[&[u8]]) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.bytes()).ok()?;
    mac.update(match role {
        Role::Dials => b"filbert links 1, who dials",
        Role::Answers => b"filbert links 1, who answers",
    });
    for part in said {
        // With lengths, so that the parts cannot be divided differently.
        mac.update(&(part.len() as u64).to_le_bytes());
        mac.update(part);
    }
    Some(mac)
}

/// Computes the proof of a role.
pub(crate) fn prove(secret: &Secret, role: Role, said: &[&[u8]]) -> [u8; PROOF_BYTES] {
    // HMAC accepts keys of any length.
    mac(secret, role, said).map(|mac| mac.finalize().into_bytes().into()).unwrap_or_default()
}

/// Checks the proof of a role in constant time.
pub(crate) fn is_proved(secret: &Secret, role: Role, said: &[&[u8]], proof: &[u8]) -> bool {
    mac(secret, role, said).is_some_and(|mac| mac.verify_slice(proof).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_holds_for_its_secret_role_and_words_alone() {
        let secret = Secret::new("open sesame");
        let proof = prove(&secret, Role::Dials, &[b"ab", b"c"]);
        assert!(is_proved(&secret, Role::Dials, &[b"ab", b"c"], &proof));
        assert!(!is_proved(&secret, Role::Answers, &[b"ab", b"c"], &proof));
        assert!(!is_proved(&secret, Role::Dials, &[b"a", b"bc"], &proof));
        assert!(!is_proved(&Secret::new("open barley"), Role::Dials, &[b"ab", b"c"], &proof));
        assert!(!is_proved(&secret, Role::Dials, &[b"ab", b"c"], &proof[..31]));
        assert!(!is_proved(&secret, Role::Dials, &[b"ab", b"c"], &[0; 32]));
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Secret::new("open sesame")), "Secret(..)");
    }
}

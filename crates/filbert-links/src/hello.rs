//! The messages of the handshake, without I/O.
//!
//! | step | sender | bytes |
//! |---|---|---|
//! | 1 | dialling member | `FLM1`, mode (1 TLS, 2 secret, 3 both, else 0) |
//! | 2 | answering member | mode, nonce (32) |
//! | | both | TLS, if both modes include it |
//! | 3 | dialling member | length (2), length of the hello (2), hello, proof (32, with a secret) |
//! | 4 | answering member | length (2), verdict |
//!
//! A verdict: 0, length of the hello (2), hello, proof; or 1: the secret differs; or 2, text.
//!
//! A hello: least and greatest version (2 each), kind (1), incarnation (16), nonce (32), member id
//! (1 and 8, 0 and 0 = none), dialled member id (the same), id of the cluster (16, 0 = none),
//! partitions (4), groups (4), name of the cluster (the rest).

use std::ops::RangeInclusive;

use bytes::{Buf, BufMut};
use filbert_cluster::MemberId;
use uuid::Uuid;

use crate::membership::Membership;
use crate::proof::PROOF_BYTES;
use crate::{HelloError, Identity, Kind, Refused};

pub(crate) const NONCE_BYTES: usize = 32;
/// The size of a hello without the name.
const FIXED_BYTES: usize = 4 + 1 + 16 + NONCE_BYTES + 9 + 9 + 16 + 8;
const TEXT_BYTES_MAX: usize = 1_024;

/// The introduction of a member and its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) versions: RangeInclusive<u16>,
    pub(crate) kind: Kind,
    pub(crate) incarnation: Uuid,
    pub(crate) nonce: [u8; NONCE_BYTES],
    pub(crate) member: Option<MemberId>,
    /// The member that is expected at the address.
    pub(crate) dialled: Option<MemberId>,
    /// The id of the member's cluster; nil if it is in none. Clusters of the same name have
    /// different ids, and their members the same numbers.
    pub(crate) cluster_id: Uuid,
    pub(crate) partitions: u32,
    pub(crate) groups: u32,
    pub(crate) cluster: String,
}

impl Hello {
    pub(crate) fn new(
        identity: &Identity,
        member: Option<Membership>,
        kind: Kind,
        dialled: Option<MemberId>,
        nonce: [u8; NONCE_BYTES],
    ) -> Self {
        Hello {
            versions: identity.versions.clone(),
            kind,
            incarnation: identity.incarnation,
            nonce,
            member: member.map(|member| member.id),
            dialled,
            cluster_id: member.map_or_else(Uuid::nil, |member| member.cluster),
            partitions: identity.partitions,
            groups: identity.groups,
            cluster: identity.cluster.clone(),
        }
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FIXED_BYTES + self.cluster.len());
        out.put_u16_le(*self.versions.start());
        out.put_u16_le(*self.versions.end());
        out.put_u8(self.kind.byte());
        out.put_slice(self.incarnation.as_bytes());
        out.put_slice(&self.nonce);
        for member in [self.member, self.dialled] {
            out.put_u8(u8::from(member.is_some()));
            out.put_u64_le(member.unwrap_or_default().0);
        }
        out.put_slice(self.cluster_id.as_bytes());
        out.put_u32_le(self.partitions);
        out.put_u32_le(self.groups);
        out.put_slice(self.cluster.as_bytes());
        out
    }

    pub(crate) fn read(mut bytes: &[u8]) -> Result<Hello, HelloError> {
        if bytes.len() < FIXED_BYTES {
            return Err(HelloError::Length(bytes.len()));
        }
        let versions = bytes.get_u16_le()..=bytes.get_u16_le();
        let kind = bytes.get_u8();
        let kind = Kind::of_byte(kind).ok_or(HelloError::Value { what: "the kind of connection", found: kind })?;
        let (mut incarnation, mut nonce) = ([0; 16], [0; NONCE_BYTES]);
        bytes.copy_to_slice(&mut incarnation);
        bytes.copy_to_slice(&mut nonce);
        let (member, dialled) = (read_member(&mut bytes)?, read_member(&mut bytes)?);
        let mut cluster_id = [0; 16];
        bytes.copy_to_slice(&mut cluster_id);
        let cluster_id = Uuid::from_bytes(cluster_id);
        let (partitions, groups) = (bytes.get_u32_le(), bytes.get_u32_le());
        let cluster = std::str::from_utf8(bytes).map_err(|_| HelloError::Text)?.to_owned();
        let incarnation = Uuid::from_bytes(incarnation);
        Ok(Hello { versions, kind, incarnation, nonce, member, dialled, cluster_id, partitions, groups, cluster })
    }

    /// Checks whether two members may connect, from the view of this one. Each side checks by
    /// itself, so that each can report its found and expected values. Returns the version to speak.
    pub(crate) fn check(&self, peer: &Hello) -> Result<u16, Refused> {
        if self.cluster != peer.cluster {
            return Err(Refused::Cluster { found: peer.cluster.clone(), expected: self.cluster.clone() });
        }
        if self.incarnation == peer.incarnation {
            return Err(Refused::Itself);
        }
        // A member that was stopped while the others founded a new cluster must not vote there. It
        // may use the connections for joining, because their messages name the cluster.
        let are_members = self.member.is_some() && peer.member.is_some() && self.kind != Kind::Join;
        if are_members && self.cluster_id != peer.cluster_id {
            return Err(Refused::OtherCluster { found: peer.cluster_id, expected: self.cluster_id });
        }
        for (dials, other) in [(self, peer), (peer, self)] {
            if let Some(expected) = dials.dialled.filter(|dialled| other.member != Some(*dialled)) {
                return Err(Refused::OtherMember { found: other.member, expected });
            }
        }
        if let Some(member) = self.member.filter(|_| self.member == peer.member) {
            return Err(Refused::SameMember(member));
        }
        if self.partitions != peer.partitions {
            return Err(Refused::Partitions { found: peer.partitions, expected: self.partitions });
        }
        if self.groups != peer.groups {
            return Err(Refused::Groups { found: peer.groups, expected: self.groups });
        }
        let version = *self.versions.end().min(peer.versions.end());
        if !self.versions.contains(&version) || !peer.versions.contains(&version) {
            return Err(Refused::Versions { found: peer.versions.clone(), expected: self.versions.clone() });
        }
        Ok(version)
    }
}

fn read_member(bytes: &mut &[u8]) -> Result<Option<MemberId>, HelloError> {
    match (bytes.get_u8(), bytes.get_u64_le()) {
        (0, 0) => Ok(None),
        (1, member) => Ok(Some(MemberId(member))),
        (found, _) => Err(HelloError::Value { what: "a member id", found }),
    }
}

/// A hello and its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Introduction {
    /// The bytes as received, because the proof covers them.
    pub(crate) hello: Vec<u8>,
    pub(crate) proof: Option<[u8; PROOF_BYTES]>,
}

impl Introduction {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        // Names have 1,024 bytes at most.
        out.put_u16_le(u16::try_from(self.hello.len()).unwrap_or(u16::MAX));
        out.put_slice(&self.hello);
        out.put_slice(self.proof.as_ref().map_or(&[], |proof| &proof[..]));
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Introduction, HelloError> {
        let length = || HelloError::Length(bytes.len());
        let (hello_bytes, rest) = bytes.split_first_chunk().ok_or_else(length)?;
        let hello_bytes = usize::from(u16::from_le_bytes(*hello_bytes));
        let (hello, proof) = rest.split_at_checked(hello_bytes).ok_or_else(length)?;
        let proof = if proof.is_empty() { None } else { Some(proof.try_into().map_err(|_| length())?) };
        Ok(Introduction { hello: hello.to_vec(), proof })
    }
}

/// The last step of the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Known(Introduction),
    Secret,
    Refused(String),
}

impl Verdict {
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Verdict::Known(introduction) => {
                out.put_u8(0);
                introduction.write(&mut out);
            }
            Verdict::Secret => out.put_u8(1),
            Verdict::Refused(text) => {
                out.put_u8(2);
                out.put_slice(text.as_bytes());
            }
        }
        out
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Verdict, HelloError> {
        let (first, rest) = bytes.split_first().ok_or(HelloError::Length(0))?;
        match first {
            0 => Introduction::read(rest).map(Verdict::Known),
            1 if rest.is_empty() => Ok(Verdict::Secret),
            2 if rest.len() <= TEXT_BYTES_MAX => {
                std::str::from_utf8(rest).map(|text| Verdict::Refused(text.to_owned())).map_err(|_| HelloError::Text)
            }
            1 | 2 => Err(HelloError::Length(bytes.len())),
            found => Err(HelloError::Value { what: "the answer", found: *found }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn members() -> impl Strategy<Value = Option<MemberId>> {
        proptest::option::of(any::<u64>().prop_map(MemberId))
    }

    fn hellos() -> impl Strategy<Value = Hello> {
        let kind = prop::sample::select(&Kind::ALL[..]);
        let shape = (any::<u16>(), any::<u16>(), any::<u32>(), any::<u32>(), any::<[u8; 16]>());
        (shape, kind, any::<[u8; 32]>(), members(), members(), ".{0,100}").prop_map(
            |((first, last, partitions, groups, incarnation), kind, nonce, member, dialled, cluster)| Hello {
                cluster_id: Uuid::from_u128(u128::from(partitions)),
                versions: first..=last,
                kind,
                incarnation: Uuid::from_bytes(incarnation),
                nonce,
                member,
                dialled,
                partitions,
                groups,
                cluster,
            },
        )
    }

    proptest! {
        #[test]
        fn hellos_are_read_as_written(hello in hellos(), proof in proptest::option::of(any::<[u8; 32]>())) {
            prop_assert_eq!(Hello::read(&hello.write()), Ok(hello.clone()));
            let verdict = Verdict::Known(Introduction { hello: hello.write(), proof });
            prop_assert_eq!(Verdict::read(&verdict.write()), Ok(verdict));
        }

        #[test]
        fn any_bytes_give_a_value_or_an_error(bytes in vec(any::<u8>(), 0..300)) {
            let _any = (Hello::read(&bytes), Introduction::read(&bytes), Verdict::read(&bytes));
        }

        #[test]
        fn both_sides_find_the_same_version_or_none(one in hellos(), mut other in hellos(), alike in any::<bool>()) {
            if alike {
                other = Hello { versions: other.versions, incarnation: other.incarnation, member: None, ..one.clone() };
            }
            prop_assert_eq!(one.check(&other).ok(), other.check(&one).ok());
        }
    }
}

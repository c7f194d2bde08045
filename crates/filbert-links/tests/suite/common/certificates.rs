//! Certificates of a test: an authority, and certificates that it signs (ECDSA over P-256), as PEM
//! files in a directory of the test.

#![allow(dead_code, clippy::unwrap_used, reason = "tests, and each uses a part of it")]

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use filbert_links::TlsFiles;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};

/// A directory that is removed at the end of the test.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("filbert-certificates-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&path).unwrap();
        Directory(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

/// An authority, or the holder of a certificate.
pub(crate) struct Identified {
    name: &'static str,
    key: EcdsaKeyPair,
    pkcs8: Vec<u8>,
    certificate: Vec<u8>,
}

/// Encodes a tag, the length and the contents.
fn der(tag: u8, contents: &[&[u8]]) -> Vec<u8> {
    let contents = contents.concat();
    let length = contents.len();
    let mut out = vec![tag];
    match length {
        0..=127 => out.push(length as u8),
        128..=255 => out.extend([0x81, length as u8]),
        _ => out.extend([0x82, (length >> 8) as u8, length as u8]),
    }
    out.extend(contents);
    out
}

fn sequence(contents: &[&[u8]]) -> Vec<u8> {
    der(0x30, contents)
}

const ECDSA_SHA256: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const EC_PUBLIC_KEY: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
const BASIC_CONSTRAINTS: [u8; 3] = [0x55, 0x1d, 0x13];
const ALTERNATIVE_NAMES: [u8; 3] = [0x55, 0x1d, 0x11];

fn distinguished(name: &str) -> Vec<u8> {
    sequence(&[&der(0x31, &[&sequence(&[&der(0x06, &[&COMMON_NAME]), &der(0x0c, &[name.as_bytes()])])])])
}

fn extension(id: &[u8], value: &[u8]) -> Vec<u8> {
    sequence(&[&der(0x06, &[id]), &der(0x01, &[&[0xff]]), &der(0x04, &[value])])
}

/// The validity of a certificate.
#[derive(Clone, Copy)]
pub(crate) enum Good {
    Now,
    /// Expired.
    Before,
}

/// Creates a certificate. `by` is `None` for an authority, which signs itself.
fn make(name: &'static str, by: Option<&Identified>, good: Good) -> Identified {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random).unwrap();
    let algorithm = sequence(&[&der(0x06, &[&ECDSA_SHA256])]);
    let ends: &[u8] = match good {
        Good::Now => b"491231235959Z",
        Good::Before => b"010101000000Z",
    };
    let validity = sequence(&[&der(0x17, &[b"000101000000Z"]), &der(0x17, &[ends])]);
    let of_key = sequence(&[
        &sequence(&[&der(0x06, &[&EC_PUBLIC_KEY]), &der(0x06, &[&P256])]),
        &der(0x03, &[&[0], key.public_key().as_ref()]),
    ]);
    let extensions = match by {
        None => sequence(&[&extension(&BASIC_CONSTRAINTS, &sequence(&[&der(0x01, &[&[0xff]])]))]),
        Some(_) => sequence(&[
            &extension(&BASIC_CONSTRAINTS, &sequence(&[])),
            &extension(&ALTERNATIVE_NAMES, &sequence(&[&der(0x82, &[name.as_bytes()])])),
        ]),
    };
    let issuer = by.map_or(name, |by| by.name);
    let serial: [u8; 8] = (uuid::Uuid::new_v4().as_u64_pair().0 >> 1 | 1 << 62).to_be_bytes();
    let signed = sequence(&[
        &der(0xa0, &[&der(0x02, &[&[2]])]),
        &der(0x02, &[&serial]),
        &algorithm,
        &distinguished(issuer),
        &validity,
        &distinguished(name),
        &of_key,
        &der(0xa3, &[&extensions]),
    ]);
    let signature = by.map_or(&key, |by| &by.key).sign(&random, &signed).unwrap();
    let certificate = sequence(&[&signed, &algorithm, &der(0x03, &[&[0], signature.as_ref()])]);
    Identified { name, key, pkcs8: pkcs8.as_ref().to_vec(), certificate }
}

fn pem(path: &Path, what: &str, der: &[u8]) {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    std::fs::write(path, format!("-----BEGIN {what}-----\n{}\n-----END {what}-----\n", lines.join("\n"))).unwrap();
}

/// Creates an authority, which signs itself.
pub(crate) fn authority(name: &'static str) -> Identified {
    make(name, None, Good::Now)
}

impl Identified {
    /// Creates the files of a member, with a certificate that this authority signs.
    pub(crate) fn member(&self, directory: &Directory, name: &'static str, good: Good) -> TlsFiles {
        let signed = make(name, Some(self), good);
        let file =
            |ending: &str| directory.path().join(format!("{}-{name}-{}.{ending}", self.name, uuid::Uuid::new_v4()));
        let files = TlsFiles { authority: file("ca"), certificate: file("pem"), key: file("key"), name: None };
        pem(&files.authority, "CERTIFICATE", &self.certificate);
        pem(&files.certificate, "CERTIFICATE", &signed.certificate);
        pem(&files.key, "PRIVATE KEY", &signed.pkcs8);
        files
    }
}

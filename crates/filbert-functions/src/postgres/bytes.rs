//! Functions of bytes: digests, and text encodings.

use std::fmt::Write;

use datafusion::common::Result;
use filbert_data::Value;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::texts::{bytea, written_bytes};
use super::{refused, unserved};
use crate::native::{Call, Native, Take, of_text, pure, text};

/// The maximum number of bytes that an encoding error shows.
const SHOWN_MAX: usize = 8;

pub(super) const FUNCTIONS: &[Native] = &[
    pure("sha224", &[Take::Any], bytea, digest::<Sha224>),
    pure("sha256", &[Take::Any], bytea, digest::<Sha256>),
    pure("sha384", &[Take::Any], bytea, digest::<Sha384>),
    pure("sha512", &[Take::Any], bytea, digest::<Sha512>),
    pure("convert_to", &[Take::Text, Take::Text], bytea, |call| {
        let whole = call.text(0);
        Ok(Value::Bytes(match encoding(call.text(1), "destination")? {
            Encoding::Utf8 => whole.as_bytes().to_vec().into(),
            Encoding::Latin1 => whole.chars().map(latin1).collect::<Result<Vec<u8>>>()?.into(),
        }))
    }),
    pure("convert_from", &[Take::Any, Take::Text], text, |call| {
        let bytes = written_bytes(call.values.first())?;
        let encoding = encoding(call.text(1), "source")?;
        if let (Encoding::Latin1, Some(at)) = (encoding, bytes.iter().position(|byte| *byte == 0)) {
            return Err(invalid(&bytes, at, "LATIN1"));
        }
        match encoding {
            Encoding::Latin1 => Ok(of_text(bytes.iter().map(|byte| char::from(*byte)).collect::<String>())),
            Encoding::Utf8 => utf8(bytes),
        }
    }),
];

fn digest<D: Digest>(call: &Call<'_>) -> Result<Value<'static>> {
    Ok(Value::Bytes(D::digest(written_bytes(call.values.first())?).to_vec().into()))
}

/// A supported text encoding.
#[derive(Clone, Copy)]
enum Encoding {
    Utf8,
    Latin1,
}

/// The encoding with a name; ignores case and punctuation.
fn encoding(name: &str, role: &str) -> Result<Encoding> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    match plain.as_str() {
        "utf8" | "unicode" => Ok(Encoding::Utf8),
        "latin1" | "iso88591" => Ok(Encoding::Latin1),
        known
            if ["latin", "win", "iso", "koi8", "euc", "sjis", "big5", "gb", "uhc", "johab", "mule", "sqlascii"]
                .iter()
                .any(|family| known.starts_with(family)) =>
        {
            Err(unserved(format!("the encoding {name} is not served: UTF8 and LATIN1 are")))
        }
        _ => Err(refused("22023", format!("invalid {role} encoding name \"{name}\""))),
    }
}

fn latin1(char: char) -> Result<u8> {
    u8::try_from(u32::from(char)).map_err(|_| {
        let mut buffer = [0; 4];
        let shown = shown(char.encode_utf8(&mut buffer).as_bytes());
        let message = format!(
            "character with byte sequence {shown} in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\""
        );
        refused("22P05", message)
    })
}

fn utf8(bytes: Vec<u8>) -> Result<Value<'static>> {
    match String::from_utf8(bytes) {
        Ok(text) => match text.find('\0') {
            None => Ok(of_text(text)),
            Some(at) => Err(invalid(text.as_bytes(), at, "UTF8")),
        },
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            Err(invalid(error.as_bytes(), at, "UTF8"))
        }
    }
}

/// The error for invalid bytes at a position. It shows as many bytes as the first byte announces.
fn invalid(bytes: &[u8], at: usize, encoding: &str) -> datafusion::common::DataFusionError {
    let rest = bytes.get(at..).unwrap_or_default();
    let length = match rest.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => 1,
    };
    let shown = shown(rest.get(..length).unwrap_or(rest));
    refused("22021", format!("invalid byte sequence for encoding \"{encoding}\": {shown}"))
}

fn shown(bytes: &[u8]) -> String {
    let mut out = String::new();
    for (at, byte) in bytes.iter().take(SHOWN_MAX).enumerate() {
        _ = write!(out, "{}0x{byte:02x}", if at > 0 { " " } else { "" });
    }
    out
}

//! Text and JSON.

use std::fmt;

use crate::{
    DataError, FromBlob, Input, ToBlob, TypeId,
    convert::{expect_type, write_length},
};

/// A JSON document as text. The text is stored and returned unchanged; its syntax is not checked
/// here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Json(pub String);

impl Json {
    /// A document with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Json(text.into())
    }

    /// The document's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(crate) fn write_text(type_id: TypeId, text: &str, out: &mut Vec<u8>) -> Result<(), DataError> {
    write_length(type_id, text.len(), out)?;
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

impl ToBlob for str {
    #[inline]
    fn type_id(&self) -> TypeId {
        TypeId::STRING
    }

    #[inline]
    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        write_text(TypeId::STRING, self, out)
    }

    #[inline]
    fn payload_bytes(&self) -> usize {
        4 + self.len()
    }
}

impl ToBlob for String {
    #[inline]
    fn type_id(&self) -> TypeId {
        TypeId::STRING
    }

    #[inline]
    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        self.as_str().write_payload(out)
    }

    #[inline]
    fn payload_bytes(&self) -> usize {
        self.as_str().payload_bytes()
    }
}

impl FromBlob for String {
    #[inline]
    fn read_payload(input: &mut Input<'_>) -> Result<Self, DataError> {
        expect_type(input, TypeId::STRING)?;
        let text = input.text()?.ok_or_else(|| input.null())?;
        Ok(text.to_owned())
    }
}

impl ToBlob for Json {
    fn type_id(&self) -> TypeId {
        TypeId::JSON
    }

    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        write_text(TypeId::JSON, &self.0, out)
    }

    fn payload_bytes(&self) -> usize {
        4 + self.0.len()
    }
}

impl FromBlob for Json {
    fn read_payload(input: &mut Input<'_>) -> Result<Self, DataError> {
        expect_type(input, TypeId::JSON)?;
        let text = input.text()?.ok_or_else(|| input.null())?;
        Ok(Json(text.to_owned()))
    }
}

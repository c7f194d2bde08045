//! The functions of fuzz targets. Not for other callers.

use bytes::BytesMut;

use crate::hello::{Hello, Introduction, Verdict};
use crate::wire::Frame;

/// Decodes the bytes as frames, and as each message of a handshake. A decoded value must have the
/// same encoding.
///
/// # Panics
/// A decoded value has another encoding: a defect.
pub fn read_everything(data: &[u8]) {
    let mut came = BytesMut::from(data);
    let mut written = Vec::new();
    while let Ok(Some(frame)) = Frame::read(&mut came, 1 << 16) {
        let (head, payload) = frame.write();
        written.extend_from_slice(&head);
        written.extend_from_slice(&payload);
    }
    assert!(data.starts_with(&written), "there is one way to write frames");
    if let Ok(hello) = Hello::read(data) {
        assert_eq!(hello.write(), data, "there is one way to write a hello");
        let other = Hello { incarnation: uuid::Uuid::nil(), ..hello.clone() };
        assert_eq!(hello.check(&other).ok(), other.check(&hello).ok(), "both sides find the same");
    }
    if let Ok(introduction) = Introduction::read(data) {
        let mut written = Vec::new();
        introduction.write(&mut written);
        assert_eq!(written, data, "there is one way to write an introduction");
    }
    if let Ok(verdict) = Verdict::read(data) {
        assert_eq!(verdict.write(), data, "there is one way to write a verdict");
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_can_be_read_is_written_alike(
            bytes in vec(prop_oneof![3 => 0_u8..6, 1 => any::<u8>()], 0..200), beginning in 0_u8..40,
        ) {
            read_everything(&bytes);
            read_everything(&[&[beginning, 0, 0, 0][..], &bytes].concat());
        }
    }
}

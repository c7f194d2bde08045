//! The first message of a connection, which has no type byte.

use super::body::{Body, Violation};

/// The codes of requests for encryption. They take the place of a protocol version, and are no
/// versions.
pub(crate) const SSL_REQUEST: i32 = 80_877_103;
pub(crate) const GSS_REQUEST: i32 = 80_877_104;
const CANCEL_REQUEST: i32 = 80_877_102;
/// The maximum size of a cancel key in bytes.
const KEY_BYTES_MAX: usize = 256;

/// The first message of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Startup<'a> {
    /// Asks whether the connection can continue within TLS.
    Ssl,
    /// Asks whether the connection can be encrypted by GSSAPI.
    Gss,
    /// Cancels the running statement of another connection.
    Cancel { process: i32, key: &'a [u8] },
    /// Begins a session.
    Session { major: u16, minor: u16, parameters: Parameters<'a> },
}

/// The names and values of the parameters with which a session begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameters<'a>(Body<'a>);

impl<'a> Parameters<'a> {
    pub(crate) fn iter(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let mut body = self.0;
        std::iter::from_fn(move || {
            let name = body.text("name").ok().filter(|name| !name.is_empty())?;
            Some((name, body.text("value").ok()?))
        })
    }
}

/// The length of the first message, from its first four bytes. `None` until they have arrived.
///
/// # Errors
/// The length is invalid, or beyond `bytes_max`.
pub(crate) fn startup_length(bytes: &[u8], bytes_max: usize) -> Result<Option<usize>, Violation> {
    let Some((length, _)) = bytes.split_first_chunk() else { return Ok(None) };
    let length = i32::from_be_bytes(*length);
    match usize::try_from(length) {
        Ok(length) if (8..=bytes_max).contains(&length) => Ok(Some(length)),
        _ => Err(Violation::Length { tag: ' ', length: length.into(), max: bytes_max }),
    }
}

impl<'a> Startup<'a> {
    /// Decodes the message without its length.
    ///
    /// # Errors
    /// The message is malformed.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Startup<'a>, Violation> {
        let mut body = Body::new(b' ', bytes);
        let message = match body.i32("version")? {
            SSL_REQUEST => Startup::Ssl,
            GSS_REQUEST => Startup::Gss,
            CANCEL_REQUEST => {
                let (process, key) = (body.i32("process")?, body.rest());
                if !(4..=KEY_BYTES_MAX).contains(&key.len()) {
                    return Err(body.is_false("length of the key", key.len()));
                }
                Startup::Cancel { process, key }
            }
            version => {
                let [high, low, ..] = version.to_be_bytes().map(u16::from);
                let [.., third, fourth] = version.to_be_bytes().map(u16::from);
                let (major, minor) = (high << 8 | low, third << 8 | fourth);
                if major != 3 {
                    // The format of the rest is unknown.
                    return Ok(Startup::Session { major, minor, parameters: Parameters(Body::new(b' ', b"\0")) });
                }
                let parameters = Parameters(body);
                while !body.text("name of a parameter")?.is_empty() {
                    body.text("value of a parameter")?;
                }
                Startup::Session { major, minor, parameters }
            }
        };
        body.end()?;
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_message_is_read() {
        assert!(matches!(Startup::decode(&80_877_103_i32.to_be_bytes()), Ok(Startup::Ssl)));
        let cancel = [&80_877_102_i32.to_be_bytes()[..], &[0, 0, 0, 7, 1, 2, 3, 4]].concat();
        assert!(matches!(Startup::decode(&cancel), Ok(Startup::Cancel { process: 7, key: [1, 2, 3, 4] })));
        let Ok(Startup::Session { major: 3, minor: 2, parameters }) =
            Startup::decode(b"\0\x03\0\x02user\0ann\0database\0\0\0")
        else {
            panic!()
        };
        assert_eq!(parameters.iter().collect::<Vec<_>>(), [("user", "ann"), ("database", "")]);
    }

    #[test]
    fn a_malformed_first_message_is_reported() {
        for bytes in [&b"\0\x03"[..], b"\0\x03\0\0user\0", b"\0\x03\0\0\0x", &[4, 210, 22, 46, 0, 0, 0, 1]] {
            assert!(Startup::decode(bytes).is_err(), "{bytes:?}");
        }
        assert!(matches!(Startup::decode(b"\0\x02\0\0"), Ok(Startup::Session { major: 2, .. })));
        assert!(startup_length(b"\0\0\0\x07", 100).is_err());
        assert!(startup_length(b"GET ", 100).is_err());
        assert_eq!(startup_length(b"\0\0\0", 100), Ok(None));
    }
}

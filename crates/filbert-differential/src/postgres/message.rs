//! Messages of PostgreSQL's protocol, version 3: encoding of sent messages, and parsing of received
//! fields.

use super::Parameter;
use crate::outcome::Outcome;

/// Encoded messages to send.
pub(super) struct Outgoing {
    pub(super) bytes: Vec<u8>,
}

impl Outgoing {
    pub(super) fn new() -> Outgoing {
        Outgoing { bytes: Vec::new() }
    }

    pub(super) fn startup(&mut self, settings: &[(&str, &str)]) {
        let mut body = Outgoing::new();
        body.int32(196_608);
        for (name, value) in settings {
            body.text(name);
            body.text(value);
        }
        body.bytes.push(0);
        self.int32(body.bytes.len() + 4);
        self.bytes.extend(body.bytes);
    }

    pub(super) fn message(&mut self, kind: u8, write: impl FnOnce(&mut Outgoing)) {
        let mut body = Outgoing::new();
        write(&mut body);
        self.bytes.push(kind);
        self.int32(body.bytes.len() + 4);
        self.bytes.extend(body.bytes);
    }

    pub(super) fn parse(&mut self, name: &str, text: &str, parameters: &[Parameter]) {
        self.message(b'P', |body| {
            body.text(name);
            body.text(text);
            body.int16(parameters.len());
            parameters.iter().for_each(|parameter| body.int32(parameter.oid as usize));
        });
    }

    /// Binds the unnamed portal, describes it, and executes it to its end.
    pub(super) fn bind_and_execute(&mut self, name: &str, parameters: &[Parameter], binary: bool) {
        self.message(b'B', |body| {
            body.text("");
            body.text(name);
            // All parameters are in text format.
            body.int16(0);
            body.int16(parameters.len());
            for parameter in parameters {
                match &parameter.value {
                    Some(value) => {
                        body.int32(value.len());
                        body.bytes.extend(value.as_bytes());
                    }
                    None => body.bytes.extend((-1_i32).to_be_bytes()),
                }
            }
            // All columns have the same format.
            body.int16(1);
            body.int16(usize::from(binary));
        });
        self.message(b'D', |body| {
            body.bytes.push(b'P');
            body.text("");
        });
        self.message(b'E', |body| {
            body.text("");
            body.int32(0);
        });
    }

    pub(super) fn close(&mut self, name: &str) {
        self.message(b'C', |body| {
            body.bytes.push(b'S');
            body.text(name);
        });
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
    }

    fn int16(&mut self, number: usize) {
        self.bytes.extend(u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes());
    }

    fn int32(&mut self, number: usize) {
        self.bytes.extend(u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
    }
}

/// The fields of a message, in order. Fields after the end of the message are zero or empty.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Fields<'a> {
        Fields { rest }
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    pub(super) fn int16(&mut self) -> u16 {
        self.take(2).try_into().map(u16::from_be_bytes).unwrap_or_default()
    }

    pub(super) fn int32(&mut self) -> u32 {
        self.take(4).try_into().map(u32::from_be_bytes).unwrap_or_default()
    }

    pub(super) fn text(&mut self) -> String {
        let end = self.rest.iter().position(|byte| *byte == 0).unwrap_or(self.rest.len());
        let text = String::from_utf8_lossy(self.take(end)).into_owned();
        self.byte();
        text
    }

    /// Reads a value of a row. Bytes that are not a text are shown in hexadecimal.
    pub(super) fn value(&mut self) -> Option<String> {
        let length = usize::try_from(self.int32().cast_signed()).ok()?;
        let bytes = self.take(length);
        let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
        Some(text.map_or_else(|| format!("0x{}", hex(bytes)), str::to_owned))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses an error or a notice.
pub(super) fn failure(fields: &mut Fields<'_>) -> Outcome {
    let (mut sqlstate, mut message, mut rest) = (String::new(), String::new(), String::new());
    loop {
        match fields.byte() {
            0 => return Outcome::Failure { sqlstate, message, rest },
            b'C' => sqlstate = fields.text(),
            b'M' => message = fields.text(),
            // Users see detail, hint and context too.
            b'D' | b'H' | b'W' => rest = format!("{rest} {}", fields.text()),
            _ => {
                fields.text();
            }
        }
    }
}

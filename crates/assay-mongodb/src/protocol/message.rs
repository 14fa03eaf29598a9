//! Messages: their framing, and what is refused of it.
//!
//! Only OP_MSG is used, and OP_COMPRESSED around it if that was agreed. Source: MongoDB manual, "MongoDB Wire
//! Protocol".

use assay_seam::StatementError;

use crate::protocol::bson::{Document, Malformed};
use crate::protocol::refusal::violation;

pub(super) const OP_MSG: u32 = 2013;
pub(super) const OP_COMPRESSED: u32 = 2012;
pub(super) const HEADER_LEN: usize = 16;
/// Header, flags, and the kind of the first section.
const PREFIX_LEN: usize = HEADER_LEN + 5;
/// With an empty document.
pub(super) const LENGTH_MIN: usize = PREFIX_LEN + 5;

// Flags.
const CHECKSUM_PRESENT: u32 = 1;
const MORE_TO_COME: u32 = 2;
/// Of those below, a receiver must know every one.
const REQUIRED_FLAGS: u32 = 0xFFFF;

/// Replies may be a little larger than the largest message that servers accept, 48,000,000 bytes.
pub(super) const LENGTH_MAX: usize = 48_000_000 + (1 << 20);
/// Before the login, nobody has to believe that a server has more to say.
const LENGTH_MAX_UNTRUSTED: usize = 1 << 20;
/// Bytes of memory kept from one message to the next.
pub(super) const KEEP_MAX: usize = 64 << 10;

/// Appends a message. `write` appends its command, and sections of documents after it.
pub(super) fn write(request: u32, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = begin(request, out);
    write(out);
    end(start, out);
}

/// Begins a message: its command comes next. Returns its place, for `end`.
pub(super) fn begin(request: u32, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    for word in [0, request, 0, OP_MSG, 0] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.push(0);
    start
}

/// Ends the message that begins at `start`.
pub(super) fn end(start: usize, out: &mut [u8]) {
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Begins a section of documents after the command; returns its place, for `end_sequence`.
pub(super) fn begin_sequence(name: &str, out: &mut Vec<u8>) -> usize {
    out.push(1);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    start
}

/// Ends a section of documents.
pub(super) fn end_sequence(start: usize, out: &mut [u8]) {
    end(start, out);
}

/// Bytes on their way to whole messages.
#[derive(Debug, Default)]
pub(super) struct Inbound {
    /// The beginning of a message.
    held: Vec<u8>,
    /// What was in it was given out.
    is_used: bool,
    /// The server has let us in.
    pub(super) trusted: bool,
    /// It may send compressed messages.
    pub(super) compressed: bool,
}

impl Inbound {
    /// The next whole message, taken from `bytes` and what was kept; `None`: more is needed, and all of `bytes` was
    /// kept. Memory grows only with what has arrived.
    pub(super) fn next<'a, 'b: 'a>(
        &'a mut self,
        bytes: &mut &'b [u8],
    ) -> Result<Option<&'a [u8]>, Box<StatementError>> {
        if std::mem::take(&mut self.is_used) {
            self.held.clear();
            self.held.shrink_to(KEEP_MAX);
        }
        if self.held.is_empty() {
            if let Some(length) = self.length(bytes)?
                && let Some((message, rest)) = bytes.split_at_checked(length)
            {
                *bytes = rest;
                return Ok(Some(message));
            }
            self.held.extend_from_slice(bytes);
            *bytes = &[];
            return Ok(None);
        }
        if self.held.len() < HEADER_LEN {
            self.fill(HEADER_LEN, bytes);
        }
        let Some(length) = self.length(&self.held)? else { return Ok(None) };
        self.fill(length, bytes);
        if self.held.len() < length {
            return Ok(None);
        }
        self.is_used = true;
        Ok(Some(&self.held))
    }

    /// Takes bytes until this many are kept.
    fn fill(&mut self, length: usize, bytes: &mut &[u8]) {
        let missing = length.saturating_sub(self.held.len()).min(bytes.len());
        self.held.extend_from_slice(&bytes[..missing]);
        *bytes = &bytes[missing..];
    }

    /// Length of the message that begins here, once it is known.
    fn length(&self, bytes: &[u8]) -> Result<Option<usize>, Box<StatementError>> {
        let Some(header) = bytes.first_chunk::<HEADER_LEN>() else { return Ok(None) };
        let length = word(header, 0) as usize;
        match word(header, 12) {
            OP_MSG => {}
            OP_COMPRESSED if self.compressed => {}
            OP_COMPRESSED => return Err(violation("sent a compressed message, which was not agreed")),
            _ => return Err(violation("sent something that is not a message of MongoDB's protocol")),
        }
        let most = if self.trusted { LENGTH_MAX } else { LENGTH_MAX_UNTRUSTED };
        if length < LENGTH_MIN || length > most {
            return Err(violation(&format!("sent a message of {length} bytes, outside of {LENGTH_MIN} to {most}")));
        }
        Ok(Some(length))
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes were sliced"))
}

/// The document of a whole message, which must answer this request.
pub(super) fn document(message: &[u8], request: u32) -> Result<Document<'_>, Box<StatementError>> {
    if word(message, 8) != request {
        return Err(violation("answered another request than the one in flight"));
    }
    let flags = word(message, HEADER_LEN);
    if flags & MORE_TO_COME != 0 || flags & REQUIRED_FLAGS & !CHECKSUM_PRESENT != 0 {
        return Err(violation("sent a message with flags that were not agreed"));
    }
    // The checksum is not checked: TCP and TLS have their own.
    let end = message.len() - if flags & CHECKSUM_PRESENT != 0 { 4 } else { 0 };
    let sections = message.get(HEADER_LEN + 4..end).unwrap_or_default();
    match sections.split_first() {
        Some((0, bytes)) => match Document::read(bytes) {
            Ok((document, [])) => Ok(document),
            Ok(_) => Err(violation("sent an answer in several sections")),
            Err(Malformed) => Err(malformed()),
        },
        _ => Err(violation("sent a message without a document")),
    }
}

/// Whether a whole message is compressed.
pub(super) fn is_compressed(message: &[u8]) -> bool {
    word(message, 12) == OP_COMPRESSED
}

/// What the server sent is not BSON.
pub(super) fn malformed() -> Box<StatementError> {
    violation("sent a document that is not BSON")
}

impl From<Malformed> for Box<StatementError> {
    fn from(_: Malformed) -> Box<StatementError> {
        malformed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(flags: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [(PREFIX_LEN + body.len()) as u32, 9, 7, OP_MSG, flags] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.push(0);
        bytes.extend_from_slice(body);
        bytes
    }

    const EMPTY: [u8; 5] = [5, 0, 0, 0, 0];

    #[test]
    fn messages_are_put_together_wherever_they_are_split() {
        let all = [message(0, &EMPTY), message(1, b"\x05\0\0\0\0csum"), message(1 << 16, &EMPTY)].concat();
        for cut in 0..=all.len() {
            let (mut inbound, mut found) = (Inbound::default(), 0);
            for mut piece in [&all[..cut], &all[cut..]] {
                while let Some(message) = inbound.next(&mut piece).unwrap() {
                    assert_eq!(document(message, 7).unwrap(), Document::EMPTY);
                    found += 1;
                }
            }
            assert_eq!(found, 3, "{cut}");
        }
    }

    #[test]
    fn what_was_not_agreed_is_refused() {
        let refused = |bytes: &[u8]| {
            let (mut inbound, mut bytes) = (Inbound::default(), bytes);
            let result = inbound.next(&mut bytes).and_then(|message| document(message.unwrap(), 7).map(|_| ()));
            result.unwrap_err().message
        };
        assert!(refused(&message(2, &EMPTY)).contains("flags"));
        assert!(refused(&message(4, &EMPTY)).contains("flags"));
        assert!(refused(&message(0, b"\x06\0\0\0\0")).contains("not BSON"));
        assert!(refused(&message(0, b"\x05\0\0\0\0\0")).contains("several sections"));
        assert!(refused(b"HTTP/1.1 400 Bad Request\r\n").contains("not a message of MongoDB's protocol"));
        let mut other = message(0, &EMPTY);
        other[8] = 8;
        assert!(refused(&other).contains("another request"));
    }

    #[test]
    fn an_announced_length_allocates_nothing() {
        for (length, trusted) in [(u32::MAX, true), (0, true), (1 << 30, true), (1 << 21, false)] {
            let mut bytes = message(0, &EMPTY);
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            let mut inbound = Inbound { trusted, ..Inbound::default() };
            assert!(inbound.next(&mut &bytes[..]).is_err(), "{length}");
        }
        let mut bytes = message(0, &EMPTY);
        bytes[..4].copy_from_slice(&40_000_000_u32.to_le_bytes());
        let mut inbound = Inbound { trusted: true, ..Inbound::default() };
        assert_eq!(inbound.next(&mut &bytes[..]), Ok(None));
        assert!(inbound.held.capacity() < 1000);
    }
}

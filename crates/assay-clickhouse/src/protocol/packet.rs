//! Integers and strings of the protocol, and the packets that we send.
//!
//! Packets have no length: whether one is complete is only known once it was read. A reader therefore reports that
//! bytes are missing, and reads the packet again when more have arrived; blocks, which may be large, remember how far
//! they were read (see `block`).

use assay_seam::StatementError;

/// The revision of the protocol that we speak: with the patch number of the server's version, before types that would
/// need more than one form (LowCardinality). Servers send to a client what it knows.
pub(super) const REVISION: u64 = 54404;
/// Older servers are refused: the first revision with all fields that we send.
pub(super) const REVISION_MIN: u64 = 54401;

/// More than any name, message or value of a server that means well.
const STRING_MAX: u64 = 1 << 30;

const CLIENT: &[u8] = b"assay";

/// Why nothing was read.
#[derive(Debug)]
pub(super) enum Unread {
    /// More bytes are needed.
    Incomplete,
    /// The peer broke the protocol, or sent what we cannot read.
    Broken(Box<StatementError>),
}

pub(super) type Read<T> = Result<T, Unread>;

/// The error for a peer that breaks the protocol; `what` fits after "the server …".
pub(super) fn violation(what: &str) -> Box<StatementError> {
    assay_wire::violation(format!("the server broke the ClickHouse protocol: it {what}"))
}

pub(super) fn broken<T>(what: &str) -> Read<T> {
    Err(Unread::Broken(violation(what)))
}

/// Reads from what has arrived.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    /// 0 <= at <= bytes.len()
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Reader<'a> {
        Reader { bytes, at }
    }

    pub(super) fn take(&mut self, length: usize) -> Read<&'a [u8]> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len()).ok_or(Unread::Incomplete)?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Read<u8> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn int32(&mut self) -> Read<i32> {
        Ok(i32::from_le_bytes(self.take(4)?.try_into().expect("4 bytes")))
    }

    /// Seven bits per byte, the lowest first.
    pub(super) fn number(&mut self) -> Read<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        broken("sent a number of more than 64 bits")
    }

    pub(super) fn string(&mut self) -> Read<&'a [u8]> {
        let length = self.number()?;
        if length > STRING_MAX {
            return broken("sent a text of more than 1 GiB");
        }
        self.take(length as usize)
    }

    pub(super) fn text(&mut self) -> Read<String> {
        Ok(String::from_utf8_lossy(self.string()?).into_owned())
    }
}

pub(super) fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(super) fn write_string(bytes: &[u8], out: &mut Vec<u8>) {
    write_number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// The first packet: who we are.
pub(super) fn write_hello(database: &str, user: &str, password: &str, out: &mut Vec<u8>) {
    out.push(0);
    write_version(out);
    for text in [database, user, password] {
        write_string(text.as_bytes(), out);
    }
}

/// Our name, the version 1.0, and the revision.
fn write_version(out: &mut Vec<u8>) {
    write_string(CLIENT, out);
    for number in [1, 0, REVISION] {
        write_number(number, out);
    }
}

/// A query, and the empty block that ends the list of external tables.
pub(super) fn write_query(text: &[u8], out: &mut Vec<u8>) {
    const INITIAL: u8 = 1;
    const TCP: u8 = 1;
    const COMPLETE: u64 = 2;
    out.push(1);
    // The server chooses the query's id.
    write_string(b"", out);
    out.push(INITIAL);
    for text in [&b""[..], b"", b"0.0.0.0:0"] {
        write_string(text, out);
    }
    out.push(TCP);
    // User and host of the operating system are nobody's business.
    for text in [&b""[..], b""] {
        write_string(text, out);
    }
    write_version(out);
    // The quota's key, and the patch number of our version.
    write_string(b"", out);
    write_number(0, out);
    // No settings.
    write_string(b"", out);
    write_number(COMPLETE, out);
    // No compression.
    write_number(0, out);
    write_string(text, out);
    write_block_head(0, 0, out);
}

/// What comes before a block's columns. Without any, the block ends what is sent.
pub(super) fn write_block_head(columns: usize, rows: usize, out: &mut Vec<u8>) {
    out.push(2);
    write_string(b"", out);
    // Field 1: is not an overflow; field 2: of no bucket; end.
    out.extend_from_slice(&[1, 0, 2]);
    out.extend_from_slice(&(-1i32).to_le_bytes());
    out.push(0);
    write_bare_head(columns, rows, out);
}

/// The same in the format Native.
pub(super) fn write_bare_head(columns: usize, rows: usize, out: &mut Vec<u8>) {
    write_number(columns as u64, out);
    write_number(rows as u64, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            write_number(number, &mut out);
            assert_eq!(Reader::new(&out, 0).number().unwrap(), number);
            let all_but_one = &out[..out.len() - 1];
            assert!(matches!(Reader::new(all_but_one, 0).number(), Err(Unread::Incomplete)), "{number}");
        }
        assert!(matches!(Reader::new(&[0xFF; 11], 0).number(), Err(Unread::Broken(_))));
    }
}

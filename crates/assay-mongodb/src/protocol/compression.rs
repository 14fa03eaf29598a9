//! Compressed messages: what follows the header is packed, with a second small header before it.
//!
//! Sources: MongoDB manual, "MongoDB Wire Protocol", OP_COMPRESSED; RFC 1950 (zlib), RFC 8878 (zstd), Google's
//! description of snappy's format.

use std::cell::RefCell;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::protocol::message::{HEADER_LEN, LENGTH_MAX, OP_COMPRESSED, OP_MSG};

/// As drivers use it.
const ZSTD_LEVEL: i32 = 3;
/// Header, the opcode of the message within, its length without header, and the number of the compressor.
pub(super) const PREFIX_LEN: usize = HEADER_LEN + 9;

/// How messages are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compressor {
    Snappy,
    /// With a level from 0 to 9.
    Zlib(u32),
    Zstd,
}

impl Compressor {
    /// As in URLs and `hello`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Compressor::Snappy => "snappy",
            Compressor::Zlib(_) => "zlib",
            Compressor::Zstd => "zstd",
        }
    }

    const fn number(self) -> u8 {
        match self {
            Compressor::Snappy => 1,
            Compressor::Zlib(_) => 2,
            Compressor::Zstd => 3,
        }
    }
}

/// What the compressors need, which is large: once per thread, not per connection.
#[derive(Default)]
struct Tools {
    snappy: Option<snap::raw::Encoder>,
    zlib: Option<(u32, Compress)>,
    unzlib: Option<Decompress>,
    zstd: Option<zstd::bulk::Compressor<'static>>,
    unzstd: Option<zstd::bulk::Decompressor<'static>>,
    packed: Vec<u8>,
}

thread_local! {
    static TOOLS: RefCell<Tools> = RefCell::default();
}

/// Bytes of memory kept from one message to the next.
const KEEP_MAX: usize = 1 << 20;

/// Compresses the message from `start` to the end of `out`.
pub(super) fn compress(compressor: Compressor, start: usize, out: &mut Vec<u8>) {
    TOOLS.with_borrow_mut(|tools| {
        let body = start + HEADER_LEN;
        let plain = out.len() - body;
        let length = tools.pack(compressor, &out[body..]);
        out.truncate(body);
        out.extend_from_slice(&OP_MSG.to_le_bytes());
        out.extend_from_slice(&(plain as u32).to_le_bytes());
        out.push(compressor.number());
        out.extend_from_slice(&tools.packed[..length]);
        out[start + 12..body].copy_from_slice(&OP_COMPRESSED.to_le_bytes());
        let length = (out.len() - start) as u32;
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
        tools.packed.truncate(KEEP_MAX);
        tools.packed.shrink_to(KEEP_MAX);
    });
}

impl Tools {
    /// Into `packed`; returns the length there.
    fn pack(&mut self, compressor: Compressor, plain: &[u8]) -> usize {
        let most = match compressor {
            Compressor::Snappy => snap::raw::max_compress_len(plain.len()),
            // Stored blocks have 5 bytes for each 31 KB or more.
            Compressor::Zlib(_) => plain.len() + plain.len() / 1000 + 1024,
            Compressor::Zstd => zstd::zstd_safe::compress_bound(plain.len()),
        };
        if self.packed.len() < most {
            self.packed.resize(most, 0);
        }
        match compressor {
            Compressor::Snappy => {
                let snappy = self.snappy.get_or_insert_with(snap::raw::Encoder::new);
                snappy.compress(plain, &mut self.packed).expect("there is room")
            }
            Compressor::Zlib(level) => {
                let made = || (level, Compress::new(Compression::new(level), true));
                if self.zlib.as_ref().is_none_or(|(of, _)| *of != level) {
                    self.zlib = Some(made());
                }
                let zlib = &mut self.zlib.get_or_insert_with(made).1;
                zlib.reset();
                let status = zlib.compress(plain, &mut self.packed, FlushCompress::Finish);
                assert!(matches!(status, Ok(Status::StreamEnd)), "there is room");
                zlib.total_out() as usize
            }
            Compressor::Zstd => {
                let zstd = self
                    .zstd
                    .get_or_insert_with(|| zstd::bulk::Compressor::new(ZSTD_LEVEL).expect("the level is a usual one"));
                zstd.compress_to_buffer(plain, &mut self.packed[..]).expect("there is room")
            }
        }
    }

    /// Whether this many bytes were packed, all of them.
    fn unpack(&mut self, number: u8, packed: &[u8], plain: &mut [u8]) -> bool {
        match number {
            1 => {
                snap::raw::decompress_len(packed).is_ok_and(|length| length == plain.len())
                    && snap::raw::Decoder::new().decompress(packed, plain).is_ok()
            }
            2 => {
                let unzlib = self.unzlib.get_or_insert_with(|| Decompress::new(true));
                unzlib.reset(true);
                let status = unzlib.decompress(packed, plain, FlushDecompress::Finish);
                matches!(status, Ok(Status::StreamEnd)) && unzlib.total_out() == plain.len() as u64
            }
            3 => {
                let unzstd =
                    self.unzstd.get_or_insert_with(|| zstd::bulk::Decompressor::new().expect("memory for a context"));
                unzstd.decompress_to_buffer(packed, &mut plain[..]).is_ok_and(|length| length == plain.len())
            }
            _ => false,
        }
    }
}

/// Unpacks a whole message that begins with this header into `plain`, as if it had been sent so. Fails with what is
/// wrong with it: "sent …".
pub(super) fn decompress(agreed: Compressor, message: &[u8], plain: &mut Vec<u8>) -> Result<(), &'static str> {
    let word = |at: usize| u32::from_le_bytes(message[at..at + 4].try_into().expect("four bytes were sliced"));
    let (inner, length, number) = (word(HEADER_LEN), word(HEADER_LEN + 4) as usize, message[HEADER_LEN + 8]);
    if inner != OP_MSG {
        return Err("sent a compressed message with something else than a message in it");
    }
    if number != agreed.number() {
        return Err("sent a message with a compression that was not agreed");
    }
    if length > LENGTH_MAX - HEADER_LEN {
        return Err("sent a compressed message that is too large");
    }
    plain.clear();
    plain.extend_from_slice(&((HEADER_LEN + length) as u32).to_le_bytes());
    plain.extend_from_slice(&message[4..12]);
    plain.extend_from_slice(&OP_MSG.to_le_bytes());
    plain.resize(HEADER_LEN + length, 0);
    let is_whole =
        TOOLS.with_borrow_mut(|tools| tools.unpack(number, &message[PREFIX_LEN..], &mut plain[HEADER_LEN..]));
    if is_whole { Ok(()) } else { Err("sent a compressed message that cannot be unpacked") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Compressor; 3] = [Compressor::Snappy, Compressor::Zlib(6), Compressor::Zstd];

    fn message(body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [(HEADER_LEN + body.len()) as u32, 9, 7, OP_MSG] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn what_is_compressed_is_unpacked_again() {
        let noise: Vec<u8> = (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for compressor in ALL.into_iter().chain([Compressor::Zlib(0), Compressor::Zlib(9)]) {
            for body in [&b""[..], b"a", &[7; 5000], &noise] {
                let plain = message(body);
                let (mut packed, mut unpacked) = (b"before".to_vec(), Vec::new());
                packed.extend_from_slice(&plain);
                compress(compressor, 6, &mut packed);
                assert!(body.len() != 5000 || packed.len() < 4000 || compressor == Compressor::Zlib(0));
                decompress(compressor, &packed[6..], &mut unpacked).unwrap();
                assert!(unpacked == plain, "{compressor:?} {}", body.len());
            }
        }
    }

    /// Written by hand after the descriptions of the formats: blocks that are not compressed.
    #[test]
    fn the_formats_are_those_that_are_described() {
        let check = |compressor: Compressor, packed: &[u8]| {
            let mut bytes = message(&[]);
            bytes.extend_from_slice(&OP_MSG.to_le_bytes());
            bytes.extend_from_slice(&3_u32.to_le_bytes());
            bytes.push(compressor.number());
            bytes.extend_from_slice(packed);
            let mut plain = Vec::new();
            decompress(compressor, &bytes, &mut plain).unwrap();
            assert_eq!(plain, message(b"abc"));
        };
        check(Compressor::Snappy, b"\x03\x08abc");
        check(Compressor::Zlib(6), b"\x78\x01\x01\x03\x00\xfc\xffabc\x02\x4d\x01\x27");
        check(Compressor::Zstd, b"\x28\xb5\x2f\xfd\x20\x03\x19\x00\x00abc");
    }

    #[test]
    fn what_cannot_be_unpacked_is_refused() {
        for compressor in ALL {
            let mut good = message(&[7; 500]);
            compress(compressor, 0, &mut good);
            let refused = |bytes: &[u8]| decompress(compressor, bytes, &mut Vec::new()).unwrap_err();
            let with = |at: usize, value: u32| {
                let mut bytes = good.clone();
                bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
                refused(&bytes)
            };
            assert!(with(HEADER_LEN, 2004).contains("something else"));
            for length in [0, 499, 501, 100_000] {
                assert!(with(HEADER_LEN + 4, length).contains("cannot be unpacked"), "{compressor:?} {length}");
            }
            assert!(with(HEADER_LEN + 4, u32::MAX).contains("too large"));
            for cut in PREFIX_LEN..good.len() {
                assert!(refused(&good[..cut]).contains("cannot be unpacked"), "{compressor:?} {cut}");
            }
            let mut other = good.clone();
            other[HEADER_LEN + 8] = 9;
            assert!(refused(&other).contains("not agreed"));
        }
    }
}

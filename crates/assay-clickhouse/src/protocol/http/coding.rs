//! Compressed bodies: gzip (RFC 1952) and zstd (RFC 8878).
//!
//! ClickHouse compresses an answer if `enable_http_compression` is set and the request accepts it, and reads compressed
//! requests in any case. Version 18.16 knows gzip, and answers a zstd request with an error.

use std::io::Write;

use flate2::write::{GzDecoder, GzEncoder};
use zstd::stream::raw::{DParameter, InBuffer, Operation, OutBuffer};

/// How a body is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::protocol) enum Coding {
    #[default]
    Identity,
    Gzip,
    Zstd,
}

/// ClickHouse's own (`http_zlib_compression_level`).
const LEVEL: u32 = 3;
/// Larger windows than any level of a server needs, 16 MiB.
const WINDOW_LOG_MAX: u32 = 24;
/// Bytes that zstd writes at a time.
const PIECE: usize = 1 << 16;

impl Coding {
    /// By its name in a header.
    pub(in crate::protocol) fn of(name: &[u8]) -> Option<Coding> {
        let all = [Coding::Identity, Coding::Gzip, Coding::Zstd];
        all.into_iter().find(|coding| name.eq_ignore_ascii_case(coding.name().as_bytes()))
    }

    pub(in crate::protocol) fn name(self) -> &'static str {
        match self {
            Coding::Identity => "identity",
            Coding::Gzip => "gzip",
            Coding::Zstd => "zstd",
        }
    }

    /// Compresses a body; `None`: it stays as it is.
    pub(super) fn encode(self, body: &[u8]) -> Option<Vec<u8>> {
        match self {
            Coding::Identity => None,
            Coding::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(LEVEL));
                encoder.write_all(body).and_then(|()| encoder.finish()).ok()
            }
            Coding::Zstd => zstd::bulk::compress(body, LEVEL as i32).ok(),
        }
    }
}

/// Decompresses a body piece by piece.
pub(super) enum Decoder {
    Gzip(Box<GzDecoder<Vec<u8>>>),
    /// `done`: a frame has just ended.
    Zstd {
        decoder: zstd::stream::raw::Decoder<'static>,
        done: bool,
    },
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decoder")
    }
}

impl Decoder {
    /// `None`: there is nothing to decompress.
    pub(super) fn new(coding: Coding) -> Option<Decoder> {
        match coding {
            Coding::Identity => None,
            Coding::Gzip => Some(Decoder::Gzip(Box::new(GzDecoder::new(Vec::new())))),
            Coding::Zstd => {
                let mut decoder = zstd::stream::raw::Decoder::new().ok()?;
                decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).ok()?;
                Some(Decoder::Zstd { decoder, done: true })
            }
        }
    }

    /// Appends what these bytes become; the last of it may come later. An error fits after "the server …".
    pub(super) fn read(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Decoder::Gzip(decoder) => {
                while !bytes.is_empty() {
                    match decoder.write(bytes) {
                        Ok(0) => return Err("sent more than its compressed body".to_owned()),
                        Ok(read) => bytes = &bytes[read..],
                        Err(error) => return Err(format!("sent a body that is not gzip: {error}")),
                    }
                }
                out.append(decoder.get_mut());
            }
            Decoder::Zstd { decoder, done } => {
                let mut input = InBuffer::around(bytes);
                loop {
                    let start = out.len();
                    out.resize(start + PIECE, 0);
                    let mut output = OutBuffer::around_pos(&mut out[..], start);
                    let result = decoder.run(&mut input, &mut output);
                    let end = output.pos();
                    out.truncate(end);
                    let missing = result.map_err(|error| format!("sent a body that is not zstd: {error}"))?;
                    *done = missing == 0;
                    // A full buffer: the decoder may hold more.
                    if input.pos() == bytes.len() && end < start + PIECE {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// There are no more bytes: appends what is still missing.
    pub(super) fn finish(self, out: &mut Vec<u8>) -> Result<(), String> {
        let whole = match self {
            Decoder::Gzip(mut decoder) => {
                let whole = decoder.try_finish().is_ok();
                out.append(decoder.get_mut());
                whole
            }
            Decoder::Zstd { done, .. } => done,
        };
        if whole { Ok(()) } else { Err("cut a compressed body off".to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_read_as_they_were_compressed() {
        let body: Vec<u8> = (0..200_000u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
        for coding in [Coding::Gzip, Coding::Zstd] {
            let small = coding.encode(&body).unwrap();
            assert!(small.len() < body.len() / 2);
            for piece in [1, 7, 4096, small.len()] {
                let (mut decoder, mut out) = (Decoder::new(coding).unwrap(), Vec::new());
                small.chunks(piece).for_each(|piece| decoder.read(piece, &mut out).unwrap());
                decoder.finish(&mut out).unwrap();
                assert!(out == body, "{coding:?} in pieces of {piece}");
            }
            let (mut decoder, mut out) = (Decoder::new(coding).unwrap(), Vec::new());
            decoder.read(&small[..small.len() - 1], &mut out).unwrap();
            assert_eq!(decoder.finish(&mut out).unwrap_err(), "cut a compressed body off");
            let mut decoder = Decoder::new(coding).unwrap();
            assert!(decoder.read(b"Code: 1. DB::Exception: a", &mut out).unwrap_err().contains("that is not"));
        }
    }
}

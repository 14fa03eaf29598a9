//! A histogram as records hold it: HDR V2, deflated and in base64.
//!
//! A day of intervals would fill gigabytes with open histograms, so they stay encoded in memory, too, but neither
//! deflated nor in base64: what is read is inflated and checked once, and its values are then found by walking over a
//! few kilobytes. Limits keep a hostile file from using more memory than the file itself.

use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, Decompress, FlushDecompress, Status};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2Serializer};
use serde::de::Visitor;
use serde::{Deserialize, Serialize};

use crate::bucket::{HDR_BUCKETS, HIGHEST_NS, bounds_of};

/// A histogram as HDR V2, whose copies share their bytes: a header, then the counts of its buckets, with a negative
/// number for several empty ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedHistogram(Arc<[u8]>);

/// Largest V2 payload accepted. Three digits over 64 bits of range need at most 56,320 counts of 9 bytes.
const PAYLOAD_BYTES_MAX: usize = 56_320 * 9;
/// Header of the V2 encoding before its payload.
const HEADER_BYTES: usize = 40;
/// Most significant digits accepted: this format writes 3.
const DIGITS_MAX: u8 = 3;
/// Begins HDR V2.
const V2_COOKIE: [u8; 4] = 0x1c84_9313_u32.to_be_bytes();
/// The header of a histogram with the buckets of `Latencies`, without its length.
const OUR_HEADER: [u8; HEADER_BYTES] = {
    let mut header = [0; HEADER_BYTES];
    header.split_at_mut(4).0.copy_from_slice(&V2_COOKIE);
    header.split_at_mut(12).1.split_at_mut(4).0.copy_from_slice(&(DIGITS_MAX as u32).to_be_bytes());
    header.split_at_mut(16).1.split_at_mut(8).0.copy_from_slice(&1_u64.to_be_bytes());
    header.split_at_mut(24).1.split_at_mut(8).0.copy_from_slice(&HIGHEST_NS.to_be_bytes());
    header.split_at_mut(32).1.copy_from_slice(&1_f64.to_be_bytes());
    header
};
/// Begins the deflated form of V2; its length and the deflated bytes follow.
const DEFLATED_COOKIE: [u8; 4] = 0x1c84_9314_u32.to_be_bytes();

/// Text that is not a histogram.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("histogram is damaged: {0}")]
pub struct BadHistogram(&'static str);

impl EncodedHistogram {
    /// Encodes `histogram`, whose values are nanoseconds with at most 3 significant digits.
    pub fn new(histogram: &Histogram<u64>) -> EncodedHistogram {
        assert!(histogram.sigfig() <= DIGITS_MAX, "the format holds histograms of at most 3 digits");
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(histogram, &mut bytes).expect("writing to memory does not fail");
        EncodedHistogram(bytes.into())
    }

    /// The histogram. It takes a quarter of a megabyte.
    pub fn decode(&self) -> Histogram<u64> {
        Deserializer::new().deserialize(&mut &*self.0).expect("checked when it was made")
    }

    /// The largest value of every bucket that is in use, ascending, and its count.
    pub fn values(&self) -> Vec<(u64, u64)> {
        let mut values = Vec::new();
        self.put_values(&mut values);
        values
    }

    /// Appends them.
    pub(crate) fn put_values(&self, to: &mut Vec<(u64, u64)>) {
        match payload(&self.0) {
            Some(payload) => {
                // Each takes a byte at least.
                to.reserve(payload.len());
                let add = |bucket, count| to.push((bounds_of(bucket).1, count));
                walk(payload, add).expect("checked when it was made");
            }
            None => {
                let histogram = self.decode();
                to.extend(histogram.iter_recorded().map(|one| (one.value_iterated_to(), one.count_at_value())));
            }
        }
    }

    /// A histogram with these counts, of buckets that ascend: the bytes that hdrhistogram would write.
    pub(crate) fn of_buckets(counts: impl Iterator<Item = (usize, u64)>) -> EncodedHistogram {
        let mut bytes = OUR_HEADER.to_vec();
        let mut next = 0;
        for (bucket, count) in counts {
            match (bucket - next) as u64 {
                0 => {}
                1 => put_number(&mut bytes, 0),
                empty => put_number(&mut bytes, 2 * empty - 1),
            }
            put_number(&mut bytes, count.saturating_mul(2));
            next = bucket + 1;
        }
        if next == 0 {
            put_number(&mut bytes, 0);
        }
        EncodedHistogram::with_length(bytes)
    }

    /// The counts of its buckets, encoded; `None`: it has other buckets than ours.
    pub fn counts(&self) -> Option<&[u8]> {
        payload(&self.0)
    }

    /// The histogram with these `counts`; `None`: these are not counts.
    pub fn of_counts(counts: &[u8]) -> Option<EncodedHistogram> {
        if counts.len() > PAYLOAD_BYTES_MAX {
            return None;
        }
        walk(counts, |_, _| ())?;
        Some(EncodedHistogram::with_length([&OUR_HEADER, counts].concat()))
    }

    /// `bytes`: a header without the length, and the rest.
    fn with_length(mut bytes: Vec<u8>) -> EncodedHistogram {
        let length = (bytes.len() - HEADER_BYTES) as u32;
        bytes[4..8].copy_from_slice(&length.to_be_bytes());
        EncodedHistogram(bytes.into())
    }

    /// Deflated, in base64.
    fn text(&self) -> String {
        let mut bytes = DEFLATED_COOKIE.to_vec();
        bytes.extend([0; 4]);
        let mut deflate = flate2::write::ZlibEncoder::new(bytes, Compression::default());
        let mut bytes = deflate.write_all(&self.0).and_then(|()| deflate.finish()).expect("memory takes everything");
        let length = (bytes.len() - 8) as u32;
        bytes[4..8].copy_from_slice(&length.to_be_bytes());
        STANDARD.encode(bytes)
    }
}

impl TryFrom<&str> for EncodedHistogram {
    type Error = BadHistogram;

    fn try_from(text: &str) -> Result<EncodedHistogram, BadHistogram> {
        INFLATER.with_borrow_mut(|inflater| {
            let bytes = inflater.inflate(text)?;
            check(bytes)?;
            INFLATED.set(INFLATED.get() + bytes.len() as u64);
            Ok(EncodedHistogram(bytes.into()))
        })
    }
}

impl Serialize for EncodedHistogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for EncodedHistogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<EncodedHistogram, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = EncodedHistogram;

            fn expecting(&self, to: &mut std::fmt::Formatter) -> std::fmt::Result {
                to.write_str("a string")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<EncodedHistogram, E> {
                EncodedHistogram::try_from(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// Bytes of all histograms that this thread has read from texts so far: a reader of files that mean harm limits them.
pub fn inflated_bytes() -> u64 {
    INFLATED.get()
}

thread_local! {
    static INFLATED: Cell<u64> = const { Cell::new(0) };
    static INFLATER: RefCell<Inflater> = RefCell::new(Inflater {
        inflate: Decompress::new(true),
        deflated: Vec::new(),
        bytes: Vec::new(),
    });
}

/// What inflating needs, kept for the next histogram: a day has hundreds of thousands.
struct Inflater {
    inflate: Decompress,
    deflated: Vec<u8>,
    bytes: Vec<u8>,
}

impl Inflater {
    /// The V2 form in this text. Not left to `Deserializer`, which trusts any length in a header.
    fn inflate(&mut self, text: &str) -> Result<&[u8], BadHistogram> {
        /// Room to begin with.
        const ROOM: usize = 16 << 10;
        self.deflated.clear();
        STANDARD.decode_vec(text, &mut self.deflated).map_err(|_| BadHistogram("not base64"))?;
        let deflated = self.deflated.get(8..).ok_or(BadHistogram("too short"))?;
        self.bytes.resize(self.bytes.len().max(ROOM), 0);
        loop {
            self.inflate.reset(true);
            // Straight into our memory, if it has room for everything.
            let status = self.inflate.decompress(deflated, &mut self.bytes, FlushDecompress::Finish);
            let length = self.inflate.total_out() as usize;
            match status {
                Ok(Status::StreamEnd) => return Ok(&self.bytes[..length]),
                _ if length < self.bytes.len() => return Err(BadHistogram("not deflated")),
                _ if length > HEADER_BYTES + PAYLOAD_BYTES_MAX => return Err(BadHistogram("wrong length")),
                _ => self.bytes.resize(2 * length, 0),
            }
        }
    }
}

/// Whether these bytes are a histogram.
fn check(bytes: &[u8]) -> Result<(), BadHistogram> {
    let word = |at: usize| bytes.get(at..at + 4).map(|four| u32::from_be_bytes(four.try_into().expect("4 bytes")));
    let (Some(length), Some(digits)) = (word(4), word(12)) else { return Err(BadHistogram("too short")) };
    if Some(length as usize) != bytes.len().checked_sub(HEADER_BYTES) || length as usize > PAYLOAD_BYTES_MAX {
        return Err(BadHistogram("wrong length"));
    }
    if digits > u32::from(DIGITS_MAX) {
        return Err(BadHistogram("too many significant digits"));
    }
    let found = match payload(bytes) {
        Some(payload) => walk(payload, |_, _| ()),
        None => Deserializer::new().deserialize::<u64, _>(&mut &*bytes).ok().map(drop),
    };
    found.ok_or(BadHistogram("not HDR V2"))
}

/// The counts of a histogram with the buckets of `Latencies`; `None`: it has others.
fn payload(bytes: &[u8]) -> Option<&[u8]> {
    let (header, payload) = bytes.split_at_checked(HEADER_BYTES)?;
    let has_our_buckets = header[..4] == OUR_HEADER[..4] && header[8..] == OUR_HEADER[8..];
    has_our_buckets.then_some(payload)
}

/// Passes on every bucket in use, ascending, with its count; `None`: these are not counts. Numbers are zigzag.
fn walk(payload: &[u8], mut take: impl FnMut(usize, u64)) -> Option<()> {
    let (mut bytes, mut bucket) = (payload.iter(), 0_usize);
    while let Some(first) = bytes.next() {
        let number = if *first < 0x80 { u64::from(*first) } else { long_number(*first, &mut bytes)? };
        let number = (number >> 1) as i64 ^ -((number & 1) as i64);
        if number < 0 {
            bucket = bucket.checked_add(usize::try_from(number.unsigned_abs()).ok()?)?;
            continue;
        }
        if number > 0 {
            (bucket < HDR_BUCKETS).then(|| take(bucket, number as u64))?;
        }
        bucket = bucket.checked_add(1)?;
    }
    Some(())
}

/// A number of more than one byte: LEB128 of at most 9 bytes, the last of which is taken whole.
fn long_number(first: u8, bytes: &mut std::slice::Iter<u8>) -> Option<u64> {
    let (mut number, mut last, mut shift) = (u64::from(first & 0x7f), first, 7);
    while last & 0x80 != 0 && shift < 64 {
        last = *bytes.next()?;
        let is_ninth = shift == 56;
        number |= u64::from(if is_ninth { last } else { last & 0x7f }) << shift;
        shift += if is_ninth { 8 } else { 7 };
    }
    Some(number)
}

fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    for _ in 0..8 {
        if number < 0x80 {
            break;
        }
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::bucket_of;

    /// Encoded by hdrhistogram: values with their counts.
    fn encoded(values: &[(u64, u64)]) -> EncodedHistogram {
        let mut histogram = Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS_MAX).unwrap();
        values.iter().for_each(|(value, count)| histogram.saturating_record_n(*value, *count));
        EncodedHistogram::new(&histogram)
    }

    /// As the deserializer of hdrhistogram has it.
    fn theirs(of: &EncodedHistogram) -> Vec<(u64, u64)> {
        of.decode().iter_recorded().map(|one| (one.value_iterated_to(), one.count_at_value())).collect()
    }

    #[test]
    fn values_are_those_of_the_histogram_whatever_its_header() {
        let mut histograms = Vec::new();
        for (low, high, digits) in [(1, HIGHEST_NS, 3), (1, HIGHEST_NS, 2), (1000, HIGHEST_NS, 3), (1, u64::MAX, 3)] {
            let mut histogram = Histogram::new_with_bounds(low, high, digits).unwrap();
            histograms.push(histogram.clone());
            for at in 0..40 {
                histogram.saturating_record_n(3_u64.pow(at), 1 << (at * 3 / 2));
                histograms.push(histogram.clone());
            }
            histogram.saturating_record_n(HIGHEST_NS, 1 << 61);
            histograms.push(histogram);
        }
        for histogram in histograms {
            let encoded = EncodedHistogram::new(&histogram);
            assert_eq!(encoded.values(), theirs(&encoded));
            let text = serde_json::to_string(&encoded).unwrap();
            let mut deflated = Vec::new();
            hdrhistogram::serialization::V2DeflateSerializer::new().serialize(&histogram, &mut deflated).unwrap();
            assert_eq!(text, format!("\"{}\"", STANDARD.encode(deflated)), "the form of earlier versions");
            assert_eq!(serde_json::from_str::<EncodedHistogram>(&text).unwrap(), encoded);
        }
    }

    #[test]
    fn counts_by_bucket_are_encoded_as_by_hdrhistogram() {
        let lists: [&[(u64, u64)]; 6] = [
            &[],
            &[(0, 1)],
            &[(1, 1), (2, 5), (4, 70_000)],
            &[(3, 1 << 40), (2047, 1), (2048, 1), (2050, 2), (9_000_000, 1)],
            &[(HIGHEST_NS, 1 << 61)],
            &[(0, 9), (1, 1), (1_000_000, 3), (HIGHEST_NS - 1, 1)],
        ];
        for list in lists {
            let by_bucket = list.iter().map(|(value, count)| (bucket_of(*value), *count));
            assert_eq!(EncodedHistogram::of_buckets(by_bucket), encoded(list), "{list:?}");
        }
    }

    #[test]
    fn counts_are_accepted_as_by_hdrhistogram() {
        let good = encoded(&[(70_000, 9)]).0;
        let with = |payload: &[u8]| {
            let mut bytes = good[..HEADER_BYTES].to_vec();
            bytes[4..8].copy_from_slice(&(payload.len() as u32).to_be_bytes());
            bytes.extend_from_slice(payload);
            bytes
        };
        let zeros = |number: u32| {
            let mut bytes = vec![0; 9];
            let mut rest = u64::from(number) * 2 - 1;
            let mut length = 0;
            while rest >= 0x80 {
                bytes[length] = rest as u8 | 0x80;
                (rest, length) = (rest >> 7, length + 1);
            }
            bytes[length] = rest as u8;
            bytes.truncate(length + 1);
            bytes
        };
        let payloads: [Vec<u8>; 9] = [
            vec![],
            vec![0, 0, 2, 0],
            vec![0x80],
            vec![0xff; 8],
            [&[0xff; 8][..], &[0x7f]].concat(),
            [&[0xfe; 8][..], &[0xff, 2]].concat(),
            [zeros(33_791), vec![2]].concat(),
            [zeros(33_792), vec![2]].concat(),
            [zeros(33_792), vec![0, 0]].concat(),
        ];
        for payload in payloads {
            let bytes = with(&payload);
            let read = Deserializer::new().deserialize::<u64, _>(&mut &*bytes);
            assert_eq!(check(&bytes).is_ok(), read.is_ok(), "{payload:x?}");
            if read.is_ok() {
                let encoded = EncodedHistogram(bytes.into());
                assert_eq!(encoded.values(), theirs(&encoded), "{payload:x?}");
            }
        }
    }

    #[test]
    fn a_histogram_whose_header_lies_is_refused() {
        let mut inner = Vec::new();
        let good = encoded(&[(5_000, 1)]);
        let good = STANDARD.decode(good.text()).unwrap();
        std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(&good[8..]), &mut inner).unwrap();
        let refuse = |inner: &[u8]| {
            let mut bytes = good[..8].to_vec();
            let mut deflate = flate2::write::ZlibEncoder::new(&mut bytes, flate2::Compression::fast());
            std::io::Write::write_all(&mut deflate, inner).unwrap();
            deflate.finish().unwrap();
            let text = STANDARD.encode(bytes);
            EncodedHistogram::try_from(&*text).unwrap_err().to_string()
        };
        let with = |at: usize, bytes: &[u8]| {
            let mut changed = inner.clone();
            changed[at..at + bytes.len()].copy_from_slice(bytes);
            changed
        };
        let refusals = [
            refuse(&with(0, &[9])),
            refuse(&with(4, &u32::MAX.to_be_bytes())),
            refuse(&with(12, &5u32.to_be_bytes())),
            refuse(&with(16, &u64::MAX.to_be_bytes())),
            refuse(&inner[..20]),
            refuse(&[0; 2_000_000]),
        ];
        insta::assert_snapshot!(refusals.join("\n"), @r#"
        histogram is damaged: not HDR V2
        histogram is damaged: wrong length
        histogram is damaged: too many significant digits
        histogram is damaged: not HDR V2
        histogram is damaged: wrong length
        histogram is damaged: wrong length
        "#);
    }
}

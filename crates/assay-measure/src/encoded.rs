//! A histogram as text, as records hold it.
//!
//! Histograms stay encoded until they are needed: a day of intervals would otherwise fill gigabytes. They are decoded
//! once when read, so that later code can rely on them. Limits keep a hostile file from using more memory than the file
//! itself.

use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// A histogram as HDR V2 (deflate), base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EncodedHistogram(String);

/// Highest value of a histogram; values above it are only counted.
pub(crate) const HIGHEST_NS: u64 = 3_600_000_000_000;

/// Largest decoded V2 payload accepted. Three digits over 64 bits of range need at most 56,320 counts of 9 bytes.
const PAYLOAD_BYTES_MAX: u64 = 56_320 * 9;
/// Header of the V2 encoding before its payload.
const HEADER_BYTES: usize = 40;
/// Most significant digits accepted: this format writes 3.
const DIGITS_MAX: u8 = 3;

/// Text that is not a histogram.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("histogram is damaged: {0}")]
pub struct BadHistogram(&'static str);

impl EncodedHistogram {
    /// Encodes a histogram of these values: nanoseconds up to an hour, with their counts, kept with three digits.
    pub fn of(counts: impl Iterator<Item = (u64, u64)>) -> EncodedHistogram {
        let mut histogram = Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS_MAX).expect("the bounds are in range");
        for (value, count) in counts {
            histogram.saturating_record_n(value, count);
        }
        EncodedHistogram::new(&histogram)
    }

    /// Encodes `histogram`, whose values are nanoseconds with at most 3 significant digits.
    pub fn new(histogram: &Histogram<u64>) -> EncodedHistogram {
        assert!(histogram.sigfig() <= DIGITS_MAX, "the format holds histograms of at most 3 digits");
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(histogram, &mut bytes).expect("writing to memory does not fail");
        EncodedHistogram(STANDARD.encode(bytes))
    }

    /// The histogram.
    pub fn decode(&self) -> Histogram<u64> {
        decode(&self.0).expect("checked when it was made")
    }
}

impl TryFrom<String> for EncodedHistogram {
    type Error = BadHistogram;

    fn try_from(text: String) -> Result<EncodedHistogram, BadHistogram> {
        decode(&text)?;
        Ok(EncodedHistogram(text))
    }
}

impl From<EncodedHistogram> for String {
    fn from(encoded: EncodedHistogram) -> String {
        encoded.0
    }
}

/// Inflates here instead of in `Deserializer`, which trusts any length in a header.
fn decode(text: &str) -> Result<Histogram<u64>, BadHistogram> {
    let bytes = STANDARD.decode(text).map_err(|_| BadHistogram("not base64"))?;
    let deflated = bytes.get(8..).ok_or(BadHistogram("too short"))?;
    let mut inner = Vec::new();
    flate2::read::ZlibDecoder::new(deflated)
        .take(HEADER_BYTES as u64 + PAYLOAD_BYTES_MAX + 1)
        .read_to_end(&mut inner)
        .map_err(|_| BadHistogram("not deflated"))?;
    let word = |at: usize| inner.get(at..at + 4).map(|four| u32::from_be_bytes(four.try_into().expect("4 bytes")));
    let (Some(payload), Some(digits)) = (word(4), word(12)) else { return Err(BadHistogram("too short")) };
    if Some(payload as usize) != inner.len().checked_sub(HEADER_BYTES) {
        return Err(BadHistogram("wrong length"));
    }
    if digits > u32::from(DIGITS_MAX) {
        return Err(BadHistogram("too many significant digits"));
    }
    Deserializer::new().deserialize(&mut inner.as_slice()).map_err(|_| BadHistogram("not HDR V2"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_whose_header_lies_is_refused() {
        let mut inner = Vec::new();
        let good = EncodedHistogram::of([(5_000, 1)].into_iter());
        let good = STANDARD.decode(String::from(good)).unwrap();
        std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(&good[8..]), &mut inner).unwrap();
        let refuse = |inner: &[u8]| {
            let mut bytes = good[..8].to_vec();
            let mut deflate = flate2::write::ZlibEncoder::new(&mut bytes, flate2::Compression::fast());
            std::io::Write::write_all(&mut deflate, inner).unwrap();
            deflate.finish().unwrap();
            let text = STANDARD.encode(bytes);
            EncodedHistogram::try_from(text).unwrap_err().to_string()
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

//! The buckets of distributions: those of an HDR histogram of nanoseconds up to an hour, with three digits.

/// Highest value of a histogram; values above it are only counted.
pub(crate) const HIGHEST_NS: u64 = 3_600_000_000_000;
/// Values below this have a bucket each; above, the width of a bucket is less than a thousandth of its values.
const EXACT: u64 = 1 << (HALF_BITS + 1);
/// Two to this power is the number of buckets between two powers of two.
const HALF_BITS: u32 = 10;
/// Total number of buckets.
pub(crate) const BUCKETS: usize = bucket_of(HIGHEST_NS) + 1;
/// An HDR histogram has room for whole powers of two.
pub(crate) const HDR_BUCKETS: usize = BUCKETS.next_multiple_of(1 << HALF_BITS);

/// The bucket of a value.
#[inline]
pub(crate) const fn bucket_of(value_ns: u64) -> usize {
    let shift = (value_ns | (EXACT - 1)).ilog2() - HALF_BITS;
    ((shift as usize) << HALF_BITS) + (value_ns >> shift) as usize
}

/// The lowest and the highest value of a bucket.
#[inline]
pub(crate) fn bounds_of(bucket: usize) -> (u64, u64) {
    let shift = (bucket >> HALF_BITS).saturating_sub(1);
    let lead = (bucket - (shift << HALF_BITS)) as u64;
    (lead << shift, ((lead + 1) << shift) - 1)
}

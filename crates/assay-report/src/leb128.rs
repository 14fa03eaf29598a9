//! LEB128: a number in as few bytes as it needs, seven bits in each, the lowest first.

/// Appends `number`.
#[inline]
pub(crate) fn write(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number that `write` has written; `None`: the bytes end before it does.
#[inline]
pub(crate) fn read<'a>(bytes: &mut impl Iterator<Item = &'a u8>) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = *bytes.next()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
        shift += 7;
    }
}

//! Integers as text, where statements are written.

/// Appends an integer in decimal. Allocates nothing if `out` has room.
pub fn write_decimal(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        start -= 1;
        digits[start] = b'-';
    }
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_with_all_their_digits() {
        for value in [0, 1, -1, 10, 1_234_567_890, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            write_decimal(value, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }
}

//! The scripts installed by sysbench 1.0.20, by name and checksum, to detect edited ones.
//!
//! Only checksums of the files in Debian's package; no text of theirs is here. Other versions count as edited.

/// Name without `.lua`, and `sum` of the file.
const ORIGINALS: [(&str, u64); 12] = [
    ("bulk_insert", 0xac21_2474_82f0_395b),
    ("oltp_common", 0xc728_ee92_7d16_f91c),
    ("oltp_delete", 0x24f2_f331_c678_79d2),
    ("oltp_insert", 0x956f_2645_2cfe_9e55),
    ("oltp_point_select", 0xfd45_67bf_c485_6ddf),
    ("oltp_read_only", 0xe473_3379_b3bb_bcf7),
    ("oltp_read_write", 0x0c91_cd9c_593e_d2d6),
    ("oltp_update_index", 0x8a91_1f49_cd08_0c28),
    ("oltp_update_non_index", 0x25c7_625d_a6d4_0caa),
    ("oltp_write_only", 0x7f43_56bf_0add_3852),
    ("select_random_points", 0x3dcf_8a89_8d89_71d2),
    ("select_random_ranges", 0x111f_189c_4ab5_d280),
];

/// Whether no script in a folder was edited: `read` returns the text of the script with a given name, if it exists.
pub fn are_original(read: impl Fn(&str) -> Option<Vec<u8>>) -> bool {
    ORIGINALS.iter().all(|(name, original)| read(name).is_none_or(|text| sum(&text) == *original))
}

/// FNV-1a, 64 bits (Fowler, Noll and Vo): distinguishes an edited file from the original, but does not prevent forgery.
fn sum(text: &[u8]) -> u64 {
    text.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_script_is_told_from_the_original_and_an_absent_one_changes_nothing() {
        assert_eq!(sum(b"foobar"), 0x8594_4171_f739_67e8); // from the authors' test vectors
        assert!(are_original(|_| None));
        assert!(!are_original(|name| (name == "oltp_common").then(|| b"-- mine".to_vec())));
    }
}

//! `SHA256SUMS`, for `sha256sum --check`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// Writes the checksums of `files` to `to`, and returns that.
pub(super) fn write(files: &[PathBuf], to: &Path) -> Result<PathBuf> {
    let mut text = String::new();
    for file in files {
        let name = file.file_name().context("it is a file")?.to_string_lossy();
        text += &format!("{}  {name}\n", of(&fs::read(file)?));
    }
    fs::write(to, text)?;
    Ok(to.to_owned())
}

/// The SHA-256 in hexadecimal digits.
pub(super) fn of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_nothing_is_the_known_one() {
        assert_eq!(of(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}

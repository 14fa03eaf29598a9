//! The few fields of an X.509 certificate that rustls does not expose.
//!
//! webpki refuses certificates of version 1, which `openssl x509 -req` creates and many database servers therefore
//! have, and exposes neither the signature's algorithm (for channel binding) nor whether a certificate signed itself.
//! This parser reads just what is needed for those, strictly forward, and returns `None` for anything unusual. It
//! verifies nothing.
//!
//! Why not the crate x509-cert: it copies all names and extensions, refuses serial numbers of more than 21 bytes, which
//! a home-made certificate of a database may have, and returns the bytes of issuer, subject and key only by encoding
//! them again.

use std::time::{SystemTime, UNIX_EPOCH};

/// Slices of a certificate in DER.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Certificate<'a> {
    pub(crate) issuer: &'a [u8],
    pub(crate) subject: &'a [u8],
    /// The whole SubjectPublicKeyInfo, including tag and length.
    pub(crate) key: &'a [u8],
    /// The key's AlgorithmIdentifier, without tag and length.
    pub(crate) key_algorithm: &'a [u8],
    /// The key itself.
    pub(crate) key_bits: &'a [u8],
    /// `YYYYMMDDhhmmss`, UTC.
    not_before: [u8; 14],
    not_after: [u8; 14],
    /// The signature's AlgorithmIdentifier, without tag and length.
    pub(crate) signature_algorithm: &'a [u8],
    pub(crate) signature: &'a [u8],
    /// What was signed, including tag and length.
    pub(crate) signed: &'a [u8],
    version_1: bool,
    der: &'a [u8],
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OID: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// Context-specific, constructed, number 0: a certificate's version, the hash of RSA-PSS.
const CONTEXT_0: u8 = 0xa0;

/// 1.2.840.113549.1.1.1: rsaEncryption, with its parameters, NULL.
const RSA: [u8; 13] = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];

impl<'a> Certificate<'a> {
    /// Length of an RSA key in bits; `None`: it is of another kind. Source: RFC 8017, A.1.1.
    pub(crate) fn rsa_bits(&self) -> Option<usize> {
        if self.key_algorithm != RSA {
            return None;
        }
        let modulus = Reader(Reader(self.key_bits).take(SEQUENCE)?).take(INTEGER)?;
        let first = modulus.iter().position(|byte| *byte != 0)?;
        Some((modulus.len() - first) * 8 - modulus[first].leading_zeros() as usize)
    }

    /// Source: RFC 5280 §4.1.
    pub(crate) fn parse(der: &'a [u8]) -> Option<Certificate<'a>> {
        let mut outer = Reader(Reader(der).take(SEQUENCE)?);
        let before = outer.0;
        let mut inner = Reader(outer.take(SEQUENCE)?);
        let signed = &before[..before.len() - outer.0.len()];
        let signature_algorithm = outer.take(SEQUENCE)?;
        let signature = outer.take(BIT_STRING)?.strip_prefix(&[0])?;
        let version_1 = inner.0.first() != Some(&CONTEXT_0);
        if !version_1 {
            inner.take(CONTEXT_0)?;
        }
        inner.take(INTEGER)?;
        inner.take(SEQUENCE)?;
        let issuer = inner.take(SEQUENCE)?;
        let mut validity = Reader(inner.take(SEQUENCE)?);
        let (not_before, not_after) = (validity.time()?, validity.time()?);
        let subject = inner.take(SEQUENCE)?;
        let before_key = inner.0;
        let mut key = Reader(inner.take(SEQUENCE)?);
        let key_algorithm = key.take(SEQUENCE)?;
        // The first byte counts unused bits: a key has none.
        let key_bits = key.take(BIT_STRING)?.strip_prefix(&[0])?;
        Some(Certificate {
            issuer,
            subject,
            key: &before_key[..before_key.len() - inner.0.len()],
            key_algorithm,
            key_bits,
            not_before,
            not_after,
            signature_algorithm,
            signature,
            signed,
            version_1,
            der,
        })
    }

    /// The version before extensions, and so before alternative names.
    pub(crate) fn is_version_1(&self) -> bool {
        self.version_1
    }

    pub(crate) fn is_self_issued(&self) -> bool {
        self.issuer == self.subject
    }

    pub(crate) fn is_expired(&self, now: SystemTime) -> bool {
        digits(now) > self.not_after
    }

    pub(crate) fn is_not_valid_yet(&self, now: SystemTime) -> bool {
        digits(now) < self.not_before
    }

    /// Channel binding data `tls-server-end-point`: the certificate's hash by the hash function of its signature, but
    /// SHA-256 in place of MD5 and SHA-1. `None` if the signature has no single hash function (Ed25519), as in libpq,
    /// or one that we cannot compute (SHA-224, SHA-3). Source: RFC 5929 §4.1.
    pub(crate) fn server_end_point(&self) -> Option<Vec<u8>> {
        let mut algorithm = Reader(self.signature_algorithm);
        let oid = algorithm.take(OID)?;
        let hash = match oid {
            RSA_PSS => Reader(algorithm.take(SEQUENCE)?).hash_of_pss()?,
            oid => SIGNATURES.iter().find(|(known, _)| *known == oid)?.1,
        };
        Some(ring::digest::digest(hash.algorithm(), self.der).as_ref().to_vec())
    }
}

#[derive(Clone, Copy, Debug)]
enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    fn algorithm(self) -> &'static ring::digest::Algorithm {
        match self {
            Hash::Sha256 => &ring::digest::SHA256,
            Hash::Sha384 => &ring::digest::SHA384,
            Hash::Sha512 => &ring::digest::SHA512,
        }
    }
}

/// 1.2.840.113549.1.1.10, RFC 4055 §3.1
const RSA_PSS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 10];

const SIGNATURES: &[(&[u8], Hash)] = &[
    // 1.2.840.113549.1.1: with RSA, RFC 8017 appendix C. MD5, SHA-1, SHA-256, SHA-384, SHA-512.
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4], Hash::Sha256),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5], Hash::Sha256),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11], Hash::Sha256),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12], Hash::Sha384),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13], Hash::Sha512),
    // 1.2.840.10045.4: with ECDSA, RFC 5758 §3.2. SHA-1, SHA-256, SHA-384, SHA-512.
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1], Hash::Sha256),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2], Hash::Sha256),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3], Hash::Sha384),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4], Hash::Sha512),
];

const HASHES: &[(&[u8], Hash)] = &[
    // 1.3.14.3.2.26: SHA-1. 2.16.840.1.101.3.4.2: SHA-256, SHA-384, SHA-512. RFC 8017 appendix B.1.
    (&[0x2b, 14, 3, 2, 26], Hash::Sha256),
    (&[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1], Hash::Sha256),
    (&[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 2], Hash::Sha384),
    (&[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 3], Hash::Sha512),
];

/// The rest of some DER data.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The content of the next element, which must have this tag.
    fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_first()?;
        let (length, rest) = rest.split_first()?;
        let (length, rest) = match *length {
            short @ 0..=0x7f => (usize::from(short), rest),
            long @ 0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(long - 0x80))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        (*first == tag).then_some(content)
    }

    /// A time as `YYYYMMDDhhmmss`. UTCTime's two-digit years are 1950 … 2049: RFC 5280 §4.1.2.5.1.
    fn time(&mut self) -> Option<[u8; 14]> {
        let short = self.0.first() == Some(&UTC_TIME);
        let text = self.take(if short { UTC_TIME } else { GENERALIZED_TIME })?.strip_suffix(b"Z")?;
        let mut time = [0; 14];
        if short {
            time[..2].copy_from_slice(if *text.first()? >= b'5' { b"19" } else { b"20" });
            time[2..].copy_from_slice(text.get(..12)?);
        } else {
            time.copy_from_slice(text.get(..14)?);
        }
        Some(time)
    }

    /// The hash of RSASSA-PSS-params; SHA-1 if it is not given: RFC 4055 §3.1.
    fn hash_of_pss(&mut self) -> Option<Hash> {
        if self.0.first() != Some(&CONTEXT_0) {
            return Some(Hash::Sha256);
        }
        let oid = Reader(Reader(self.take(CONTEXT_0)?).take(SEQUENCE)?).take(OID)?;
        Some(HASHES.iter().find(|(known, _)| *known == oid)?.1)
    }
}

/// `YYYYMMDDhhmmss`, UTC, for years up to 9999.
fn digits(time: SystemTime) -> [u8; 14] {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    // Years start in March and eras of 400 years in year 0: Hinnant, "chrono-compatible low-level date algorithms".
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let day = day - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = (era * 400 + year + u64::from(month <= 2)).min(9999);
    let of_day = seconds % 86_400;
    let number =
        [month, day, of_day / 3_600, of_day / 60 % 60, of_day % 60].iter().fold(year, |n, part| n * 100 + part);
    let mut text = [0; 14];
    let mut rest = number;
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    use super::*;

    #[test]
    fn instants_are_written_as_certificates_write_them() {
        let at = |seconds| String::from_utf8(digits(UNIX_EPOCH + Duration::from_secs(seconds)).to_vec()).unwrap();
        assert_eq!(at(0), "19700101000000");
        assert_eq!(at(951_782_399), "20000228235959");
        assert_eq!(at(951_782_400), "20000229000000");
        assert_eq!(at(4_107_542_399), "21000228235959");
        assert_eq!(at(4_107_542_400), "21000301000000");
    }

    /// Certificates by `openssl req -x509` 3.0 (version 1 by `openssl x509 -req`); hashes by `sha256sum` and similar
    /// tools from `openssl x509 -outform der`.
    #[test]
    fn channel_binding_hashes_as_the_signature_does() {
        for (name, pem, hash) in include!("../tests/certificates/list.in") {
            let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
            let found = Certificate::parse(&der).expect(name).server_end_point();
            let found = found.map(|hash| hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
            assert_eq!(found.as_deref(), hash, "{name}");
        }
    }

    #[test]
    fn a_cut_or_mangled_certificate_never_panics() {
        for (name, pem, _) in include!("../tests/certificates/list.in") {
            let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
            for len in 0..der.len() {
                let cut = Certificate::parse(&der[..len]);
                assert!(cut.is_none(), "{name} cut at {len}");
            }
            for at in 0..der.len() {
                for value in [0, 0x30, 0x7f, 0x80, 0x84, 0xff] {
                    let mut mangled = der.to_vec();
                    mangled[at] = value;
                    if let Some(certificate) = Certificate::parse(&mangled) {
                        let _ = certificate.server_end_point();
                    }
                }
            }
        }
    }
}

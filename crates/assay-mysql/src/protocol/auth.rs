//! Password proofs: each authentication plugin's answer to the server's nonce.
//!
//! Pure functions of password and nonce; only `rsa_encrypted` draws random bytes, as its padding requires.
//! `mysql_common` has these too, but its parser for public keys panics on malformed ones.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use curve25519_dalek::scalar::clamp_integer;
use curve25519_dalek::{EdwardsPoint, Scalar};
use num_bigint::BigUint;
use sha1::{Digest, Sha1};
use sha2::{Sha256, Sha512};

use super::packet::Reader;

/// Bytes of nonce that all plugins but ed25519 use.
pub(super) const NONCE_LEN: usize = 20;

/// Largest RSA modulus that we compute with, in bytes (8192 bits).
const MODULUS_MAX: usize = 1024;

/// `mysql_native_password`: SHA1(password) ⊕ SHA1(nonce ‖ SHA1(SHA1(password))); nothing for no password.
pub(super) fn native(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha1::digest(password);
    let mask = Sha1::new().chain_update(nonce).chain_update(Sha1::digest(once)).finalize();
    xor(&once, &mask)
}

/// `caching_sha2_password`, fast path: SHA256(password) ⊕ SHA256(SHA256(SHA256(password)) ‖ nonce); a zero byte
/// for no password.
pub(super) fn caching_sha2(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return vec![0];
    }
    let once = Sha256::digest(password);
    let mask = Sha256::new().chain_update(Sha256::digest(once)).chain_update(nonce).finalize();
    xor(&once, &mask)
}

/// MariaDB's `client_ed25519`: an Ed25519 signature of the nonce (RFC 8032 §5.1.6), where SHA512(password) takes the
/// place of the hashed secret key.
pub(super) fn ed25519(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let secret: [u8; 64] = Sha512::digest(password).into();
    let (low, prefix) = secret.split_at(32);
    let a = Scalar::from_bytes_mod_order(clamp_integer(low.try_into().expect("half of 64 bytes")));
    let public = EdwardsPoint::mul_base(&a).compress();
    let hashed = |parts: [&[u8]; 3]| {
        let hash = parts.iter().fold(Sha512::new(), |hash, part| hash.chain_update(part)).finalize();
        Scalar::from_bytes_mod_order_wide(&hash.into())
    };
    let r = hashed([prefix, nonce, &[]]);
    let commitment = EdwardsPoint::mul_base(&r).compress();
    let s = r + hashed([commitment.as_bytes(), public.as_bytes(), nonce]) * a;
    [*commitment.as_bytes(), s.to_bytes()].concat()
}

/// A password for a server that sent its RSA key (PEM) because the connection is not encrypted: NUL-terminated, ⊕
/// nonce, encrypted with RSAES-OAEP and SHA-1 (RFC 8017 §7.1.1). `None` if the key cannot be read or is too small, or
/// the system has no random bytes.
pub(super) fn rsa_encrypted(password: &[u8], nonce: &[u8], key: &[u8]) -> Option<Vec<u8>> {
    let mut seed = [0; 20];
    getrandom::fill(&mut seed).ok()?;
    if nonce.is_empty() {
        return None;
    }
    let message: Vec<u8> =
        password.iter().chain(&[0]).zip(nonce.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    oaep(&message, seed, &public_key(key)?)
}

struct PublicKey {
    modulus: Vec<u8>,
    exponent: Vec<u8>,
}

/// Reads `BEGIN PUBLIC KEY` (SubjectPublicKeyInfo) or `BEGIN RSA PUBLIC KEY` (PKCS #1).
fn public_key(pem: &[u8]) -> Option<PublicKey> {
    let text = std::str::from_utf8(pem).ok()?;
    let body: String = text.lines().filter(|line| !line.starts_with("-----")).flat_map(str::split_whitespace).collect();
    let der = STANDARD.decode(body).ok()?;
    let mut key = Reader(der_value(&mut Reader(&der), 0x30)?);
    if key.0.first() == Some(&0x30) {
        der_value(&mut key, 0x30)?;
        let mut bits = Reader(der_value(&mut key, 0x03)?);
        (bits.u8()? == 0).then_some(())?;
        key = Reader(der_value(&mut bits, 0x30)?);
    }
    let number = |key: &mut Reader<'_>| {
        let value = der_value(key, 0x02)?;
        Some(value[value.iter().position(|&byte| byte != 0)?..].to_vec())
    };
    let key = PublicKey { modulus: number(&mut key)?, exponent: number(&mut key)? };
    (key.modulus.len() <= MODULUS_MAX && key.exponent.len() <= 8).then_some(key)
}

/// The content of the DER value at the front, which must have this tag.
fn der_value<'a>(der: &mut Reader<'a>, tag: u8) -> Option<&'a [u8]> {
    (der.u8()? == tag).then_some(())?;
    let length = match der.u8()? {
        length @ 0..=0x7F => length as usize,
        0x81 => der.u8()? as usize,
        0x82 => der.array().map(u16::from_be_bytes)? as usize,
        _ => return None,
    };
    der.bytes(length)
}

fn oaep(message: &[u8], seed: [u8; 20], key: &PublicKey) -> Option<Vec<u8>> {
    let hash_len = seed.len();
    let size = key.modulus.len();
    let padding = size.checked_sub(message.len() + 2 * hash_len + 2)?;
    let data = [&*Sha1::digest([]), &vec![0; padding], &[1], message].concat();
    let data = xor(&data, &mask(&seed, data.len()));
    let seed = xor(&seed, &mask(&data, hash_len));
    let encoded = BigUint::from_bytes_be(&[&[0][..], &seed, &data].concat());
    let [exponent, modulus] = [&key.exponent, &key.modulus].map(|number| BigUint::from_bytes_be(number));
    let cipher = encoded.modpow(&exponent, &modulus).to_bytes_be();
    let mut padded = vec![0; size.checked_sub(cipher.len())?];
    padded.extend(cipher);
    Some(padded)
}

/// MGF1 with SHA-1 (RFC 8017 appendix B.2.1).
fn mask(seed: &[u8], length: usize) -> Vec<u8> {
    let blocks = (0u32..).map(|i| Sha1::new().chain_update(seed).chain_update(i.to_be_bytes()).finalize());
    blocks.flat_map(<[u8; 20]>::from).take(length).collect()
}

fn xor(left: &[u8], right: &[u8]) -> Vec<u8> {
    left.iter().zip(right).map(|(left, right)| left ^ right).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_server_verifies_the_native_proof_from_the_doubly_hashed_password() {
        let nonce: Vec<u8> = (1..=20).collect();
        let proof = native(b"secret", &nonce);
        let stored = Sha1::digest(Sha1::digest(b"secret"));
        let once = xor(&proof, &Sha1::new().chain_update(&nonce).chain_update(stored).finalize());
        assert_eq!(Sha1::digest(&once), stored);
        assert!(native(b"", &nonce).is_empty());
    }

    #[test]
    fn a_server_verifies_the_caching_sha2_proof_from_the_doubly_hashed_password() {
        let nonce: Vec<u8> = (1..=20).collect();
        let proof = caching_sha2(b"secret", &nonce);
        let stored = Sha256::digest(Sha256::digest(b"secret"));
        let mask = Sha256::new().chain_update(stored).chain_update(&nonce).finalize();
        assert_eq!(Sha256::digest(xor(&proof, &mask)), stored);
        assert_eq!(caching_sha2(b"", &nonce), [0]);
    }

    #[test]
    fn an_ed25519_proof_satisfies_the_verification_equation() {
        let nonce = [7; 32];
        let proof = ed25519(b"secret", &nonce);
        let secret: [u8; 64] = Sha512::digest(b"secret").into();
        let public = EdwardsPoint::mul_base_clamped(secret[..32].try_into().unwrap());
        // What MariaDB's manual says is stored for this password: "Authentication Plugin - ed25519".
        let stored = STANDARD.decode("ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY=").unwrap();
        assert_eq!(public.compress().as_bytes(), &*stored);
        let (r, s) = proof.split_at(32);
        let hash = Sha512::new().chain_update(r).chain_update(public.compress().as_bytes()).chain_update(nonce);
        let k = Scalar::from_bytes_mod_order_wide(&hash.finalize().into());
        let s = Scalar::from_canonical_bytes(s.try_into().unwrap()).unwrap();
        let expected = EdwardsPoint::mul_base(&s) - public * k;
        assert_eq!(expected.compress().as_bytes(), r);
    }

    // A throw-away key of 1024 bits made for this test with `openssl genrsa`; D is its private exponent.
    const KEY: &str = include_str!("testdata/rsa_public.pem");
    const D: &str = include_str!("testdata/rsa_private_exponent.hex");

    #[test]
    fn an_encrypted_password_can_be_decrypted_with_the_private_key() {
        let nonce: Vec<u8> = (1..=20).collect();
        let cipher = rsa_encrypted(b"a password", &nonce, KEY.as_bytes()).unwrap();
        let key = public_key(KEY.as_bytes()).unwrap();
        let d = BigUint::parse_bytes(D.trim().as_bytes(), 16).unwrap();
        let plain = BigUint::from_bytes_be(&cipher).modpow(&d, &BigUint::from_bytes_be(&key.modulus)).to_bytes_be();
        // The leading zero of the encoded message is lost in the number.
        assert_eq!((cipher.len(), plain.len()), (128, 127));
        let (seed, data) = plain.split_at(20);
        let seed = xor(seed, &mask(data, 20));
        let data = xor(data, &mask(&seed, data.len()));
        assert_eq!(hex(&data[..20]), "da39a3ee5e6b4b0d3255bfef95601890afd80709", "the hash of the empty label");
        let start = 20 + data[20..].iter().position(|&byte| byte == 1).unwrap() + 1;
        assert!(data[20..start - 1].iter().all(|&byte| byte == 0));
        assert_eq!(xor(&data[start..], &nonce), b"a password\0");
    }

    #[test]
    fn malformed_keys_are_refused() {
        let whole = KEY.as_bytes();
        for end in 0..whole.len() - "-----END PUBLIC KEY-----\n".len() - 1 {
            assert!(rsa_encrypted(b"p", &[1], &whole[..end]).is_none(), "cut at {end}");
        }
        for at in 0..whole.len() {
            for byte in [b'A', b'/', b'\n', 0xFF] {
                let mut key = whole.to_vec();
                key[at] = byte;
                rsa_encrypted(b"p", &[1], &key);
            }
        }
        let zero = STANDARD.encode([0x30, 6, 2, 1, 0, 2, 1, 3]);
        assert!(rsa_encrypted(b"p", &[1], zero.as_bytes()).is_none(), "a modulus of zero");
        assert!(rsa_encrypted(&[b'p'; 100], &[1], whole).is_none(), "a password too long for the key");
    }
}

//! SCRAM-SHA-256 and SCRAM-SHA-1: proves that we know a password, and lets the server prove it.
//!
//! Without channel binding, which MongoDB does not have. With SHA-1 the password is first hashed as MongoDB's older
//! logins did. Sources: RFC 5802, RFC 7677, RFC 4013 (SASLprep); MongoDB manual, "SCRAM".

use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// The hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mechanism {
    Sha1,
    Sha256,
}

impl Mechanism {
    /// As in commands and URLs.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Mechanism::Sha1 => "SCRAM-SHA-1",
            Mechanism::Sha256 => "SCRAM-SHA-256",
        }
    }
}

/// Fewer iterations would betray the password to whoever pretends to be the server; RFC 7677, 4.
const ITERATIONS_MIN: u32 = 4096;
/// More would keep this machine busy for seconds. Servers use 10,000 and 15,000.
const ITERATIONS_MAX: u32 = 1_000_000;

/// A login in progress.
#[derive(Debug)]
pub(super) struct Scram {
    mechanism: Mechanism,
    nonce: String,
    /// The first message without its header.
    first: String,
    /// What the server must prove; empty before its first message.
    proof: Vec<u8>,
}

/// The password's expensive hash by mechanism, salt and iterations: the same for all connections to a server.
#[derive(Debug, Default)]
pub(super) struct Salted(Mutex<Option<Known>>);

struct Known {
    mechanism: Mechanism,
    salt: Vec<u8>,
    iterations: u32,
    hash: Vec<u8>,
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a salted password")
    }
}

impl Salted {
    /// Computed once, unless salt or iterations change (another server of a set has another salt).
    fn get(&self, mechanism: Mechanism, password: &str, salt: &[u8], iterations: u32) -> Vec<u8> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*held {
            Some(known) if (known.mechanism, known.iterations) == (mechanism, iterations) && known.salt == salt => {
                known.hash.clone()
            }
            _ => {
                let hash = salted(mechanism, password.as_bytes(), salt, iterations);
                *held = Some(Known { mechanism, salt: salt.to_vec(), iterations, hash: hash.clone() });
                hash
            }
        }
    }
}

impl Scram {
    /// `nonce`: random printable characters without a comma.
    pub(super) fn new(mechanism: Mechanism, user: &str, nonce: String) -> Scram {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        Scram { mechanism, first: format!("n={user},r={nonce}"), nonce, proof: Vec::new() }
    }

    pub(super) fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// The first message.
    pub(super) fn first(&self) -> String {
        format!("n,,{}", self.first)
    }

    /// Answers the server's first message. `password` as `prepared` returns it. An error says what is wrong with the
    /// message.
    pub(super) fn answer(&mut self, message: &[u8], password: &str, known: &Salted) -> Result<String, String> {
        let message = std::str::from_utf8(message).map_err(|_| "it is not text")?;
        let mut parts = message.splitn(4, ',');
        let mut part = |name: &str| parts.next().and_then(|part| part.strip_prefix(name)).ok_or("its form is wrong");
        let (nonce, salt, iterations) = (part("r=")?, part("s=")?, part("i=")?);
        if nonce.len() <= self.nonce.len() || !nonce.starts_with(&self.nonce) {
            return Err("its nonce does not continue ours".into());
        }
        let salt = STANDARD.decode(salt).map_err(|_| "its salt is not base64")?;
        let iterations: u32 = iterations.parse().map_err(|_| "its number of iterations is not a number")?;
        if !(ITERATIONS_MIN..=ITERATIONS_MAX).contains(&iterations) {
            return Err(format!(
                "it wants {iterations} iterations, and {ITERATIONS_MIN} to {ITERATIONS_MAX} are acceptable"
            ));
        }
        let salted = known.get(self.mechanism, password, &salt, iterations);
        let client_key = mac(self.mechanism, &salted, b"Client Key");
        let last = format!("c=biws,r={nonce}");
        let all = format!("{},{message},{last}", self.first);
        let signature = mac(self.mechanism, &hash(self.mechanism, &client_key), all.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(&signature).map(|(key, sign)| key ^ sign).collect();
        self.proof = mac(self.mechanism, &mac(self.mechanism, &salted, b"Server Key"), all.as_bytes());
        Ok(format!("{last},p={}", STANDARD.encode(proof)))
    }

    /// Checks the server's last message.
    pub(super) fn finish(&self, message: &[u8]) -> Result<(), String> {
        let message = String::from_utf8_lossy(message);
        let proof = message.split(',').next().and_then(|part| part.strip_prefix("v="));
        match proof.and_then(|proof| STANDARD.decode(proof).ok()) {
            Some(proof) if !self.proof.is_empty() && proof == self.proof => Ok(()),
            _ => Err("the server does not prove that it knows the password".into()),
        }
    }
}

/// A password as the mechanism wants it. Fails if it has characters that SASLprep forbids.
pub(super) fn prepared(mechanism: Mechanism, user: &str, password: &str) -> Result<String, String> {
    match mechanism {
        Mechanism::Sha256 => {
            let prepared =
                stringprep::saslprep(password).map_err(|_| "the password has a character that SASLprep forbids")?;
            Ok(prepared.into_owned())
        }
        Mechanism::Sha1 => {
            let hash = Md5::digest(format!("{user}:mongo:{password}"));
            Ok(hash.iter().map(|byte| format!("{byte:02x}")).collect())
        }
    }
}

/// An HMAC.
macro_rules! keyed {
    ($hash:ty, $key:expr) => {
        Hmac::<$hash>::new_from_slice($key).expect("a key may have any length")
    };
}

/// Defines functions for one hash function.
macro_rules! of_hash {
    ($mac:ident, $salted:ident, $hash:ty) => {
        fn $mac(key: &[u8], text: &[u8]) -> Vec<u8> {
            keyed!($hash, key).chain_update(text).finalize().into_bytes().to_vec()
        }

        /// PBKDF2 with one block. Source: RFC 5802, 2.2, "Hi".
        fn $salted(password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
            // The key's two compressions are done once.
            let keyed = keyed!($hash, password);
            let mut last = keyed.clone().chain_update(salt).chain_update([0, 0, 0, 1]).finalize().into_bytes();
            let mut sum = last;
            for _ in 1..iterations {
                last = keyed.clone().chain_update(last).finalize().into_bytes();
                sum.iter_mut().zip(&last).for_each(|(sum, byte)| *sum ^= byte);
            }
            sum.to_vec()
        }
    };
}

of_hash!(mac_sha1, salted_sha1, Sha1);
of_hash!(mac_sha256, salted_sha256, Sha256);

fn mac(mechanism: Mechanism, key: &[u8], text: &[u8]) -> Vec<u8> {
    match mechanism {
        Mechanism::Sha1 => mac_sha1(key, text),
        Mechanism::Sha256 => mac_sha256(key, text),
    }
}

fn salted(mechanism: Mechanism, password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
    match mechanism {
        Mechanism::Sha1 => salted_sha1(password, salt, iterations),
        Mechanism::Sha256 => salted_sha256(password, salt, iterations),
    }
}

fn hash(mechanism: Mechanism, text: &[u8]) -> Vec<u8> {
    match mechanism {
        Mechanism::Sha1 => Sha1::digest(text).to_vec(),
        Mechanism::Sha256 => Sha256::digest(text).to_vec(),
    }
}

/// The other side, for tests.
#[cfg(test)]
pub(super) mod peer {
    use super::*;

    /// Answers a client's first message.
    pub(in crate::protocol) fn first(client: &str) -> String {
        format!("r={}server,s=c2FsdA==,i=4096", client.split_once("r=").unwrap().1)
    }

    /// Answers a client's last message; `None`: its proof is wrong.
    pub(in crate::protocol) fn last(
        mechanism: Mechanism,
        password: &str,
        [client_first, server_first, client_last]: [&str; 3],
    ) -> Option<String> {
        let (without_proof, proof) = client_last.rsplit_once(",p=").unwrap();
        let all = format!("{},{server_first},{without_proof}", client_first.strip_prefix("n,,").unwrap());
        let salted = salted(mechanism, password.as_bytes(), b"salt", 4096);
        let client_key = mac(mechanism, &salted, b"Client Key");
        let signature = mac(mechanism, &hash(mechanism, &client_key), all.as_bytes());
        let expected: Vec<u8> = client_key.iter().zip(&signature).map(|(key, sign)| key ^ sign).collect();
        let server_key = mac(mechanism, &salted, b"Server Key");
        (proof == STANDARD.encode(expected))
            .then(|| format!("v={}", STANDARD.encode(mac(mechanism, &server_key, all.as_bytes()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The conversation of RFC 7677, 3.
    #[test]
    fn sha_256_says_what_its_specification_says() {
        let mut scram = Scram::new(Mechanism::Sha256, "user", "rOprNGfwEbeRWgbNEkqO".into());
        assert_eq!(scram.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let first = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let password = prepared(Mechanism::Sha256, "user", "pencil").unwrap();
        assert_eq!(
            scram.answer(first, &password, &Salted::default()).unwrap(),
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        assert_eq!(scram.finish(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="), Ok(()));
        assert!(scram.finish(b"v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=").is_err());
        assert!(scram.finish(b"").is_err());
    }

    /// The conversation of RFC 5802, 5: its password is not hashed first.
    #[test]
    fn sha_1_says_what_its_specification_says() {
        let mut scram = Scram::new(Mechanism::Sha1, "user", "fyko+d2lbbFgONRv9qkxdawL".into());
        assert_eq!(scram.first(), "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL");
        let first = b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096";
        assert_eq!(
            scram.answer(first, "pencil", &Salted::default()).unwrap(),
            "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="
        );
        assert_eq!(scram.finish(b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ="), Ok(()));
    }

    #[test]
    fn passwords_are_prepared_as_the_mechanism_wants() {
        // U+00AD maps to nothing, U+2168 is normalized: RFC 4013, 3.
        assert_eq!(prepared(Mechanism::Sha256, "u", "I\u{AD}X\u{2168}").unwrap(), "IXIX");
        assert!(prepared(Mechanism::Sha256, "u", "\u{7}").is_err());
        assert_eq!(prepared(Mechanism::Sha1, "user", "pencil").unwrap(), "1c33006ec1ffd90f9cadcbcc0e118200");
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(Scram::new(Mechanism::Sha1, "a,b=c", "x".into()).first(), "n,,n=a=2Cb=3Dc,r=x");
    }

    #[test]
    fn a_server_that_cheats_is_refused() {
        let answer = |message: &str| {
            let mut scram = Scram::new(Mechanism::Sha256, "user", "abc".into());
            let outcome = scram.answer(message.as_bytes(), "pencil", &Salted::default());
            assert!(scram.finish(b"v=").is_err());
            outcome.unwrap_err()
        };
        assert_eq!(answer("r=abd1,s=W22Z,i=4096"), "its nonce does not continue ours");
        assert_eq!(answer("r=abc,s=W22Z,i=4096"), "its nonce does not continue ours");
        assert_eq!(answer("r=abc1,s=!,i=4096"), "its salt is not base64");
        assert_eq!(answer("r=abc1,s=W22Z,i=1"), "it wants 1 iterations, and 4096 to 1000000 are acceptable");
        assert_eq!(answer("r=abc1,s=W22Z,i=4294967296"), "its number of iterations is not a number");
        assert_eq!(answer("s=W22Z,i=4096"), "its form is wrong");
    }
}

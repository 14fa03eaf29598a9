//! An operator of NATS: its signature decides which accounts there are, and theirs which users.
//!
//! Servers get signed tokens (JWT) instead of passwords, and users a credentials file. Format: NATS JWT version 2.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use serde_json::{Value, json};

/// With two accounts, `one` and `two`. It has signed no other.
pub struct Operator {
    folder: PathBuf,
    operator: KeyPair,
    system: KeyPair,
    accounts: [(&'static str, KeyPair); 2],
}

impl Operator {
    pub(crate) fn new(folder: &Path) -> Result<Operator> {
        let accounts = [("one", KeyPair::new_account()), ("two", KeyPair::new_account())];
        let (operator, system) = (KeyPair::new_operator(), KeyPair::new_account());
        Ok(Operator { folder: folder.to_owned(), operator, system, accounts })
    }

    /// Lines of a server's configuration.
    pub(crate) fn config(&self) -> Result<String> {
        let named = json!({ "type": "operator", "version": 2 });
        let mut config = format!("operator: \"{}\"\n", sign(&self.operator, &self.operator, "operator", &named)?);
        config += &format!("system_account: {}\nresolver: MEMORY\nresolver_preload {{\n", self.system.public_key());
        let all = [("system", &self.system)].into_iter().chain(self.accounts.iter().map(|(name, key)| (*name, key)));
        for (name, key) in all {
            let storage = if name == "system" { 0 } else { -1 };
            let limits = json!({
                "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1,
                "leaf": -1, "mem_storage": storage, "disk_storage": storage, "streams": storage, "consumer": storage,
            });
            let account = json!({ "type": "account", "version": 2, "limits": limits });
            config += &format!("  {}: \"{}\"\n", key.public_key(), sign(&self.operator, key, name, &account)?);
        }
        Ok(config + "}\n")
    }

    /// A credentials file of a new user of an account; of one that the operator has not signed, if it is not called
    /// `one` or `two`.
    pub fn credentials(&self, account: &str) -> Result<PathBuf> {
        let user = KeyPair::new_user();
        let stranger = KeyPair::new_account();
        let known = self.accounts.iter().find(|(name, _)| *name == account);
        let key = known.map_or(&stranger, |(_, key)| key);
        let rights = json!({
            "type": "user", "version": 2, "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1,
        });
        let (token, seed) = (sign(key, &user, account, &rights)?, user.seed()?);
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        let path = self.folder.join(format!("{account}.creds"));
        fs::write(&path, text)?;
        Ok(path)
    }
}

/// A token in which `issuer` says who `subject` is.
fn sign(issuer: &KeyPair, subject: &KeyPair, name: &str, claim: &Value) -> Result<String> {
    let header = json!({ "typ": "JWT", "alg": "ed25519-nkey" });
    let claims = json!({
        "jti": format!("{name}-{}", subject.public_key()),
        "iat": SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
        "iss": issuer.public_key(),
        "sub": subject.public_key(),
        "name": name,
        "nats": claim,
    });
    let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let signed = format!("{header}.{claims}");
    let signature = issuer.sign(signed.as_bytes())?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

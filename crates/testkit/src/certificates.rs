//! Test certificates: a CA, the server's certificate, a client's, and an unrelated CA.
//!
//! They are created each time, so the tree contains no private key, and none can expire.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

/// PEM files, readable by the test.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// The CA that signed the certificates below.
    pub ca: PathBuf,
    /// The server's certificate and key.
    pub server: (PathBuf, PathBuf),
    /// A client's certificate (common name `app`) and key.
    pub client: (PathBuf, PathBuf),
    /// A CA that signed none of them: verification with it must fail.
    pub stranger: PathBuf,
}

impl Certificates {
    /// Makes the files in `folder`; the server's certificate is for `names`.
    pub(crate) fn make(folder: &Path, names: &[String]) -> Result<Certificates> {
        let ca = authority("assay test CA")?;
        let files = Certificates {
            ca: folder.join("ca.pem"),
            server: (folder.join("server.pem"), folder.join("server.key")),
            client: (folder.join("client.pem"), folder.join("client.key")),
            stranger: folder.join("stranger.pem"),
        };
        fs::write(&files.ca, &ca.pem)?;
        fs::write(&files.stranger, authority("assay stranger CA")?.pem)?;
        sign(&ca, "assay test server", names, &files.server)?;
        sign(&ca, "app", &[], &files.client)?;
        Ok(files)
    }
}

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

fn authority(name: &str) -> Result<Authority> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, name);
    let pem = params.self_signed(&key)?.pem();
    Ok(Authority { issuer: Issuer::new(params, key), pem })
}

fn sign(ca: &Authority, name: &str, names: &[String], (certificate, key): &(PathBuf, PathBuf)) -> Result<()> {
    let pair = KeyPair::generate()?;
    let mut params = CertificateParams::new(names.to_vec())?;
    params.distinguished_name.push(DnType::CommonName, name);
    fs::write(certificate, params.signed_by(&pair, &ca.issuer)?.pem())?;
    fs::write(key, pair.serialize_pem())?;
    // PostgreSQL refuses a key that others may read.
    fs::set_permissions(key, fs::Permissions::from_mode(0o600))?;
    Ok(())
}

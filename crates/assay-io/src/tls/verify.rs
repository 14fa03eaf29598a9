//! Which certificates each sslmode accepts.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, PeerMisbehaved, RootCertStore, SignatureScheme,
};

use crate::certificate::Certificate;

/// Verifies as much of a certificate as the mode requires, and always that the server has its key.
#[derive(Debug)]
pub(super) struct Verifier {
    algorithms: WebPkiSupportedAlgorithms,
    /// `None`: any certificate is accepted.
    chain: Option<Chain>,
}

#[derive(Debug)]
struct Chain {
    store: RootCertStore,
    /// Trusted roots, to recognize server certificates that are roots themselves.
    roots: Vec<CertificateDer<'static>>,
    checks_name: bool,
}

impl Verifier {
    pub(super) fn anything(algorithms: WebPkiSupportedAlgorithms) -> Verifier {
        Verifier { algorithms, chain: None }
    }

    pub(super) fn chain(
        algorithms: WebPkiSupportedAlgorithms,
        store: RootCertStore,
        roots: Vec<CertificateDer<'static>>,
        checks_name: bool,
    ) -> Verifier {
        Verifier { algorithms, chain: Some(Chain { store, roots, checks_name }) }
    }
}

/// A self-signed certificate that is not among the trusted roots.
#[derive(Debug)]
pub(super) struct SelfSigned;

/// Shortest RSA key that signatures are verified with.
pub(super) const RSA_BITS_MIN: usize = 2048;

/// A certificate, of the server or above it, has a shorter RSA key.
#[derive(Debug)]
pub(super) struct ShortKey {
    pub(super) bits: usize,
    /// It is an authority's.
    pub(super) is_above: bool,
}

/// A certificate of version 1 does not name a host.
#[derive(Debug)]
pub(super) struct Version1;

impl fmt::Display for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("self-signed")
    }
}

impl fmt::Display for Version1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("X.509 version 1")
    }
}

impl fmt::Display for ShortKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RSA key of {} bits", self.bits)
    }
}

impl std::error::Error for SelfSigned {}
impl std::error::Error for ShortKey {}
impl std::error::Error for Version1 {}

fn other(why: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(why))))
}

impl Chain {
    fn check(
        &self,
        der: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
        algorithms: &WebPkiSupportedAlgorithms,
    ) -> Result<(), Error> {
        let fields = Certificate::parse(der).ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))?;
        // webpki reads version 3 only, and has one error for all others.
        if fields.is_version_1() {
            return self.check_version_1(der, &fields, now, algorithms);
        }
        let parsed = ParsedCertificate::try_from(der)?;
        if self.roots.iter().any(|root| root == der) {
            // Trusted itself: OpenSSL's behavior with a self-signed server certificate in the root file. webpki would
            // refuse it because it is also an authority, as those of `openssl req -x509` are.
            check_time(&fields, now)?;
        } else {
            verify_server_cert_signed_by_trust_anchor(&parsed, &self.store, intermediates, now, algorithms.all)
                .map_err(|error| match error {
                    Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::Other(_))
                        if fields.is_self_issued() =>
                    {
                        other(SelfSigned)
                    }
                    // An authority with the same name but another key: it was recreated.
                    Error::InvalidCertificate(CertificateError::BadSignature) => {
                        Error::InvalidCertificate(CertificateError::UnknownIssuer)
                    }
                    error => error,
                })?;
        }
        if self.checks_name { verify_server_name(&parsed, name) } else { Ok(()) }
    }

    /// Signed by a root directly, as by `openssl x509 -req`: OpenSSL accepts that, too. Chains with more links have
    /// extensions, which version 1 does not have.
    fn check_version_1(
        &self,
        der: &CertificateDer<'_>,
        fields: &Certificate<'_>,
        now: UnixTime,
        algorithms: &WebPkiSupportedAlgorithms,
    ) -> Result<(), Error> {
        check_time(fields, now)?;
        let is_signed_by = |root: &Certificate<'_>| {
            root.subject == fields.issuer
                && algorithms.all.iter().any(|algorithm| {
                    algorithm.signature_alg_id().as_ref() == fields.signature_algorithm
                        && algorithm.public_key_alg_id().as_ref() == root.key_algorithm
                        && algorithm.verify_signature(root.key_bits, fields.signed, fields.signature).is_ok()
                })
        };
        let signers = self.roots.iter().filter_map(|root| Certificate::parse(root));
        let trusted = self.roots.iter().any(|root| root == der)
            || signers.filter(|root| !root.is_version_1()).any(|root| is_signed_by(&root));
        match trusted {
            false if fields.is_self_issued() => Err(other(SelfSigned)),
            false => Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)),
            true if self.checks_name => Err(other(Version1)),
            true => Ok(()),
        }
    }
}

fn check_time(fields: &Certificate<'_>, now: UnixTime) -> Result<(), Error> {
    let now = UNIX_EPOCH + Duration::from_secs(now.as_secs());
    if fields.is_expired(now) {
        return Err(Error::InvalidCertificate(CertificateError::Expired));
    }
    if fields.is_not_valid_yet(now) {
        return Err(Error::InvalidCertificate(CertificateError::NotValidYet));
    }
    Ok(())
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let short = |der: &CertificateDer<'_>| {
            Certificate::parse(der).and_then(|read| read.rsa_bits()).filter(|bits| *bits < RSA_BITS_MIN)
        };
        if let Some(bits) = short(end_entity) {
            return Err(other(ShortKey { bits, is_above: false }));
        }
        if let Some(chain) = &self.chain {
            let issuer = |der: &CertificateDer<'_>| Certificate::parse(der).map(|read| read.issuer.to_vec());
            let issuers: Vec<_> = [end_entity].into_iter().chain(intermediates).filter_map(issuer).collect();
            let is_issuer = |der: &&CertificateDer<'_>| {
                Certificate::parse(der).is_some_and(|read| issuers.iter().any(|issuer| issuer == read.subject))
            };
            let above = intermediates.iter().chain(chain.roots.iter().filter(is_issuer));
            if let Some(bits) = above.filter_map(short).next() {
                return Err(other(ShortKey { bits, is_above: true }));
            }
            chain.check(end_entity, intermediates, server_name, now, &self.algorithms)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    // Both signatures are verified with the bare key: rustls's own functions for certificates do not read version 1.

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let fields = Certificate::parse(cert).ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let (_, candidates) = self
            .algorithms
            .mapping
            .iter()
            .find(|(scheme, _)| *scheme == dss.scheme)
            .ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
        // In TLS 1.2 a scheme names the hash, and the key determines the curve.
        let algorithm = candidates
            .iter()
            .find(|algorithm| algorithm.public_key_alg_id().as_ref() == fields.key_algorithm)
            .ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
        algorithm
            .verify_signature(fields.key_bits, message, dss.signature())
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadSignature))?;
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let fields = Certificate::parse(cert).ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))?;
        verify_tls13_signature_with_raw_key(message, &SubjectPublicKeyInfoDer::from(fields.key), dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use assay_seam::{TlsMode, TlsSettings};
    use rustls::pki_types::pem::PemObject;

    use super::*;
    use crate::tls::{Tls, certificate_words};

    /// Self-signed for db.test, valid until 2081, with an RSA key of 1,024 bits.
    const SHORT: &str = "-----BEGIN CERTIFICATE-----\n\
             MIICEjCCAXugAwIBAgIUVcY6Mc85Glcwsj4j9vPqFXKABF8wDQYJKoZIhvcNAQEL\n\
             BQAwEDEOMAwGA1UEAwwFc2hvcnQwIBcNMjYxMTI4MjIzNzAwWhgPMjA4MTA4MzEy\n\
             MjM3MDBaMBAxDjAMBgNVBAMMBXNob3J0MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCB\n\
             iQKBgQDDPO1Zs9flkXk5x5qyY6zEG2XcJEO32+TNBH2FwsbVkTKCTNFGb7U0FOFu\n\
             bQdOTWDZy5LxIQh2cKpqhLJZ8Pok9QjZVPQ+c+IDcPtUwYQRRBKv7K4vnNbaDHUa\n\
             FF0ZbtGBK/K2B0n2o80YnBbwh3yHRmHCco83wJTCUUNuIiSKxwIDAQABo2cwZTAd\n\
             BgNVHQ4EFgQUyVy+xrfX/j7YnwJaE8OlOEZp3NowHwYDVR0jBBgwFoAUyVy+xrfX\n\
             /j7YnwJaE8OlOEZp3NowDwYDVR0TAQH/BAUwAwEB/zASBgNVHREECzAJggdkYi50\n\
             ZXN0MA0GCSqGSIb3DQEBCwUAA4GBAFjQjG3E5huvFdsQO5mkUjsNRDp+TuEYHuid\n\
             J+4J6orRKUy6MPkxBwrIgMXS86yBhPIeNBBKUbB3w/TTB9L+iDC/ncg9UoehFafm\n\
             QZWjPIaCkSSCyToyIR58fbKEJ7gl8BGIZbmWF1rU7U/f2sBSSH8akPLa56EILJmO\n\
             59oLWAOz\n\
             -----END CERTIFICATE-----\n";

    #[test]
    fn a_short_rsa_key_is_named_as_the_reason() {
        let der = CertificateDer::from_pem_slice(SHORT.as_bytes()).unwrap();
        let provider = rustls::crypto::ring::default_provider();
        let algorithms = provider.signature_verification_algorithms;
        let trusting = || Verifier::chain(algorithms, RootCertStore::empty(), vec![der.clone()], true);
        let name = ServerName::try_from("db.test").unwrap();
        for verifier in [Verifier::anything(algorithms), trusting()] {
            let refused = verifier.verify_server_cert(&der, &[], &name, &[], UnixTime::now()).unwrap_err();
            let Error::InvalidCertificate(error) = refused else { panic!("{refused}") };
            let (words, hint) = certificate_words(&error);
            assert_eq!(words, "the server's certificate has an RSA key of 1024 bits, and at least 2048 are needed");
            assert!(hint.unwrap().contains("rsa:2048"));
        }
        let folder = tempfile::tempdir().unwrap();
        let certificate = folder.path().join("client.pem");
        std::fs::write(&certificate, SHORT).unwrap();
        let client = Some((certificate.clone(), PathBuf::from("none.key")));
        let refused = Tls::new(&TlsSettings { mode: TlsMode::Require, client, ..TlsSettings::default() }).unwrap_err();
        let wanted =
            format!("reading {}: its RSA key has 1024 bits, and at least 2048 are needed", certificate.display());
        assert_eq!(refused.message, wanted);
    }
}

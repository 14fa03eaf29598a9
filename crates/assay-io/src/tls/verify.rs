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

impl std::error::Error for SelfSigned {}
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
        if let Some(chain) = &self.chain {
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

//! TLS with the certificates of members, from files. A peer is accepted as a member if its
//! certificate is signed by the members' authority, and has the name of members, if a name is
//! configured. Both sides of a connection present certificates.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use tokio_rustls::rustls::{
    ClientConfig, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig, SignatureScheme,
};

use crate::TlsSettings;

/// The requested name if members have no common name. It is not checked.
const ANY_MEMBER: &str = "filbert.member";

/// The files for [`TlsSettings::read`], all in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificates of the authority that signs the certificates of members. One or several.
    pub authority: PathBuf,
    /// This member's certificate, followed by its intermediate certificates. If it has extended key
    /// usages, they must allow servers and clients.
    pub certificate: PathBuf,
    /// The private key of this member.
    pub key: PathBuf,
    /// The name that the certificates of all members have. Default none: the authority signs only
    /// certificates of members.
    pub name: Option<String>,
}

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsFilesError {
    /// A file cannot be read.
    #[error("cannot read the PEM file {path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file has other contents.
    #[error("{path} has no {expected} in PEM: {why}")]
    Pem {
        /// The file.
        path: String,
        /// The expected contents.
        expected: &'static str,
        /// The reason.
        why: String,
    },
    /// The certificate, the key and the authority do not fit together, or have an unknown kind.
    #[error("the certificate {path} cannot be used: {why}")]
    Unusable {
        /// The file.
        path: String,
        /// The reason.
        why: String,
    },
    /// The name of members is invalid.
    #[error("{0:?} is no name that certificates can have, expected a host name or an address")]
    Name(String),
}

impl TlsSettings {
    /// Reads certificates.
    ///
    /// # Errors
    /// A file is missing or has other contents, or the files do not fit together.
    pub fn read(files: &TlsFiles) -> Result<TlsSettings, TlsFilesError> {
        let unusable = |path: &Path, why: String| TlsFilesError::Unusable { path: path.display().to_string(), why };
        let mut roots = RootCertStore::empty();
        for authority in certificates(&files.authority)? {
            roots.add(authority).map_err(|error| unusable(&files.authority, error.to_string()))?;
        }
        let roots = Arc::new(roots);
        let own = certificates(&files.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&bytes(&files.key)?).map_err(|error| TlsFilesError::Pem {
            path: files.key.display().to_string(),
            expected: "private key",
            why: error.to_string(),
        })?;
        let name = files
            .name
            .as_ref()
            .map(|name| ServerName::try_from(name.clone()).map_err(|_| TlsFilesError::Name(name.clone())));
        let name = name.transpose()?;
        let provider = Arc::new(ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let of_own = |error: Error| unusable(&files.certificate, error.to_string());
        let of_members = OfMembers { roots: roots.clone(), name: name.clone(), algorithms };
        // An own certificate that other members would refuse is reported here, and not by each of
        // them.
        if let Some((first, rest)) = own.split_first() {
            let any = ServerName::try_from(ANY_MEMBER).map_err(|_| TlsFilesError::Name(ANY_MEMBER.to_owned()))?;
            of_members.verify_server_cert(first, rest, &any, &[], UnixTime::now()).map_err(of_own)?;
        }
        let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(of_own)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(of_members))
            .with_client_auth_cert(own.clone(), key.clone_key())
            .map_err(of_own)?;
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(of_own)?
            .with_client_cert_verifier(dialling(roots, provider, name.clone(), &files.authority)?)
            .with_single_cert(own, key)
            .map_err(of_own)?;
        let any = || ServerName::try_from(ANY_MEMBER).map_err(|_| TlsFilesError::Name(ANY_MEMBER.to_owned()));
        let name = name.map_or_else(any, Ok)?;
        Ok(TlsSettings { server: Arc::new(server), client: Arc::new(client), name })
    }
}

fn dialling(
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
    name: Option<ServerName<'static>>,
    authority: &Path,
) -> Result<Arc<dyn ClientCertVerifier>, TlsFilesError> {
    let of_chain = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
    let unusable = |why: String| TlsFilesError::Unusable { path: authority.display().to_string(), why };
    let of_chain = of_chain.map_err(|error| unusable(error.to_string()))?;
    Ok(match name {
        None => of_chain,
        Some(name) => Arc::new(Named { of_chain, name }),
    })
}

fn bytes(path: &Path) -> Result<Vec<u8>, TlsFilesError> {
    std::fs::read(path).map_err(|source| TlsFilesError::File { path: path.display().to_string(), source })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFilesError> {
    let none = |why: String| TlsFilesError::Pem { path: path.display().to_string(), expected: "certificate", why };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes(path)?).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(none("nothing found".to_owned())),
        Err(error) => Err(none(error.to_string())),
    }
}

/// Verifies the dialled member: its certificate must be signed by the authority, whatever address
/// was dialled, and must have the name of members, if a name is configured.
#[derive(Debug)]
struct OfMembers {
    roots: Arc<RootCertStore>,
    name: Option<ServerName<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for OfMembers {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let all = self.algorithms.all;
        verify_server_cert_signed_by_trust_anchor(&certificate, &self.roots, intermediates, now, all)?;
        if let Some(name) = &self.name {
            verify_server_name(&certificate, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Verifies the dialling member: as above, and the name.
#[derive(Debug)]
struct Named {
    of_chain: Arc<dyn ClientCertVerifier>,
    name: ServerName<'static>,
}

impl ClientCertVerifier for Named {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.of_chain.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.of_chain.verify_client_cert(end_entity, intermediates, now)?;
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, &self.name)?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.of_chain.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.of_chain.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.of_chain.supported_verify_schemes()
    }
}

//! The TLS certificate of the door.

use std::{io, path::Path, sync::Arc};

use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{self, ServerConfig},
};

use crate::config::PostgresTls;

/// The ALPN name of PostgreSQL's protocol within TLS.
const ALPN: &[u8] = b"postgresql";

/// The reason why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read the PEM file {path}")]
    File {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// A file does not contain the expected object.
    #[error("{path} has no {expected} in PEM: {reason}")]
    Pem {
        /// The file.
        path: String,
        /// The expected object.
        expected: &'static str,
        /// The cause.
        reason: String,
    },
    /// The certificate and the key do not match, or are of an unsupported kind.
    #[error("the certificate {path} and its key cannot be used")]
    Unusable {
        /// The certificate's file.
        path: String,
        /// The cause.
        source: rustls::Error,
    },
}

/// Reads the certificate and the key.
pub(crate) fn acceptor(tls: &PostgresTls) -> Result<TlsAcceptor, TlsError> {
    let pem = read(&tls.certificate)?;
    let certificates = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let certificates = match certificates {
        Ok(certificates) if !certificates.is_empty() => certificates,
        Ok(_) => return Err(no_pem(&tls.certificate, "certificate", "nothing found")),
        Err(error) => return Err(no_pem(&tls.certificate, "certificate", &error.to_string())),
    };
    let key = PrivateKeyDer::from_pem_slice(&read(&tls.key)?)
        .map_err(|error| no_pem(&tls.key, "private key", &error.to_string()))?;
    let unusable = |source| TlsError::Unusable { path: tls.certificate.display().to_string(), source };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::File { path: path.display().to_string(), source })
}

fn no_pem(path: &Path, expected: &'static str, reason: &str) -> TlsError {
    TlsError::Pem { path: path.display().to_string(), expected, reason: reason.to_owned() }
}

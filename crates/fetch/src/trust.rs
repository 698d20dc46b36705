//! Which certificates are trusted: the built-in roots, the system's, and those of files.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme,
    WantsVerifier,
};
use tokio_rustls::TlsConnector;

use crate::{FetchError, FetchOptions};

/// Where systems keep the certificates that they trust, the usual first.
const SYSTEM_FILES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
];

/// A larger file is not a list of certificates.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The certificates of a PEM file.
///
/// # Errors
/// [`FetchError::Option`] if the file cannot be read or has none.
pub fn certificates_in(path: &Path) -> Result<Vec<Vec<u8>>, FetchError> {
    let refuse = |reason: String| FetchError::Option { option: "ca_files", reason };
    let named = |why: String| refuse(format!("{}: {why}", path.display()));
    let length = std::fs::metadata(path).map_err(|error| named(error.to_string()))?.len();
    if length > MAX_FILE_BYTES {
        return Err(named(format!("it has {length} bytes, too many for certificates")));
    }
    let pem = std::fs::read(path).map_err(|error| named(error.to_string()))?;
    let found: Result<Vec<Vec<u8>>, _> =
        CertificateDer::pem_slice_iter(&pem).map(|one| one.map(|der| der.to_vec())).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(named("it has no certificate in PEM form".to_owned())),
        Err(error) => Err(named(error.to_string())),
    }
}

/// The certificates that the system trusts; none if its list is not found.
pub fn system_certificates() -> Vec<Vec<u8>> {
    let files = SYSTEM_FILES.iter().map(Path::new).filter(|path| path.is_file());
    files.filter_map(|path| certificates_in(path).ok()).next().unwrap_or_default()
}

/// How connections are secured. The certificates that the system trusts are read with the first one:
/// that takes longer than many a visit.
pub(crate) struct Tls {
    provider: Arc<CryptoProvider>,
    builder: ConfigBuilder<ClientConfig, WantsVerifier>,
    /// The built-in roots and those of the options.
    roots: RootCertStore,
    system_roots_der: fn() -> Vec<Vec<u8>>,
    checked: OnceLock<TlsConnector>,
    unchecked: OnceLock<TlsConnector>,
}

impl Tls {
    /// Refuses roots of the options that are none.
    pub(crate) fn new(options: &FetchOptions) -> Result<Self, FetchError> {
        let refuse = |e: rustls::Error| FetchError::Option {
            option: "extra_roots_der",
            reason: e.to_string(),
        };
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for der in &options.extra_roots_der {
            roots.add(CertificateDer::from(der.clone())).map_err(refuse)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(refuse)?;
        let (checked, unchecked) = Default::default();
        let system_roots_der = options.system_roots_der;
        Ok(Self { provider, builder, roots, system_roots_der, checked, unchecked })
    }

    /// For servers whose certificate is checked.
    pub(crate) fn checked(&self) -> &TlsConnector {
        self.checked.get_or_init(|| {
            let mut roots = self.roots.clone();
            // Of what the system has, something may be too old to be understood.
            let system = (self.system_roots_der)().into_iter().map(CertificateDer::from);
            roots.add_parsable_certificates(system);
            connector(self.builder.clone().with_root_certificates(roots).with_no_client_auth())
        })
    }

    /// For servers whose certificate may be invalid.
    pub(crate) fn unchecked(&self) -> &TlsConnector {
        self.unchecked.get_or_init(|| {
            let any = Arc::new(AnyCertificate(self.provider.clone()));
            let builder = self.builder.clone().dangerous().with_custom_certificate_verifier(any);
            connector(builder.with_no_client_auth())
        })
    }
}

fn connector(mut config: ClientConfig) -> TlsConnector {
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(config))
}

/// Accepts any certificate, for sites whose owner said so. The server must still have its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

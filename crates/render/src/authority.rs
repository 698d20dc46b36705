//! Certificates for the proxy. The browser accepts whatever is signed with our key, which lives as
//! long as this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PublicKeyData as _,
};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;

use crate::RenderError;

/// Hosts whose certificates are kept.
const MAX_HOSTS: usize = 1_000;

pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// All hosts have the same key: it never leaves this machine.
    key: KeyPair,
    hosts: Mutex<BTreeMap<String, TlsAcceptor>>,
}

fn failed(error: impl std::fmt::Display) -> RenderError {
    RenderError::Certificate(error.to_string())
}

impl Authority {
    pub(crate) fn new() -> Result<Self, RenderError> {
        let mut params = CertificateParams::new(Vec::new()).map_err(failed)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let own_key = KeyPair::generate().map_err(failed)?;
        let issuer = CertifiedIssuer::self_signed(params, own_key).map_err(failed)?;
        let key = KeyPair::generate().map_err(failed)?;
        Ok(Self { issuer, key, hosts: Mutex::default() })
    }

    /// By what the browser knows certificates of ours: the hash of the hosts' key.
    pub(crate) fn key_hash(&self) -> String {
        STANDARD.encode(Sha256::digest(self.key.subject_public_key_info()))
    }

    /// Accepts TLS in the name of a host.
    pub(crate) fn acceptor(&self, host: &str) -> Result<TlsAcceptor, RenderError> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = hosts.get(host) {
            return Ok(known.clone());
        }
        let name = host.trim_matches(['[', ']']).to_owned();
        let params = CertificateParams::new(vec![name]).map_err(failed)?;
        let certificate = params.signed_by(&self.key, &self.issuer).map_err(failed)?;
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).map_err(failed)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .map_err(failed)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        if hosts.len() >= MAX_HOSTS {
            hosts.clear();
        }
        hosts.insert(host.to_owned(), acceptor.clone());
        Ok(acceptor)
    }
}

//! DNS over TLS (RFC 7858): certificates that clients trust, and the certificate of the echo
//! server.

use std::fmt;
use std::io;
use std::io::Read;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::ClientConnection;
use rustls::Connection;
use rustls::DigitallySignedStruct;
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::ServerConnection;
use rustls::SignatureScheme;
use rustls::StreamOwned;
use rustls::client::Resumption;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::client::danger::ServerCertVerified;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::PrivateKeyDer;
#[cfg(feature = "self-signed")]
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::ServerName;
use rustls::pki_types::UnixTime;
use rustls::pki_types::pem::PemObject;
use rustls::server::ServerSessionMemoryCache;

use crate::Error;
#[cfg(feature = "quic")]
use crate::quic;

/// Maximum number of sessions that a client stores for resumption.
const CLIENT_SESSIONS: usize = 4;
/// Maximum number of sessions that the echo server stores.
const SERVER_SESSIONS: usize = 1 << 16;

/// The certificates that a client trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Certificates issued by the system's certificate authorities.
    System,
    /// Certificates in a PEM file, and certificates issued by authorities in it.
    File(PathBuf),
    /// Any certificate.
    Any,
}

/// The TLS settings of clients.
#[derive(Clone)]
pub struct Tls {
    config: ClientConfig,
    #[cfg_attr(not(feature = "quic"), expect(dead_code, reason = "QUIC has it in another one"))]
    verifier: Arc<dyn ServerCertVerifier>,
    name: ServerName<'static>,
}

impl Tls {
    /// Settings for a server with this name or address.
    ///
    /// # Errors
    /// If the name is not valid, and if no authorities are found.
    pub fn new(name: &str, trust: &Trust) -> Result<Self, Error> {
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| fail(format!("'{name}' is not a valid server name")))?;
        let provider = Arc::new(ring::default_provider());
        let vouched = |roots: RootCertStore| -> Result<Arc<dyn ServerCertVerifier>, Error> {
            let provider = Arc::clone(&provider);
            Ok(WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
                .build()
                .map_err(fail)?)
        };
        let verifier = match trust {
            Trust::Any => Arc::new(AcceptAny(Arc::clone(&provider))),
            Trust::System => vouched(system()?)?,
            Trust::File(path) => vouched(authorities(path)?)?,
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(fail)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&verifier))
            .with_no_client_auth();
        Ok(Self { config, verifier, name })
    }

    /// The same settings for another server.
    ///
    /// # Errors
    /// If the name is not valid.
    pub fn for_server(&self, name: &str) -> Result<Self, Error> {
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| fail(format!("'{name}' is not a valid server name")))?;
        Ok(Self { name, ..self.clone() })
    }

    /// The configuration of one client, with its own session store.
    pub(crate) fn client(&self, resume: bool, h2: bool) -> Arc<ClientConfig> {
        let mut config = self.config.clone();
        if h2 {
            config.alpn_protocols = vec![b"h2".to_vec()];
        }
        config.resumption = resumption(resume);
        Arc::new(config)
    }

    /// The configuration of one client for DNS over QUIC.
    #[cfg(feature = "quic")]
    pub(crate) fn quic_client(&self, resume: bool) -> Result<quic::Client, Error> {
        let mut config = self.config.clone();
        config.resumption = resumption(resume);
        quic::Client::new(config, Arc::clone(&self.verifier), &self.name.to_str()).map_err(fail)
    }

    /// The authority part of the server's URL (RFC 3986 §3.2).
    pub(crate) fn authority(&self, port: u16) -> String {
        let name = self.name.to_str();
        let name = if name.contains(':') { format!("[{name}]") } else { name.into_owned() };
        if port == 443 { name } else { format!("{name}:{port}") }
    }

    /// A new session of a client.
    pub(crate) fn begin(&self, client: &Arc<ClientConfig>) -> Result<Connection, Error> {
        let session = ClientConnection::new(Arc::clone(client), self.name.clone());
        Ok(Connection::Client(session.map_err(fail)?))
    }
}

impl Tls {
    /// Creates a session over a connected blocking socket.
    ///
    /// # Errors
    /// If the session cannot be created.
    pub fn connect(&self, socket: TcpStream) -> Result<Blocking, Error> {
        self.over(self.config.clone(), socket)
    }

    /// Like [`connect`](Self::connect), for HTTP/2.
    pub(crate) fn connect_h2(&self, socket: TcpStream) -> Result<Blocking, Error> {
        let mut config = self.config.clone();
        config.alpn_protocols = vec![b"h2".to_vec()];
        self.over(config, socket)
    }

    fn over(&self, config: ClientConfig, socket: TcpStream) -> Result<Blocking, Error> {
        let session = ClientConnection::new(Arc::new(config), self.name.clone());
        Ok(Blocking(StreamOwned::new(session.map_err(fail)?, socket)))
    }
}

/// A session over a socket; it blocks if the socket does.
#[derive(Debug)]
pub struct Blocking(StreamOwned<ClientConnection, TcpStream>);

impl Blocking {
    /// The underlying socket.
    pub fn socket(&self) -> &TcpStream {
        &self.0.sock
    }

    /// Completes the handshake before data are sent.
    ///
    /// # Errors
    /// Errors of the socket, and an untrusted certificate.
    pub fn complete_handshake(&mut self) -> io::Result<()> {
        while self.0.conn.is_handshaking() {
            self.0.conn.complete_io(&mut self.0.sock)?;
        }
        Ok(())
    }

    /// Whether both sides agreed on HTTP/2 (RFC 7301).
    pub(crate) fn is_h2(&self) -> bool {
        self.0.conn.alpn_protocol() == Some(b"h2")
    }
}

impl Read for Blocking {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Blocking {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The certificate and key of the echo server.
#[derive(Clone)]
pub struct Identity {
    config: Arc<ServerConfig>,
    pem: String,
}

impl Identity {
    /// Reads PEM files: certificates, the server's first, and its key.
    ///
    /// # Errors
    /// If they cannot be read or do not match.
    pub fn from_files(certificates: &Path, key: &Path) -> Result<Self, Error> {
        let chain = read_certificates(certificates)?;
        let key = PrivateKeyDer::from_pem_file(key)
            .map_err(|error| fail(format!("{}: {error}", key.display())))?;
        Self::new(chain, key, String::new())
    }

    /// A new self-signed certificate for these names and addresses.
    ///
    /// # Errors
    /// If a name is not valid.
    #[cfg(feature = "self-signed")]
    pub fn self_signed(names: Vec<String>) -> Result<Self, Error> {
        let made = rcgen::generate_simple_self_signed(names).map_err(fail)?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Self::new(vec![made.cert.der().clone()], key.into(), made.cert.pem())
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        pem: String,
    ) -> Result<Self, Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(fail)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(fail)?;
        config.session_storage = ServerSessionMemoryCache::new(SERVER_SESSIONS);
        Ok(Self { config: Arc::new(config), pem })
    }

    /// The certificate in PEM, for clients to trust, if it was generated here.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The server configuration for DNS over QUIC.
    #[cfg(feature = "quic")]
    pub(crate) fn quic(&self) -> ServerConfig {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = vec![quic::ALPN.to_vec()];
        config
    }

    /// The identity for DNS over HTTPS.
    pub(crate) fn with_h2(&self) -> Self {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = vec![b"h2".to_vec()];
        Self { config: Arc::new(config), pem: self.pem.clone() }
    }

    /// A session for a connection from a client.
    pub(crate) fn accept(&self) -> Result<Connection, Error> {
        let session = ServerConnection::new(Arc::clone(&self.config));
        Ok(Connection::Server(session.map_err(fail)?))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the key.
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

fn resumption(resume: bool) -> Resumption {
    if resume { Resumption::in_memory_sessions(CLIENT_SESSIONS) } else { Resumption::disabled() }
}

fn system() -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(fail("the system has no trusted root certificates"));
    }
    Ok(roots)
}

fn authorities(path: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(path)? {
        roots.add(certificate).map_err(|error| fail(format!("{}: {error}", path.display())))?;
    }
    Ok(roots)
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let wrong = |error: &dyn fmt::Display| fail(format!("{}: {error}", path.display()));
    let read = CertificateDer::pem_file_iter(path).map_err(|e| wrong(&e))?;
    let certificates = read.collect::<Result<Vec<_>, _>>().map_err(|e| wrong(&e))?;
    if certificates.is_empty() {
        return Err(wrong(&"it contains no certificate"));
    }
    Ok(certificates)
}

#[expect(clippy::needless_pass_by_value, reason = "errors that are mapped come by value")]
fn fail(why: impl ToString) -> Error {
    Error::Tls(why.to_string())
}

/// A verifier that accepts any certificate whose key signed the handshake.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_certificates_are_reported() {
        let error = Tls::new("a.test", &Trust::File("/nonexistent/ca".into())).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/ca"), "{error}");
        let path = std::env::temp_dir().join(format!("gannet-ca-{}.pem", std::process::id()));
        std::fs::write(&path, "no certificate").unwrap();
        let error = Tls::new("a.test", &Trust::File(path.clone())).unwrap_err();
        assert!(error.to_string().ends_with("it contains no certificate"), "{error}");
        std::fs::remove_file(path).unwrap();
        assert!(Tls::new("a b", &Trust::Any).is_err());
    }
}

//! TLS: files of certificates and keys, and connections that are encrypted.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ClientConnection, CommonState, RootCertStore, ServerConfig, ServerConnection,
    StreamOwned,
};
use wattlock_engine::crypto::sha2::Sha256;

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read as PEM.
    #[error("cannot read {}", _0.display())]
    File(PathBuf, #[source] pem::Error),
    /// A file holds no certificate.
    #[error("{} holds no certificate in PEM", _0.display())]
    NoCertificate(PathBuf),
    /// A file holds no private key.
    #[error("{} holds no private key in PEM", _0.display())]
    NoKey(PathBuf),
    /// A key is not that of a certificate.
    #[error("the certificate in {} and the private key in {} do not match", _0.display(), _1.display())]
    OtherKey(PathBuf, PathBuf),
    /// A certificate or key is not usable.
    #[error("cannot use {}", _0.display())]
    Unusable(PathBuf, #[source] Box<dyn std::error::Error + Send + Sync>),
    /// The system has no certificates of authorities.
    #[error("this system has no trusted CA certificates; use --tls-ca FILE")]
    NoRoots,
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct TlsIdentity {
    /// The certificate, and those between it and its authority.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Which certificates senders have to show.
#[derive(Clone, Debug)]
pub enum ClientCertificates {
    /// None.
    NotAsked,
    /// One of an authority in this file, if any.
    Optional(PathBuf),
    /// One of an authority in this file.
    Required(PathBuf),
}

/// What a server needs for TLS.
#[derive(Clone)]
pub struct TlsServer(Arc<ServerConfig>);

/// What a client needs for TLS.
#[derive(Clone)]
pub struct TlsClient(Arc<ClientConfig>);

impl TlsServer {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn new(identity: &TlsIdentity, clients: &ClientCertificates) -> Result<Self, TlsError> {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&identity.certificate, error))?;
        let builder = match clients {
            ClientCertificates::NotAsked => builder.with_no_client_auth(),
            ClientCertificates::Optional(path) | ClientCertificates::Required(path) => {
                let roots = Arc::new(authorities(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
                let verifier = match clients {
                    ClientCertificates::Optional(_) => verifier.allow_unauthenticated(),
                    _ => verifier,
                };
                let verifier = verifier.build().map_err(|error| unusable(path, error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder
            .with_single_cert(certificates(&identity.certificate)?, key(&identity.key)?)
            .map_err(|error| of_pair(identity, error))?;
        // A sender that never reads and then closes would reset the connection for want of reading them, and with that
        // take back what was on its way.
        config.send_tls13_tickets = 0;
        Ok(Self(Arc::new(config)))
    }

    pub(super) fn session(&self) -> io::Result<ServerConnection> {
        ServerConnection::new(Arc::clone(&self.0)).map_err(io::Error::other)
    }

    /// Answers the handshake of a client that has connected. Later, reads and writes may take `patience` each.
    ///
    /// # Errors
    /// That it fails, or the connection does.
    pub fn accept(&self, stream: TcpStream, patience: Duration) -> io::Result<TlsStream> {
        let mut session = self.session()?;
        let mut until = Until { stream: &stream, deadline: Instant::now() + PATIENCE };
        session.complete_io(&mut until).map_err(handshake)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(TlsStream(Role::Server(Box::new(StreamOwned::new(session, stream)))))
    }
}

impl TlsClient {
    /// Reads the files. Without one of authorities, those of the system are trusted.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn new(
        authorities_file: Option<&Path>,
        identity: Option<&TlsIdentity>,
    ) -> Result<Self, TlsError> {
        let roots = match authorities_file {
            Some(path) => authorities(path)?,
            None => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                if roots.is_empty() {
                    return Err(TlsError::NoRoots);
                }
                roots
            }
        };
        let own = identity.map_or_else(PathBuf::new, |identity| identity.certificate.clone());
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&own, error))?
            .with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_auth_cert(certificates(&identity.certificate)?, key(&identity.key)?)
                .map_err(|error| of_pair(identity, error))?,
        };
        Ok(Self(Arc::new(config)))
    }

    /// A session with the host of `address`, HOST:PORT.
    pub(super) fn session(&self, address: &str) -> io::Result<ClientConnection> {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        ClientConnection::new(Arc::clone(&self.0), name).map_err(io::Error::other)
    }

    pub(super) fn connect(&self, address: &str, stream: TcpStream) -> io::Result<TlsStream> {
        self.connect_within(PATIENCE, address, stream)
    }

    fn connect_within(
        &self,
        patience: Duration,
        address: &str,
        stream: TcpStream,
    ) -> io::Result<TlsStream> {
        let mut session = self.session(address)?;
        let mut until = Until { stream: &stream, deadline: Instant::now() + patience };
        session.complete_io(&mut until).map_err(|error| match error.kind() {
            // The system's word for a time limit is another one.
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let (who, limit) = (address.escape_debug(), patience.as_secs_f64());
                let why = format!("no answer from {who} within {limit} s");
                io::Error::new(io::ErrorKind::TimedOut, why)
            }
            _ => handshake(error),
        })?;
        stream.set_read_timeout(None)?;
        stream.set_write_timeout(None)?;
        Ok(TlsStream(Role::Client(Box::new(StreamOwned::new(session, stream)))))
    }
}

/// A connection with TLS whose reads and writes wait.
pub struct TlsStream(Role);

enum Role {
    Server(Box<StreamOwned<ServerConnection, TcpStream>>),
    Client(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl TlsStream {
    /// The peer's certificate, if it has shown one.
    pub fn certificate(&self) -> Option<Certificate> {
        let [certificate, ..] = self.state().peer_certificates()? else { return None };
        let mut hasher = Sha256::new();
        hasher.update(certificate);
        Some(Certificate { names: names(self.state()), sha256: hasher.finish() })
    }

    pub(super) fn socket(&self) -> &TcpStream {
        match &self.0 {
            Role::Server(stream) => &stream.sock,
            Role::Client(stream) => &stream.sock,
        }
    }

    /// Takes what the peer sent, from `from`. What it says is not looked at.
    pub(super) fn ignore(&mut self, from: &mut dyn Read) -> io::Result<usize> {
        let (count, state) = match &mut self.0 {
            Role::Server(stream) => {
                (stream.conn.read_tls(from)?, stream.conn.process_new_packets())
            }
            Role::Client(stream) => {
                (stream.conn.read_tls(from)?, stream.conn.process_new_packets())
            }
        };
        let plain = state.map_err(invalid)?.plaintext_bytes_to_read();
        let mut ignored = vec![0; plain];
        let read = match &mut self.0 {
            Role::Server(stream) => stream.conn.reader().read(&mut ignored),
            Role::Client(stream) => stream.conn.reader().read(&mut ignored),
        };
        match read {
            // The peer ended the session.
            Ok(0) if plain == 0 => Ok(0),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            _ => Ok(count),
        }
    }

    /// Says that nothing more comes.
    pub(super) fn end(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Role::Server(stream) => stream.conn.send_close_notify(),
            Role::Client(stream) => stream.conn.send_close_notify(),
        }
        self.flush()
    }

    fn state(&self) -> &CommonState {
        match &self.0 {
            Role::Server(stream) => &stream.conn,
            Role::Client(stream) => &stream.conn,
        }
    }
}

impl Read for TlsStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Role::Server(stream) => stream.read(into),
            Role::Client(stream) => stream.read(into),
        }
        .map_err(plain)
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Role::Server(stream) => stream.write(bytes),
            Role::Client(stream) => stream.write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.0 {
            Role::Server(stream) => stream.write_vectored(slices),
            Role::Client(stream) => stream.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Role::Server(stream) => stream.flush(),
            Role::Client(stream) => stream.flush(),
        }
    }
}

/// A certificate that a peer has shown, and that was verified.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// Its names: those of hosts, and URIs.
    pub names: Vec<String>,
    /// The SHA-256 of all of it.
    pub sha256: [u8; 32],
}

/// The names in the certificate that a peer has shown: those of hosts, and URIs.
pub(super) fn names(state: &CommonState) -> Vec<String> {
    let Some([certificate, ..]) = state.peer_certificates() else { return Vec::new() };
    // It was verified already.
    let Ok(certificate) = webpki::EndEntityCert::try_from(certificate) else { return Vec::new() };
    let hosts = certificate.valid_dns_names();
    hosts.chain(certificate.valid_uri_names()).map(str::to_owned).collect()
}

/// What is not as TLS has it.
pub(super) fn invalid(error: rustls::Error) -> io::Error {
    use rustls::CertificateError as Why;
    let why = match &error {
        rustls::Error::InvalidCertificate(why) => match why {
            Why::UnknownIssuer => "its certificate was not issued by a trusted CA",
            Why::Expired | Why::ExpiredContext { .. } => "its certificate has expired",
            Why::NotValidYet | Why::NotValidYetContext { .. } => "its certificate is not valid yet",
            Why::NotValidForName | Why::NotValidForNameContext { .. } => {
                "its certificate is for another host"
            }
            _ => return io::Error::new(io::ErrorKind::InvalidData, error),
        },
        rustls::Error::NoCertificatesPresented => "it showed no certificate",
        rustls::Error::AlertReceived(alert) => {
            let why = format!("the peer refused the connection (TLS alert {alert:?})");
            return io::Error::new(io::ErrorKind::PermissionDenied, why);
        }
        _ => return io::Error::new(io::ErrorKind::InvalidData, error),
    };
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// An error of a connection, in words that do not name a library.
pub(super) fn plain(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::new(
            error.kind(),
            "it was closed without TLS close_notify; data may be missing",
        ),
        _ => match error.downcast::<rustls::Error>() {
            Ok(error) => invalid(error),
            Err(error) => error,
        },
    }
}

fn handshake(error: io::Error) -> io::Error {
    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
        let why = "the TLS handshake failed: the other side did not answer in time";
        return io::Error::new(io::ErrorKind::TimedOut, why);
    }
    let error = plain(error);
    io::Error::new(error.kind(), format!("the TLS handshake failed: {error}"))
}

fn of_pair(identity: &TlsIdentity, error: rustls::Error) -> TlsError {
    let TlsIdentity { certificate, key } = identity;
    match error {
        rustls::Error::InconsistentKeys(_) => TlsError::OtherKey(certificate.clone(), key.clone()),
        error => unusable(certificate, error),
    }
}

/// A connection that is given up at some time.
struct Until<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl Until<'_> {
    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "timeout"));
        }
        Ok(left)
    }
}

impl Read for Until<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(into)
    }
}

impl Write for Until<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How long a handshake may take.
const PATIENCE: Duration = Duration::from_secs(10);

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |error| TlsError::File(path.to_owned(), error);
    let all = CertificateDer::pem_file_iter(path).map_err(failed)?;
    let all = all.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    if all.is_empty() {
        return Err(TlsError::NoCertificate(path.to_owned()));
    }
    Ok(all)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| match error {
        pem::Error::NoItemsFound => TlsError::NoKey(path.to_owned()),
        error => TlsError::File(path.to_owned(), error),
    })
}

fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| unusable(path, error))?;
    }
    Ok(roots)
}

fn unusable(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> TlsError {
    TlsError::Unusable(path.to_owned(), Box::new(error))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_peer_that_is_silent_in_the_handshake_is_named_with_the_time_limit() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap().to_string();
        let roots = RootCertStore::empty();
        let builder = ClientConfig::builder_with_provider(provider());
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let config = builder.with_root_certificates(roots).with_no_client_auth();
        let client = TlsClient(Arc::new(config));
        let stream = TcpStream::connect(&address).unwrap();
        let failed = client.connect_within(Duration::from_millis(20), &address, stream);
        let error = failed.err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(error.to_string(), format!("no answer from {address} within 0.02 s"));
    }
}

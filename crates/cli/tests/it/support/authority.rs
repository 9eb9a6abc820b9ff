//! An authority that signs certificates, by OpenSSL, and connections that show them.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// An authority, whose files lie in a folder.
pub struct Authority {
    folder: PathBuf,
}

/// A connection with TLS.
pub type Connection = StreamOwned<ClientConnection, TcpStream>;

impl Authority {
    /// Makes one, and its folder.
    pub fn new(folder: PathBuf) -> Self {
        fs::create_dir(&folder).unwrap();
        let authority = Self { folder };
        openssl(
            Command::new("openssl")
                .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"])
                .args(["-nodes", "-days", "2", "-subj", "/CN=authority", "-keyout"])
                .arg(authority.path("ca.key"))
                .args(["-addext", "basicConstraints=critical,CA:TRUE", "-out"])
                .arg(authority.path("ca.pem")),
        );
        authority.sign("server", "DNS:localhost,IP:127.0.0.1");
        authority
    }

    /// A file in its folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The same, for an argument.
    pub fn arg(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Makes `NAME.pem` and `NAME.key`, with these alternative names.
    pub fn sign(&self, name: &str, names: &str) {
        let file = |end: &str| self.path(&format!("{name}.{end}"));
        fs::write(file("ext"), format!("subjectAltName={names}\n")).unwrap();
        openssl(
            Command::new("openssl")
                .args(["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
                .args(["-subj", &format!("/CN={name}"), "-keyout"])
                .arg(file("key"))
                .arg("-out")
                .arg(file("csr")),
        );
        openssl(
            Command::new("openssl")
                .args(["x509", "-req", "-days", "2", "-CAcreateserial", "-CA"])
                .arg(self.path("ca.pem"))
                .arg("-CAkey")
                .arg(self.path("ca.key"))
                .arg("-in")
                .arg(file("csr"))
                .arg("-extfile")
                .arg(file("ext"))
                .arg("-out")
                .arg(file("pem")),
        );
    }

    /// What a gateway needs to listen.
    pub fn listening(&self) -> Vec<String> {
        ["--tls-cert", &self.arg("server.pem"), "--tls-key", &self.arg("server.key")]
            .map(str::to_owned)
            .into()
    }

    /// Connects to a gateway that has a certificate of this authority, with that of `name`.
    pub fn connect(&self, address: &str, name: Option<&str>) -> io::Result<Connection> {
        let mut roots = RootCertStore::empty();
        roots.add(first(&self.path("ca.pem"))).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match name {
            None => builder.with_no_client_auth(),
            Some(name) => {
                let key = PrivateKeyDer::from_pem_file(self.path(&format!("{name}.key"))).unwrap();
                let certificate = first(&self.path(&format!("{name}.pem")));
                builder.with_client_auth_cert(vec![certificate], key).unwrap()
            }
        };
        let host = ServerName::try_from("localhost").unwrap();
        let session = ClientConnection::new(Arc::new(config), host).map_err(io::Error::other)?;
        let address = address.strip_prefix("tls:").unwrap();
        let mut connection = StreamOwned::new(session, TcpStream::connect(address)?);
        connection.conn.complete_io(&mut connection.sock)?;
        Ok(connection)
    }
}

fn first(path: &Path) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(path).unwrap()
}

fn openssl(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

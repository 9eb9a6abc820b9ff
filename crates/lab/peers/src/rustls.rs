//! A web server on rustls: each of some threads answers one connection after the other, with pages
//! that it reads from files, as nginx does.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{CipherSuite, ServerConfig, ServerConnection, StreamOwned};

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum RustlsError {
    /// rustls has no suite of that name.
    #[error("rustls has no {0}")]
    Suite(String),
    /// The certificate or its key is missing or damaged.
    #[error("the certificate or its key: {0}")]
    Pem(#[from] pem::Error),
    /// What rustls says.
    #[error("{0}")]
    Tls(#[from] rustls::Error),
    /// What the system says.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The versions of rustls and of its cryptography.
#[must_use]
pub fn rustls_version() -> String {
    let [rustls, aws_lc] = [env!("VERSION_rustls"), env!("VERSION_aws_lc_rs")];
    format!("rustls {rustls}, aws-lc-rs {aws_lc}")
}

/// The suite of that OpenSSL name, if rustls has it.
fn suite(name: &str) -> Option<CipherSuite> {
    match name {
        "ECDHE-RSA-AES128-GCM-SHA256" => Some(CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
        "ECDHE-RSA-AES256-GCM-SHA384" => Some(CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
        "TLS_AES_128_GCM_SHA256" => Some(CipherSuite::TLS13_AES_128_GCM_SHA256),
        "TLS_AES_256_GCM_SHA384" => Some(CipherSuite::TLS13_AES_256_GCM_SHA384),
        _ => None,
    }
}

/// Whether rustls has the suite of that OpenSSL name.
#[must_use]
pub fn rustls_has(name: &str) -> bool {
    suite(name).is_some()
}

/// Serves `directory/pages` on a port of 127.0.0.1, with cert.pem and key.pem of `directory`, over
/// one suite by OpenSSL's name. Returns only if it cannot.
///
/// # Errors
/// What is missing.
pub fn rustls_serve(directory: &Path, port: u16, name: &str) -> Result<(), RustlsError> {
    let suite = suite(name).ok_or_else(|| RustlsError::Suite(name.to_owned()))?;
    let mut provider: CryptoProvider = aws_lc_rs::default_provider();
    provider.cipher_suites.retain(|one| one.suite() == suite);
    let certificates = CertificateDer::pem_file_iter(directory.join("cert.pem"))?;
    let certificates = certificates.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(directory.join("key.pem"))?;
    let config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates, key)?;
    let config = Arc::new(config);
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    let pages = directory.join("pages");
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| answer_all(&listener, &config, &pages));
        }
    });
    Ok(())
}

/// One connection after the other: threads that ended would take their CPU time out of the counts.
fn answer_all(listener: &TcpListener, config: &Arc<ServerConfig>, pages: &Path) {
    loop {
        let Ok((socket, _)) = listener.accept() else { continue };
        // A client that leaves is the end of its connection only.
        let _ = answer(socket, config, pages);
    }
}

/// All requests of one connection.
fn answer(socket: TcpStream, config: &Arc<ServerConfig>, pages: &Path) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(connection, socket));
    let mut open: HashMap<PathBuf, (File, u64)> = HashMap::new();
    let mut buffer = vec![0; BUFFER];
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let page = line.split(' ').nth(1).and_then(|path| path.strip_prefix('/'));
        let page = page.filter(|page| page.bytes().all(|byte| byte.is_ascii_digit()));
        let page = pages.join(page.ok_or(io::ErrorKind::InvalidInput)?);
        // The header ends with an empty line; nothing of it matters here.
        while line.trim_end() != "" {
            line.clear();
            if stream.read_line(&mut line)? == 0 {
                return Ok(());
            }
        }
        if !open.contains_key(&page) {
            let file = File::open(&page)?;
            let len = file.metadata()?.len();
            open.insert(page.clone(), (file, len));
        }
        let (file, len) = &open[&page];
        let out = stream.get_mut();
        let header = format!(
            "HTTP/1.1 200 OK\r\nServer: rustls\r\nContent-Type: application/octet-stream\r\n\
             Content-Length: {len}\r\n\r\n"
        );
        // The header goes out with the first part of the page.
        buffer[..header.len()].copy_from_slice(header.as_bytes());
        let (mut filled, mut offset) = (header.len(), 0);
        loop {
            let part = (*len - offset).min((buffer.len() - filled) as u64) as usize;
            file.read_exact_at(&mut buffer[filled..filled + part], offset)?;
            offset += part as u64;
            out.write_all(&buffer[..filled + part])?;
            if offset == *len {
                break;
            }
            filled = 0;
        }
        out.flush()?;
    }
}

/// More than the clients of the bench have connections.
const THREADS: usize = 8;

/// Bytes that are written at once: four records, and what rustls buffers.
const BUFFER: usize = 64 << 10;

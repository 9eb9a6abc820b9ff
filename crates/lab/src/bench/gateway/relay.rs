//! A relay that only copies: what a gateway costs without cryptography.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wattlock_host::exit::Ended;

use super::load::runtime;

/// Copies each connection to one of its own, on one thread, until it is killed.
pub fn run(to: SocketAddr) -> Ended {
    runtime()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("cannot listen")?;
        rustix::net::listen(&listener, 4096).context("cannot listen")?;
        tell!("listening at {}", listener.local_addr()?);
        loop {
            let (from, _) = listener.accept().await?;
            tokio::spawn(copy(from, to));
        }
    })
}

async fn copy(mut from: TcpStream, to: SocketAddr) {
    // After thousands of connections there may be no port for a moment.
    let mut to = loop {
        match TcpStream::connect(to).await {
            Ok(to) => break to,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    if to.set_nodelay(true).is_err() {
        return;
    }
    let mut buffer = vec![0; 256 << 10];
    while let Ok(count) = from.read(&mut buffer).await {
        if count == 0 || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

//! An attacker between client and server, who sees records and may change them.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Which way a record goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    Server,
    Client,
}

/// Passes one connection on, record by record.
pub struct Between {
    pub port: u16,
    active: Arc<AtomicBool>,
}

impl Between {
    /// Shows each record that goes `toward` one of them, with its header, to `touch` from
    /// [`Between::begin`] on. Where that returns false, both connections are cut.
    pub fn new(
        to: u16,
        toward: Toward,
        touch: impl FnMut(&mut Vec<u8>) -> bool + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let active = Arc::new(AtomicBool::new(false));
        let is_active = Arc::clone(&active);
        std::thread::spawn(move || {
            let (client, _) = listener.accept().unwrap();
            let server = TcpStream::connect(("127.0.0.1", to)).unwrap();
            let (from, onto) = match toward {
                Toward::Server => (client, server),
                Toward::Client => (server, client),
            };
            let (mut back_from, mut back_onto) =
                (onto.try_clone().unwrap(), from.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut back_from, &mut back_onto);
                let _ = back_onto.shutdown(Shutdown::Write);
            });
            pass(from, onto, &is_active, touch);
        });
        Self { port, active }
    }

    /// From now on records are shown.
    pub fn begin(&self) {
        self.active.store(true, Ordering::SeqCst);
    }
}

fn pass(
    mut from: TcpStream,
    mut onto: TcpStream,
    active: &AtomicBool,
    mut touch: impl FnMut(&mut Vec<u8>) -> bool,
) {
    let mut record = vec![0; 5];
    while from.read_exact(&mut record).is_ok() {
        let len = usize::from(u16::from_be_bytes([record[3], record[4]]));
        record.resize(5 + len, 0);
        if from.read_exact(&mut record[5..]).is_err() {
            break;
        }
        if active.load(Ordering::SeqCst) && !touch(&mut record) {
            let _ = from.shutdown(Shutdown::Both);
            break;
        }
        if onto.write_all(&record).is_err() {
            break;
        }
        record.resize(5, 0);
    }
    let _ = onto.shutdown(Shutdown::Write);
}

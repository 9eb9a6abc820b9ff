//! Who is served, and how senders show who they are.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use zeroize::Zeroizing;

use super::served::{Phase, Served};
use super::socket::Socket;
use super::{Error, Inlet};

/// Decides who is served.
pub trait Welcome: Send + Sync {
    /// Looks at what a caller has shown so far.
    fn admit(&self, caller: &Caller) -> Admission;
}

/// Someone who has connected.
pub struct Caller {
    /// The address, or the number of the connection.
    pub name: String,
    /// The names in the certificate, if one was shown and verified.
    pub certificate: Vec<String>,
    /// The token, once it was asked for.
    pub token: Option<Zeroizing<Vec<u8>>>,
}

/// What becomes of a caller.
pub enum Admission {
    /// It is served.
    Admitted(Box<dyn Inlet>),
    /// It has to show a token first.
    TokenWanted,
    /// It is not served.
    Refused(&'static str),
}

/// Lets a caller show who it is. Returns its inlet, and what came behind the token.
pub(super) async fn welcome(
    served: &Served,
    socket: &Socket,
    name: String,
    host: &dyn Welcome,
) -> Result<(Box<dyn Inlet>, Zeroizing<Vec<u8>>), Error> {
    let mut phase = served.phase.subscribe();
    let given_up = async {
        // It is never closed: the sender lives as long as what is shared.
        let _ = phase.wait_for(|phase| *phase >= Phase::Draining).await;
        sleep(LAST_WORDS).await;
    };
    tokio::select! {
        biased;
        shown = timeout(PATIENCE, show(socket, name, host)) => {
            shown.map_err(|_| Error::SlowWelcome(PATIENCE))?
        }
        () = given_up => Err(Error::SlowWelcome(LAST_WORDS)),
    }
}

async fn show(
    socket: &Socket,
    name: String,
    host: &dyn Welcome,
) -> Result<(Box<dyn Inlet>, Zeroizing<Vec<u8>>), Error> {
    socket.handshake().await.map_err(Error::Handshake)?;
    let mut caller = Caller { name, certificate: socket.names(), token: None };
    let mut rest = Zeroizing::new(Vec::new());
    loop {
        match host.admit(&caller) {
            Admission::Admitted(inlet) => return Ok((inlet, rest)),
            Admission::Refused(why) => return Err(Error::Refused(why)),
            Admission::TokenWanted if caller.token.is_some() => {
                return Err(Error::Refused("its token is not in the list of tenants"));
            }
            Admission::TokenWanted => {
                let token;
                (token, rest) = read_token(socket).await?;
                caller.token = Some(token);
            }
        }
    }
}

/// Reads `token TOKEN\n`, and what came with it.
async fn read_token(socket: &Socket) -> Result<(Zeroizing<Vec<u8>>, Zeroizing<Vec<u8>>), Error> {
    let mut line = Zeroizing::new(vec![0; LONGEST_LINE]);
    let mut len = 0;
    loop {
        socket.readable().await.map_err(Error::Read)?;
        match socket.try_read(&mut line[len..]) {
            Ok(0) => return Err(Error::Refused(NO_TOKEN)),
            Ok(count) => len += count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(Error::Read(error)),
        }
        let came = &line[..len];
        let start = WORD.len().min(len);
        if came[..start] != WORD[..start] {
            return Err(Error::Refused(NO_TOKEN));
        }
        if let Some(end) = came.iter().position(|byte| *byte == b'\n') {
            let token = came[WORD.len()..end].strip_suffix(b"\r").unwrap_or(&came[WORD.len()..end]);
            return Ok((token.to_vec().into(), came[end + 1..].to_vec().into()));
        }
        if len == LONGEST_LINE {
            return Err(Error::Refused(NO_TOKEN));
        }
    }
}

const WORD: &[u8] = b"token ";

const NO_TOKEN: &str =
    "it has no certificate in the list of tenants, and sent no line with a token";

/// Bytes of the longest line with a token, and what may come with it.
const LONGEST_LINE: usize = 1024;

/// How long a caller may take to show who it is.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same once the end has come.
const LAST_WORDS: Duration = Duration::from_millis(500);

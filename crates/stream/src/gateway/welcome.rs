//! Who is served, and how senders show who they are.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use zeroize::Zeroizing;

use super::served::{Phase, Served};
use super::socket::Socket;
use super::{BufferInlet, Error, Inlet, Next, Safe};
use crate::frame::End;
use crate::message::Message;
use crate::window::Room;

/// Decides who is served.
pub trait Welcome: Send + Sync {
    /// Looks at what a caller has shown so far.
    fn admit(&self, caller: &Caller) -> Admission;

    /// Returns a check of tokens for a caller identified by its certificate; `None` if there are no tokens.
    fn token_check(&self, caller: &Caller) -> Option<Box<TokenCheck>> {
        let _ = caller;
        None
    }
}

/// Returns true if a token belongs to the caller's tenant.
pub type TokenCheck = dyn Fn(&[u8]) -> bool + Send;

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
            Admission::Admitted(inlet) => {
                let check = host.token_check(&caller).filter(|_| caller.token.is_none());
                return Ok((without_token(inlet, check), rest));
            }
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
        match token_line(came) {
            TokenLine::Whole { token, len } => {
                return Ok((token.to_vec().into(), came[len..].to_vec().into()));
            }
            TokenLine::Part if len < LONGEST_LINE => {}
            TokenLine::Part | TokenLine::None => return Err(Error::Refused(NO_TOKEN)),
        }
    }
}

/// What input begins with.
enum TokenLine<'a> {
    /// A line with a token, of `len` bytes.
    Whole { token: &'a [u8], len: usize },
    /// A part of one, or nothing yet.
    Part,
    /// Something else.
    None,
}

fn token_line(bytes: &[u8]) -> TokenLine<'_> {
    let start = WORD.len().min(bytes.len());
    if bytes[..start] != WORD[..start] {
        return TokenLine::None;
    }
    let Some(end) = memchr::memchr(b'\n', bytes) else { return TokenLine::Part };
    let token = &bytes[WORD.len()..end];
    TokenLine::Whole { token: token.strip_suffix(b"\r").unwrap_or(token), len: end + 1 }
}

/// Takes a token that a caller sends besides its certificate out of its input, where it would be kept as a message.
fn without_token(inlet: Box<dyn Inlet>, check: Option<Box<TokenCheck>>) -> Box<dyn Inlet> {
    match check {
        Some(check) => Box::new(AfterToken { inlet, check: Some(check) }),
        None => inlet,
    }
}

struct AfterToken {
    inlet: Box<dyn Inlet>,
    /// `None` once something came that is no token, or the token was taken.
    check: Option<Box<TokenCheck>>,
}

impl Inlet for AfterToken {
    fn next(&mut self, bytes: &[u8], ended: bool) -> Result<Next, Error> {
        if self.check.is_some() {
            match token_line(bytes) {
                TokenLine::Whole { len, .. } => return Ok(Next::Aside(len)),
                // Too long for a token, and not to be kept all the same.
                TokenLine::Part if bytes.len() >= LONGEST_LINE => {
                    return Err(Error::Refused(OTHER_TOKEN));
                }
                TokenLine::Part if !ended => return Ok(Next::More(bytes.len() + 1)),
                TokenLine::Part if bytes.len() >= WORD.len() => {
                    return Err(Error::Refused(OTHER_TOKEN));
                }
                TokenLine::Part | TokenLine::None => self.check = None,
            }
        }
        self.inlet.next(bytes, ended)
    }

    fn aside(&mut self, unit: &[u8]) -> Result<(), Error> {
        let Some(check) = self.check.take() else { return self.inlet.aside(unit) };
        match token_line(unit) {
            TokenLine::Whole { token, .. } if check(token) => Ok(()),
            _ => Err(Error::Refused(OTHER_TOKEN)),
        }
    }

    fn put(&mut self, unit: &[u8], room: Room<Message>) -> Result<(), Error> {
        self.inlet.put(unit, room)
    }

    fn with_buffers(&mut self) -> Option<&mut dyn BufferInlet> {
        self.inlet.with_buffers()
    }

    fn expects_header(&self) -> bool {
        self.inlet.expects_header()
    }

    fn answers(&mut self) -> Vec<u8> {
        self.inlet.answers()
    }

    fn answers_memory(&self) -> usize {
        self.inlet.answers_memory()
    }

    fn owed(&self) -> Option<Arc<Safe>> {
        self.inlet.owed()
    }

    fn is_acknowledged(&self, has_unsent: bool) -> bool {
        self.inlet.is_acknowledged(has_unsent)
    }

    fn farewell(&self) -> &'static [u8] {
        self.inlet.farewell()
    }

    fn end_needs(&self) -> u64 {
        self.inlet.end_needs()
    }

    fn end(&mut self, end: End, left: usize, room: Option<Room<Message>>) -> Result<(), Error> {
        self.inlet.end(end, left, room)
    }
}

const WORD: &[u8] = b"token ";

const NO_TOKEN: &str =
    "it has no certificate in the list of tenants, and sent no line with a token";

const OTHER_TOKEN: &str =
    "its token and its certificate belong to different tenants, or the token to none";

/// Bytes of the longest line with a token, and what may come with it.
const LONGEST_LINE: usize = 1024;

/// How long a caller may take to show who it is.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same once the end has come.
const LAST_WORDS: Duration = Duration::from_millis(500);

//! Empties one outbox into connections to the backend, one after the other.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::outbox::{Next, Outbox, Unit};
use crate::gateway::socket::Socket;

/// How a connection to the backend ended.
enum Ended {
    /// All was written, and nothing follows.
    Complete,
    /// The backend closed it between two units.
    Closed,
    /// What was queued was dropped.
    GivenUp,
}

/// Delivers all that is put into an outbox, until it has ended or is given up.
pub(super) async fn deliver(outbox: Arc<Outbox>) {
    run(&outbox).await;
    outbox.done();
}

async fn run(outbox: &Outbox) {
    let mut unit = None;
    let mut is_first = true;
    loop {
        // One that was closed is not opened again before there is something for it.
        while !is_first && unit.is_none() {
            match outbox.next() {
                Next::Write(next) => unit = Some(next),
                Next::End => return,
                // There is no connection that could break or fail.
                Next::Wait | Next::Break | Next::Failed(_) => outbox.work.notified().await,
            }
        }
        is_first = false;
        let Ok(_descriptor) = outbox.shared.descriptors.acquire().await else { return };
        // On the heap, since what it needs is twice what a connection does afterwards.
        let Some(socket) = Box::pin(connect(outbox, &mut unit)).await else { return };
        let socket = Arc::new(socket);
        outbox.attach(&socket);
        let ended = write(outbox, &socket, &mut unit).await;
        let (units, failure) = outbox.detach();
        let ended = match (ended, failure) {
            // That was seen by who wrote a unit as it came.
            (Ok(Ended::Closed), Some(error)) => Err(error),
            (ended, _) => ended,
        };
        match ended {
            Ok(Ended::Complete) => return,
            Ok(Ended::Closed) => {}
            Ok(Ended::GivenUp) => unit = None,
            Err(error) => {
                outbox.lost(&error, units);
                if let Some(unit) = &mut unit {
                    unit.step_back(outbox.framing);
                }
            }
        }
    }
}

/// Connects, however long that takes; `None` if nothing is left that a connection is needed for.
async fn connect(outbox: &Outbox, unit: &mut Option<Unit>) -> Option<Socket> {
    let mut delay = SHORTEST;
    loop {
        let connected = timeout(PATIENCE, Socket::connect(&outbox.shared.to)).await;
        let error = match connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(socket) => {
                outbox.shared.note_connection(Ok(()));
                return Some(socket);
            }
            Err(error) => error,
        };
        outbox.shared.note_connection(Err(&error));
        if unit.as_ref().is_some_and(|unit| outbox.was_given_up(unit)) {
            *unit = None;
        }
        let is_empty = unit.is_none() && outbox.is_over();
        if !is_empty && outbox.is_late() {
            outbox.give_up(&error.to_string());
        }
        if is_empty || outbox.is_late() {
            return None;
        }
        sleep(delay).await;
        delay = (delay * 2).min(LONGEST);
    }
}

/// Writes units until the connection ends. `unit` is what was not written to its end.
async fn write(outbox: &Outbox, socket: &Socket, unit: &mut Option<Unit>) -> io::Result<Ended> {
    loop {
        let Some(current) = unit else {
            match outbox.next() {
                Next::Write(next) => *unit = Some(next),
                Next::End => return end(socket).await,
                Next::Break => return Ok(Ended::GivenUp),
                Next::Failed(error) => return Err(error),
                Next::Wait => tokio::select! {
                    () = outbox.work.notified() => {}
                    ready = socket.writable(), if socket.has_unsent() => {
                        ready?;
                        socket.flush()?;
                    }
                    read = ignore(socket) => if read? == 0 && !outbox.has_begun() {
                        return Ok(Ended::Closed);
                    },
                },
            }
            continue;
        };
        if outbox.was_given_up(current) {
            return Ok(Ended::GivenUp);
        }
        if current.written == 0
            && let Some(0) = socket.ignore()?
        {
            return Ok(Ended::Closed);
        }
        tokio::select! {
            ready = socket.writable() => {
                ready?;
                match socket.try_write(&current.bytes[current.written..]) {
                    Ok(count) => if outbox.took(count, current)
                        && let Some(written) = unit.take()
                    {
                        outbox.shared.reuse(written.bytes);
                    },
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
            () = outbox.work.notified() => {}
            () = sleep(outbox.shared.patience.stall) => if outbox.is_late() {
                outbox.give_up("it accepted nothing until the end");
            },
        }
    }
}

/// Ends a connection, and waits for the backend to do so, too: one that resets it instead may have
/// lost what it was sent.
async fn end(socket: &Socket) -> io::Result<Ended> {
    let read_to_end = async {
        socket.end().await?;
        while ignore(socket).await? > 0 {}
        io::Result::Ok(())
    };
    match timeout(FAREWELL, read_to_end).await {
        Ok(Err(error)) => Err(error),
        Ok(Ok(())) | Err(_) => Ok(Ended::Complete),
    }
}

/// Reads what a backend sends, which nothing is done with.
async fn ignore(socket: &Socket) -> io::Result<usize> {
    loop {
        socket.readable().await?;
        if let Some(count) = socket.ignore()? {
            return Ok(count);
        }
    }
}

/// How long a backend may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long it may take to close its end after the last unit.
const FAREWELL: Duration = Duration::from_secs(2);

/// The delay before the first attempt to connect again; each further one is twice as long.
const SHORTEST: Duration = Duration::from_millis(20);

/// The longest delay between attempts.
const LONGEST: Duration = Duration::from_secs(1);

//! The inlets of a recording: each makes records of what one sender sends.

use std::sync::Arc;

use super::{Recording, now_us};
use crate::frame::End;
use crate::gateway::answers::{Answers, Safe};
use crate::gateway::protocol::{Messages, Speech};
use crate::gateway::{Counters, Error, Inlet, Next};
use crate::lock::lock;
use crate::message::Message;
use crate::pool::Pool;
use crate::segment::{Payload, Recorded, record_to_seal};
use crate::window::Room;

/// One input on its way into a recording.
pub(super) struct RecordingInlet {
    pub recording: Arc<Recording>,
    pub number: u64,
    pub pool: Option<Arc<Pool>>,
    pub speech: Box<dyn Speech>,
    pub answers: Answers,
    /// True unless a message came that is not acknowledged.
    pub all_have_answers: bool,
}

impl Inlet for RecordingInlet {
    fn next(&mut self, bytes: &[u8], ended: bool) -> Result<Next, Error> {
        self.speech.find(bytes, ended)
    }

    fn aside(&mut self, unit: &[u8]) -> Result<(), Error> {
        let answer = self.speech.control(unit)?;
        self.answers.say(&answer);
        Ok(())
    }

    fn answers(&mut self) -> Vec<u8> {
        self.answers.take()
    }

    fn answers_memory(&self) -> usize {
        self.answers.memory()
    }

    fn owed(&self) -> Option<Arc<Safe>> {
        self.answers.owed()
    }

    fn is_acknowledged(&self, has_unsent: bool) -> bool {
        let has_all = self.all_have_answers && self.answers.owed().is_none() && !has_unsent;
        has_all || self.speech.has_ended()
    }

    fn farewell(&self) -> &'static [u8] {
        self.speech.farewell()
    }

    fn put(&mut self, unit: &[u8], room: Room<Message>) -> Result<(), Error> {
        let recording = &self.recording;
        let time_us = now_us();
        let Messages { bytes, count, answer } = self.speech.take(unit)?;
        let mut state = lock(&recording.state);
        if state.ended {
            return Err(Error::Ended);
        }
        recording.turn_if_due(&mut state)?;
        recording.admit(&mut state, self.number)?;
        let next = recording.next_record(&mut state)?;
        let front = Payload::front_of_messages(self.number, time_us);
        let pool = self.pool.as_deref();
        let message = record_to_seal(next, &recording.additional, &front, &bytes, pool);
        if let Some(segment) = &mut state.segment {
            segment.bytes += message.buffer.len() as u64;
        }
        state.epoch.bytes += bytes.len() as u64;
        let recorded = Recorded::Messages { source: self.number, time_us };
        let promise = self.answers.promise(&answer);
        self.all_have_answers &= promise.is_some();
        recording.put(&mut state, message, recorded, (promise, None), room);
        drop(state);
        Counters::add(&recording.shared.counters.messages, count);
        Counters::add(&recording.shared.counters.bytes_in, unit.len() as u64);
        Ok(())
    }

    fn end_needs(&self) -> u64 {
        Message::charge(0, self.recording.beside())
    }

    fn end(&mut self, end: End, _: usize, room: Option<Room<Message>>) -> Result<(), Error> {
        let recording = &self.recording;
        let mut state = lock(&recording.state);
        if state.ended {
            return Err(Error::Ended);
        }
        let room = room.ok_or(Error::Ended)?;
        // One that sent nothing is a source, too.
        recording.admit(&mut state, self.number)?;
        state.sources.remove(&self.number);
        let next = recording.next_record(&mut state)?;
        let payload = Payload::End { source: self.number, end }.to_bytes();
        let message = record_to_seal(next, &recording.additional, &payload, b"", None);
        recording.put(&mut state, message, Recorded::Other, (None, None), room);
        Ok(())
    }
}

//! The device with a socket that stands for the kernel's: right, in small answers, and with every
//! fault. With a real kernel it runs in a virtual machine, in the tests of the laboratory.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};
use wattlock_af_alg::{AfAlgDevice, LinuxSockets, SocketSource};
use wattlock_engine::crypto::{AesKernel, AesKey};
use wattlock_engine::{Cipher, Data, Engine, Job, Policy, Report};

/// Longer than a part, and no multiple of one.
const MESSAGE: usize = 150_000 / 16 * 16;
const MESSAGES: usize = 7;
const KEY: [u8; 32] = [3; 32];

/// What the kernel's place does to each part of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    /// Encrypts it.
    Right,
    /// Encrypts it, and answers in two halves.
    InHalves,
    /// Ends without an answer.
    Ends,
    /// Says nothing.
    Silent,
    /// Refuses to be connected.
    Refuses,
}

/// Sockets at whose other end a thread encrypts under an IV of zeros.
struct Fake {
    answer: Answer,
    /// Messages of a socket before it answers otherwise than right.
    good: usize,
}

impl SocketSource for Fake {
    fn socket(&self, key: &[u8]) -> io::Result<OwnedFd> {
        if self.answer == Answer::Refuses {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let key = AesKey::new(AesKernel::Soft, key).unwrap();
        let (answer, good) = (self.answer, self.good);
        thread::spawn(move || serve(&theirs, &key, answer, good));
        Ok(ours)
    }
}

fn serve(socket: &OwnedFd, key: &AesKey, answer: Answer, good: usize) {
    let mut part = vec![0; 1 << 20];
    let (mut iv, mut done) = ([0; 16], 0);
    loop {
        let Ok((len @ 1.., _)) = recv(socket, &mut part[..], RecvFlags::empty()) else { return };
        let part = &mut part[..len];
        let bad = done / MESSAGE >= good;
        match answer {
            Answer::Ends if bad => return,
            Answer::Silent if bad => continue,
            _ => {}
        }
        let ivs = [iv];
        let cipher = Cipher::CbcEncrypt { key, ivs: &ivs };
        let job =
            Job { cipher, chunk_len: len, data: Data::InPlace { slots: part }, deadline: None };
        job.run_here().unwrap();
        iv.copy_from_slice(&part[len - 16..]);
        done += len;
        if done % MESSAGE == 0 {
            iv = [0; 16];
        }
        let half = if answer == Answer::InHalves && bad { len / 2 } else { len };
        for answer in [&part[..half], &part[half..]].into_iter().filter(|half| !half.is_empty()) {
            if send(socket, answer, SendFlags::NOSIGNAL).is_err() {
                return;
            }
        }
    }
}

/// What comes out, and what is reported.
fn encrypted(fake: Fake, depth: usize) -> (Vec<u8>, Report) {
    let device = AfAlgDevice::new(Arc::new(fake), depth, Duration::from_millis(300));
    let engine = Engine::new(1).with_policy(Policy::Gpu).with_device(Box::new(device));
    let engine = engine.with_chosen(&[AfAlgDevice::NAME]).unwrap();
    let mut slots = plain();
    let key = AesKey::new(AesKernel::best(), &KEY).unwrap();
    let report = engine.run_by(Policy::Gpu, job(&key, &mut slots)).unwrap();
    (slots, report)
}

fn job<'a>(key: &'a AesKey, slots: &'a mut [u8]) -> Job<'a> {
    let cipher = Cipher::CbcEncrypt { key, ivs: &[[0; 16]; MESSAGES] };
    Job { cipher, chunk_len: MESSAGE, data: Data::InPlace { slots }, deadline: None }
}

fn plain() -> Vec<u8> {
    (0..MESSAGE * MESSAGES).map(|n| (n % 253) as u8).collect()
}

fn expected() -> Vec<u8> {
    let key = AesKey::new(AesKernel::Soft, &KEY).unwrap();
    let mut slots = plain();
    job(&key, &mut slots).run_here().unwrap();
    slots
}

#[test]
fn messages_in_flight_on_several_sockets_are_right() {
    for answer in [Answer::Right, Answer::InHalves] {
        for depth in [1, 3, 16] {
            let (slots, report) = encrypted(Fake { answer, good: 0 }, depth);
            assert!(slots == expected(), "{answer:?} {depth}");
            let device = report.devices().next().unwrap();
            assert_eq!((device.bytes, &device.fault), (plain().len() as u64, &None), "{answer:?}");
        }
    }
}

#[test]
fn the_cpu_finishes_what_the_kernel_does_not() {
    for (answer, says) in [
        (Answer::Ends, "socket closed before the message was complete"),
        (Answer::Silent, "no answer within 300ms"),
        (Answer::Refuses, "permission denied"),
    ] {
        for good in [0, 1] {
            let (slots, report) = encrypted(Fake { answer, good }, 2);
            assert!(slots == expected(), "{answer:?} {good}");
            let fault = report.devices().find_map(|device| device.fault.clone()).unwrap();
            let fault = fault.to_string();
            assert!(fault.contains(says) || fault.contains("sendmsg"), "{answer:?}: {fault}");
        }
    }
}

#[test]
fn a_kernel_that_computes_something_else_is_not_opened() {
    // The test when it is opened has IVs that are not zero.
    let wrong = AfAlgDevice::open(
        Arc::new(Fake { answer: Answer::Right, good: 0 }),
        2,
        Duration::from_secs(10),
    );
    assert!(wrong.err().unwrap().to_string().contains("differs from the CPU's"));
}

#[test]
fn the_kernel_of_this_machine() {
    match AfAlgDevice::open(Arc::new(LinuxSockets), 4, Duration::from_secs(10)) {
        Ok(device) => assert_eq!(device.name(), AfAlgDevice::NAME),
        Err(why) => wattlock_testing::skip("af-alg", why),
    }
}

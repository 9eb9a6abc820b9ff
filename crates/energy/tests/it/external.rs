//! Meters that are shell commands or a small web server: their readings, and what is reported if
//! they hang, fail, print garbage or lie.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use wattlock_energy::{Caveat, Class, External, Found, Metered, Root, Sources, Status};
use wattlock_testing::{wait_for, wait_until};

/// A machine without any other meter.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn sources(&self, meter: &str) -> Sources {
        let external: External = meter.parse().unwrap();
        Sources::open_with(&Root::new(self.0.path()), Some(&external))
    }

    /// What is said of a meter.
    fn found(&self, meter: &str) -> Found {
        self.sources(meter).found()[0].clone()
    }

    /// Why a meter is not read.
    fn why(&self, meter: &str) -> String {
        let found = self.found(meter);
        assert_eq!((found.source, found.status), ("external", Status::Unavailable), "{meter}");
        assert!(!found.why.contains(char::is_control), "{:?}", found.why);
        assert!(found.why.chars().count() < 300, "{}", found.why);
        found.why
    }

    /// A file whose path is put into a command.
    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

fn measure(sources: &mut Sources, work: impl FnOnce()) -> Metered {
    sources.measure(work).unwrap().1
}

/// Whether the energy is that of a steady power. The window is a little longer than the time
/// between its samples.
fn is_steady(window: &Metered, watts: f64) -> bool {
    let energy = window.sum();
    let truth = watts * window.wall.as_secs_f64();
    let best = energy.best().unwrap().joules();
    let (lo, hi) = energy.interval().unwrap();
    best <= truth && best > 0.3 * truth && lo.joules() <= truth && truth <= hi.joules()
}

/// The bytes of a file that a command writes one by one, to say how far it is.
fn count(path: &str) -> usize {
    fs::read(path).map_or(0, |bytes| bytes.len())
}

/// Waits for `more` readings of a command that appends a byte to `path` for each.
fn more_readings(more: usize, path: &str) {
    let before = count(path);
    wait_until("there are more readings", || count(path) >= before + more);
}

/// True if one of the processes whose numbers are the lines of a file runs.
fn one_runs(path: &str) -> bool {
    let numbers = fs::read_to_string(path).unwrap_or_default();
    numbers.lines().any(|number| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
    })
}

#[test]
fn a_command_that_goes_on_is_listened_to() {
    let machine = Machine::new();
    let readings = machine.path("readings");
    let mut sources = machine.sources(&format!(
        "echo '# wall power'; while :; do echo 50 W; printf x >> {readings}; sleep 0.05; done"
    ));
    assert_eq!(sources.found()[0].status, Status::Used);
    assert_eq!(sources.found()[0].why, "all that the mains deliver");
    let window = measure(&mut sources, || more_readings(10, &readings));
    assert!(is_steady(&window, 50.0), "{:?}", window.sum());
    assert_eq!(window.sum().class(), Class::Integrated);
    assert!(window.sum().covers().eq(["wall"]));
}

#[test]
fn a_command_that_ends_is_run_again() {
    let machine = Machine::new();
    let runs = machine.path("runs");
    let mut sources = machine.sources(&format!("printf x >> {runs}; printf '120.5 W ± 1%%'"));
    // Its interval is known by its second run.
    assert!(count(&runs) >= 2);
    let window = measure(&mut sources, || more_readings(2, &runs));
    assert!(is_steady(&window, 120.5), "{:?}", window.sum());
}

#[test]
fn energy_is_counted() {
    let machine = Machine::new();
    let joules = machine.path("joules");
    fs::write(&joules, "1000.00 J").unwrap();
    let said = machine.path("said");
    let meter = format!("while :; do cat {joules}; echo; printf x >> {said}; sleep 0.03; done");
    let mut sources = machine.sources(&meter);
    assert!(sources.can_measure());
    let mut after = |text: &str| {
        let done = sources.measure(|| {
            let new = format!("{joules}.new");
            fs::write(&new, text).unwrap();
            fs::rename(new, &joules).unwrap();
            more_readings(5, &said);
        });
        done.unwrap().1.sum()
    };
    let sum = after("1007.50 J");
    assert_eq!((sum.class(), sum.best().unwrap().0), (Class::Measured, 7_500_000));
    // Where it goes back, it was set back.
    let sum = after("3.00 J");
    assert_eq!(sum.interval(), None);
    assert!(sum.caveats().any(|caveat| caveat == Caveat::Reset));
    let sum = after("900000000.00 J");
    assert!(sum.caveats().any(|caveat| caveat == Caveat::Implausible));
    // Another unit in the middle is no number of anything.
    let sum = after("7 W");
    assert_eq!(sum.interval(), None);
    assert!(sum.gaps()[0].contains("both joules and watts"), "{:?}", sum.gaps());
}

#[test]
fn a_command_that_says_nothing_of_use_is_quoted() {
    let machine = Machine::new();
    for (command, why) in [
        ("echo hello", "\"hello\""),
        ("printf 'time,watts\\n1,5\\n'", "time,watts"),
        ("echo -- -5 W", "is not a reading such as"),
        ("printf '%s\\n' '-5 W'", "less than zero"),
        ("echo NaN W", "not a finite number"),
        ("echo 1e300 W", "more than any machine"),
        ("printf '\\033[31mred\\a\\n'", "red"),
        ("head -c 10000000 /dev/zero | tr '\\0' x", "longer than 256 bytes"),
        ("head -c 10000000 /dev/urandom", "\""),
        ("true", "without a reading"),
        ("echo '# nothing'", "without a reading"),
        ("echo no meter here >&2; exit 3", "no meter here"),
        ("echo 5 W; echo no more >&2; exit 3", "the meter command failed with exit code 3: "),
        ("kill -9 $$", "ended by signal 9"),
        ("/nowhere/meter", "nowhere"),
        ("", "no command"),
    ] {
        let said = machine.why(command);
        assert!(said.contains(why), "{command}: {said}");
    }
    let found = machine.found("echo hello");
    assert!(found.fix.unwrap().contains("docs/spec/meter.md"));
    // One that says nothing is not told how to say it.
    for (silent, tried) in [
        ("exit 3", "run the command by itself: `exit …`"),
        ("PASSWORD=secret exit 3", "run the command by itself"),
        ("http://user:secret@127.0.0.1:1/secret?secret", "tried to ask http://127.0.0.1:1;"),
    ] {
        let found = machine.found(silent);
        let fix = found.fix.unwrap();
        assert!(fix.contains(tried) && !fix.contains("secret"), "{fix}");
        assert!(!fix.contains("231.5 W") && !found.why.contains("secret"), "{fix}: {}", found.why);
    }
}

#[test]
fn a_command_that_hangs_is_killed_with_all_it_started() {
    let machine = Machine::new();
    let alive = machine.path("alive");
    // A child and a grandchild that go on until they are killed.
    let goes_on = format!("echo $$ >> {alive}; exec sleep 1000");
    let hangs = format!("echo $$ >> {alive}; sh -c '{goes_on}' & sleep 1000");
    assert!(machine.why(&hangs).contains("no reading within 5 s"));
    assert!(count(&alive) > 2);
    wait_until("all are gone", || !one_runs(&alive));
    // The same where it works, and its meter is no longer needed.
    fs::remove_file(&alive).unwrap();
    let works = format!("sh -c '{goes_on}' & while :; do echo 5 W; sleep 0.05; done");
    let sources = machine.sources(&works);
    assert_eq!(sources.found()[0].status, Status::Used);
    wait_until("the grandchild runs", || one_runs(&alive));
    drop(sources);
    wait_until("the grandchild is gone", || !one_runs(&alive));
}

#[test]
fn one_that_fails_at_its_third_reading_is_a_gap() {
    let machine = Machine::new();
    let (go, runs) = (machine.path("go"), machine.path("runs"));
    let command = format!(
        "printf x >> {runs}; echo 5 W; sleep 0.05; echo 5 W; while ! [ -e {go} ]; do sleep 0.02; done; \
         echo broken >&2; exit 1"
    );
    let mut sources = machine.sources(&command);
    assert_eq!(sources.found()[0].status, Status::Used);
    let fails = || {
        let before = count(&runs);
        fs::write(&go, "").unwrap();
        // The next run, which fails too, begins after the failure of this one was noticed.
        wait_until("it runs again", || count(&runs) > before + 1);
    };
    let sum = sources.measure(fails).unwrap().1.sum();
    assert!(sum.gaps().iter().any(|gap| gap.contains("broken")), "{:?}", sum.gaps());
    assert!(sum.caveats().any(|caveat| caveat == Caveat::Gap));
}

#[test]
fn nonsense_in_the_middle_is_a_gap_that_ends() {
    let machine = Machine::new();
    let line = machine.path("line");
    fs::write(&line, "5 W\n").unwrap();
    let readings = machine.path("readings");
    let meter = format!("while :; do cat {line}; printf x >> {readings}; sleep 0.02; done");
    let mut sources = machine.sources(&meter);
    let said = |text: &str| {
        let new = format!("{line}.new");
        fs::write(&new, text).unwrap();
        fs::rename(new, &line).unwrap();
        // The power is sampled meanwhile.
        more_readings(20, &readings);
    };
    let sum = sources
        .measure(|| {
            said("out of range\n");
            said("5 W\n");
        })
        .unwrap()
        .1
        .sum();
    assert!(sum.gaps().iter().all(|gap| gap.contains("out of range")), "{:?}", sum.gaps());
    assert!(!sum.gaps().is_empty() && sum.interval().is_some());
    let sum = sources.measure(|| said("out of range\n")).unwrap().1.sum();
    assert_eq!(sum.interval(), None);
}

#[test]
fn a_reading_that_is_old_is_a_gap() {
    let machine = Machine::new();
    let mut sources = machine.sources("echo 5 W; sleep 0.1; echo 5 W; sleep 1000");
    assert_eq!(sources.found()[0].status, Status::Used);
    let sum = wait_for(|| {
        let sum = measure(&mut sources, || ()).sum();
        let is_old = sum.gaps().iter().any(|gap| gap.contains("s old"));
        if is_old { Ok(sum) } else { Err(format!("the reading is no gap: {sum:?}")) }
    });
    assert_eq!(sum.interval(), None);
}

/// A web server that answers each request so; where it is.
fn serve(answer: impl Fn(&mut TcpStream) + Send + 'static) -> String {
    serve_counted(answer).0
}

/// The same, and how many requests it has answered.
fn serve_counted(answer: impl Fn(&mut TcpStream) + Send + 'static) -> (String, Arc<AtomicUsize>) {
    let answered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&answered);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/meter?id=0", listener.local_addr().unwrap());
    // It ends with the test.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            answer(&mut stream);
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    (url, answered)
}

fn body(text: &'static str) -> impl Fn(&mut TcpStream) + Send + 'static {
    move |stream| {
        let length = text.len();
        let _ = write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
        );
    }
}

#[test]
fn a_url_is_asked() {
    let machine = Machine::new();
    let (plain, plain_asked) = serve_counted(body("# plug\n42.5 W +- 1%\n"));
    let (json, json_asked) =
        serve_counted(body(r#"{"id":0,"apower":42.5,"aenergy":{"total":10.25}}"#));
    for (meter, asked) in [(plain, plain_asked), (format!("{json}#/apower=W"), json_asked)] {
        let mut sources = machine.sources(&meter);
        assert_eq!(sources.found()[0].status, Status::Used, "{}", sources.found()[0].why);
        let window = measure(&mut sources, || {
            let before = asked.load(Ordering::Relaxed);
            wait_until("it is asked again", || asked.load(Ordering::Relaxed) > before);
        });
        assert!(is_steady(&window, 42.5), "{:?}", window.sum());
    }
    assert!(machine.sources(&format!("{json}#/aenergy/total=Wh")).can_measure());
}

#[test]
fn a_url_that_does_not_answer_says_why() {
    let machine = Machine::new();
    let status = |code: &'static str| {
        serve(move |stream| {
            let _ = write!(
                stream,
                "HTTP/1.1 {code}\r\nContent-Length: 3\r\nConnection: close\r\n\r\n5 W"
            );
        })
    };
    // Until the other end gives up.
    let slow = serve(|stream| drop(stream.read_to_end(&mut Vec::new())));
    let drips = serve(|stream| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
        // A byte each tenth of a second, until the other end gives up.
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        while write!(stream, "5").is_ok() && !matches!(stream.read(&mut [0]), Ok(0)) {}
    });
    let giant = serve(|stream| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        while stream.write_all(&[b'5'; 65_536]).is_ok() {}
    });
    let cut = serve(|stream| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n5 W");
    });
    let home = serve(body(r#"{"apower":"\u0007nothing"}"#));
    for (url, why) in [
        (status("404 Not Found"), "404"),
        (status("500 Internal Server Error"), "500"),
        (slow, "timeout"),
        (drips, "timeout"),
        (giant, "limit"),
        (cut, "it did not answer"),
        // A port that was free a moment ago may be another test's by now; this one never is.
        ("http://127.0.0.1:1/".into(), "it did not answer"),
        (serve(body("hello")), "hello"),
        (serve(body("")), "without a reading"),
        (serve(|stream| drop(stream.write_all(b"\0\x01garbage\r\n\r\n"))), "it did not answer"),
        (format!("{home}#/apower=W"), "nothing"),
        (format!("{home}#/power=W"), "without /power"),
        (format!("{home}#/apower"), "JSON pointer and a unit"),
        (format!("{home}#/apower=V"), "JSON pointer and a unit"),
        ("http://".into(), "it did not answer"),
        ("https://127.0.0.1/".into(), "https"),
    ] {
        let said = machine.why(&url);
        assert!(said.contains(why), "{url}: {said}");
    }
}

#[test]
fn a_url_that_goes_away_is_a_gap() {
    let machine = Machine::new();
    let answers = AtomicUsize::new(0);
    let (url, asked) = serve_counted(move |stream| {
        if answers.fetch_add(1, Ordering::Relaxed) < 2 {
            body("5 W")(stream);
        }
    });
    let mut sources = machine.sources(&url);
    assert_eq!(sources.found()[0].status, Status::Used);
    let sum = measure(&mut sources, || {
        wait_until("it is asked in vain", || asked.load(Ordering::Relaxed) > 3);
    })
    .sum();
    assert_eq!(sum.interval(), None);
    assert!(sum.gaps().iter().any(|gap| gap.contains("did not answer")), "{:?}", sum.gaps());
}

#[test]
fn secrets_of_a_url_are_not_repeated() {
    let why = Machine::new().why("http://admin:hunter2@127.0.0.1:1/?password=hunter2");
    assert!(!why.contains("hunter2"), "{why}");
}

#[test]
fn a_meter_that_reads_zero_is_not_used_for_this_machine() {
    let opened = |command: &str| {
        let external = External::Command(command.into());
        Sources::open_with(&Root::default(), Some(&external)).found()[0].clone()
    };
    let found = opened("while :; do echo 50 W; sleep 0.05; done");
    assert_eq!(found.status, Status::Used, "{}", found.why);
    for (watts, why) in [("0", "the sensor showed almost no power in "), ("0.1", "on a busy CPU")] {
        let found = opened(&format!("while :; do echo {watts} W; sleep 0.05; done"));
        assert_eq!(found.status, Status::Unavailable);
        assert!(found.why.contains(why), "{}", found.why);
    }
}

#[test]
fn a_count_that_goes_back_is_seen_between_two_looks() {
    let machine = Machine::new();
    let readings = machine.path("readings");
    let meter = format!(
        "echo 1 J; sleep 0.1; echo 2 J; while [ ! -e {readings} ]; do sleep 0.02; done; echo 1 J; \
         while :; do echo 9 J; printf x >> {readings}.done; sleep 0.02; done"
    );
    let mut sources = machine.sources(&meter);
    let work = || {
        fs::write(&readings, "").unwrap();
        more_readings(5, &format!("{readings}.done"));
    };
    let (_, window) = sources.measure(work).unwrap();
    assert_eq!(window.sum().interval(), None);
    assert!(window.sum().caveats().any(|caveat| caveat == Caveat::Reset), "{window:?}");
}

#[test]
fn the_age_of_the_last_reading_is_in_the_interval() {
    let machine = Machine::new();
    // 10 W, and silent for a second before the window ends.
    let silent = machine.path("silent");
    let meter = format!(
        "i=0; while [ $i -lt 9 ]; do i=$((i+1)); echo $i J; sleep 0.1; done; sleep 1; : > {silent}; \
         sleep 100"
    );
    let mut sources = machine.sources(&meter);
    let window = measure(&mut sources, || {
        wait_until("the meter was silent", || Path::new(&silent).exists());
    });
    let (_, hi) = window.sum().interval().unwrap();
    let best = window.sum().best().unwrap();
    assert!(hi.joules() > best.joules() + 5.0, "{window:?}");
}

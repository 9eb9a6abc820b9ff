//! What sealing costs: CPU time of the mirror's thread for each byte, with sealing and without, by turns.
//!
//! `cost SERVERS ROUNDS RECORDS SIZE`, with a broker that may be filled: it makes a topic `cost-SIZE`, and new topics for
//! each run.
#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on has failed")]

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{BaseRecord, Producer, ThreadedProducer};
use rustix::time::{ClockId, clock_gettime};
use wattlock_kafka::{
    Binding, Cluster, Done, Fault, Mirror, Rotation, Sealing, Settings, Transform,
};
use wattlock_record::new_session_key;

/// Copies values as they are.
struct Plain;

impl Transform for Plain {
    fn prepare(&mut self) {}

    fn apply(&mut self, _: Option<&[u8]>, value: &[u8], output: &mut Vec<u8>) -> Result<(), Fault> {
        output.clear();
        output.extend_from_slice(value);
        Ok(())
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [servers, rounds, records, size] = &args[..] else {
        panic!("cost SERVERS ROUNDS RECORDS SIZE");
    };
    let (rounds, records, size) = (
        rounds.parse::<usize>().unwrap(),
        records.parse::<usize>().unwrap(),
        size.parse::<usize>().unwrap(),
    );
    let source = format!("cost-{size}");
    topic(servers, &source);
    fill(servers, &source, records, size);
    let mut costs = [Vec::new(), Vec::new()];
    for round in 0..=rounds {
        for (which, name) in ["plain", "sealed"].into_iter().enumerate() {
            // Each goes first in every second round.
            let (which, name) = if round % 2 == 0 { (which, name) } else { other(which) };
            let cost = run(servers, &source, &format!("{source}-{name}-{round}"), which == 1);
            let [ns, rate] = cost.map(|cost| (cost * 1000.0).round() / 1000.0);
            println!("round {round}: {name}: {ns} ns/B of the main thread, {rate} MB/s");
            // The first round warms up.
            if round > 0 {
                costs[which].push(cost[0]);
            }
        }
    }
    let [plain, sealed] = costs.map(|mut costs| {
        costs.sort_by(f64::total_cmp);
        (costs[costs.len() / 2], costs[0], costs[costs.len() - 1])
    });
    println!("{size} bytes, {records} records, medians of {rounds} (least, most), ns/B:");
    println!("plain {:.3} ({:.3}, {:.3})", plain.0, plain.1, plain.2);
    println!("sealed {:.3} ({:.3}, {:.3})", sealed.0, sealed.1, sealed.2);
    println!("sealing adds {:.3}", sealed.0 - plain.0);
}

fn other(which: usize) -> (usize, &'static str) {
    if which == 0 { (1, "sealed") } else { (0, "plain") }
}

/// Mirrors all records; CPU time of this thread in ns for each byte, and MB/s.
fn run(servers: &str, source: &str, target: &str, is_sealed: bool) -> [f64; 2] {
    topic(servers, target);
    let cluster = || Cluster::new(servers, Vec::new()).unwrap();
    let settings = Settings {
        from: cluster(),
        from_topic: source.to_owned(),
        to: cluster(),
        to_topic: target.to_owned(),
        is_same_cluster: true,
        group: target.to_owned(),
        id: "cost".to_owned(),
        until_end: true,
    };
    let never = u64::MAX;
    let rotation = Rotation { age: Duration::MAX, records: never, bytes: never };
    let binding = Binding { tenant: None, topic: target.to_owned() };
    let make_key = || {
        let key = new_session_key().map_err(|error| error.to_string())?;
        Ok((key, vec![0; 32]))
    };
    let mut sealing;
    let mut plain = Plain;
    let transform: &mut dyn Transform = if is_sealed {
        let keys = format!("{target}.keys");
        sealing = Sealing::new(cluster(), &keys, binding, rotation, Box::new(make_key)).unwrap();
        &mut sealing
    } else {
        &mut plain
    };
    let stop = AtomicBool::new(false);
    let mirror = Mirror { settings: &settings, stop: &stop, note: &|what| println!("{what}") };
    let mut done = Done::default();
    let (cpu, started) = (cpu(), Instant::now());
    mirror.run(transform, &mut done).unwrap();
    let cpu = self::cpu() - cpu;
    let bytes = done.in_bytes as f64;
    let rate = bytes / started.elapsed().as_secs_f64() / 1e6;
    remove(servers, target);
    [cpu.as_nanos() as f64 / bytes, rate]
}

/// CPU time of this thread.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

fn client(servers: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", servers);
    config
}

fn topic(servers: &str, name: &str) {
    let admin: AdminClient<DefaultClientContext> = client(servers).create().unwrap();
    let topic = NewTopic::new(name, 4, TopicReplication::Fixed(1));
    let made = block_on(admin.create_topics([&topic], &AdminOptions::new())).unwrap();
    made.into_iter().for_each(|topic| {
        topic.unwrap();
    });
}

fn remove(servers: &str, name: &str) {
    let admin: AdminClient<DefaultClientContext> = client(servers).create().unwrap();
    block_on(admin.delete_topics(&[name], &AdminOptions::new())).unwrap();
}

fn fill(servers: &str, topic: &str, records: usize, size: usize) {
    let producer: ThreadedProducer<_> = client(servers).create().unwrap();
    let value: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
    for number in 0..records {
        let key = number.to_string();
        let mut record =
            BaseRecord::to(topic).key(&key).payload(&value).partition(number as i32 % 4);
        while let Err((_, again)) = producer.send(record) {
            record = again;
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    producer.flush(Duration::from_secs(120)).unwrap();
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

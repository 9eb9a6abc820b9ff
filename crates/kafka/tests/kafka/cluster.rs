//! A cluster of its own for each test, and clients of it.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Headers, OwnedHeaders, OwnedMessage};
use rdkafka::producer::{BaseRecord, Producer, ThreadedProducer};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use wattlock_testing::{wait_for, wait_until};

use crate::broker::{Broker, More};

/// The brokers of a cluster.
pub struct Cluster {
    brokers: Vec<Broker>,
}

/// A record that is produced or was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record {
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    pub timestamp: i64,
    pub partition: i32,
}

impl Cluster {
    /// Starts one broker; `None`, with the reason said, if Java or the jars are missing.
    pub fn start() -> Option<Self> {
        Self::with(1, &More::default())
    }

    /// Starts three, of which two have to have a record before it counts as written.
    pub fn of_three() -> Option<Self> {
        let lines = "default.replication.factor=3\nmin.insync.replicas=2\noffsets.topic.replication.factor=3\n\
                     transaction.state.log.replication.factor=3\ntransaction.state.log.min.isr=2\n\
                     broker.session.timeout.ms=4000\nbroker.heartbeat.interval.ms=500\n";
        Self::with(3, &More { lines, ..More::default() })
    }

    pub fn with(count: usize, more: &More<'_>) -> Option<Self> {
        Some(Self { brokers: Broker::of_a_cluster(count, more)? })
    }

    /// Kills a broker.
    pub fn kill(&mut self, broker: usize) {
        self.brokers[broker].kill();
    }

    /// Starts it again.
    pub fn restart(&mut self, broker: usize) {
        self.brokers[broker].restart();
    }

    /// The servers, as clients take them.
    pub fn servers(&self) -> String {
        let servers: Vec<_> = self.brokers.iter().map(Broker::server).collect();
        servers.join(",")
    }

    /// The address of a topic.
    pub fn address(&self, topic: &str) -> String {
        format!("kafka://{}/{topic}", self.servers())
    }

    pub fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.servers());
        config
    }

    /// Makes a topic with settings.
    pub fn create(&self, topic: &str, partitions: i32, settings: &[(&str, &str)]) {
        let mut new =
            NewTopic::new(topic, partitions, TopicReplication::Fixed(self.brokers.len() as i32));
        for (name, value) in settings {
            new = new.set(name, value);
        }
        let admin: AdminClient<DefaultClientContext> = self.config().create().unwrap();
        let options = AdminOptions::new().operation_timeout(Some(Duration::from_secs(60)));
        let made = block_on(admin.create_topics([&new], &options)).unwrap();
        made.into_iter().for_each(|topic| {
            topic.unwrap();
        });
    }

    /// Removes topics, whose disk space is free then.
    pub fn delete(&self, topics: &[&str]) {
        let admin: AdminClient<DefaultClientContext> = self.config().create().unwrap();
        let options = AdminOptions::new().operation_timeout(Some(Duration::from_secs(60)));
        block_on(admin.delete_topics(topics, &options)).unwrap();
    }

    /// Writes records, and waits until they are there.
    pub fn produce(&self, topic: &str, records: impl IntoIterator<Item = Record>) {
        let producer: ThreadedProducer<_> =
            self.config().set("enable.idempotence", "true").create().unwrap();
        for record in records {
            let mut headers = OwnedHeaders::new();
            for (key, value) in &record.headers {
                headers = headers.insert(rdkafka::message::Header { key, value: value.as_ref() });
            }
            let mut new: BaseRecord<'_, [u8], [u8]> =
                BaseRecord::to(topic).partition(record.partition).headers(headers);
            new.key = record.key.as_deref();
            new.payload = record.value.as_deref();
            new.timestamp = Some(record.timestamp).filter(|time| *time > 0);
            loop {
                match producer.send(new) {
                    Ok(()) => break,
                    Err((_, again)) => new = again,
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        producer.flush(Duration::from_secs(120)).unwrap();
    }

    /// Calls `each` with every committed record of a topic.
    pub fn read(&self, topic: &str, isolation: &str, mut each: impl FnMut(OwnedMessage)) {
        let mut config = self.config();
        config.set("group.id", "test").set("enable.auto.commit", "false");
        config.set("enable.partition.eof", "true").set("isolation.level", isolation);
        config.set("fetch.queue.backoff.ms", "2");
        let consumer: BaseConsumer = config.create().unwrap();
        let mut open: HashSet<i32> = (0..self.partitions(topic)).collect();
        let mut list = TopicPartitionList::new();
        for partition in &open {
            list.add_partition_offset(topic, *partition, Offset::Beginning).unwrap();
        }
        consumer.assign(&list).unwrap();
        let mut last = Instant::now();
        while !open.is_empty() {
            match consumer.poll(Duration::from_secs(1)) {
                Some(Ok(record)) => {
                    last = Instant::now();
                    each(record.detach());
                }
                Some(Err(KafkaError::PartitionEOF(partition))) => {
                    open.remove(&partition);
                }
                // The client connects again by itself, for instance to a broker that was too busy to answer.
                Some(Err(error)) => {
                    assert!(last.elapsed().as_secs() < 120, "reading {topic}: {error}");
                }
                None => {}
            }
        }
    }

    /// The committed records of a topic, each partition in its order.
    pub fn records(&self, topic: &str) -> Vec<Record> {
        let mut records: BTreeMap<i32, Vec<Record>> = BTreeMap::new();
        self.read(topic, "read_committed", |message| {
            let headers = message.headers().map(|headers| {
                let owned = |value: &[u8]| value.to_vec();
                headers.iter().map(|h| (h.key.to_owned(), h.value.map(owned))).collect()
            });
            let record = Record {
                key: message.key().map(<[u8]>::to_vec),
                value: message.payload().map(<[u8]>::to_vec),
                headers: headers.unwrap_or_default(),
                timestamp: message.timestamp().to_millis().unwrap(),
                partition: message.partition(),
            };
            records.entry(record.partition).or_default().push(record);
        });
        records.into_values().flatten().collect()
    }

    /// The offset behind each partition of a topic.
    pub fn ends(&self, topic: &str) -> Vec<i64> {
        let consumer: BaseConsumer = self.config().create().unwrap();
        let end = |partition| {
            let ask = || consumer.fetch_watermarks(topic, partition, Duration::from_secs(60));
            wait_for(ask).1
        };
        (0..self.partitions(topic)).map(end).collect()
    }

    /// The offset that a group has committed for each partition of a topic.
    pub fn committed(&self, group: &str, topic: &str) -> Vec<Option<i64>> {
        let consumer: BaseConsumer = self.config().set("group.id", group).create().unwrap();
        let mut list = TopicPartitionList::new();
        list.add_partition_range(topic, 0, self.partitions(topic) - 1);
        let found = wait_for(|| consumer.committed_offsets(list.clone(), Duration::from_secs(60)));
        let offset = |offset| if let Offset::Offset(offset) = offset { Some(offset) } else { None };
        found.elements().iter().map(|partition| offset(partition.offset())).collect()
    }

    /// Waits until every partition of every topic is on every broker.
    pub fn wait_until_replicated(&self) {
        let consumer: BaseConsumer = self.config().create().unwrap();
        wait_until("all replicas are in sync", || {
            let found = consumer.fetch_metadata(None, Duration::from_secs(60));
            found.is_ok_and(|found| {
                let mut partitions = found.topics().iter().flat_map(|t| t.partitions());
                partitions.all(|partition| partition.isr().len() == self.brokers.len())
            })
        });
    }

    /// How many of the numbers below `count`, which are keys of records, are missing in a topic, and how many come more
    /// than once. Where values are not sealed, they are numbers, too.
    pub fn tally(&self, topic: &str, isolation: &str, count: usize) -> (usize, usize) {
        let mut times = vec![0_u32; count];
        self.read(topic, isolation, |record| {
            let key = record.key().unwrap();
            if topic == "opened" {
                assert_eq!(record.payload(), Some(key));
            }
            times[std::str::from_utf8(key).unwrap().parse::<usize>().unwrap()] += 1;
        });
        let missing = times.iter().filter(|times| **times == 0).count();
        let double = times.iter().filter(|times| **times > 1).count();
        println!("{topic}, {isolation}: {missing} missing, {double} double");
        (missing, double)
    }

    /// Moves a group in TOPIC:PARTITION, with Kafka's own tool.
    pub fn move_group(&self, group: &str, partition: &str, offset: i64) {
        wait_for(|| {
            let moved = self.brokers[0]
                .java()
                .arg("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand")
                .args(["--bootstrap-server", &self.servers(), "--group", group])
                .args(["--reset-offsets", "--to-offset", &offset.to_string()])
                .args(["--topic", partition, "--execute"])
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&moved.stdout).into_owned()
                + &String::from_utf8_lossy(&moved.stderr);
            let offsets = self.committed(group, partition.split(':').next().unwrap());
            if offsets.contains(&Some(offset)) { Ok(()) } else { Err(said) }
        });
    }

    /// Waits until a group has done all that is in a topic.
    pub fn wait_for_no_lag(&self, group: &str, topic: &str) {
        let ends = self.ends(topic);
        wait_until("the lag is 0", || {
            let committed = self.committed(group, topic);
            committed.iter().zip(&ends).all(|(committed, end)| committed.unwrap_or(0) == *end)
        });
    }

    fn partitions(&self, topic: &str) -> i32 {
        let consumer: BaseConsumer = self.config().create().unwrap();
        let found = consumer.fetch_metadata(Some(topic), Duration::from_secs(60)).unwrap();
        i32::try_from(found.topics()[0].partitions().len()).unwrap()
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

//! A cluster: its servers, and the settings of the clients that reach it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::Metadata;

use super::trouble::{failed, lasting};
use crate::error::Error;

/// A cluster, and how clients reach it.
#[derive(Clone)]
pub struct Cluster {
    servers: String,
    settings: Vec<(String, String)>,
}

impl Cluster {
    /// Takes the servers that are asked first, and settings of librdkafka such as those of TLS and SASL.
    ///
    /// # Errors
    /// [`Error::Settings`] for a setting that the mirror makes itself.
    pub fn new(servers: &str, settings: Vec<(String, String)>) -> Result<Self, Error> {
        match settings.iter().find(|(name, _)| OWN_SETTINGS.contains(&name.as_str())) {
            Some((name, _)) => Err(Error::Settings(format!(
                "the setting {name} cannot be changed: what is promised about lost and repeated records depends \
                 on it"
            ))),
            None => Ok(Self { servers: servers.to_owned(), settings }),
        }
    }

    /// Its servers, for messages.
    pub(super) fn servers(&self) -> &str {
        &self.servers
    }

    /// Returns the configuration of a client.
    pub(super) fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", &self.servers)
            .set("client.id", "wattlock")
            .set("allow.auto.create.topics", "false")
            // The brokers' own limits count.
            .set("message.max.bytes", "134217728")
            .set("receive.message.max.bytes", "268435456")
            .set_log_level(RDKafkaLogLevel::Critical);
        for (name, value) in &self.settings {
            config.set(name, value);
        }
        config
    }

    /// Returns the number of partitions of `topic`; `None` if there is no such topic.
    ///
    /// # Errors
    /// That the cluster cannot be reached, with the reason that the client gives.
    pub(super) fn partitions(&self, topic: &str) -> Result<Option<i32>, Error> {
        let found = self.metadata(topic)?;
        let topic = found.topics().iter().find(|found| found.name() == topic);
        let count = topic.filter(|topic| topic.error().is_none()).map(|t| t.partitions().len());
        Ok(count.filter(|count| *count > 0).and_then(|count| i32::try_from(count).ok()))
    }

    /// Asks for a topic, with a client of its own. The client tries again by itself and says why in events, so it is asked
    /// for a short time first. A refusal by TLS or SASL ends the attempt once no other server is left.
    fn metadata(&self, topic: &str) -> Result<Metadata, Error> {
        let what = format!("cannot reach {}", self.servers);
        let consumer: BaseConsumer<Complaints> = self
            .config()
            .create_with_context(Complaints::default())
            .map_err(|error| failed(&what, &error))?;
        let (mut refusal, mut is_down) = (None, false);
        let (started, mut wait) = (Instant::now(), SHORTEST_WAIT);
        loop {
            match consumer.fetch_metadata(Some(topic), wait) {
                Ok(found) => return Ok(found),
                Err(error) if error.rdkafka_error_code().and_then(lasting).is_some() => {
                    return Err(failed(&what, &error));
                }
                Err(_) => {}
            }
            while let Some(Err(event)) = consumer.poll(Duration::from_millis(1)) {
                match event.rdkafka_error_code() {
                    Some(RDKafkaErrorCode::AllBrokersDown) => is_down = true,
                    Some(RDKafkaErrorCode::SSL | RDKafkaErrorCode::Authentication) => {
                        refusal = consumer.context().take();
                    }
                    _ => {}
                }
            }
            if let Some(why) = refusal.take_if(|_| is_down) {
                return Err(Error::Failed(format!("{what}: {why}")));
            }
            if started.elapsed() >= PATIENCE {
                let why = refusal.or_else(|| consumer.context().take());
                let why = why.as_deref().unwrap_or(NO_ANSWER);
                return Err(Error::Unreachable(format!("{what}: {why}")));
            }
            wait *= 2;
        }
    }
}

/// How long the first answer of a cluster may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Said if the client gives no reason.
const NO_ANSWER: &str =
    "no server answers; check the address, and security.protocol among the settings";

/// How long the first question for a topic may take; each other may take twice as long as the one before.
const SHORTEST_WAIT: Duration = Duration::from_millis(250);

/// Settings on which the promises of the mirror rest.
const OWN_SETTINGS: [&str; 24] = [
    "acks",
    "allow.auto.create.topics",
    "auto.commit.enable",
    "auto.offset.reset",
    "bootstrap.servers",
    "delivery.timeout.ms",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.idempotence",
    "enable.partition.eof",
    "group.id",
    "group.instance.id",
    "group.protocol",
    "isolation.level",
    "log_level",
    "max.in.flight",
    "message.timeout.ms",
    "metadata.broker.list",
    "partition.assignment.strategy",
    "partitioner",
    "plugin.library.paths",
    "request.required.acks",
    "retries",
    "transactional.id",
];

/// Keeps what a client last complained about.
#[derive(Default)]
pub(super) struct Complaints(Mutex<Option<String>>);

impl Complaints {
    /// Takes the last complaint.
    pub fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl ClientContext for Complaints {
    fn error(&self, error: KafkaError, reason: &str) {
        // That all brokers are down comes after the reason for it.
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::AllBrokersDown) {
            return;
        }
        // What follows is the state of the connection.
        let reason = reason.rsplit_once(" (after ").map_or(reason, |(why, _)| why);
        let text = if reason.is_empty() { error.to_string() } else { reason.to_owned() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }
}

impl ConsumerContext for Complaints {}

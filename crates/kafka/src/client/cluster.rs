//! A cluster: its servers, and the settings of the clients that reach it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::client::Client;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::KafkaError;

use super::trouble::failed;
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

    /// Returns the number of partitions of `topic`, as `client` learns it.
    ///
    /// # Errors
    /// That the cluster cannot be reached, or has no such topic.
    pub(super) fn partitions<C: ClientContext>(
        &self,
        client: &Client<C>,
        topic: &str,
    ) -> Result<Option<i32>, Error> {
        let found = client
            .fetch_metadata(Some(topic), PATIENCE)
            .map_err(|error| failed(&format!("cannot reach {}", self.servers), &error))?;
        let topic = found.topics().iter().find(|found| found.name() == topic);
        let count = topic.filter(|topic| topic.error().is_none()).map(|t| t.partitions().len());
        Ok(count.filter(|count| *count > 0).and_then(|count| i32::try_from(count).ok()))
    }
}

/// How long the first answer of a cluster may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

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

    /// Keeps a complaint of a client.
    pub fn keep(&self, error: &KafkaError, reason: &str) {
        let text = if reason.is_empty() { error.to_string() } else { reason.to_owned() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }
}

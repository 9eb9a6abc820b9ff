//! Addresses of topics: `kafka://HOST:PORT[,HOST:PORT…]/TOPIC`.

use std::str::FromStr;

/// A topic of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The servers that a client asks first, as Kafka's clients write them: `HOST:PORT[,HOST:PORT…]`.
    pub servers: String,
    /// The topic.
    pub topic: String,
}

/// A text is not the address of a topic.
#[derive(Debug, thiserror::Error)]
#[error("not kafka://HOST:PORT/TOPIC or kafka://HOST:PORT,HOST:PORT/TOPIC: {0}")]
pub struct WrongAddress(&'static str);

impl Address {
    /// True if both name the same servers, in any order.
    pub fn is_same_cluster(&self, other: &Self) -> bool {
        let sorted = |servers: &str| {
            let mut servers: Vec<_> = servers.split(',').map(str::to_lowercase).collect();
            servers.sort();
            servers.dedup();
            servers
        };
        sorted(&self.servers) == sorted(&other.servers)
    }
}

impl FromStr for Address {
    type Err = WrongAddress;

    fn from_str(text: &str) -> Result<Self, WrongAddress> {
        let rest = text.strip_prefix("kafka://").ok_or(WrongAddress("it has another scheme"))?;
        let (servers, topic) = rest.split_once('/').ok_or(WrongAddress("it has no topic"))?;
        if !servers.split(',').all(is_server) {
            return Err(WrongAddress("a server is not HOST:PORT"));
        }
        if !is_topic(topic) {
            return Err(WrongAddress(
                "a topic has 1 to 249 letters, digits, dots, underscores and hyphens",
            ));
        }
        Ok(Self { servers: servers.to_owned(), topic: topic.to_owned() })
    }
}

/// True if a topic can have this name.
pub(crate) fn is_topic(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=LONGEST_TOPIC).contains(&name.len())
        && name.bytes().all(is_allowed)
        && name != "."
        && name != ".."
}

/// Kafka's own limit.
const LONGEST_TOPIC: usize = 249;

fn is_server(server: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
    server.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && host.chars().all(is_allowed) && port.parse::<u16>().is_ok_and(|n| n > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let address: Address = "kafka://a:9092,[::1]:9093/orders.eu-1".parse().unwrap();
        assert_eq!(address.servers, "a:9092,[::1]:9093");
        assert_eq!(address.topic, "orders.eu-1");
        let long = format!("kafka://a:1/{}", "x".repeat(250));
        for wrong in [
            "a:9092/t",
            "kafka://a:9092",
            "kafka://a/t",
            "kafka://:1/t",
            "kafka://a:0/t",
            "kafka://a:1/",
            "kafka://a:1/t/u",
            "kafka://a:1,/t",
            "kafka://a:1/t t",
            "kafka://a:1/..",
            "kafka://u@a:1/t",
            &long,
        ] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn clusters_are_compared_by_their_servers() {
        let address = |text: &str| text.parse::<Address>().unwrap();
        let here = address("kafka://a:1,b:2/t");
        assert!(here.is_same_cluster(&address("kafka://B:2,a:1/u")));
        assert!(!here.is_same_cluster(&address("kafka://a:1/t")));
    }
}

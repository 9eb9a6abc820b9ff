//! What errors of the client mean for the mirror.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::error::Error;

/// What to do about an error.
#[derive(Debug)]
pub(super) enum Trouble {
    /// End.
    Fatal(Error),
    /// Abort the transaction, go back to the committed offsets, and go on.
    Abort(String),
    /// Make the same call again.
    Retry(String),
    /// Connect anew.
    Reconnect(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Fatal(error)
    }
}

/// Returns the error of a call that failed for good.
pub(super) fn failed(what: &str, error: &KafkaError) -> Error {
    // The error's own text would repeat the value of a setting, which may be a password.
    if let KafkaError::ClientConfig(_, _, name, _) = error {
        return Error::Settings(format!("the setting {name} is unknown or has a wrong value"));
    }
    // Files of certificates that cannot be read, and settings that do not go together.
    if let KafkaError::ClientCreation(why) = error {
        return Error::Settings(format!("the client settings cannot be used: {why}"));
    }
    match error.rdkafka_error_code() {
        Some(code) => match lasting(code) {
            Some(why) => Error::Failed(format!("{what}: {why}")),
            None => Error::Unreachable(format!("{what}: {code}")),
        },
        None => Error::Failed(format!("{what}: {error}")),
    }
}

/// Judges an error of `what`.
pub(super) fn judge(what: &str, error: &KafkaError) -> Trouble {
    if let Some(code) = error.rdkafka_error_code()
        && let Some(why) = lasting(code)
    {
        return Trouble::Fatal(Error::Failed(format!("{what}: {why}")));
    }
    let text = format!("{what}: {error}");
    match error {
        KafkaError::Transaction(error) if error.is_fatal() => {
            Trouble::Fatal(Error::Failed(format!("{what}: {error}")))
        }
        KafkaError::Transaction(error) if error.txn_requires_abort() => Trouble::Abort(text),
        KafkaError::Transaction(error) if error.is_retriable() => Trouble::Retry(text),
        KafkaError::Flush(_) | KafkaError::OffsetFetch(_) => Trouble::Retry(text),
        KafkaError::MessageConsumptionFatal(_) => Trouble::Fatal(failed(what, error)),
        _ => Trouble::Abort(text),
    }
}

/// Says why an error will not pass; `None` if it may.
pub(super) fn lasting(code: RDKafkaErrorCode) -> Option<String> {
    use RDKafkaErrorCode as Code;
    let why = match code {
        Code::Fenced
        | Code::ProducerFenced
        | Code::InvalidProducerEpoch
        | Code::FencedInstanceId => "another process took over this --id, or a transaction took \
                                     too long; give each process an --id of its own"
            .to_owned(),
        Code::MessageSizeTooLarge | Code::InvalidMessageSize => {
            "the record is larger than the brokers take; raise max.message.bytes of the topic"
                .to_owned()
        }
        Code::TopicAuthorizationFailed
        | Code::GroupAuthorizationFailed
        | Code::ClusterAuthorizationFailed
        | Code::TransactionalIdAuthorizationFailed
        | Code::SaslAuthenticationFailed
        | Code::Authentication
        | Code::InvalidTopic
        | Code::InvalidRecord
        | Code::UnknownTopicOrPartition
        | Code::UnknownTopic
        | Code::UnknownPartition
        | Code::InvalidTimestamp
        | Code::PolicyViolation
        | Code::InconsistentGroupProtocol
        | Code::UnsupportedForMessageFormat
        | Code::Fatal => code.to_string(),
        _ => return None,
    };
    Some(why)
}

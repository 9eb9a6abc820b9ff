//! Reads a document's JSON into its type, with errors that say where it is wrong.

use anyhow::anyhow;
use serde::Deserialize;
use serde_json::{Map, Value};
use serde_path_to_error::{Path, Segment};

/// Reads a value.
///
/// # Errors
/// What does not fit the type, and where: "rows[0].wall_ns.median is -5: invalid value …".
pub fn parse<'a, T: Deserialize<'a>>(value: &'a Value) -> anyhow::Result<T> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let (path, wrong) = (error.path(), error.inner());
        let place =
            if path.iter().next().is_none() { "the document".into() } else { path.to_string() };
        match found(value, path) {
            Some(value) if !value.is_object() && !value.is_array() => {
                anyhow!("{place} is {}: {wrong}", scalar(value))
            }
            _ => anyhow!("{place}: {wrong}"),
        }
    })
}

/// The entries of a list as they are written, with all their keys.
pub fn written(document: &Value, list: &str) -> Vec<Map<String, Value>> {
    let entries = document.get(list).and_then(Value::as_array).into_iter().flatten();
    entries.map(|entry| entry.as_object().cloned().unwrap_or_default()).collect()
}

/// A value as people write it.
pub fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) if list.iter().all(|entry| !entry.is_object() && !entry.is_array()) => {
            list.iter().map(scalar).collect::<Vec<_>>().join(", ")
        }
        Value::Null => "not given".to_owned(),
        other => other.to_string(),
    }
}

fn found<'a>(document: &'a Value, path: &Path) -> Option<&'a Value> {
    path.iter().try_fold(document, |value, segment| match segment {
        Segment::Seq { index } => value.get(index),
        Segment::Map { key } => value.get(key),
        Segment::Enum { .. } | Segment::Unknown => None,
    })
}

//! A place in a JSON document, which names itself in errors.

use std::fmt;

use anyhow::{Context, bail};
use serde_json::Value;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct At<'a> {
    pub value: &'a Value,
    path: String,
}

impl<'a> At<'a> {
    /// The whole document.
    pub fn top(value: &'a Value) -> Self {
        Self { value, path: String::new() }
    }

    /// What the key holds, unless that is null.
    pub fn child(&self, key: &str) -> Option<At<'a>> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        let dot = if self.path.is_empty() { "" } else { "." };
        Some(At { value, path: format!("{}{dot}{key}", self.path) })
    }

    /// The entries of a list; none if it is missing.
    ///
    /// # Errors
    /// That it is something else.
    pub fn list(&self, key: &str) -> anyhow::Result<Vec<At<'a>>> {
        let Some(child) = self.child(key) else { return Ok(Vec::new()) };
        let list = child.value.as_array().with_context(|| format!("{child} is not a list"))?;
        let entry = |(index, value)| At { value, path: format!("{}[{index}]", child.path) };
        Ok(list.iter().enumerate().map(entry).collect())
    }

    /// A text.
    ///
    /// # Errors
    /// That it is something else.
    pub fn text(&self, key: &str) -> anyhow::Result<Option<String>> {
        let Some(child) = self.child(key) else { return Ok(None) };
        let text = child.value.as_str().with_context(|| format!("{child} is not a text"))?;
        Ok(Some(text.to_owned()))
    }

    /// A whole number that some clock, counter or size could give.
    ///
    /// # Errors
    /// That it is something else.
    pub fn whole(&self, key: &str) -> anyhow::Result<Option<u64>> {
        let Some(child) = self.child(key) else { return Ok(None) };
        match child.value.as_u64().filter(|number| *number <= LARGEST) {
            Some(number) => Ok(Some(number)),
            None => bail!("{child} is {}, not a whole number from 0 to 10^18", scalar(child.value)),
        }
    }

    /// A number of at least 0.
    ///
    /// # Errors
    /// That it is something else.
    pub fn real(&self, key: &str) -> anyhow::Result<Option<f64>> {
        let Some(child) = self.child(key) else { return Ok(None) };
        match child.value.as_f64().filter(|number| *number >= 0.0 && number.is_finite()) {
            Some(number) => Ok(Some(number)),
            None => bail!("{child} is {}, not a number from 0 on", scalar(child.value)),
        }
    }

    /// An object's keys and values, as texts.
    pub fn texts(&self, key: &str) -> Vec<(String, String)> {
        let object = self.value.get(key).and_then(Value::as_object);
        let texts = object
            .map(|object| object.iter().map(|(key, value)| (key.clone(), scalar(value))).collect());
        texts.unwrap_or_default()
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.path.is_empty() { "the document" } else { &self.path })
    }
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

/// A thousand million seconds in nanoseconds: no measurement is longer.
const LARGEST: u64 = 1_000_000_000_000_000_000;

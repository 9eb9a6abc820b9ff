//! What a knob is set to.

use std::fmt;

/// What a knob is set to: one short word, as the kernel writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Setting(String);

impl Setting {
    /// `word`, if it can be a setting: letters, digits and `_-,.`, 64 of them at most.
    pub fn new(word: &str) -> Option<Self> {
        let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"_-,.".contains(&byte);
        let fits = (1..=64).contains(&word.len()) && word.bytes().all(usual);
        fits.then(|| Self(word.to_owned()))
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The number it is, if it is one in the form in which the kernel prints numbers.
    pub fn number(&self) -> Option<u32> {
        self.0.parse().ok().filter(|number: &u32| number.to_string() == self.0)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<u32> for Setting {
    fn from(number: u32) -> Self {
        Self(number.to_string())
    }
}

impl TryFrom<String> for Setting {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        Self::new(&word).ok_or_else(|| {
            let word: String = word.chars().take(40).collect();
            format!("{word:?} is no setting")
        })
    }
}

impl From<Setting> for String {
    fn from(setting: Setting) -> Self {
        setting.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_one_short_word() {
        for word in ["800000", "balance_performance", "210,1410", "0.5", "-1"] {
            assert_eq!(Setting::new(word).unwrap().as_str(), word);
        }
        for word in ["", "a b", "a\n", "../x", "\0", "é", &"9".repeat(65)] {
            assert!(Setting::new(word).is_none(), "{word:?}");
        }
        let parsed: Result<Setting, _> = serde_json::from_str("\"rm -rf /\"");
        assert!(parsed.unwrap_err().to_string().contains("is no setting"));
    }

    #[test]
    fn numbers_have_one_form() {
        assert_eq!(Setting::from(2_400_000).number(), Some(2_400_000));
        for word in ["+5", "05", "5.0", "-5", "99999999999", "performance"] {
            assert_eq!(Setting::new(word).and_then(|setting| setting.number()), None, "{word}");
        }
    }
}

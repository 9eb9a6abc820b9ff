//! Writes HTML of which no text can become markup: names of elements and attributes are the
//! program's own, and everything else is escaped.

use std::fmt::Write;
use std::path::Path;

use wattlock_file::Shown;

/// An attribute and its value.
pub type Attribute<'a> = (&'static str, &'a str);

/// A piece of a page.
#[derive(Debug, Default)]
pub struct Html(String);

impl Html {
    /// The text of the page.
    pub fn into_text(self) -> String {
        self.0
    }

    /// An element with what `inside` writes.
    pub fn element(
        &mut self,
        name: &'static str,
        attributes: &[Attribute<'_>],
        inside: impl FnOnce(&mut Self),
    ) {
        self.open(name, attributes);
        inside(self);
        let _ = write!(self.0, "</{name}>");
    }

    /// An element with text only.
    pub fn leaf(&mut self, name: &'static str, attributes: &[Attribute<'_>], text: &str) {
        self.element(name, attributes, |html| html.text(text));
    }

    /// An element that cannot hold anything, as `meta`; or of SVG, as `rect`.
    pub fn empty(&mut self, name: &'static str, attributes: &[Attribute<'_>]) {
        self.open(name, attributes);
        if matches!(name, "rect" | "line" | "path") {
            let _ = write!(self.0, "</{name}>");
        }
    }

    /// Text, on one line and escaped: what could move a cursor or turn the writing direction, too.
    pub fn text(&mut self, text: &str) {
        for character in Shown(Path::new(text)).to_string().chars() {
            match character {
                '&' => self.0 += "&amp;",
                '<' => self.0 += "&lt;",
                '>' => self.0 += "&gt;",
                '"' => self.0 += "&quot;",
                '\'' => self.0 += "&#39;",
                other => self.0.push(other),
            }
        }
    }

    /// A line of the source ends here.
    pub fn line(&mut self) {
        self.0.push('\n');
    }

    /// The first line of a page.
    pub fn doctype(&mut self) {
        self.0 += "<!DOCTYPE html>\n";
    }

    /// The page's own rules for its looks.
    pub fn style(&mut self, css: &'static str) {
        let _ = write!(self.0, "<style>\n{css}</style>\n");
    }

    /// A JSON text as data, without the spaces between its tokens. What a parser of HTML would look
    /// at can stand in strings only, where JSON has another spelling for it.
    pub fn data(&mut self, id: &str, json: &str) {
        self.open("script", &[("type", "application/json"), ("id", id)]);
        let (mut string, mut escaped) = (false, false);
        for character in json.chars() {
            if !string && character.is_ascii_whitespace() {
                continue;
            }
            string ^= character == '"' && !escaped;
            escaped = string && character == '\\' && !escaped;
            match character {
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    let _ = write!(self.0, "\\u{:04x}", u32::from(character));
                }
                other => self.0.push(other),
            }
        }
        self.0 += "</script>\n";
    }

    fn open(&mut self, name: &'static str, attributes: &[Attribute<'_>]) {
        let _ = write!(self.0, "<{name}");
        // Attributes without a value say nothing, but for that something is unfolded.
        let is_written = |(name, value): &&Attribute<'_>| !value.is_empty() || *name == "open";
        for (attribute, value) in attributes.iter().filter(is_written) {
            let _ = write!(self.0, " {attribute}=\"");
            self.text(value);
            self.0.push('"');
        }
        self.0.push('>');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let mut html = Html::default();
        html.leaf("p", &[("title", "a\"b")], "<b>&'\u{202e}\u{1b}[31m");
        let expected = "<p title=\"a&quot;b\">&lt;b&gt;&amp;&#39;\\u{202e}\\u{1b}[31m</p>";
        assert_eq!(html.into_text(), expected);
    }

    #[test]
    fn data_stays_data() -> Result<(), serde_json::Error> {
        let json = r#"{ "a\\" : "</script><!-- \" & x" ,  "b": [1.50, "\\\" y"] }"#;
        let mut html = Html::default();
        html.data("d", json);
        let text = html.into_text();
        let start = text.find('>').map_or(0, |at| at + 1);
        let inside = text[start..].trim_end().trim_end_matches("</script>");
        assert!(!inside.contains('<') && !inside.contains('&') && inside.contains("1.50"));
        let before: serde_json::Value = serde_json::from_str(json)?;
        let after: serde_json::Value = serde_json::from_str(inside)?;
        assert_eq!(before, after);
        Ok(())
    }
}

//! What both pictures are made of. Each has a background of its own, and so is legible on light and
//! dark pages.

use std::fmt::Write;

/// A picture of `width` by `height` pixels; `label` says in words what it shows.
pub struct Svg {
    text: String,
}

impl Svg {
    pub fn new(width: u32, height: u32, label: &str, style: &str) -> Self {
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{}</title>\n<style>{style}</style>\n",
            escaped(label)
        );
        Self { text }
    }

    pub fn rectangle(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64, round: u32) {
        let _ = writeln!(
            self.text,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\" rx=\"{round}\"/>"
        );
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let _ = writeln!(
            self.text,
            "<path class=\"{class}\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    pub fn circle(&mut self, class: &str, at: (f64, f64), radius: u32) {
        let (x, y) = at;
        let _ = writeln!(
            self.text,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>"
        );
    }

    pub fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let text = escaped(text);
        let _ =
            writeln!(self.text, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
    }

    /// A text of that width, in any font.
    pub fn wide_text(&mut self, class: &str, x: f64, y: f64, width: f64, text: &str) {
        let text = escaped(text);
        let _ = writeln!(
            self.text,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{width:.1}\" \
             lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\">{text}</text>"
        );
    }

    pub fn finish(mut self) -> String {
        self.text += "</svg>\n";
        self.text
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

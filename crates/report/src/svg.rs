//! Bars, bands and axes in SVG. Everything across is in percent, so that a drawing is as wide as its
//! place and its text keeps its size.

use crate::amounts::three;
use crate::html::Html;
use crate::reading::Spread;

/// What is drawn for one row.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// A bar from 0 to `best`, with a whisker from `lo` to `hi`.
    Bar(Look, Spread),
    /// A hatched band from `lo` to `hi`, and nothing within: a model's interval.
    Band { lo: f64, hi: f64 },
    /// Nothing: its label says why.
    Nothing,
}

/// Whose a bar is, shown by shape and colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    /// Wattlock's: solid and dark.
    Ours,
    /// Another tool's: solid and light, with an edge.
    Peer,
    /// A limit of the machine: an empty bar with a broken edge.
    Bound,
    /// A paper's: an empty bar with a dotted edge.
    Printed,
}

impl Look {
    /// The class in the style sheet.
    pub fn class(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Peer => "peer",
            Self::Bound => "bound",
            Self::Printed => "printed",
        }
    }

    /// What the legend says.
    pub fn legend(self) -> &'static str {
        match self {
            Self::Ours => "wattlock",
            Self::Peer => "another tool",
            Self::Bound => "a limit, no cipher",
            Self::Printed => "printed in a paper",
        }
    }
}

/// From 0 to some round number.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    end: f64,
    steps: u32,
}

impl Axis {
    /// One on which `largest` has its place.
    pub fn to(largest: f64) -> Self {
        if !(largest.is_finite() && largest > 0.0) {
            return Self { end: 1.0, steps: 1 };
        }
        let power = 10f64.powf(largest.log10().floor());
        // The smallest of these that needs at most four steps: more numbers would touch.
        let step = [0.25, 0.5, 1.0, 2.0, 2.5].map(|factor| factor * power);
        let step = step.into_iter().find(|step| largest <= step * 4.0).unwrap_or(2.5 * power);
        let steps = (largest / step).ceil().clamp(1.0, 4.0);
        Self { end: step * steps, steps: steps as u32 }
    }

    /// Where a number lies, in percent; at the end if it is beyond.
    fn percent(&self, value: f64) -> String {
        let share = (value / self.end * 100.0).clamp(0.0, 100.0);
        format!("{:.2}%", if share.is_finite() { share } else { 0.0 })
    }

    fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        (0..=self.steps).map(|step| self.end * f64::from(step) / f64::from(self.steps))
    }

    /// Draws a row.
    pub fn draw(&self, html: &mut Html, mark: &Mark) {
        let attributes =
            [("class", "track"), ("width", "100%"), ("height", "20"), ("aria-hidden", "true")];
        html.element("svg", &attributes, |html| {
            for tick in self.ticks() {
                line(html, "grid", [&self.percent(tick), "0", &self.percent(tick), "20"]);
            }
            match mark {
                Mark::Bar(look, spread) => self.bar(html, *look, spread),
                Mark::Band { lo, hi } => self.band(html, *lo, *hi),
                Mark::Nothing => {}
            }
        });
    }

    /// Draws the numbers below the rows.
    pub fn draw_numbers(&self, html: &mut Html) {
        let attributes =
            [("class", "axis"), ("width", "100%"), ("height", "16"), ("aria-hidden", "true")];
        html.element("svg", &attributes, |html| {
            for (index, tick) in self.ticks().enumerate() {
                let anchor = match index as u32 {
                    0 => "start",
                    last if last == self.steps => "end",
                    _ => "middle",
                };
                let place = [("x", &*self.percent(tick)), ("y", "12"), ("text-anchor", anchor)];
                html.leaf("text", &place, &short(tick));
            }
        });
    }

    fn bar(&self, html: &mut Html, look: Look, spread: &Spread) {
        let class = format!("bar {}", look.class());
        rect(html, &class, "0", &self.percent(spread.best));
        if spread.best > self.end {
            let place = [("class", "beyond"), ("x", "99%"), ("y", "13"), ("text-anchor", "end")];
            html.leaf("text", &place, "goes on »");
            return;
        }
        if spread.hi > spread.lo {
            let (lo, hi) = (self.percent(spread.lo), self.percent(spread.hi));
            line(html, "whisker", [&lo, "10", &hi, "10"]);
            line(html, "whisker", [&lo, "6", &lo, "14"]);
            line(html, "whisker", [&hi, "6", &hi, "14"]);
        }
    }

    fn band(&self, html: &mut Html, lo: f64, hi: f64) {
        let width = self.percent(hi - lo);
        // A band too narrow to be seen is drawn with what a line is wide.
        rect(html, "band", &self.percent(lo), if width == "0.00%" { "1" } else { &width });
    }
}

/// The hatching of bands, once a page.
pub fn hatching(html: &mut Html) {
    let hidden =
        [("class", "definitions"), ("width", "0"), ("height", "0"), ("aria-hidden", "true")];
    html.element("svg", &hidden, |html| {
        let pattern = [
            ("id", "hatching"),
            ("patternUnits", "userSpaceOnUse"),
            ("width", "7"),
            ("height", "7"),
            ("patternTransform", "rotate(45)"),
        ];
        html.element("pattern", &pattern, |html| {
            line(html, "hatch", ["1", "0", "1", "7"]);
        });
    });
}

fn rect(html: &mut Html, class: &str, x: &str, width: &str) {
    let mut attributes =
        vec![("class", class), ("x", x), ("y", "3"), ("width", width), ("height", "14")];
    if class == "band" {
        attributes.push(("fill", "url(#hatching)"));
    }
    html.empty("rect", &attributes);
}

fn line(html: &mut Html, class: &str, [x1, y1, x2, y2]: [&str; 4]) {
    html.empty("line", &[("class", class), ("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2)]);
}

/// Without the zeros that say nothing on an axis.
fn short(value: f64) -> String {
    let text = three(value);
    if !text.contains('.') || text.contains('e') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        for (largest, end, steps) in
            [(28.4, 30.0, 3), (1.0, 1.0, 4), (8.5, 10.0, 4), (0.67, 0.8, 4), (12.4, 15.0, 3)]
        {
            let axis = Axis::to(largest);
            assert!((axis.end - end).abs() < 1e-9 && axis.steps == steps, "{largest}: {axis:?}");
        }
        for odd in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300, 1e300] {
            assert!(Axis::to(odd).ticks().all(f64::is_finite), "{odd}");
        }
    }

    #[test]
    fn what_is_beyond_ends_at_the_edge() {
        assert_eq!(Axis::to(10.0).percent(1e9), "100.00%");
        assert_eq!(Axis::to(10.0).percent(f64::NAN), "0.00%");
        assert_eq!(short(0.0), "0");
        assert_eq!([short(2.5), short(10.0), short(0.75)], ["2.5", "10", "0.75"]);
    }
}

//! How long `wattlock-lab bench files` found each tool to take for 1 GiB: the median, and a line from
//! the fastest round to the slowest.

use anyhow::{Context, ensure};
use serde_json::Value;

use super::svg::Svg;

const WIDTH: u32 = 860;
/// Where bars begin and how long the longest is.
const LEFT: f64 = 275.0;
const LONGEST: f64 = 480.0;
const TOP: f64 = 92.0;
const BAR: f64 = 13.0;
const GROUP: f64 = 44.0;

const STYLE: &str = "\
.page{fill:#ffffff;stroke:#d0d7de}.text,.title,.small,.value{fill:#1f2328;\
font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;font-size:15px}\
.title{font-size:18px;font-weight:600}.small{font-size:12.5px;fill:#59636e}.value{font-size:13px}\
.ours{fill:#0b7a4b}.ours2{fill:#6cc49b}.other{fill:#57606a}.other2{fill:#afb8c1}\
.spread{stroke:#1f2328;stroke-width:1.5}.axis{stroke:#d0d7de}\
@media (prefers-color-scheme:dark){.page{fill:#0d1117;stroke:#3d444d}\
.text,.title,.value{fill:#f0f6fc}.small{fill:#9198a1}.ours{fill:#2ea36f}.ours2{fill:#176642}\
.other{fill:#9198a1}.other2{fill:#4b535d}.spread{stroke:#f0f6fc}.axis{stroke:#3d444d}}";

/// The chart of a `files` result.
///
/// # Errors
/// Fails if the result lacks a row or value.
pub fn draw(result: &Value) -> anyhow::Result<String> {
    ensure!(result["schema"] == "wattlock-results/1", "another schema");
    let rows = result["rows"].as_array().context("no rows")?;
    let tools = tools(rows)?;
    let slowest =
        tools.iter().flat_map(|tool| &tool.times).map(|time| time.most).fold(0.0, f64::max);
    ensure!(slowest > 0.0, "no times");
    let about = about(result, &tools)?;
    let bottom = TOP + GROUP * tools.len() as f64;
    let height = (bottom + 30.0 + 18.0 * about.len() as f64) as u32;
    let label = "Seconds to protect and unprotect 1 GiB: wattlock and other tools";
    let mut svg = Svg::new(WIDTH, height, label, STYLE);
    svg.rectangle("page", 0.5, 0.5, f64::from(WIDTH) - 1.0, f64::from(height) - 1.0, 8);
    let size = result["settings"]["size_bytes"].as_f64().context("no size")? / f64::from(1 << 30);
    svg.text("title", 20.0, 34.0, &format!("{size} GiB of random bytes: seconds, less is better"));
    for (x, class, name) in [
        (LEFT, "ours", "protect"),
        (LEFT + 20.0, "other", ""),
        (LEFT + 110.0, "ours2", "unprotect"),
        (LEFT + 130.0, "other2", ""),
    ] {
        svg.rectangle(class, x, 55.0, 13.0, 13.0, 2);
        svg.text("value", x + 39.0, 66.0, name);
    }
    let scale = LONGEST / slowest;
    svg.line("axis", (LEFT, TOP - 8.0), (LEFT, bottom - 6.0));
    for (index, tool) in tools.iter().enumerate() {
        let top = TOP + GROUP * index as f64;
        let name = match &*tool.name {
            "cp" => "cp (a plain copy)",
            name => name,
        };
        svg.text("text", 20.0, top + 19.0, name);
        for (bar, time) in tool.times.iter().enumerate() {
            let y = top + (BAR + 2.0) * bar as f64;
            let class = match (tool.name.starts_with("wattlock"), bar) {
                (true, 0) => "ours",
                (true, _) => "ours2",
                (false, 0) => "other",
                (false, _) => "other2",
            };
            svg.rectangle(class, LEFT, y, time.median * scale, BAR, 2);
            let middle = y + BAR / 2.0;
            let (least, most) = (LEFT + time.least * scale, LEFT + time.most * scale);
            svg.line("spread", (least, middle), (most, middle));
            svg.text("value", most + 8.0, y + 11.0, &format!("{:.2}", time.median));
        }
    }
    for (line, text) in about.iter().enumerate() {
        svg.text("small", 20.0, bottom + 22.0 + 18.0 * line as f64, text);
    }
    Ok(svg.finish())
}

struct Tool {
    name: String,
    times: Vec<Time>,
}

/// Seconds.
struct Time {
    median: f64,
    least: f64,
    most: f64,
}

/// The tools that copy or protect one file, in the order of the result.
fn tools(rows: &[Value]) -> anyhow::Result<Vec<Tool>> {
    let mut tools: Vec<Tool> = Vec::new();
    for row in rows {
        if !["protect", "unprotect", "copy"].contains(&row["case"].as_str().unwrap_or_default()) {
            continue;
        }
        let name = row["tool"].as_str().context("a row without a tool")?;
        let seconds = |key: &str| Some(row["wall_ns"][key].as_f64()? / 1e9);
        let time = seconds("median").zip(seconds("min")).zip(seconds("max"));
        let ((median, least), most) = time.with_context(|| format!("{name} has no times"))?;
        let time = Time { median, least, most };
        match tools.iter_mut().find(|tool| tool.name == name) {
            Some(tool) => tool.times.push(time),
            None => tools.push(Tool { name: name.to_owned(), times: vec![time] }),
        }
    }
    Ok(tools)
}

/// How, where and with which versions of the tools that are drawn it was measured.
fn about(result: &Value, drawn: &[Tool]) -> anyhow::Result<Vec<String>> {
    let text = |key: &str| result["machine"][key].as_str().with_context(|| format!("no {key}"));
    let settings = |key: &str| &result["settings"][key];
    let guest =
        if result["machine"]["virtual_machine"] == true { ", shared virtual machine" } else { "" };
    let versions = result["tools"].as_object().context("no tools")?;
    let version = |(name, version): (&String, &Value)| {
        let version = version.as_str().unwrap_or_default();
        // "OpenSSL 3.0.19 27 Jan 2026 (…)", "gpg (GnuPG) 2.2.40", "v1.3.2": the number is what counts.
        let mut words = version.split(' ').map(|word| word.strip_prefix('v').unwrap_or(word));
        let number = words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let name = name.split(' ').next().unwrap_or(name);
        Some(format!("{name} {}", number?))
    };
    let is_drawn = |name: &str| drawn.iter().any(|tool| tool.name == name);
    let versions = versions.iter().filter(|(name, _)| is_drawn(name));
    let mut versions: Vec<_> = versions.filter_map(version).collect();
    versions.dedup();
    Ok(vec![
        format!(
            "Median of {} rounds, and a line from the fastest to the slowest. Files in {}, {} threads.",
            settings("rounds"),
            settings("dir").as_str().unwrap_or("a folder"),
            settings("threads")
        ),
        format!(
            "{} ({}), {} CPUs{guest}, Linux {}, {}.",
            text("cpu")?,
            text("cpu_id")?,
            result["machine"]["cpus"],
            text("kernel")?.split('-').next().unwrap_or_default(),
            text("system")?
        ),
        format!("Measured with {}.", versions.join(", ")),
    ])
}

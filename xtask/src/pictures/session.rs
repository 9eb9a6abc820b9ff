//! A session of the program as a user sees it: typed into a shell in a terminal (tmux), and drawn
//! from what the terminal shows.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::svg::Svg;

/// What is typed.
const COMMANDS: [&str; 6] = [
    "wattlock keygen -o key.txt",
    "wattlock protect -i key.txt --recursive photos --out-dir safe",
    "wattlock verify -i key.txt --recursive safe",
    "printf X | dd of=safe/photos/2.jpg.wlk bs=1 seek=9999 conv=notrunc status=none",
    "wattlock verify -i key.txt --recursive safe",
    "wattlock unprotect -i key.txt safe/photos/1.jpg.wlk --out-dir back",
];

/// The photos: how many, and bytes of each.
const PHOTOS: u32 = 3;
const PHOTO_LEN: u64 = 40_000_000;

const PROMPT: &str = "$ ";
const COLUMNS: usize = 92;
const ROWS: usize = 24;
/// Pixels.
const CELL: f64 = 8.9;
const LINE: f64 = 21.0;
const EDGE: f64 = 18.0;
const BAR: f64 = 36.0;

/// A dark terminal, on light pages and dark ones.
const STYLE: &str = "\
.page{fill:#0d1117;stroke:#3d444d}.bar{fill:#21262d}.dot{fill:#545d68}\
text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:14px}\
.out{fill:#c9d1d9}.command{fill:#7ee2a8;font-weight:600}.about{fill:#9198a1;font-size:12px}";

/// Runs the session and draws it.
///
/// # Errors
/// No program in the release folder, no tmux, a command that does not end.
pub fn draw() -> anyhow::Result<String> {
    let program = program()?;
    let place = tempfile::tempdir()?;
    photos(&place.path().join("photos"))?;
    let screen = Terminal::start(place.path(), &program)?.session()?;
    let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
    let shown = lines.iter().rposition(|line| !line.is_empty() && *line != PROMPT.trim_end());
    let lines = &lines[..=shown.context("the terminal shows nothing")?];
    let width = COLUMNS as f64 * CELL + 2.0 * EDGE;
    let height = BAR + lines.len() as f64 * LINE + 2.0 * EDGE;
    let label = "A session in a terminal: a key is made, a folder protected and verified, a changed \
                 byte found, a file restored";
    let mut svg = Svg::new(width as u32, height as u32, label, STYLE);
    svg.rectangle("page", 0.5, 0.5, width.floor() - 1.0, height.floor() - 1.0, 8);
    svg.rectangle("bar", 1.0, 1.0, width.floor() - 2.0, BAR - 6.0, 8);
    for dot in 0..3 {
        svg.circle("dot", (EDGE + 20.0 * f64::from(dot), BAR / 2.0 - 2.0), 5);
    }
    svg.text("about", EDGE + 70.0, BAR / 2.0 + 2.0, &about(&program)?);
    for (row, line) in lines.iter().enumerate() {
        let y = BAR + EDGE + LINE * row as f64 + 8.0;
        let class = if line.starts_with(PROMPT) { "command" } else { "out" };
        if !line.is_empty() {
            svg.wide_text(class, EDGE, y, line.chars().count() as f64 * CELL, line);
        }
    }
    Ok(svg.finish())
}

/// The release build of the program.
fn program() -> anyhow::Result<PathBuf> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    let program = target.join("release/wattlock");
    program
        .canonicalize()
        .with_context(|| format!("no {}; `make pictures` builds it", program.display()))
}

fn photos(folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)?;
    for number in 1..=PHOTOS {
        let mut photo = File::create(folder.join(format!("{number}.jpg")))?;
        io::copy(&mut File::open("/dev/urandom")?.take(PHOTO_LEN), &mut photo)?;
    }
    Ok(())
}

/// Version and machine: the session shows rates.
fn about(program: &Path) -> anyhow::Result<String> {
    let version = Command::new(program).arg("--version").output()?.stdout;
    let version = String::from_utf8_lossy(&version).trim().to_owned();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo")?;
    let field = |name: &str| {
        let of_name = |line: &&str| line.split(':').next().map(str::trim) == Some(name);
        let line = cpuinfo.lines().find(of_name)?;
        line.split_once(':').map(|(_, value)| value.trim())
    };
    let cpu = field("model name").unwrap_or("unknown CPU").replace("(R)", "");
    let cpus = thread::available_parallelism()?;
    let guest = match field("flags").is_some_and(|flags| flags.contains("hypervisor")) {
        true => ", shared virtual machine",
        false => "",
    };
    Ok(format!("{version} on {cpu}, {cpus} CPUs{guest}"))
}

/// A shell in a terminal of tmux, on a socket of its own.
struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    fn start(place: &Path, program: &Path) -> anyhow::Result<Self> {
        let terminal = Self { socket: place.join(".tmux") };
        let folder = program.parent().context("a program lies in a folder")?;
        let shell = format!(
            "exec env -i HOME={0} TERM=tmux LANG=C.UTF-8 PATH={1}:/usr/bin:/bin PS1='{PROMPT}' \
             bash --norc --noprofile",
            place.display(),
            folder.display()
        );
        let (columns, rows) = (COLUMNS.to_string(), ROWS.to_string());
        let place = place.to_str().context("a place whose name is text")?;
        let size = ["-x", &columns, "-y", &rows];
        terminal.tmux(
            &[&["-f", "/dev/null", "new-session", "-d"], &size[..], &["-c", place, &shell]]
                .concat(),
        )?;
        terminal.wait_for_prompt(0)?;
        Ok(terminal)
    }

    /// Types all commands, and gives what the terminal shows at the end.
    fn session(&self) -> anyhow::Result<String> {
        for (number, command) in COMMANDS.iter().enumerate() {
            self.tmux(&["send-keys", "-l", command])?;
            self.tmux(&["send-keys", "Enter"])?;
            self.wait_for_prompt(number + 1)?;
        }
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until `commands` lines with a command and then a free prompt are shown.
    fn wait_for_prompt(&self, commands: usize) -> anyhow::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            let screen = self.tmux(&["capture-pane", "-p"])?;
            let typed = screen.lines().filter(|line| line.starts_with(PROMPT)).count();
            let last = screen.lines().map(str::trim_end).rfind(|line| !line.is_empty());
            if typed >= commands && last == Some(PROMPT.trim_end()) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        bail!("the shell does not come back after {commands} commands")
    }

    fn tmux(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = Command::new("tmux").arg("-S").arg(&self.socket).args(arguments).output();
        let output = output.context("starting tmux, which `.ci/prepare test` installs")?;
        ensure!(
            output.status.success(),
            "tmux: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(String::from_utf8(output.stdout)?)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.tmux(&["kill-server"]);
    }
}

//! The command lines of the handbook and the README, compared with the help of the program that they
//! name.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::output::stdout;
use crate::programs::without_input;

/// Checks every command line of `program` in the documentation: its commands and options exist.
///
/// # Panics
/// If one does not, with its page and line; if there are fewer than `least` lines.
#[track_caller]
pub fn assert_commands_exist(program: &Path, least: usize) {
    let name = program.file_name().and_then(|name| name.to_str()).expect("a program has a name");
    let mut helps = Helps { program, known: HashMap::new() };
    let (mut checked, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page can be read");
        for shown in commands(&text, name) {
            checked += 1;
            if let Err(why) = helps.check(&shown) {
                wrong.push(format!("{}:{}: {why}", page.display(), shown.line));
            }
        }
    }
    assert!(wrong.is_empty(), "the handbook shows what {name} has not:\n  {}", wrong.join("\n  "));
    assert!(
        checked >= least,
        "the handbook shows {checked} lines of {name}; are they still found?"
    );
}

/// The pages that describe this version.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages: Vec<_> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"]
        .map(|page| root.join(page))
        .into();
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of the handbook can be read") {
            let path = entry.expect("an entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// A command line of the program, without its name.
#[derive(Debug, PartialEq)]
struct Shown {
    line: usize,
    words: Vec<String>,
    /// Words in running text may be no command: "wattlock v1".
    is_prose: bool,
}

/// The command lines of `program` in a page: in blocks of a shell, and in code spans.
fn commands(page: &str, program: &str) -> Vec<Shown> {
    let mut found = Vec::new();
    let mut add = |line: usize, text: &str, is_prose: bool| {
        for words in simple_commands(text) {
            let mut words = words.into_iter().skip_while(|word| is_in_front(word));
            if words.next().is_some_and(|word| word.rsplit('/').next() == Some(program)) {
                found.push(Shown { line, words: words.collect(), is_prose });
            }
        }
    };
    let mut block: Option<(String, String)> = None;
    for (event, range) in Parser::new_ext(page, Options::ENABLE_TABLES).into_offset_iter() {
        let line = 1 + page[..range.start].matches('\n').count();
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                block = Some((language.into_string(), String::new()));
            }
            Event::Text(text) => {
                if let Some((_, block)) = &mut block {
                    *block += &text;
                }
            }
            Event::End(TagEnd::CodeBlock) => {
                let Some((language, text)) = block.take() else { continue };
                for (row, text) in text.lines().enumerate() {
                    let typed = match language.as_str() {
                        "console" => text.strip_prefix("$ "),
                        "sh" => Some(text),
                        _ => None,
                    };
                    if let Some(typed) = typed {
                        add(line + row + 1, typed, false);
                    }
                }
            }
            Event::Code(text) if !text.contains('…') => add(line, &text, true),
            _ => {}
        }
    }
    found
}

/// The words of each simple command of a line of a shell, quotes and comments removed, cut at pipes,
/// lists and `--`.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let (mut word, mut quote) = (String::new(), None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => word.push(letter),
            (None, '\'' | '"') => quote = Some(letter),
            (None, '#') if word.is_empty() => break,
            (None, ' ' | '\t' | '|' | ';' | '&' | '(' | ')') => {
                end_word(&mut word, &mut commands);
                if !" \t".contains(letter) {
                    commands.push(Vec::new());
                }
            }
            (None, _) => word.push(letter),
        }
    }
    end_word(&mut word, &mut commands);
    commands
}

fn end_word(word: &mut String, commands: &mut Vec<Vec<String>>) {
    match std::mem::take(word) {
        word if word.is_empty() => {}
        word if word == "--" => commands.push(Vec::new()),
        word => commands.last_mut().expect("there is one").push(word),
    }
}

/// Whether a word may stand in front of a program: `sudo`, `OPENSSL_CONF=FILE`.
fn is_in_front(word: &str) -> bool {
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    word == "sudo" || word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// What the program says of its commands.
struct Helps<'a> {
    program: &'a Path,
    known: HashMap<Vec<String>, String>,
}

impl Helps<'_> {
    /// Says which command or option there is not.
    fn check(&mut self, shown: &Shown) -> Result<(), String> {
        let mut path = Vec::new();
        let mut words = shown.words.iter().peekable();
        while let Some(word) = words.next_if(|word| !word.starts_with('-')) {
            if !has_command(self.help(&path), word) {
                // An argument of the command so far, or a word of the sentence.
                if path.is_empty() && !shown.is_prose {
                    return Err(format!("there is no command {word}"));
                }
                break;
            }
            path.push(word.clone());
        }
        self.check_options(&path, words)
    }

    fn check_options<'w>(
        &mut self,
        path: &[String],
        words: impl Iterator<Item = &'w String>,
    ) -> Result<(), String> {
        let help = self.help(path);
        for word in words {
            let option = word.split('=').next().unwrap_or(word);
            let is_option = option.trim_start_matches('-').starts_with(|c: char| c.is_alphabetic());
            if option.starts_with('-') && is_option && !has_option(help, option) {
                return Err(format!("{} has no option {option}", path.join(" ")));
            }
        }
        Ok(())
    }

    fn help(&mut self, path: &[String]) -> &str {
        self.known.entry(path.to_vec()).or_insert_with(|| {
            let output = without_input(self.program).args(path).arg("--help").output();
            stdout(&output.expect("the program can be started"))
        })
    }
}

/// Whether a help text lists that command.
fn has_command(help: &str, command: &str) -> bool {
    let listed = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let listed = listed.lines().take_while(|line| !line.is_empty());
    listed.filter_map(|line| line.split_whitespace().next()).any(|name| name == command)
}

/// Whether a help text explains that option.
fn has_option(help: &str, option: &str) -> bool {
    let explained = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    explained.flat_map(|line| line.split([' ', ',', '=', '['])).any(|word| word == option)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn commands_are_found_where_readers_find_them() {
        let page = "Run `wattlock verify a`, or `wattlock … -x`.\n\n```console\n$ A=b sudo wattlock x \
                    'c | d' | cat  # wattlock z\nwattlock shows this\n$ wattlock measure -q -- \
                    bin/wattlock y\n```\n\n```text\nwattlock no\n```\n";
        let shown = |line, text, is_prose| Shown { line, words: words(text), is_prose };
        let mut quoted = shown(4, "x", false);
        quoted.words.push("c | d".into());
        assert_eq!(
            commands(page, "wattlock"),
            [
                shown(1, "verify a", true),
                quoted,
                shown(6, "measure -q", false),
                shown(6, "y", false)
            ]
        );
    }

    #[test]
    fn options_and_commands_are_read_from_help_texts() {
        let help = "Usage: w\n\nCommands:\n  bench  Measure\n  help   Print\n\nOptions:\n  -o, --output \
                    <FILE>\n      --idle[=<SECONDS>]\n          Not --this one\n";
        assert!(has_command(help, "bench") && !has_command(help, "Measure"));
        for option in ["-o", "--output", "--idle"] {
            assert!(has_option(help, option), "{option}");
        }
        for option in ["-p", "--out", "--this"] {
            assert!(!has_option(help, option), "{option}");
        }
    }
}

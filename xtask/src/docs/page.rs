//! One Markdown file: its headings, links, code blocks and code spans.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// A Markdown file as the checks see it.
pub struct Page {
    /// Its path from the root of the repository.
    pub path: PathBuf,
    /// The anchors of its headings.
    pub anchors: BTreeSet<String>,
    /// Targets of links and images.
    pub links: Vec<Located>,
    /// Fenced code blocks.
    pub blocks: Vec<Block>,
    /// Code spans.
    pub spans: Vec<Located>,
}

/// A text, and the line it stands on.
pub struct Located {
    pub line: usize,
    pub text: String,
}

/// A fenced code block.
pub struct Block {
    /// The line of its fence.
    pub line: usize,
    /// The word behind the fence: `console`, `json`.
    pub language: String,
    pub text: String,
}

impl Page {
    /// Reads the page at `path`, from the root of the repository.
    ///
    /// # Errors
    /// That it cannot be read.
    pub fn read(root: &Path, path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(root.join(path))
            .with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self::parse(path, &text))
    }

    fn parse(path: &Path, text: &str) -> Self {
        let mut page = Self {
            path: path.to_owned(),
            anchors: BTreeSet::new(),
            links: Vec::new(),
            blocks: Vec::new(),
            spans: Vec::new(),
        };
        let mut heading: Option<String> = None;
        let mut in_block = false;
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            let line = 1 + text[..range.start].matches('\n').count();
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    if let Some(title) = heading.take() {
                        page.add_anchor(&title);
                    }
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(Located { line, text: dest_url.into_string() });
                }
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                    in_block = true;
                    let (language, text) = (language.into_string(), String::new());
                    page.blocks.push(Block { line, language, text });
                }
                Event::End(TagEnd::CodeBlock) => in_block = false,
                Event::Text(text) if in_block => {
                    if let Some(block) = page.blocks.last_mut() {
                        block.text += &text;
                    }
                }
                Event::Text(text) => {
                    if let Some(title) = &mut heading {
                        *title += &text;
                    }
                }
                Event::Code(text) => {
                    if let Some(title) = &mut heading {
                        *title += &text;
                    }
                    page.spans.push(Located { line, text: text.into_string() });
                }
                _ => {}
            }
        }
        page
    }

    /// Adds the anchor of a heading, as forges and mdBook make it.
    fn add_anchor(&mut self, title: &str) {
        let kept = title.trim().chars().filter_map(|letter| match letter {
            ' ' => Some('-'),
            letter if letter.is_alphanumeric() || "-_".contains(letter) => Some(letter),
            _ => None,
        });
        let anchor: String = kept.flat_map(char::to_lowercase).collect();
        let mut numbered = anchor.clone();
        let mut number = 0;
        while !self.anchors.insert(numbered.clone()) {
            number += 1;
            numbered = format!("{anchor}-{number}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_anchors_links_blocks_and_spans() {
        let text = "# The `wattlock` way: v1\n\n[a](b.md#c) and `make check`\n\n## Files\n\n\
                    ## Files\n\n```json\n{}\n```\n![picture](d.svg)\n";
        let page = Page::parse(Path::new("a.md"), text);
        let anchors: Vec<_> = page.anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["files", "files-1", "the-wattlock-way-v1"]);
        let links: Vec<_> = page.links.iter().map(|l| (l.line, l.text.as_str())).collect();
        assert_eq!(links, [(3, "b.md#c"), (12, "d.svg")]);
        assert_eq!(
            (page.blocks[0].language.as_str(), page.blocks[0].text.as_str()),
            ("json", "{}\n")
        );
        assert_eq!(page.spans[1].text, "make check");
    }
}

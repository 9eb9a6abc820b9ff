//! Reads the system's `openssl.cnf`, as far as a configuration has to know it that adds to it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// An `openssl.cnf` that another configuration includes and adds to.
#[derive(Debug)]
pub struct System {
    /// The file.
    pub(super) file: PathBuf,
    /// Where the provider is added.
    pub(super) sections: Sections,
}

/// The sections that load a provider: the system's, where it has them, and else our own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sections {
    /// The section that `openssl_conf` names.
    pub init: String,
    /// Whether `openssl_conf` has to be set.
    pub is_own: bool,
    pub providers: String,
    /// That of OpenSSL's default provider.
    pub default: String,
    pub algorithms: String,
    /// `default_properties`.
    pub properties: String,
    /// Whether the random generator has to be set.
    pub sets_random: bool,
}

impl Sections {
    /// Those of a configuration that stands alone.
    pub(super) fn own() -> Self {
        Self {
            init: "wattlock_openssl".to_owned(),
            is_own: true,
            providers: "wattlock_providers".to_owned(),
            default: "wattlock_default".to_owned(),
            algorithms: "wattlock_algorithms".to_owned(),
            properties: PREFERRED.to_owned(),
            sets_random: true,
        }
    }
}

/// Prefers the provider's ciphers, by a property of theirs.
const PREFERRED: &str = "?x.wattlock=yes";

impl System {
    /// Reads a file and those that it includes; `None` if there is no such file.
    ///
    /// # Errors
    /// That it cannot be read or understood, with its path and line, or that its policy excludes the provider or
    /// would be weakened by it.
    pub fn read(file: &Path) -> Result<Option<Self>, String> {
        let exists = file.try_exists();
        if !exists.map_err(|error| format!("{}: {error}", file.display()))? {
            return Ok(None);
        }
        let mut reader = Reader { section: "default".to_owned(), ..Reader::default() };
        reader.read(file)?;
        let sections = Policy { sections: reader.sections }.with_provider();
        let sections = sections.map_err(|why| format!("{}: {why}", file.display()))?;
        Ok(Some(Self { file: file.to_owned(), sections }))
    }
}

/// The sections of a file and of those that it includes.
///
/// OpenSSL's own rules (`config(5)`): a name that is given again replaces the earlier one, a section
/// goes on where it is named again, and an included file may change the section.
struct Policy {
    sections: BTreeMap<String, BTreeMap<String, String>>,
}

impl Policy {
    /// Returns the sections to which a provider is added.
    fn with_provider(&self) -> Result<Sections, String> {
        let own = Sections::own();
        let Some(init) = self.value("default", "openssl_conf")? else { return Ok(own) };
        let providers = self.value(init, "providers")?;
        let default = self.default_provider(providers)?;
        let algorithms = self.value(init, "alg_section")?;
        let properties = match algorithms {
            Some(section) => self.value(section, "default_properties")?,
            None => None,
        };
        Ok(Sections {
            init: init.to_owned(),
            is_own: false,
            providers: providers.map_or(own.providers, str::to_owned),
            default: default.map_or(own.default, str::to_owned),
            algorithms: algorithms.map_or(own.algorithms, str::to_owned),
            properties: with_preference(properties.unwrap_or_default())?,
            sets_random: self.value(init, "random")?.is_none(),
        })
    }

    /// Returns the section of OpenSSL's default provider, which has to be activated, since OpenSSL does so by itself
    /// only where no other provider is.
    fn default_provider(&self, providers: Option<&str>) -> Result<Option<&str>, String> {
        let Some(providers) = providers else { return Ok(None) };
        let names = self.sections.get(providers);
        let mut active = Vec::new();
        for (name, section) in names.into_iter().flatten() {
            if self.is_active(section)? {
                active.push(name.as_str());
            }
        }
        let leaves_out_default = !active.is_empty() && !active.contains(&"default");
        if leaves_out_default {
            let active = active.join(", ");
            return Err(format!(
                "only these providers are active: {active}; Wattlock's needs OpenSSL's default provider as well"
            ));
        }
        self.value(providers, "default")
    }

    fn is_active(&self, section: &str) -> Result<bool, String> {
        // From 3.2 on it may be a number or a word; before, its value was not looked at.
        let activate = self.value(section, "activate")?;
        Ok(activate.is_some_and(|value| !["0", "no", "false", "off"].contains(&value)))
    }

    /// The value of a name in a section.
    fn value(&self, section: &str, name: &str) -> Result<Option<&str>, String> {
        let found = self.sections.get(section).and_then(|names| names.get(name));
        match found {
            Some(value) if value.contains('$') => {
                Err(format!("{name} in [{section}] is a variable, which Wattlock does not read"))
            }
            found => Ok(found.map(String::as_str)),
        }
    }
}

/// Adds our preference to the system's default properties.
fn with_preference(properties: &str) -> Result<String, String> {
    let all = properties.split(',').map(str::trim).filter(|one| !one.is_empty());
    let mut all: Vec<&str> = all.filter(|one| *one != PREFERRED).collect();
    let is_free =
        |one: &&str| one.starts_with(['?', '-']) || one.contains("!=") || one.ends_with("=no");
    if let Some(demanded) = all.iter().find(|one| !is_free(one)) {
        return Err(format!(
            "default_properties demands {demanded} of every algorithm, which Wattlock's ciphers do not have"
        ));
    }
    all.push(PREFERRED);
    Ok(all.join(","))
}

/// What has been read so far.
#[derive(Default)]
struct Reader {
    section: String,
    sections: BTreeMap<String, BTreeMap<String, String>>,
    /// Where relative paths are, by `.pragma includedir`.
    folder: Option<PathBuf>,
    depth: usize,
}

/// Files that include each other, at most.
const MAX_DEPTH: usize = 16;

impl Reader {
    fn read(&mut self, file: &Path) -> Result<(), String> {
        let wrong = |why: &str| format!("{}: {why}", file.display());
        if self.depth == MAX_DEPTH {
            return Err(wrong("too many files include each other"));
        }
        let bytes = fs::read(file).map_err(|error| wrong(&error.to_string()))?;
        self.depth += 1;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_start_matches('\u{feff}');
        let mut line = String::new();
        for (index, part) in text.lines().enumerate() {
            line += part.trim_end_matches('\r');
            // A line goes on after a backslash that no other one precedes.
            if line.ends_with('\\') && !line.ends_with("\\\\") {
                line.pop();
                continue;
            }
            let whole = std::mem::take(&mut line);
            self.line(without_comment(&whole).trim())
                .map_err(|why| wrong(&format!("line {}: {why}", index + 1)))?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() {
            return Ok(());
        }
        if let Some(name) = line.strip_prefix('[') {
            let (name, _) = name.split_once(']').ok_or("a section has no ]")?;
            self.section = name.trim().to_owned();
            self.sections.entry(self.section.clone()).or_default();
            return Ok(());
        }
        if let Some(path) = directive(line, ".include") {
            return self.include(&unquoted(path));
        }
        if let Some(pragma) = directive(line, ".pragma") {
            if let Some(("includedir", folder)) = pragma.split_once(':') {
                self.folder = Some(folder.trim().into());
            }
            return Ok(());
        }
        let (name, value) = line.split_once('=').ok_or("it has no =")?;
        let name = name.trim();
        let (section, name) = name.split_once("::").unwrap_or((&self.section, name));
        let section = self.sections.entry(section.to_owned()).or_default();
        section.insert(name.to_owned(), unquoted(value.trim()));
        Ok(())
    }

    /// Follows an include. As OpenSSL, it passes over files that are not there; where a relative path is depends on who
    /// reads it.
    fn include(&mut self, path: &str) -> Result<(), String> {
        let path = match &self.folder {
            Some(folder) => folder.join(path),
            None => PathBuf::from(path),
        };
        if !path.is_absolute() || !path.exists() {
            return Ok(());
        }
        if !path.is_dir() {
            return self.read(&path);
        }
        let entries =
            fs::read_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut files: Vec<PathBuf> =
            entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.retain(|file| {
            file.extension().is_some_and(|ending| ending == "cnf" || ending == "conf")
        });
        files.sort();
        files.iter().try_for_each(|file| self.read(file))
    }
}

/// What follows the name of a directive, with or without an equals sign.
fn directive<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(name)?;
    let is_whole = rest.starts_with(|next: char| next == '=' || next.is_whitespace());
    is_whole.then(|| rest.trim_start().trim_start_matches('=').trim())
}

/// The line up to a `#` that is neither quoted nor escaped.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut is_escaped) = (None, false);
    for (at, character) in line.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' | '\'' | '`' if quote.is_none() => quote = Some(character),
            _ if quote == Some(character) => quote = None,
            '#' if quote.is_none() => return &line[..at],
            _ => {}
        }
    }
    line
}

/// A value without its quotes and backslashes. A variable stays as it is.
fn unquoted(value: &str) -> String {
    let (mut text, mut quote, mut is_escaped) = (String::new(), None, false);
    for character in value.chars() {
        match character {
            _ if is_escaped => {
                is_escaped = false;
                text.push(character);
            }
            '\\' => is_escaped = true,
            '"' | '\'' | '`' if quote.is_none() => quote = Some(character),
            _ if quote == Some(character) => quote = None,
            _ => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(text: &str) -> Result<Sections, String> {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("openssl.cnf");
        fs::write(&file, text.replace('@', place.path().to_str().unwrap())).unwrap();
        fs::create_dir(place.path().join("more")).unwrap();
        fs::write(place.path().join("more/a.cnf"), "[late]\nrandom = r\n").unwrap();
        Ok(System::read(&file)?.unwrap().sections)
    }

    #[test]
    fn sections_of_the_system_are_found_and_missing_ones_are_our_own() {
        let own = Sections::own;
        assert_eq!(sections("[req]\nx = 1 # openssl_conf = a\n"), Ok(own()));
        let debian = Sections { init: "openssl_init".into(), is_own: false, ..own() };
        let text = "openssl_conf = openssl_init\n[openssl_init]\nproviders = provider_sect\n\
                    [provider_sect]\ndefault = default_sect\n[default_sect]\n# activate = 1\n";
        let known = Sections {
            providers: "provider_sect".into(),
            default: "default_sect".into(),
            ..debian
        };
        assert_eq!(sections(text), Ok(known));
        let text = "\u{feff}default::openssl_conf = \"la\\\nte\" # x\n[other]\n.include = @/more\n\
                    alg_section = a b\n[ a b ]\ndefault_properties = ?fips=yes , -x\n.include @/none\n";
        let found = sections(text).unwrap();
        assert_eq!((found.init.as_str(), found.sets_random), ("late", false));
        assert_eq!(found.algorithms, "a b");
        assert_eq!(found.properties, "?fips=yes,-x,?x.wattlock=yes");
    }

    #[test]
    fn a_policy_without_a_place_for_the_provider_is_an_error() {
        let text = "openssl_conf = i\n[i]\nproviders = p\nalg_section = a\n";
        for (more, why) in [
            ("[a]\ndefault_properties = fips=yes\n", "demands fips=yes of every algorithm"),
            (
                "[p]\nfips = f\ndefault = d\n[f]\nactivate = 1\n[d]\nactivate = 0\n",
                "are active: fips;",
            ),
            ("[i]\nproviders = $other\n", "providers in [i] is a variable"),
            (".include @/openssl.cnf\n", "too many files include each other"),
            ("[p\n", "line 5: a section has no ]"),
            ("what\n", "line 5: it has no ="),
        ] {
            let error = sections(&format!("{text}{more}")).unwrap_err();
            assert!(error.contains(why), "{more}: {error}");
        }
    }
}

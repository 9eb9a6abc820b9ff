//! The files of AWS's tools: `~/.aws/credentials` and `~/.aws/config`, which the library does not read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use crate::error::Error;

/// What a profile says of requests to S3.
#[derive(Default)]
pub(crate) struct Profile {
    values: BTreeMap<String, String>,
}

impl Profile {
    /// The profile that `AWS_PROFILE` names, or the one called default. If the environment `has_key`, the
    /// credentials of the profile do not matter.
    ///
    /// # Errors
    /// [`Error::Configuration`] for a profile that was asked for and is nowhere, and for one whose
    /// credentials come from a program or a single sign-on.
    pub fn of_user(has_key: bool) -> Result<Self, Error> {
        let wanted = env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty());
        let name = wanted.clone().unwrap_or_else(|| "default".into());
        let mut profile = Self::default();
        let mut is_there = false;
        for (variable, file, section) in [
            ("AWS_CONFIG_FILE", "config", section_of_config(&name)),
            ("AWS_SHARED_CREDENTIALS_FILE", "credentials", name.clone()),
        ] {
            let Some(path) = place(variable, file) else { continue };
            is_there |= profile.add(&path, &section)?;
        }
        let problem = |why: &str| {
            let place = format!("the AWS profile {name}");
            Err(Error::Configuration { place, why: why.to_owned() })
        };
        if wanted.is_some() && !is_there {
            return problem("not found in the AWS config and credentials files");
        }
        if profile.get("aws_access_key_id").is_none() && !has_key {
            for way in ["credential_process", "sso_session", "sso_start_url", "role_arn"] {
                if profile.get(way).is_some() {
                    return problem(&format!(
                        "{way} is not supported; run: eval \"$(aws configure export-credentials \
                         --format env)\""
                    ));
                }
            }
        }
        Ok(profile)
    }

    /// A value of it.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// Adds the values of a section of a file; true if it is there.
    fn add(&mut self, path: &Path, section: &str) -> Result<bool, Error> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => {
                let place = path.display().to_string();
                return Err(Error::Configuration { place, why: error.to_string() });
            }
        };
        Ok(self.add_text(&text, section))
    }

    fn add_text(&mut self, text: &str, section: &str) -> bool {
        let (mut inside, mut found) = (false, false);
        for line in text.lines() {
            // What is indented belongs to a value above.
            if line.starts_with([' ', '\t', '#', ';']) {
                continue;
            }
            let line = line.trim();
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                inside = name.split_whitespace().collect::<Vec<_>>().join(" ") == section;
                found |= inside;
            } else if let Some((key, value)) = line.split_once('=').filter(|_| inside) {
                self.values.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
            }
        }
        found
    }
}

fn section_of_config(name: &str) -> String {
    if name == "default" { name.to_owned() } else { format!("profile {name}") }
}

/// The file that a variable names, or the one in `~/.aws`.
fn place(variable: &str, file: &str) -> Option<PathBuf> {
    let named = env::var_os(variable).filter(|path| !path.is_empty());
    named.map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".aws").join(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_read() {
        let text = "# comment\n[default]\nregion = eu-west-1\n[profile  other]\n\
                    aws_access_key_id=AKID\ns3 =\n  region = inner\nRegion = us-east-2 \n";
        let mut profile = Profile::default();
        assert!(profile.add_text(text, "profile other"));
        assert_eq!(profile.get("aws_access_key_id"), Some("AKID"));
        assert_eq!(profile.get("region"), Some("us-east-2"));
        assert!(!Profile::default().add_text(text, "other"));
    }
}

//! The files of AWS's tools: `~/.aws/credentials` and `~/.aws/config`, which the library does not read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use crate::error::Error;

/// What a profile says of requests to S3.
#[derive(Default)]
pub(crate) struct Profile {
    values: BTreeMap<String, String>,
    /// `endpoint_url` under `s3 =` of the section of services that the profile names.
    services: Option<Services>,
}

/// A section of services.
struct Services {
    name: String,
    s3_endpoint: Option<String>,
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

    /// The server that requests to S3 go to.
    ///
    /// # Errors
    /// [`Error::Configuration`] for a section of services that is not there.
    pub fn s3_endpoint(&self) -> Result<Option<String>, Error> {
        if env::var("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").is_ok_and(|value| value == "true") {
            return Ok(None);
        }
        if let Some(wanted) = self.get("services") {
            let services = self.services.as_ref().filter(|services| services.name == wanted);
            let services = services.ok_or_else(|| Error::Configuration {
                place: "the AWS config file".into(),
                why: format!("there is no section [services {wanted}], which the profile names"),
            })?;
            if let Some(endpoint) = &services.s3_endpoint {
                return Ok(Some(endpoint.clone()));
            }
        }
        Ok(self.get("endpoint_url").map(str::to_owned))
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
        let found = self.add_text(&text, section);
        if let Some(name) = self.get("services") {
            let section = format!("services {name}");
            if let Some(endpoint) = nested(&text, &section, "s3", "endpoint_url") {
                self.services = Some(Services { name: name.to_owned(), s3_endpoint: endpoint });
            }
        }
        Ok(found)
    }

    fn add_text(&mut self, text: &str, section: &str) -> bool {
        let (mut inside, mut found) = (false, false);
        for line in text.lines() {
            // What is indented belongs to a value above.
            if line.starts_with([' ', '\t', '#', ';']) {
                continue;
            }
            let line = line.trim();
            if let Some(name) = section_name(line) {
                inside = name == section;
                found |= inside;
            } else if let Some((key, value)) = line.split_once('=').filter(|_| inside) {
                self.values.insert(key.trim().to_ascii_lowercase(), value.trim().to_owned());
            }
        }
        found
    }
}

/// The value of `key` under `group =` in a section, where lines of a group are indented. `Some(None)` for a section without
/// it, and `None` where there is no such section.
fn nested(text: &str, section: &str, group: &str, key: &str) -> Option<Option<String>> {
    let (mut section_found, mut value) = (false, None);
    let (mut in_section, mut in_group) = (false, false);
    for line in text.lines() {
        let is_indented = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = section_name(line).filter(|_| !is_indented) {
            in_section = name == section;
            section_found |= in_section;
            in_group = false;
        } else if let Some((name, text)) = line.split_once('=').filter(|_| in_section) {
            let (name, text) = (name.trim().to_ascii_lowercase(), text.trim());
            if !is_indented {
                in_group = name == group;
            } else if in_group && name == key && !text.is_empty() {
                value = Some(text.to_owned());
            }
        }
    }
    section_found.then_some(value)
}

/// The name in a line `[name]`.
fn section_name(line: &str) -> Option<String> {
    let name = line.strip_prefix('[')?.strip_suffix(']')?;
    Some(name.split_whitespace().collect::<Vec<_>>().join(" "))
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

    #[test]
    fn a_section_of_services_is_read() {
        let text = "[profile x]\nservices = local\n[services  local]\n# comment\n\
                    sts =\n  endpoint_url = http://sts\ns3 =\n  endpoint_url = http://s3\n\
                    [services empty]\ns3 =\n[default]\ns3 =\n  endpoint_url = http://no\n";
        let s3 = |section| nested(text, section, "s3", "endpoint_url");
        assert_eq!(s3("services local"), Some(Some("http://s3".into())));
        assert_eq!((s3("services empty"), s3("services none")), (Some(None), None));
        let mut profile = Profile::default();
        profile.add_text(text, "profile x");
        assert!(profile.s3_endpoint().is_err());
    }
}

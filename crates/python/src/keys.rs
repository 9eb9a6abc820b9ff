//! Recipients and identities.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use wattlock_file::{
    Error, Format, Identities, IdentityFile, NativeIdentity, NoPrompt, Passphrase, Prompt,
    Recipients, Wrapping,
};
use zeroize::Zeroizing;

use crate::errors::of_file;
use crate::paths::check_is_file;

/// A public key of age or SSH, for which containers are sealed.
#[pyclass(frozen, eq, hash, module = "wattlock")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Recipient {
    text: String,
}

#[pymethods]
impl Recipient {
    /// Recipient(text): "age1…", "ssh-ed25519 …" or "ssh-rsa …".
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        let text = text.trim().to_owned();
        wattlock_file::Recipient::from_str(&text).map_err(of_file)?;
        Ok(Self { text })
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("Recipient({:?})", self.text)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (String,)) {
        (slf.get_type().into_any(), (slf.get().text.clone(),))
    }
}

/// A private key of age or SSH, which opens what was sealed for its recipient. Its repr does not show it.
#[pyclass(frozen, module = "wattlock")]
pub(crate) struct Identity {
    /// An identity file.
    text: Zeroizing<Vec<u8>>,
    name: String,
    /// Of the file.
    passphrase: Option<Passphrase>,
    recipients: Vec<Recipient>,
}

#[pymethods]
impl Identity {
    /// Identity(text, passphrase=None): "AGE-SECRET-KEY-1…", or the text of an identity file or of a private key of SSH.
    #[new]
    #[pyo3(signature = (text, passphrase=None))]
    fn new(text: &Bound<'_, PyAny>, passphrase: Option<&str>) -> PyResult<Self> {
        let text = if let Ok(text) = text.cast::<PyString>() {
            Zeroizing::new(text.to_str()?.as_bytes().to_vec())
        } else if let Ok(bytes) = text.cast::<PyBytes>() {
            Zeroizing::new(bytes.as_bytes().to_vec())
        } else {
            return Err(PyTypeError::new_err("an identity is made of str or bytes"));
        };
        Self::of(text, "the identity".to_owned(), passphrase)
    }

    /// The identities in a file: age's, Wattlock's, or a private key of SSH.
    #[staticmethod]
    #[pyo3(signature = (path, passphrase=None))]
    #[allow(clippy::needless_pass_by_value, reason = "Python's paths are extracted")]
    fn from_file(path: PathBuf, passphrase: Option<&str>) -> PyResult<Self> {
        check_is_file(&path)?;
        let read = std::fs::read(&path).map_err(Error::io("read", &path)).map_err(of_file)?;
        Self::of(Zeroizing::new(read), path.display().to_string(), passphrase)
    }

    /// The recipient that it opens for; the first one, if it is a file with several identities.
    #[getter]
    fn recipient(&self) -> PyResult<Recipient> {
        let first = self.recipients.first().cloned();
        first.ok_or_else(|| PyValueError::new_err("its recipient has no text"))
    }

    /// The recipients of all identities in it.
    #[getter]
    fn recipients(&self) -> Vec<Recipient> {
        self.recipients.clone()
    }

    /// The secret itself, as an identity file holds it.
    fn secret(&self) -> PyResult<String> {
        String::from_utf8(self.text.to_vec()).map_err(|_| {
            PyValueError::new_err("the identity is encrypted; its secret is not shown")
        })
    }

    fn __repr__(&self) -> String {
        let of = self.recipients.first().map_or("", |recipient| &recipient.text);
        format!("<wattlock.Identity of {of}>")
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("an identity is not pickled; send the path of its file"))
    }
}

impl Identity {
    fn of(text: Zeroizing<Vec<u8>>, name: String, passphrase: Option<&str>) -> PyResult<Self> {
        let passphrase = passphrase.map(Passphrase::from);
        let mut this = Self { text, name, passphrase, recipients: Vec::new() };
        let file = this.parse().map_err(of_file)?;
        let recipients = file.recipients().map_err(of_file)?;
        let texts = recipients.iter().filter_map(|recipient| recipient.text());
        this.recipients = texts.map(|text| Recipient { text: text.to_owned() }).collect();
        Ok(this)
    }

    fn parse(&self) -> Result<IdentityFile, Error> {
        let prompt: Arc<dyn Prompt> = match &self.passphrase {
            Some(passphrase) => Arc::new(Given(passphrase.clone())),
            None => Arc::new(NoPrompt),
        };
        IdentityFile::parse(&self.text, &self.name, prompt, MOST_WORK)
    }
}

/// Answers with a passphrase that is known.
struct Given(Passphrase);

impl Prompt for Given {
    fn passphrase(&self, _: &str) -> Option<Passphrase> {
        Some(self.0.clone())
    }
}

/// Makes a new identity: X25519, or with post_quantum=True ML-KEM-768 and X25519, whose recipients cannot be mixed with
/// others.
#[pyfunction]
#[pyo3(signature = (*, post_quantum=false))]
pub(crate) fn keygen(post_quantum: bool) -> PyResult<Identity> {
    let made = match post_quantum {
        false => NativeIdentity::generate(),
        true => NativeIdentity::generate_post_quantum().map_err(of_file)?,
    };
    let text = Zeroizing::new(made.to_text().as_bytes().to_vec());
    Identity::of(text, "the identity".to_owned(), None)
}

/// An argument that is one thing or several.
fn each<'py>(
    argument: Option<&Bound<'py, PyAny>>,
    name: &str,
    is_one: impl Fn(&Bound<'py, PyAny>) -> bool,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let Some(argument) = argument else { return Ok(Vec::new()) };
    if is_one(argument) {
        return Ok(vec![argument.clone()]);
    }
    let all: PyResult<Vec<_>> = argument.try_iter().and_then(Iterator::collect);
    let all = all.ok().filter(|all| all.iter().all(is_one));
    all.ok_or_else(|| {
        let kind = argument.get_type().name().map_or_else(|_| String::new(), |n| n.to_string());
        PyTypeError::new_err(format!(
            "{name} is a {}, its text, or a list of them; not {kind}",
            if name == "recipients" { "Recipient" } else { "Identity" }
        ))
    })
}

/// A wrapping for these recipients, or for a passphrase.
pub(crate) fn wrapping(
    recipients: Option<&Bound<'_, PyAny>>,
    passphrase: Option<&str>,
    format: Format,
) -> PyResult<Wrapping> {
    let is_one = |one: &Bound<'_, PyAny>| one.cast::<Recipient>().is_ok() || is_text(one);
    let mut list = Vec::new();
    for one in each(recipients, "recipients", is_one)? {
        let recipient = match one.cast::<Recipient>() {
            Ok(recipient) => recipient.get().text.parse(),
            Err(_) => one.extract::<String>()?.trim().parse(),
        };
        list.push(recipient.map_err(of_file)?);
    }
    if let Some(passphrase) = given(passphrase)? {
        let passphrase = wattlock_file::Recipient::passphrase(&passphrase, WORK);
        list.push(passphrase.map_err(of_file)?);
    }
    if list.is_empty() {
        return Err(PyValueError::new_err("no recipient: give recipients= or passphrase="));
    }
    let wrapping = Wrapping::new(Recipients::new(list).map_err(of_file)?);
    wrapping.check(format).map_err(of_file)?;
    Ok(wrapping)
}

/// These identities and this passphrase.
pub(crate) fn identities(
    identities: Option<&Bound<'_, PyAny>>,
    passphrase: Option<&str>,
) -> PyResult<Identities> {
    let is_one = |one: &Bound<'_, PyAny>| one.cast::<Identity>().is_ok() || is_text(one);
    let mut list = Vec::new();
    for one in each(identities, "identities", is_one)? {
        let file = match one.cast::<Identity>() {
            // An identity in a protected file takes a second.
            Ok(identity) => {
                let identity = identity.get();
                one.py().detach(|| identity.parse())
            }
            Err(_) => {
                let text = Zeroizing::new(one.extract::<String>()?.into_bytes());
                IdentityFile::parse(&text, "the identity", Arc::new(NoPrompt), MOST_WORK)
            }
        };
        list.extend(file.and_then(IdentityFile::into_identities).map_err(of_file)?);
    }
    if let Some(passphrase) = given(passphrase)? {
        list.push(wattlock_file::Identity::passphrase(&passphrase, MOST_WORK));
    }
    if list.is_empty() {
        return Err(PyValueError::new_err("no key: give identities= or passphrase="));
    }
    Ok(Identities::new(list))
}

fn is_text(one: &Bound<'_, PyAny>) -> bool {
    one.cast::<PyString>().is_ok()
}

fn given(passphrase: Option<&str>) -> PyResult<Option<Passphrase>> {
    match passphrase {
        Some("") => Err(PyValueError::new_err("the passphrase is empty")),
        passphrase => Ok(passphrase.map(Passphrase::from)),
    }
}

/// The format of that name.
pub(crate) fn format(name: &str) -> PyResult<Format> {
    match name {
        "wattlock" => Ok(Format::WattlockV1),
        "age" => Ok(Format::AgeV1),
        other => Err(PyValueError::new_err(format!("{other:?} is not a format: wattlock or age"))),
    }
}

/// Work factors of scrypt: what a passphrase gets, and the most that is accepted, as in the program.
const WORK: u8 = 18;
const MOST_WORK: u8 = 22;

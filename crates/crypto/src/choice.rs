//! Code that all kernel choices share: the names of kernels, and why this CPU cannot run some.

use crate::error::Error;

/// The proof that this CPU has what the kernel of that name needs.
pub(crate) fn found<P>(proof: Option<P>, name: &str, needs: &'static str) -> Result<P, Error> {
    proof.ok_or_else(|| Error::KernelAbsent { kernel: name.to_owned(), needs })
}

/// Those that run here, in the order of `names`.
pub(crate) fn all<K>(names: &[&str], named: fn(&str) -> Result<K, Error>) -> Vec<K> {
    names.iter().filter_map(|name| named(name).ok()).collect()
}

/// Those that do not, and why.
pub(crate) fn absent<K>(
    names: &[&'static str],
    named: fn(&str) -> Result<K, Error>,
) -> Vec<(&'static str, String)> {
    let why = |&name| named(name).err().map(|error| (name, error.to_string()));
    names.iter().filter_map(why).collect()
}

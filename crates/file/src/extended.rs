//! Access control lists and extended attributes, which `--replace` moves to the new file.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;

use rustix::fs::{
    XattrFlags, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query, fremovexattr, fsetxattr,
};
use rustix::io::Errno;

/// The extended attributes of a file. POSIX ACLs are among them.
#[derive(Clone, Default)]
pub struct ExtendedAttributes(Vec<(CString, Vec<u8>)>);

/// Why a file could not be given one of its attributes.
#[derive(Debug)]
pub(crate) struct AttributeNotCopied {
    pub name: CString,
    pub source: io::Error,
}

impl ExtendedAttributes {
    /// Reads those of `file`. A file system that has none is no error.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let mut attributes = Vec::new();
        for name in names(file)? {
            let mut value = vec![0; MAX_LEN];
            match fgetxattr(file, &*name, &mut value[..]) {
                Ok(len) => value.truncate(len),
                // Removed since the list was read.
                Err(Errno::NODATA) => continue,
                Err(error) => return Err(error.into()),
            }
            value.shrink_to_fit();
            attributes.push((name, value));
        }
        Ok(Self(attributes))
    }

    /// Gives `file` these attributes, and takes away others, such as an ACL that it inherited from
    /// its folder.
    pub(crate) fn give(&self, file: &File) -> Result<(), AttributeNotCopied> {
        let failed = |name: &CStr| {
            let name = name.to_owned();
            |error: Errno| AttributeNotCopied { name, source: error.into() }
        };
        let present = names(file)
            .map_err(|source| AttributeNotCopied { name: CString::default(), source })?;
        for name in present.iter().filter(|name| !self.has(name)) {
            fremovexattr(file, &**name).map_err(failed(name))?;
        }
        for (name, value) in &self.0 {
            fsetxattr(file, &**name, value, XattrFlags::empty()).map_err(failed(name))?;
        }
        Ok(())
    }

    /// The name of an attribute that `other` lacks, or has with another value.
    pub(crate) fn missing_in(&self, other: &Self) -> Option<&CStr> {
        self.0.iter().find(|own| !other.0.contains(own)).map(|(name, _)| &**name)
    }

    /// The ACL, if there is one.
    pub(crate) fn acl(&self) -> Option<Acl> {
        self.0.iter().find(|(name, _)| **name == *ACL).and_then(|(_, value)| Acl::parse(value))
    }

    fn has(&self, name: &CStr) -> bool {
        self.0.iter().any(|(own, _)| **own == *name)
    }
}

/// Two entries of a POSIX ACL, as three permission bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acl {
    /// What the owning group may do.
    pub group: u32,
    /// The most that named users and groups may do. The group bits of the mode show this, and not
    /// what the owning group may do.
    pub mask: u32,
}

impl Acl {
    /// That of `file`, if it has one.
    pub(crate) fn of(file: &File) -> Option<Self> {
        let mut value = vec![0; fgetxattr_query(file, ACL).ok()?];
        let len = fgetxattr(file, ACL, &mut value[..]).ok()?;
        Self::parse(&value[..len])
    }

    /// Reads the kernel's form: a version, and for each entry a tag, permissions and a number.
    fn parse(value: &[u8]) -> Option<Self> {
        let (version, entries) = value.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*version) != 2 {
            return None;
        }
        let permissions = |wanted: u16| {
            let mut entries = entries.as_chunks::<8>().0.iter();
            let entry = entries.find(|[a, b, ..]| u16::from_le_bytes([*a, *b]) == wanted)?;
            Some(u32::from(u16::from_le_bytes([entry[2], entry[3]])) & 7)
        };
        let (group, mask) = (permissions(GROUP_OBJ)?, permissions(MASK)?);
        Some(Self { group: group & mask, mask })
    }
}

const ACL: &CStr = c"system.posix_acl_access";
const GROUP_OBJ: u16 = 4;
const MASK: u16 = 0x10;

impl std::fmt::Debug for ExtendedAttributes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// The names of the attributes of `file` that belong to it and not to the system.
fn names(file: &File) -> io::Result<Vec<CString>> {
    match flistxattr_query(file) {
        Ok(0) => return Ok(Vec::new()),
        Ok(_) => {}
        // There are some, and they cannot be read.
        Err(
            error @ (Errno::ACCESS | Errno::PERM | Errno::TOOBIG | Errno::RANGE | Errno::NOMEM),
        ) => {
            return Err(error.into());
        }
        // The file system has none. Mounts say so by errors of many kinds.
        Err(_) => return Ok(Vec::new()),
    }
    let mut list = vec![0; MAX_LEN];
    let len = flistxattr(file, &mut list[..])?;
    let names = list[..len].split_inclusive(|&byte| byte == 0);
    let names = names.filter_map(|name| CStr::from_bytes_with_nul(name).ok());
    Ok(names.filter(|name| !is_label(name)).map(CStr::to_owned).collect())
}

/// True for what a security module writes itself: its label of every file, and hashes of the
/// contents, which are wrong for other contents.
fn is_label(name: &CStr) -> bool {
    let name = name.to_bytes();
    name.starts_with(b"security.") && name != b"security.capability"
}

/// Linux allows no longer value, and no longer list of names.
const MAX_LEN: usize = 1 << 16;

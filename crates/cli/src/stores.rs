//! Addresses of objects, `s3://bucket/key` and the like, among the inputs and outputs of a command.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use wattlock_file::{Error, Exclude, Found, Input, Listing, RemoteObject, Skip, Task};
use wattlock_host::exit::usage;
use wattlock_object::{
    Address, Client, ForeignObject, ListEntry, Listed, Spool, SpooledUpload, Upload, is_address,
};

use crate::args;

/// The stores of a run, which are opened when the first address is used.
#[derive(Default)]
pub struct Stores {
    client: OnceLock<Client>,
    /// Objects below inputs that have no address, with the input.
    foreign: Mutex<Vec<(PathBuf, ForeignObject)>>,
}

/// Objects that are worked on at a time: most of it is waiting.
pub const AT_ONCE: usize = 32;

impl Stores {
    fn client(&self) -> Result<&Client, wattlock_object::Error> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = Client::new()?;
        Ok(self.client.get_or_init(|| client))
    }

    /// The input at a path or an address, of that length if it is known.
    ///
    /// # Errors
    /// Those of an address that is none, and of a configuration.
    pub fn input(&self, path: &Path, len: Option<u64>) -> Result<Input, Error> {
        if !is_address(path) {
            return Ok(Input::Path(path.to_owned()));
        }
        self.object(path, len).map(Input::Remote)
    }

    /// The object at an address.
    ///
    /// # Errors
    /// As [`Stores::input`].
    pub fn object(&self, path: &Path, len: Option<u64>) -> Result<Arc<dyn RemoteObject>, Error> {
        let address = object_address(path)?;
        let open = || self.client()?.object(&address, len);
        Ok(Arc::new(open().map_err(|error| unusable(path, error))?))
    }

    /// A new object at an address.
    ///
    /// # Errors
    /// As [`Stores::input`].
    pub fn upload(&self, path: &Path, overwrite: bool, len: Option<u64>) -> Result<Upload, Error> {
        let address = object_address(path)?;
        let open = || self.client()?.upload(&address, overwrite, len);
        open().map_err(|error| unusable(path, error))
    }

    /// A new object at an address, which is sealed to `spool` first.
    ///
    /// # Errors
    /// As [`Stores::input`]; those of the spool.
    pub fn spooled(
        &self,
        spool: &Spool,
        path: &Path,
        overwrite: bool,
        len: Option<u64>,
    ) -> Result<SpooledUpload, Error> {
        let open = || spool.upload(self.client()?, &Address::parse(path)?, overwrite, len);
        open().map_err(|error| unusable(path, error))
    }

    /// Removes what a former run left in `spool` of the object at an address, which is complete.
    pub fn discard_copy(&self, spool: &Spool, path: &Path) {
        if let (Ok(client), Ok(address)) = (self.client(), Address::parse(path)) {
            spool.discard(client, &address);
        }
    }

    /// Goes on with the upload of the copy that a former run left in `spool`, if `is_right` says that it is
    /// what would be sent; another is discarded. Returns the object if it was sent.
    ///
    /// # Errors
    /// Those of `is_right` and of the store.
    pub fn send_copy(
        &self,
        spool: &Spool,
        path: &Path,
        overwrite: bool,
        is_right: impl FnOnce(&Input) -> Result<bool, Error>,
    ) -> Result<Option<Arc<dyn RemoteObject>>, Error> {
        let client = || self.client().map_err(|error| unusable(path, error));
        let address = Address::parse(path).map_err(|error| unusable(path, error))?;
        let Some(copy) = spool.find(&address) else { return Ok(None) };
        if !is_right(&Input::Path(copy.container.clone()))? {
            copy.discard(client()?, &address);
            return Ok(None);
        }
        copy.send(client()?, &address, overwrite).map(Some).map_err(Error::io("write", path))
    }

    /// What an input stands for, if it is an address.
    pub fn listing(&self, path: &Path, recursive: bool) -> Option<Result<Listing, Error>> {
        is_address(path).then(|| self.list(path, recursive))
    }

    fn list(&self, path: &Path, recursive: bool) -> Result<Listing, Error> {
        if !recursive {
            return object_address(path).map(|_| Listing::Object(0));
        }
        let Listed { objects, foreign } = self.listed(path)?;
        if objects.is_empty() && foreign.is_empty() {
            return Ok(Listing::Object(0));
        }
        let mut all = self.foreign.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(foreign.into_iter().map(|object| (path.to_owned(), object)));
        let object = |listed: ListEntry| (listed.address.to_path(), listed.len);
        Ok(Listing::Tree(objects.into_iter().map(object).collect()))
    }

    fn listed(&self, top: &Path) -> Result<Listed, Error> {
        let list = || self.client()?.list(&Address::parse(top)?);
        list().map_err(|error| unusable(top, error))
    }

    /// Adds the objects that have no address to those of `found` that failed: they were listed below its inputs.
    pub fn add_foreign(&self, found: &mut Found, exclude: &Exclude) {
        let mut foreign = self.foreign.lock().unwrap_or_else(PoisonError::into_inner);
        for (top, ForeignObject { name, why }) in foreign.drain(..) {
            let below = name.strip_prefix(&top).unwrap_or(&name);
            if exclude.covers(below, top.file_name()) {
                found.skipped.push((name, Skip::Excluded));
                continue;
            }
            let why = format!("{why}; rename it in the store");
            let error = Error::io("address the object", &name)(std::io::Error::other(why));
            found.failed.push((name, error));
        }
    }

    /// The input that the flags name, with its address opened if it is one.
    ///
    /// # Errors
    /// As [`Stores::input`].
    pub fn resolve(&self, input: Input) -> Result<Input, Error> {
        match input {
            Input::Path(path) => self.input(&path, None),
            input => Ok(input),
        }
    }

    /// Bytes of the file or object at a path or an address.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn len(&self, path: &Path) -> Result<u64, Error> {
        match self.input(path, None)? {
            Input::Remote(object) => object.len().map_err(Error::io("read", path)),
            input => Ok(input.open_file()?.status.len()),
        }
    }

    /// Fails if there is an object at an address.
    ///
    /// # Errors
    /// [`Error::Exists`]; those of the request.
    pub fn check_is_new(&self, path: &Path) -> Result<(), Error> {
        let exists = || self.client()?.exists(&Address::parse(path)?);
        match exists().map_err(|error| unusable(path, error))? {
            true => Err(Error::Exists(path.to_owned())),
            false => Ok(()),
        }
    }

    /// Those of the outputs of `tasks` that exist in stores. Of a few, each is asked for; of many, where they
    /// go is listed.
    ///
    /// # Errors
    /// Those of the requests.
    pub fn existing(
        &self,
        places: &args::Places,
        tasks: &[Task],
    ) -> Result<HashSet<PathBuf>, Error> {
        let outputs: Vec<&Path> =
            tasks.iter().map(|task| &*task.output).filter(|output| is_address(output)).collect();
        if outputs.len() > FEW {
            let tops = match &places.out_dir {
                Some(dir) => vec![&**dir],
                // In the folders of the inputs.
                None => places.files.iter().filter_map(|file| file.parent()).collect(),
            };
            let listed: Result<Vec<_>, Error> = tops.into_iter().map(|top| self.all(top)).collect();
            return Ok(listed?.into_iter().flatten().collect());
        }
        let ask = &|output: &Path| match self.check_is_new(output) {
            Ok(()) => Ok(None),
            Err(Error::Exists(output)) => Ok(Some(output)),
            Err(error) => Err(error),
        };
        let asked: Vec<Result<Option<PathBuf>, Error>> = std::thread::scope(|scope| {
            let asked: Vec<_> =
                outputs.into_iter().map(|output| scope.spawn(move || ask(output))).collect();
            asked.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        asked.into_iter().filter_map(Result::transpose).collect()
    }

    /// All objects below `top`, an address.
    ///
    /// # Errors
    /// Those of the listing.
    pub fn all(&self, top: &Path) -> Result<HashSet<PathBuf>, Error> {
        let objects = self.listed(top)?.objects;
        Ok(objects.into_iter().map(|object| object.address.to_path()).collect())
    }

    /// Refuses `--replace` of objects in a store that removes them whatever their version is. Asked with
    /// an object of its own in each bucket.
    ///
    /// # Errors
    /// [`usage`]; those of the requests.
    pub fn check_removal<'a>(
        &self,
        replaces: bool,
        inputs: impl IntoIterator<Item = &'a Path>,
    ) -> anyhow::Result<()> {
        let mut asked = HashSet::new();
        for input in inputs.into_iter().filter(|input| replaces && is_address(input)) {
            let address = Address::parse(input)?;
            if asked.insert(address.bucket_name())
                && !self.client()?.probe_conditional_delete(&address)?
            {
                return Err(usage(format!(
                    "--replace: {} does not support conditional deletes (DELETE with If-Match); run without \
                     --replace, and delete the originals yourself",
                    address.bucket_name()
                )));
            }
        }
        Ok(())
    }
}

/// Outputs that are asked for one by one.
const FEW: usize = 64;

/// The address of an object.
///
/// # Errors
/// [`Error::Usage`] for what is no address, and for that of a bucket.
fn object_address(path: &Path) -> Result<Address, Error> {
    let address = Address::parse(path).map_err(|error| unusable(path, error))?;
    match address.file_name() {
        "" => Err(Error::usage(
            "this is a bucket: name an object in it, or use --recursive, --out-dir",
        )),
        _ => Ok(address),
    }
}

/// A store's error, as one of the file at its address.
fn unusable(path: &Path, error: wattlock_object::Error) -> Error {
    use wattlock_object::Error as StoreError;
    match error {
        StoreError::Address { .. } => Error::usage(error.to_string()),
        StoreError::Request { action, source, .. } => Error::io(action, path)(source),
        StoreError::Configuration { place, why } if Path::new(&place) == path => {
            Error::io("use", path)(std::io::Error::other(why))
        }
        error => Error::io("use", path)(std::io::Error::other(error)),
    }
}

/// The places with `file://` addresses as the paths that they are.
pub fn plain(places: &args::Places) -> args::Places {
    args::Places {
        files: places.files.iter().map(|path| local(path)).collect(),
        output: places.output.as_deref().map(local),
        out_dir: places.out_dir.as_deref().map(local),
        force: places.force,
    }
}

/// The path that an address of a file stands for; others as they are.
pub fn local(path: &Path) -> PathBuf {
    wattlock_object::local_path(path).unwrap_or_else(|| path.to_owned())
}

/// Refuses an address for a command that works on files only.
///
/// # Errors
/// [`usage`].
pub fn refuse_addresses<'a>(
    command: &str,
    paths: impl IntoIterator<Item = &'a PathBuf>,
) -> anyhow::Result<()> {
    match paths.into_iter().find(|path| is_address(path)) {
        Some(path) => Err(usage(format!(
            "{}: {command} does not support object-store addresses",
            path.display()
        ))),
        None => Ok(()),
    }
}

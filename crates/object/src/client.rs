//! A run's ways to stores.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use futures_util::TryStreamExt;

use crate::address::{Address, Scheme};
use crate::error::{Error, plain};
use crate::listing::ForeignObject;
use crate::lock::lock;
use crate::network::Network;
use crate::object::Object;
use crate::store::Store;
use crate::upload::Upload;

/// Opens stores, each once, and does their requests on threads of its own.
pub struct Client {
    network: Arc<Network>,
    stores: Mutex<HashMap<(Scheme, String), Arc<Store>>>,
}

/// An object of a listing.
#[derive(Clone, Debug)]
pub struct ListEntry {
    /// Where it is.
    pub address: Address,
    /// Its bytes.
    pub len: u64,
    /// When it was last changed.
    pub modified: SystemTime,
}

/// What a listing gave.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The objects, by their keys.
    pub objects: Vec<ListEntry>,
    /// Objects whose keys no address can name.
    pub foreign: Vec<ForeignObject>,
}

impl Client {
    /// Starts the threads. No store is opened.
    ///
    /// # Errors
    /// [`Error::Threads`].
    pub fn new() -> Result<Self, Error> {
        let network = Arc::new(Network::new().map_err(Error::Threads)?);
        Ok(Self { network, stores: Mutex::default() })
    }

    /// The object at `address`, which is asked for with its first read. If its length is known, a short
    /// one is read at once.
    ///
    /// # Errors
    /// [`Error::Configuration`].
    pub fn object(&self, address: &Address, len: Option<u64>) -> Result<Object, Error> {
        let (network, store) = (Arc::clone(&self.network), self.store(address)?);
        Ok(Object::new(network, store, address.clone(), len))
    }

    /// A new object at `address`, which appears when it is complete. One that exists is only replaced with
    /// `overwrite`. The parts that it is sent in are cut for `len` bytes, if that is known.
    ///
    /// # Errors
    /// [`Error::Configuration`].
    pub fn upload(
        &self,
        address: &Address,
        overwrite: bool,
        len: Option<u64>,
    ) -> Result<Upload, Error> {
        let (network, store) = (Arc::clone(&self.network), self.store(address)?);
        if store.parts.is_none() {
            let place = address.to_path().display().to_string();
            return Err(Error::Configuration {
                place,
                why: "http and https addresses are read-only".into(),
            });
        }
        Ok(Upload::new(network, store, address.clone(), overwrite, len))
    }

    /// True if there is an object at `address`.
    ///
    /// # Errors
    /// [`Error::Request`], [`Error::Configuration`].
    pub fn exists(&self, address: &Address) -> Result<bool, Error> {
        let store = self.store(address)?;
        match self.network.wait(object_store::ObjectStoreExt::head(&store.objects, &address.key)) {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(request("look up", address, &error)),
        }
    }

    /// The objects below `address`, by their keys, and those that have no address.
    ///
    /// # Errors
    /// [`Error::Request`], [`Error::Configuration`].
    pub fn list(&self, address: &Address) -> Result<Listed, Error> {
        let store = self.store(address)?;
        let prefix = (!address.key.as_ref().is_empty()).then_some(&address.key);
        let listed = self.network.wait(store.objects.list(prefix).try_collect::<Vec<_>>());
        let mut listed: Vec<_> = listed
            .map_err(|error| request("list", address, &error))?
            .into_iter()
            .map(|meta| ListEntry {
                address: address.with_key(meta.location),
                len: meta.size,
                modified: meta.last_modified.into(),
            })
            .collect();
        listed.sort_by(|one, other| one.address.key.cmp(&other.address.key));
        let foreign = store.connector.take_foreign().into_iter();
        let foreign = foreign.map(|foreign| foreign.at(address)).collect();
        Ok(Listed { objects: listed, foreign })
    }

    pub(crate) fn store(&self, address: &Address) -> Result<Arc<Store>, Error> {
        let mut stores = lock(&self.stores);
        let name = (address.scheme, address.bucket.clone());
        if let Some(store) = stores.get(&name) {
            return Ok(Arc::clone(store));
        }
        let store = Arc::new(Store::open(address)?);
        stores.insert(name, Arc::clone(&store));
        Ok(store)
    }

    pub(crate) fn network(&self) -> &Network {
        &self.network
    }
}

/// Makes [`Error::Request`].
pub(crate) fn request(
    action: &'static str,
    address: &Address,
    error: &object_store::Error,
) -> Error {
    let place = address.to_path().display().to_string();
    Error::Request { action, place, source: plain(error) }
}

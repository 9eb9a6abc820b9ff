//! The folders of a gateway: one, or one for each tenant.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::recorded::{SegmentSink, Shared};
use super::recording::{Recording, RecordingSettings};
use super::{Counters, Inlet, Notice, Retry};
use crate::live::{Done, Sink};
use crate::lock::lock;
use crate::pool::Pool;
use crate::queue;
use crate::segment::{self, Folder};

/// Where the messages of a tenant are recorded.
pub struct TenantFolder {
    /// The folder of the segments.
    pub folder: Folder,
    /// What every record is bound to, in its canonical form.
    pub additional: Vec<u8>,
}

/// The recordings of a gateway, which share a window. Those of a single tenant have the name "".
pub struct Recordings {
    all: BTreeMap<String, Arc<Recording>>,
    shared: Shared,
}

impl Recordings {
    /// Begins to record in the folder of each tenant. A full disk is tried again, as `retry` says.
    ///
    /// # Errors
    /// [`segment::Error`].
    pub fn new(
        settings: RecordingSettings,
        tenants: impl IntoIterator<Item = (String, TenantFolder)>,
        retry: &Retry,
    ) -> Result<Arc<Self>, segment::Error> {
        let settings = Arc::new(settings);
        let (counters, notify) = (Arc::clone(retry.counters()), retry.listener());
        let shared = Shared { counters, notify, order: Arc::default(), number: 0 };
        let mut all = BTreeMap::new();
        for (number, (tenant, TenantFolder { folder, additional })) in
            tenants.into_iter().enumerate()
        {
            let (settings, shared) = (Arc::clone(&settings), Shared { number, ..shared.clone() });
            all.insert(tenant, Recording::new(folder, additional, settings, shared, retry)?);
        }
        Ok(Arc::new(Self { all, shared }))
    }

    /// What was done.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.shared.counters
    }

    /// Each recording.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Recording>> {
        self.all.values()
    }

    /// Takes buffers from the pool of the stream that was started with the sink.
    pub fn use_pool(&self, pool: &Arc<Pool>) {
        self.all().for_each(|recording| recording.use_pool(pool));
    }

    /// The sink for a [`crate::Live`]: records go to the folders.
    ///
    /// # Errors
    /// That a thread cannot be started, or a segment cannot be written.
    pub fn sink(&self, retry: &Retry) -> io::Result<impl Sink + use<>> {
        let mut all: Vec<_> = self.all().collect();
        all.sort_by_key(|recording| recording.number());
        let sink = |recording: &Arc<Recording>| {
            Ok((Arc::clone(recording), Some(recording.sink(retry.clone())?)))
        };
        let sinks = all.into_iter().map(sink).collect::<io::Result<_>>()?;
        Ok(FolderSinks { shared: self.shared.clone(), sinks, busy: BTreeSet::new() })
    }

    /// An inlet for an input of this name; `None` if the tenant is not known.
    pub fn inlet(&self, tenant: &str, name: String) -> Option<Box<dyn Inlet>> {
        self.all.get(tenant).map(|recording| recording.inlet(name))
    }
}

/// Hands each message to the sink of its recording. Where there are several, one that fails does not end the others.
struct FolderSinks {
    shared: Shared,
    /// None for those that have failed.
    sinks: Vec<(Arc<Recording>, Option<SegmentSink>)>,
    /// The sinks that have something to flush.
    busy: BTreeSet<usize>,
}

impl FolderSinks {
    /// Does `work` on a sink that has not failed.
    fn with(
        &mut self,
        number: usize,
        work: impl FnOnce(&mut SegmentSink) -> io::Result<()>,
    ) -> io::Result<()> {
        let is_alone = self.sinks.len() == 1;
        let (recording, place) = &mut self.sinks[number];
        let Some(sink) = place else { return Ok(()) };
        let Err(error) = work(sink) else { return Ok(()) };
        if is_alone {
            return Err(error);
        }
        // Its senders are not answered any more.
        *place = None;
        recording.give_up();
        let (folder, why) = (recording.folder().display().to_string(), error.to_string());
        (self.shared.notify)(Notice::FolderFailed { folder, why });
        Ok(())
    }
}

impl Sink for FolderSinks {
    fn deliver(&mut self, done: &mut Done) -> io::Result<()> {
        let Some(number) = queue::pop(&mut lock(&self.shared.order)) else { return Ok(()) };
        self.busy.insert(number);
        if self.sinks[number].1.is_none() {
            Counters::add(&self.shared.counters.dropped, 1);
        }
        self.with(number, |sink| sink.deliver(done))
    }

    fn rest(&mut self) -> io::Result<()> {
        for number in std::mem::take(&mut self.busy) {
            self.with(number, SegmentSink::rest)?;
        }
        Ok(())
    }

    fn finish(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        (0..self.sinks.len()).try_for_each(|number| self.with(number, |sink| sink.finish(deadline)))
    }
}

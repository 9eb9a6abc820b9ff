//! What OpenSSL's pointer to the provider is to.

use std::sync::Arc;

use crate::allocation::Allocation;
use crate::host::Host;
use crate::offers::Offers;
use crate::{fork, self_check};

/// What OpenSSL's pointer to the provider's own context is to.
pub(crate) struct Provider {
    host: Host,
    allocation: Arc<Allocation>,
    offers: Offers,
}

impl Provider {
    pub(crate) fn new(host: Host, allocation: Arc<Allocation>, offers: Offers) -> Self {
        Self { host, allocation, offers }
    }

    /// What its ciphers offer libssl.
    pub(crate) fn offers(&self) -> Offers {
        self.offers
    }

    pub(crate) fn host(&self) -> Host {
        self.host
    }

    /// The lanes for requests.
    pub(crate) fn allocation(&self) -> &Arc<Allocation> {
        &self.allocation
    }

    /// Does what a process does once, with its first context.
    pub(crate) fn begin(&self) {
        if fork::is_first_context() {
            self_check::new_process();
            self.allocation.note();
        }
    }
}

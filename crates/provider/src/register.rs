//! The register unit: which ciphers there are, under which names.
//!
//! Names, aliases and object identifiers are those of OpenSSL's default provider
//! (`prov/names.h`), so that a program that asks for a cipher of that provider finds this one too.

use std::ffi::CStr;

use crate::abi;
use crate::block::Ecb;
use crate::boundary::Functions;
use crate::cbc::Cbc;
use crate::cipher::Algorithm;
use crate::composite::{CbcHmacSha1, CbcHmacSha256};
use crate::ctr::Ctr;
use crate::gcm::Gcm;
use crate::offers::Offers;

/// The answer to OpenSSL's query for ciphers, by a library context with these offers.
pub(crate) fn ciphers(offers: Offers) -> &'static [abi::Algorithm] {
    let all = match (offers.multiblock, offers.paper_mode) {
        (false, false) => Table::<false, false>::CIPHERS,
        (false, true) => Table::<false, true>::CIPHERS,
        (true, false) => Table::<true, false>::CIPHERS,
        (true, true) => Table::<true, true>::CIPHERS,
    };
    if offers.gcm { all } else { &all[OF_GCM..] }
}

/// How many ciphers are AES-GCM; they come first.
const OF_GCM: usize = 3;

/// The ciphers with the multiblock protocol or without, and in paper mode or not.
struct Table<const M: bool, const P: bool>;

impl<const M: bool, const P: bool> Table<M, P> {
    const CIPHERS: &'static [abi::Algorithm] = &[
        entry::<Gcm<128>, M, P>(c"AES-128-GCM:id-aes128-GCM:2.16.840.1.101.3.4.1.6"),
        entry::<Gcm<192>, M, P>(c"AES-192-GCM:id-aes192-GCM:2.16.840.1.101.3.4.1.26"),
        entry::<Gcm<256>, M, P>(c"AES-256-GCM:id-aes256-GCM:2.16.840.1.101.3.4.1.46"),
        entry::<Ecb<128>, M, P>(c"AES-128-ECB:2.16.840.1.101.3.4.1.1"),
        entry::<Ecb<192>, M, P>(c"AES-192-ECB:2.16.840.1.101.3.4.1.21"),
        entry::<Ecb<256>, M, P>(c"AES-256-ECB:2.16.840.1.101.3.4.1.41"),
        entry::<Cbc<128>, M, P>(c"AES-128-CBC:AES128:2.16.840.1.101.3.4.1.2"),
        entry::<Cbc<192>, M, P>(c"AES-192-CBC:AES192:2.16.840.1.101.3.4.1.22"),
        entry::<Cbc<256>, M, P>(c"AES-256-CBC:AES256:2.16.840.1.101.3.4.1.42"),
        entry::<Ctr<128>, M, P>(c"AES-128-CTR"),
        entry::<Ctr<192>, M, P>(c"AES-192-CTR"),
        entry::<Ctr<256>, M, P>(c"AES-256-CTR"),
        entry::<CbcHmacSha1<128>, M, P>(c"AES-128-CBC-HMAC-SHA1"),
        entry::<CbcHmacSha1<256>, M, P>(c"AES-256-CBC-HMAC-SHA1"),
        entry::<CbcHmacSha256<128>, M, P>(c"AES-128-CBC-HMAC-SHA256"),
        entry::<CbcHmacSha256<256>, M, P>(c"AES-256-CBC-HMAC-SHA256"),
        abi::Algorithm::END,
    ];
}

/// The second is what [`configuration`](crate::configuration) prefers: a program that asks for a `provider` overrides any
/// preference for one. OpenSSL reserves names without a dot.
const PROPERTIES: &CStr = c"provider=wattlock,x.wattlock=yes";

const fn entry<A: Algorithm, const M: bool, const P: bool>(names: &'static CStr) -> abi::Algorithm {
    abi::Algorithm {
        names: names.as_ptr(),
        properties: PROPERTIES.as_ptr(),
        implementation: Functions::<A, M, P>::TABLE.as_ptr(),
        description: c"Wattlock".as_ptr(),
    }
}

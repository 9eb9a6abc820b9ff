//! The parameters that a context of AES-GCM can set and get.

use crate::abi::{Param, name};

pub(super) static SETTABLE: &[Param] = &[
    Param::unsigned::<usize>(name::IV_LEN),
    Param::octets(name::TAG),
    Param::octets(name::TLS_AAD),
    Param::octets(name::TLS_IV_FIXED),
    Param::octets(name::TLS_IV_INVOCATION),
    Param::unsigned::<usize>(name::MULTI_MAX_FRAGMENT),
    Param::octets(name::MULTI_AAD),
    Param::unsigned::<u32>(name::MULTI_INTERLEAVE),
    Param::octets(name::MULTI_OUT),
    Param::octets(name::MULTI_IN),
    Param::END,
];

pub(super) static GETTABLE: &[Param] = &[
    Param::unsigned::<usize>(name::KEY_LEN),
    Param::unsigned::<usize>(name::IV_LEN),
    Param::unsigned::<usize>(name::TAG_LEN),
    Param::octets(name::IV),
    Param::octets(name::UPDATED_IV),
    Param::octets(name::TAG),
    Param::unsigned::<usize>(name::TLS_AAD_PAD),
    Param::octets(name::TLS_IV_GENERATE),
    Param::unsigned::<usize>(name::MULTI_MAX_BUFFER),
    Param::unsigned::<u32>(name::MULTI_INTERLEAVE),
    Param::unsigned::<u32>(name::MULTI_PACKED),
    Param::unsigned::<usize>(name::MULTI_OUT_LEN),
    Param::END,
];

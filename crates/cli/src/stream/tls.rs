//! Certificates and keys for TLS, as the options name them.

use wattlock_host::exit::usage;
use wattlock_stream::gateway::{
    Address, ClientCertificates, Destination, TlsClient, TlsIdentity, TlsServer,
};

use super::tenants::Tenants;
use crate::args;

/// Refuses options of TLS without an address that uses it.
pub fn check(args: &args::Stream) -> anyhow::Result<()> {
    let is_tls = |address: &Address| matches!(address, Address::Tls(_));
    let listens = args.listen.as_ref().is_some_and(is_tls);
    let connects = args.connect.iter().chain(&args.forward).any(is_tls);
    if listens && args.tls_cert.is_none() {
        return Err(usage("--listen tls:HOST:PORT requires --tls-cert and --tls-key"));
    }
    if !listens && args.tls_client_ca.is_some() {
        return Err(usage("--tls-client-ca requires --listen tls:HOST:PORT"));
    }
    if !connects && args.tls_ca.is_some() {
        return Err(usage("--tls-ca requires --connect or --forward to tls:HOST:PORT"));
    }
    if !listens && !connects && args.tls_cert.is_some() {
        return Err(usage("--tls-cert and --tls-key require an address tls:HOST:PORT"));
    }
    Ok(())
}

/// What --listen needs for TLS.
pub fn server(args: &args::Stream, tenants: Option<&Tenants>) -> anyhow::Result<Option<TlsServer>> {
    let listens = matches!(args.listen, Some(Address::Tls(_)));
    if args.tls_client_ca.is_none() && tenants.is_some_and(Tenants::have_certificates) {
        return Err(usage(
            "--tenants lists certificates, which requires --listen tls:HOST:PORT and --tls-client-ca",
        ));
    }
    if args.store && tenants.is_some_and(Tenants::have_tokens) {
        return Err(usage(
            "--store does not support tokens; remove them from the file of --tenants",
        ));
    }
    let Some(identity) = identity(args).filter(|_| listens) else { return Ok(None) };
    let clients = match &args.tls_client_ca {
        None => ClientCertificates::NotAsked,
        Some(path) if tenants.is_some_and(Tenants::have_tokens) => {
            ClientCertificates::Optional(path.clone())
        }
        Some(path) => ClientCertificates::Required(path.clone()),
    };
    Ok(Some(TlsServer::new(&identity, &clients)?))
}

/// An address to connect to, with what it needs for TLS.
pub fn destination(args: &args::Stream, address: &Address) -> anyhow::Result<Destination> {
    let tls = match address {
        Address::Tls(_) => Some(TlsClient::new(args.tls_ca.as_deref(), identity(args).as_ref())?),
        _ => None,
    };
    Ok(Destination { address: address.clone(), tls })
}

fn identity(args: &args::Stream) -> Option<TlsIdentity> {
    let (certificate, key) = args.tls_cert.clone().zip(args.tls_key.clone())?;
    Some(TlsIdentity { certificate, key })
}

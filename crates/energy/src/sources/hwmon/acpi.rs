//! ACPI's power meters that differ only in `power1_oem_info`.
//!
//! Each socket of NVIDIA's Grace has "Grace Power Socket N", with "CPU Power" and "SysIO Power" in
//! it; with a GPU in the module, "Module Power Socket N" holds the socket, the GPU and all memory
//! (NVIDIA Grace Performance Tuning Guide, "Power and Thermals").

use std::collections::BTreeSet;

use super::Channel;
use crate::meter::Extent;

/// The kernel's name for ACPI's power meters.
pub(super) const DRIVER: &str = "power_meter";

/// What a meter says it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// A module, with its sockets, GPUs and memory.
    Module,
    /// A socket of a module.
    Socket,
    /// A part of a socket.
    Rail,
    /// Something that is not known.
    Unknown,
}

/// Takes the modules if every socket has one, else the sockets, and leaves out their parts. Several
/// unknown meters are not taken for the machine.
pub(super) fn classify(channels: &mut [Channel]) {
    let named: Vec<_> = channels.iter().enumerate().filter_map(role_of).collect();
    let numbers = |role: Role| {
        let same = named.iter().filter(|(_, other, _)| *other == role);
        same.map(|(_, _, socket)| *socket).collect::<BTreeSet<_>>()
    };
    let (modules, sockets) = (numbers(Role::Module), numbers(Role::Socket));
    let whole = !modules.is_empty() && modules.is_superset(&sockets);
    let unknown = named.iter().filter(|(_, role, _)| *role == Role::Unknown).count();
    for (at, role, _) in &named {
        let channel = &mut channels[*at];
        match role {
            Role::Module if whole => channel.is_part = true,
            Role::Module => channel.ignore("not every socket has a module meter"),
            Role::Socket => (channel.extent, channel.is_part) = (Some(Extent::Package), true),
            Role::Rail => channel.ignore("it meters a part of a socket"),
            Role::Unknown if named.len() > unknown || unknown > 1 => {
                channel.ignore("one of several meters, and it does not say what it measures");
            }
            // The one meter of a machine meters the machine.
            Role::Unknown => {}
        }
    }
}

/// Index, role and number of the socket of a meter that says what it is.
fn role_of((at, channel): (usize, &Channel)) -> Option<(usize, Role, Option<u32>)> {
    if channel.driver != DRIVER || channel.label.is_empty() {
        return None;
    }
    let role = match channel.label.split_once(" Power") {
        Some(("Module", _)) => Role::Module,
        Some(("Grace", _)) => Role::Socket,
        Some(("CPU" | "SysIO", _)) => Role::Rail,
        _ => Role::Unknown,
    };
    let socket = channel.label.rsplit(' ').next().and_then(|number| number.parse().ok());
    Some((at, role, socket))
}

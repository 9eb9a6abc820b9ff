//! The kernel's crypto interface as EECA's interaction unit, with a real kernel: the program in a virtual
//! machine that is emulated, so that its speed says nothing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use serde_json::Value;
use wattlock_testing::VirtualMachine;

/// What the machine runs; its JSON goes to the console between two marks.
const SCRIPT: &str = "
/wattlock-lab paper eeca --quick --json /tmp/eeca.json >/dev/null 2>/tmp/said
/bin/busybox tail -n 3 /tmp/said
echo; echo BEGIN
/bin/busybox cat /tmp/eeca.json
echo; echo END
";

#[test]
#[ignore = "boots a virtual machine: make test-all"]
fn soak_of_the_kernels_crypto_in_a_virtual_machine() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let Some(machine) = VirtualMachine::new(target) else { return };
    machine.add_program(Path::new(env!("CARGO_BIN_EXE_wattlock-lab")), "wattlock-lab");
    for module in [
        "crypto/af_alg.ko",
        "crypto/algif_skcipher.ko",
        "crypto/cbc.ko",
        "crypto/cryptd.ko",
        "crypto/crypto_simd.ko",
        "arch/x86/crypto/aesni-intel.ko",
    ] {
        machine.add_module(module);
    }
    let console = machine.run(SCRIPT);
    let json = console.split("\nBEGIN\n").nth(1).and_then(|rest| rest.split("\nEND\n").next());
    let json = json.unwrap_or_else(|| panic!("{console}"));
    let document: Value = serde_json::from_str(json).unwrap_or_else(|why| panic!("{why}: {json}"));
    let sections = document["sections"].as_array().unwrap();
    let rows = sections.iter().flat_map(|section| section["rows"].as_array().unwrap());
    let by_kernel: Vec<&Value> =
        rows.filter(|row| row["column"] == "the accelerator's, by AF_ALG").collect();
    assert_eq!(by_kernel.len(), 9);
    let measured = by_kernel.iter().filter(|row| row["ours"].as_f64() > Some(0.0));
    assert_eq!(measured.count(), 1, "16 kB: {:#?}", document["live"]["skipped"]);
    let tools = &document["live"]["tools"]["kernel's crypto (AF_ALG)"];
    assert!(tools.as_str().unwrap().starts_with("Linux "), "{tools}");
}

//! The module stays in memory when OpenSSL unloads it: AWS-LC gives every thread that used it a
//! destructor, which runs when the thread ends, whether the module is still there or not.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}

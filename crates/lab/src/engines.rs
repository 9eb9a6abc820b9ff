//! The engine of benches that need a GPU.

use wattlock_engine::Engine;
use wattlock_host::accelerators::{Rule, Selection};

/// An engine with the GPU that was asked for, or with any; for want of one, with OpenCL on the CPU,
/// which shows that the variants work and nothing of their speed.
pub fn with_gpu(threads: usize, names: &[String]) -> anyhow::Result<Result<Engine, String>> {
    let of = |names: Vec<String>| {
        let selection = Selection { names, rule: Rule::HybridRatio, ..Selection::default() };
        selection.engine_with_accelerator(threads)
    };
    if !names.is_empty() {
        return of(names.iter().cloned().chain(["cpu".to_owned()]).collect()).map(Ok);
    }
    let any = of(Vec::new());
    Ok(any.or_else(|why| of(vec!["cpu".into(), "opencl".into()]).map_err(|_| format!("{why:#}"))))
}

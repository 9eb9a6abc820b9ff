//! The numbers that the papers print, for reports.

use wattlock_report::Papers;

/// The papers that a report compares with our results.
pub const PAPERS: Papers = Papers {
    energy_study: include_str!("../papers/energy_study_tables2_3.csv"),
    serial_forms: &[("parc4", "rc4"), ("parc4-i", "rc4a"), ("pblock", "blowfish-ecb")],
    blocks_cpu: include_str!("../papers/extended_block_table1_cpu_seconds.csv"),
    blocks_gpu: include_str!("../papers/extended_block_table2_gpu_seconds.csv"),
    blocks_speedup: include_str!("../papers/extended_block_table3_gpu_speedup.csv"),
};

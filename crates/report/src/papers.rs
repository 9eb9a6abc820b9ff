//! The numbers that papers print, as tables of CSV.

/// The tables of the papers, as CSV with a head. A program that knows no papers has empty ones.
#[derive(Debug, Default)]
pub struct Papers {
    /// Of the study of joules per byte, Tables 2 and 3.
    pub energy_study: &'static str,
    /// The cases of that study: the parallel form of a cipher, and the serial one.
    pub serial_forms: &'static [(&'static str, &'static str)],
    /// Of the study of extended blocks, Table I: seconds on a CPU.
    pub blocks_cpu: &'static str,
    /// Of the same, Table II: seconds on a GPU.
    pub blocks_gpu: &'static str,
    /// Of the same, Table III: speedups on that GPU.
    pub blocks_speedup: &'static str,
}

/// Table III: block size and speedup, for a message of `megabytes` MB.
pub fn speedups(papers: &Papers, megabytes: u64) -> Vec<(u64, f64)> {
    let mut speedups: Vec<(u64, f64)> = head(papers.blocks_speedup)
        .zip(line_of(papers.blocks_speedup, megabytes))
        .filter_map(|(name, value)| Some((block_bytes(name)?, value.parse().ok()?)))
        .collect();
    speedups.sort_by_key(|(size, _)| *size);
    speedups
}

/// Table I: speedup of 1 KB over 16 bytes with one thread, for a message of `megabytes` MB.
pub fn cpu_speedup(papers: &Papers, megabytes: u64) -> Option<f64> {
    let line = line_of(papers.blocks_cpu, megabytes);
    let seconds = |column: usize| line.get(column)?.parse::<f64>().ok();
    Some(seconds(1)? / seconds(4)?)
}

/// The lines below the head, in cells.
pub fn lines(csv: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    csv.lines().skip(1).map(|line| line.split(',').collect())
}

pub fn head(csv: &'static str) -> impl Iterator<Item = &'static str> {
    csv.lines().next().unwrap_or_default().split(',')
}

pub fn line_of(csv: &'static str, first: u64) -> Vec<&'static str> {
    lines(csv).find(|line| line[0].parse() == Ok(first)).unwrap_or_default()
}

/// "block512B" or "block4KB".
pub fn block_bytes(name: &str) -> Option<u64> {
    let size = name.strip_prefix("block")?;
    match size.strip_suffix("KB") {
        Some(kilobytes) => Some(kilobytes.parse::<u64>().ok()? * 1024),
        None => size.strip_suffix('B')?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_tables_are_read() {
        let papers = Papers {
            blocks_cpu: "MB,a,b,c,d\n4,0.248,0.1,0.1,0.124\n32,2,1,1,1\n",
            blocks_speedup: "MB,block4KB,block512B,other\n4,1,2,3\n32,8.53,6.03,7\n",
            ..Papers::default()
        };
        assert_eq!(speedups(&papers, 32), [(512, 6.03), (4096, 8.53)]);
        assert_eq!(speedups(&papers, 8), []);
        assert_eq!(cpu_speedup(&papers, 4), Some(2.0));
        assert_eq!(lines(papers.blocks_cpu).count(), 2);
    }
}

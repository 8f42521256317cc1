//! Records sorted by rayon's stable parallel sort, then summed in parallel.
use rayon::prelude::*;

fn main() {
    let length: u64 = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(3_000_000);
    let mut records: Vec<(u64, u64)> = (0..length)
        .into_par_iter()
        .map(|k| (k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20, k))
        .collect();
    records.par_sort();
    let ordered = records.par_windows(2).all(|pair| pair[0] <= pair[1]);
    let sum: u64 = records.par_iter().map(|record| record.1 & 0xff).sum();
    println!("checked {} {}", ordered, sum);
}

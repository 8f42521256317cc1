// rayon's pool with every worker awake.
use rayon::prelude::*;
use std::{thread, time::Duration};

fn main() {
    rayon::ThreadPoolBuilder::new().num_threads(4).build_global().unwrap();
    rayon::broadcast(|_| thread::sleep(Duration::from_millis(300)));
    let sum: u64 = (0..100_000u64).into_par_iter().sum();
    println!("{} {}", sum, thread::available_parallelism().unwrap());
}

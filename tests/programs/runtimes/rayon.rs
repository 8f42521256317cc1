// rayon's pool with every worker waiting for the input to end.
use rayon::prelude::*;
use std::{io::Read, thread};

fn main() {
    rayon::ThreadPoolBuilder::new().num_threads(4).build_global().unwrap();
    rayon::broadcast(|_| std::io::stdin().read(&mut [0]).unwrap());
    let sum: u64 = (0..100_000u64).into_par_iter().sum();
    println!("{} {}", sum, thread::available_parallelism().unwrap());
}

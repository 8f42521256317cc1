// Rust's std: threads, the first of which starts another, until the input ends.
use std::{io::Read, thread};

fn main() {
    let wait = || {
        std::io::stdin().read(&mut [0]).unwrap();
    };
    let pool: Vec<_> = (0..5)
        .map(|i| {
            thread::spawn(move || {
                let helper = (i == 0).then(|| thread::spawn(wait));
                wait();
                helper.map(|h| h.join());
            })
        })
        .collect();
    pool.into_iter().for_each(|t| t.join().unwrap());
    println!("{}", thread::available_parallelism().unwrap());
}

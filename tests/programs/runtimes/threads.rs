// Rust's std: named threads, the first of which starts another.
use std::{thread, time::Duration};

fn main() {
    let wait = || thread::sleep(Duration::from_millis(300));
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

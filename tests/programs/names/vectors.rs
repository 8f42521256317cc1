// Blocks of Rust's containers: where one is made, a comment says for which variable.
use std::hint::black_box;

#[derive(Clone)]
struct Cell {
    hits: u64,
    value: f32,
}

static mut TABLE: [u64; 16384] = [0; 16384]; // region: TABLE u64[16384]

fn filled(n: usize) -> Vec<u16> {
    let mut inner: Vec<u16> = Vec::with_capacity(n); // region: inner Vec<u16>
    inner.resize(n, 1);
    inner
}

fn main() {
    let n = 40000 + std::env::args().count();
    let grid = vec![1.5f64; n]; // region: grid Vec<f64>
    let zeros = vec![0u64; n]; // region: zeros Vec<u64>
    let cells = vec![Cell { hits: 1, value: 2.0 }; n]; // region: cells Vec<vectors::Cell>
    let boxed: Box<[u32]> = vec![7u32; n].into_boxed_slice(); // region: boxed Box<[u32]>
    let mut pushed: Vec<u64> = Vec::new();
    for i in 0..n as u64 { pushed.push(i); } // region: pushed Vec<u64>
    let inner = filled(n);
    unsafe {
        let table = std::ptr::addr_of_mut!(TABLE);
        (*table)[n % 16384] += 1;
        black_box(table);
    }
    black_box((&pushed, &grid, &zeros, &boxed, &inner));
    black_box(cells[3].hits as f32 + cells[4].value);
}

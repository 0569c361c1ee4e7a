//! How often does each branch of the analysis run? The benchmark of the same name as a program of
//! the profile `dist`, which a benchmark cannot be (it unwinds): `tools/dist.sh` runs it.

#[path = "../benches/analysis.rs"]
mod bench;

fn main() -> std::io::Result<()> {
    bench::main()
}

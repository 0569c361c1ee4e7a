//! What must hold for any bytes? One function for each fuzz target.
//!
//! `tools/fuzz.sh 60 TARGET` feeds them from libFuzzer; the test `fuzz_corpus` of the tcpwhy crate feeds them the
//! committed corpus, with any compiler.
#![forbid(unsafe_code)]

mod targets;

/// Feeds one input to a target; panics if a property does not hold.
pub fn run(target: &str, data: &[u8]) {
    let known = targets::ALL.iter().find(|(name, _)| *name == target);
    known.unwrap_or_else(|| panic!("no target {target}")).1(data);
}

//! Feeds libFuzzer's bytes to the target `fragments` of fuzz/src/targets.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tcpwhy_fuzz::run("fragments", data));

//! Does the committed fuzz corpus still pass? The inputs that `cargo fuzz` found worth keeping,
//! with any compiler.

use std::path::Path;

#[path = "../../../fuzz/src/targets/mod.rs"]
mod targets;

#[test]
fn every_target_takes_its_corpus() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, target) in targets::ALL {
        let folder = corpus.join(name);
        let entries =
            std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
        files.sort();
        assert!(!files.is_empty(), "{} is empty", folder.display());
        for file in files {
            let data = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let passed = std::panic::catch_unwind(|| target(&data)).is_ok();
            assert!(passed, "{} breaks the target {name}", file.display());
        }
    }
}

/// Bytes without a pattern reach only the first checks, but all of them.
#[test]
fn every_target_takes_noise_and_nothing() {
    for (_, target) in targets::ALL {
        target(&[]);
        let mut state = 1_u64;
        let mut noise = Vec::new();
        for len in 0..200 {
            target(&noise);
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(len);
            noise.extend_from_slice(&state.to_be_bytes()[..3]);
        }
    }
}

//! Lists the scenario files, so that the binary contains all of them.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

#[expect(clippy::disallowed_methods, reason = "a build script gets its input from the environment")]
fn main() -> std::io::Result<()> {
    let manifest = env::var("CARGO_MANIFEST_DIR").map_err(std::io::Error::other)?;
    let out = env::var("OUT_DIR").map_err(std::io::Error::other)?;
    let scenarios = Path::new(&manifest).join("../../scenarios");
    println!("cargo::rerun-if-changed={}", scenarios.display());
    let mut files: Vec<_> = fs::read_dir(&scenarios)?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let (Some(stem), file) = (file.file_stem(), fs::canonicalize(&file)?) else { continue };
        // Writing to a String cannot fail.
        let _ =
            writeln!(list, "    ({:?}, include_str!({:?})),", stem.to_string_lossy(), file.to_string_lossy());
    }
    list.push_str("]\n");
    fs::write(Path::new(&out).join("scenarios.rs"), list)
}

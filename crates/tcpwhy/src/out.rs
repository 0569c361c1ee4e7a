//! Which files does `read` write? They are made before rights are given up, and are none of those that are read.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

/// A file to write, open and empty.
pub(crate) struct OutFile {
    path: PathBuf,
    file: File,
}

impl OutFile {
    /// Makes the file that an option names, or empties it.
    pub(crate) fn create(path: &Path, option: &str, inputs: &[PathBuf]) -> anyhow::Result<Self> {
        ensure!(
            !inputs.iter().any(|input| is_same(path, input)),
            "{}: this is the capture; choose another file for {option}",
            path.display()
        );
        let file =
            File::create(path).with_context(|| format!("cannot write {} for {option}", path.display()))?;
        Ok(Self { path: path.to_owned(), file })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether two names are of one file, by whatever links.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    let of = |path: &Path| {
        use std::os::unix::fs::MetadataExt as _;
        path.metadata().map(|file| (file.dev(), file.ino()))
    };
    #[cfg(not(unix))]
    let of = |path: &Path| path.canonicalize();
    matches!((of(one), of(other)), (Ok(one), Ok(other)) if one == other)
}

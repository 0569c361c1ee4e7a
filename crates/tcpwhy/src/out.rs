//! Which files does `read` write? They are made before rights are given up, and must not be any of
//! the inputs.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

/// An open file to write; its old content stays until there is something to write.
pub(crate) struct OutFile {
    path: PathBuf,
    file: File,
    /// False for a pipe or a device.
    has_length: bool,
}

impl OutFile {
    /// Makes or opens the file that an option names.
    pub(crate) fn create(path: &Path, option: &str, inputs: &[PathBuf]) -> anyhow::Result<Self> {
        ensure!(
            !inputs.iter().any(|input| is_same(path, input)),
            "{}: this is the capture; choose another file for {option}",
            path.display()
        );
        let file = File::options().write(true).create(true).truncate(false).open(path);
        let file = file.with_context(|| format!("cannot write {} for {option}", path.display()))?;
        let has_length = file.metadata().is_ok_and(|of| of.is_file());
        Ok(Self { path: path.to_owned(), file, has_length })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The file, emptied.
    pub(crate) fn emptied(&self) -> io::Result<&File> {
        if self.has_length {
            self.file.set_len(0)?;
        }
        Ok(&self.file)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether two names lead to the same file, through whatever links.
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

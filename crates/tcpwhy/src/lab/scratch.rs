//! Where do recordings go that nobody wants to keep? Into a directory that is gone afterwards, also after Ctrl-C; what
//! `kill -9` leaves of one is swept by the next run.

use std::path::{Path, PathBuf};
use std::sync::Once;
use std::{fs, process};

use anyhow::Context as _;

const PREFIX: &str = "tcpwhy-lab-";

/// A directory that lives as long as this.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub(super) fn new() -> anyhow::Result<Self> {
        sweep();
        let path = own();
        fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        on_interrupt();
        Ok(Self { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Whoever removed it before us did the work.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn own() -> PathBuf {
    std::env::temp_dir().join(format!("{PREFIX}{}", process::id()))
}

/// Everything else of the laboratory ends with the process; the directory has to be removed before.
fn on_interrupt() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Where no handler can be set, the next run sweeps.
        let _ = ctrlc::set_handler(|| {
            let _ = fs::remove_dir_all(own());
            process::exit(INTERRUPTED);
        });
    });
}

/// What shells report for a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Removes what runs left behind whose process is gone.
fn sweep() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        if pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

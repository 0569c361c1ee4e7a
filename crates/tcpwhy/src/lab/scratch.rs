//! Where do temporary recordings go? Into a private directory that is removed afterwards, also
//! after Ctrl-C; directories left after `kill -9` are removed by the next run.

use std::path::Path;
use std::process;
use std::sync::{Arc, Mutex, Once, PoisonError};

use anyhow::Context as _;
use tcpwhy_lab::Private;

const PREFIX: &str = "tcpwhy-lab-";

/// The directories of this process.
static ALL: Mutex<Vec<Arc<Private>>> = Mutex::new(Vec::new());

/// A directory that exists as long as this value.
#[derive(Debug)]
pub(super) struct Scratch(Arc<Private>);

impl Scratch {
    pub(super) fn new() -> anyhow::Result<Self> {
        Private::sweep(PREFIX);
        let private = Private::make(PREFIX).context("cannot make a directory for temporary files")?;
        let private = Arc::new(private);
        all(|all| all.push(Arc::clone(&private)));
        on_interrupt();
        Ok(Self(private))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        all(|all| all.retain(|one| !Arc::ptr_eq(one, &self.0)));
    }
}

fn all<T>(work: impl FnOnce(&mut Vec<Arc<Private>>) -> T) -> T {
    // No thread panics while holding it.
    work(&mut ALL.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Everything else of the laboratory ends with the process; the directories have to be removed
/// before.
fn on_interrupt() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // If no handler can be set, the next run removes them.
        let _ = ctrlc::set_handler(|| {
            all(|all| all.iter().for_each(|one| one.remove()));
            process::exit(INTERRUPTED);
        });
    });
}

/// The status that shells report for a program ended by Ctrl-C.
const INTERRUPTED: i32 = 130;

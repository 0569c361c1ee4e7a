//! Where do recordings go that nobody wants to keep? Into a private directory that is gone afterwards, also after Ctrl-C; what
//! `kill -9` leaves of one is swept by the next run.

use std::path::Path;
use std::process;
use std::sync::{Arc, Mutex, Once, PoisonError};

use anyhow::Context as _;
use tcpwhy_lab::Private;

const PREFIX: &str = "tcpwhy-lab-";

/// Those of this process.
static ALL: Mutex<Vec<Arc<Private>>> = Mutex::new(Vec::new());

/// A directory that lives as long as this.
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
    // Nobody panics while holding it.
    work(&mut ALL.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Everything else of the laboratory ends with the process; the directories have to be removed before.
fn on_interrupt() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Where no handler can be set, the next run sweeps.
        let _ = ctrlc::set_handler(|| {
            all(|all| all.iter().for_each(|one| one.remove()));
            process::exit(INTERRUPTED);
        });
    });
}

/// What shells report for a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

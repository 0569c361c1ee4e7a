//! How far has reading come? Shown on standard error, only on a terminal, and only after a second.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tcpwhy::input;
use tcpwhy_report::quantity::count;

/// Show nothing for short runs.
const PATIENCE: Duration = Duration::from_secs(1);

/// The bar, shown once there is something to wait for.
pub(crate) struct Progress {
    /// Counts the time from the start and draws nothing while hidden.
    bar: ProgressBar,
    shown: bool,
}

impl Progress {
    /// It never shows if `is_silent`: then progress is reported elsewhere.
    pub(crate) fn start(is_silent: bool) -> Self {
        Self { bar: ProgressBar::hidden(), shown: is_silent }
    }

    /// Notes how far reading has come.
    pub(crate) fn show(&mut self, so_far: input::Progress) {
        if !self.shown {
            if self.bar.elapsed() < PATIENCE {
                return;
            }
            self.shown = true;
            // indicatif draws nothing if standard error is not a terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            if let Some(total) = so_far.total_bytes {
                self.bar.set_length(total);
            }
            self.bar.set_style(style(so_far.total_bytes.is_some()));
        }
        let seconds = self.bar.elapsed().as_secs_f64();
        let per_second = (so_far.packets as f64 / seconds) as u64;
        self.bar.set_message(format!("{} packets, {}/s", count(so_far.packets), count(per_second)));
        self.bar.set_position(so_far.bytes);
    }

    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

fn style(knows_its_end: bool) -> ProgressStyle {
    let template = if knows_its_end {
        "{bar:30} {bytes} of {total_bytes}, {msg}, {eta} left"
    } else {
        "{spinner} {bytes}, {msg}"
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

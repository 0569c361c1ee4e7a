//! Why does an idle machine make a path late? Its processors sleep, and waking takes time:
//! microseconds from a deep sleep state of a real one, milliseconds on a virtual one whose host has
//! given the processor to another guest meanwhile.

use std::fs::File;
use std::io::Write as _;

/// The device for the request (the kernel's `Documentation/power/pm_qos_interface.rst`).
const DEVICE: &str = "/dev/cpu_dma_latency";

/// While this exists, processors poll for work instead of sleeping. The kernel drops the request
/// with the file, however this process ends.
#[derive(Debug)]
pub(crate) struct Awake(#[expect(dead_code, reason = "open is what it has to be")] Option<File>);

impl Awake {
    /// Makes the request. If it is not permitted, or there is no such device, the path is a little
    /// later, as its records show.
    pub(crate) fn keep() -> Self {
        let ask = || {
            let mut file = File::options().write(true).open(DEVICE)?;
            let wake_up_in_us = 0_i32;
            file.write_all(&wake_up_in_us.to_ne_bytes())?;
            std::io::Result::Ok(file)
        };
        Self(ask().ok())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use crate::test_support::skip;

    #[test]
    fn the_kernel_knows_that_nobody_may_sleep() {
        let _awake = Awake::keep();
        if !std::path::Path::new(DEVICE).exists() {
            // CI cannot install this.
            eprintln!("skipping awake: this kernel has no {DEVICE}");
            return;
        }
        match File::open(DEVICE) {
            Ok(mut device) => {
                let mut latency_us = [0xff; 4];
                device.read_exact(&mut latency_us).unwrap();
                assert_eq!(i32::from_ne_bytes(latency_us), 0);
            }
            Err(error) => skip("awake", &format!("{DEVICE}: {error}")),
        }
    }
}

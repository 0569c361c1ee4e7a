//! Records the classic stall and its cure: `demo DIR`. The same as `tcpwhy demo`, without the bills.

use std::path::PathBuf;
use std::process::ExitCode;

use tcpwhy_lab::demo;

fn main() -> ExitCode {
    let Some(dir) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: demo DIR");
        return ExitCode::from(2);
    };
    // If this is refused, plain loopback may still do.
    let _ = tcpwhy_lab::enter_user_namespace();
    match demo::record(&dir) {
        Ok(demo) => {
            println!("{:?}", demo.place);
            for recording in [&demo.split, &demo.fixed] {
                let mut elapsed = recording.truth.elapsed();
                elapsed.sort_unstable();
                println!(
                    "{}: {} packets, exchanges took {} at the median",
                    recording.capture.display(),
                    recording.stats.packets,
                    elapsed[elapsed.len() / 2]
                );
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}

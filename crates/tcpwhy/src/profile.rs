//! `wireshark-profile`: how does Wireshark get columns, colours and buttons for annotated captures?
//! From a directory that it takes as a profile.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use tcpwhy_report::profile;

use crate::output::print;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ProfileArgs {
    /// Directory to create the profile in; Wireshark looks in ~/.config/wireshark/profiles (Help > About > Folders)
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  tcpwhy wireshark-profile ~/.config/wireshark/profiles/tcpwhy
  tcpwhy read slow.pcap --annotate why.pcapng && wireshark -C tcpwhy why.pcapng";

pub(crate) fn run(args: &ProfileArgs) -> anyhow::Result<u8> {
    let dir = args.dir.display();
    fs::create_dir_all(&args.dir).with_context(|| format!("cannot create {dir}"))?;
    for (name, text) in profile::files() {
        let path = args.dir.join(name);
        if name == profile::RECENT && path.exists() {
            continue; // Wireshark has stored its user's preferences there.
        }
        // Keep a profile of that name that the user made.
        let ours =
            fs::read_to_string(&path).is_ok_and(|old| old.contains("made by tcpwhy wireshark-profile"));
        anyhow::ensure!(
            ours || !path.exists(),
            "{} exists and was not written by tcpwhy; choose another directory",
            path.display()
        );
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let name = args.dir.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    print(&format!(
        "Wrote a Wireshark profile to {dir}. If that is below its profiles directory: wireshark -C {name} FILE\n"
    ))?;
    Ok(crate::ANALYSED)
}

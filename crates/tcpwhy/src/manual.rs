//! Where do completions and the man page come from? From the parser's definition, so that they
//! always agree with it.

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::{ANALYSED, WRONG_USAGE, output};

/// The completion script of a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> anyhow::Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tcpwhy", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(ANALYSED)
}

/// The man page of tcpwhy or of one command, as roff.
pub(crate) fn page(command: Option<&str>) -> anyhow::Result<u8> {
    let mut root = Cli::command();
    root.build();
    let page = match command {
        None => Some(root),
        Some(name) => root.find_subcommand(name).map(|found| found.clone().name(format!("tcpwhy-{name}"))),
    };
    let Some(page) = page else {
        output::complain(&format!("no such command: {}", command.unwrap_or_default()));
        return Ok(WRONG_USAGE);
    };
    let mut roff = Vec::new();
    clap_mangen::Man::new(page).render(&mut roff)?;
    std::io::stdout().write_all(&roff)?;
    Ok(ANALYSED)
}

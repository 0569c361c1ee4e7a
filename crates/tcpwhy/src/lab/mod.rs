//! `tcpwhy lab`: what does a problem look like on this machine's own kernel, and after its fix?

#[cfg(target_os = "linux")]
mod accuracy;
mod args;
#[cfg(target_os = "linux")]
mod arithmetic;
#[cfg(target_os = "linux")]
mod clocked;
#[cfg(target_os = "linux")]
mod corpus;
#[cfg(target_os = "linux")]
mod draws;
#[cfg(target_os = "linux")]
mod form;
#[cfg(target_os = "linux")]
mod json;
#[cfg(target_os = "linux")]
mod outside;
#[cfg(target_os = "linux")]
mod page;
#[cfg(target_os = "linux")]
mod picture;
#[cfg(target_os = "linux")]
mod real;
#[cfg(target_os = "linux")]
mod scratch;
#[cfg(target_os = "linux")]
mod selection;
#[cfg(target_os = "linux")]
mod shell;
#[cfg(target_os = "linux")]
mod show;
#[cfg(target_os = "linux")]
mod still;
#[cfg(target_os = "linux")]
mod table;
#[cfg(target_os = "linux")]
mod tap;
#[cfg(target_os = "linux")]
mod trace;

pub(crate) use args::{LabArgs, LabCommand, RunArgs};

#[cfg(target_os = "linux")]
pub(crate) fn run(args: &LabArgs) -> anyhow::Result<u8> {
    match &args.command {
        None if args.run.names.is_empty() => show::list(&args.run),
        None if args.run.names.iter().any(|name| selection::is_of_the_table(name)) => table::run(&args.run),
        None => show::run(&args.run),
        Some(LabCommand::Shell(args)) => shell::run(args),
        Some(LabCommand::Accuracy(args)) => accuracy::run(args),
        Some(LabCommand::Draws(args)) => draws::run(args),
        Some(LabCommand::Real(args)) => real::run(args),
        Some(LabCommand::Corpus(args)) => corpus::run(args),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_args: &LabArgs) -> anyhow::Result<u8> {
    anyhow::bail!("the laboratory needs Linux: it uses the kernel's own TCP, in network namespaces")
}

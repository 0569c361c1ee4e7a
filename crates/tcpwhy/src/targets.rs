//! What does `read` produce besides the answer? Files, the judgement of baselines and a served
//! page: opened before rights are given up, filled when the bills are known.

use std::path::PathBuf;

use tcpwhy::input::Inputs;
use tcpwhy_core::Report;
use tcpwhy_page::chosen;
use tcpwhy_report::json::Gated;

use crate::baseline::Baselines;
use crate::cli::ReadArgs;
use crate::opened::{Analysed, Opened};
use crate::out::OutFile;
use crate::output::{Output, complain};
use crate::page::{self, Drawn};
#[cfg(unix)]
use crate::serve;
use crate::{Exit, annotate, confine, gate};

/// The outputs that were asked for.
pub(crate) struct Targets<'a> {
    args: &'a ReadArgs,
    page: Option<OutFile>,
    annotated: Option<OutFile>,
    baselines: Baselines,
    #[cfg(unix)]
    door: Option<serve::Door>,
}

impl<'a> Targets<'a> {
    /// Opens and makes them.
    pub(crate) fn open(args: &'a ReadArgs) -> anyhow::Result<Self> {
        let out = |path: &Option<PathBuf>, option| {
            let file = path.as_deref().map(|path| OutFile::create(path, option, &args.input.files));
            file.transpose().map_err(|error| Exit::usage(format!("{error:#}")))
        };
        Ok(Self {
            args,
            page: out(&args.html, "--html")?,
            annotated: out(&args.annotate, "--annotate")?,
            baselines: Baselines::open(args).map_err(|error| Exit::usage(format!("{error:#}")))?,
            #[cfg(unix)]
            door: args
                .serve
                .map(|address| {
                    serve::Door::open(address)
                        .map_err(|error| Exit::usage(format!("--serve cannot listen on {address}: {error}")))
                })
                .transpose()?,
        })
    }

    /// The descriptors that have to stay open.
    #[cfg(unix)]
    pub(crate) fn kept(&self) -> Vec<confine::Kept<'_>> {
        let files = self.files().map(OutFile::file);
        let files = files.chain(self.baselines.file()).map(std::os::fd::AsFd::as_fd);
        files.chain(self.door.iter().map(serve::Door::descriptor)).collect()
    }

    #[cfg(not(unix))]
    pub(crate) fn kept(&self) -> Vec<confine::Kept<'_>> {
        let files = self.files().map(OutFile::file);
        files.chain(self.baselines.file()).map(|_| &()).collect()
    }

    /// Number of threads that serve, if something is served.
    #[cfg(unix)]
    pub(crate) fn serving(&self) -> Option<usize> {
        self.door.as_ref().map(|_| serve::THREADS)
    }

    #[cfg(not(unix))]
    #[expect(clippy::unused_self, reason = "nothing is served here")]
    pub(crate) fn serving(&self) -> Option<usize> {
        None
    }

    /// Judges conditions and the baseline, and saves the new one.
    pub(crate) fn judge(&self, report: &Report) -> anyhow::Result<Vec<Gated>> {
        let mut gates = gate::judge(&self.args.fail_on, report);
        gates.extend(self.baselines.judge(report));
        self.baselines.save(report)?;
        Ok(gates)
    }

    /// The packets that the page shows and the annotated capture explains, if either was asked for.
    pub(crate) fn draw(&self, opened: &mut Opened<'_>, analysed: &mut Analysed) -> anyhow::Result<Drawn> {
        if !self.args.draws() {
            return Ok(Drawn::default());
        }
        let choices = chosen(&analysed.report);
        if let Some(sacks) = analysed.sacks.take()
            && let Some(drawn) = page::kept(&mut analysed.report, &choices, &sacks)
        {
            return Ok(drawn);
        }
        let Some(inputs) = opened.again() else {
            complain(
                "packets are drawn and annotated in a second pass, which a pipe does not allow: save the capture to a file",
            );
            return Ok(Drawn::default());
        };
        let of = (&analysed.report, &*choices, &analysed.summary.aside.places);
        page::second_pass(opened.args, inputs, opened.ends(), of, opened.threads)
    }

    /// Writes the page and the annotated capture.
    pub(crate) fn write(
        &self,
        opened: &mut Opened<'_>,
        output: &Output<'_>,
        (report, drawn): (&Report, &Drawn),
    ) -> anyhow::Result<()> {
        if let Some(page) = &self.page {
            page::write(page, output, (report, drawn), opened.threads)?;
        }
        match self.annotated.as_ref().and_then(|out| Some((out, opened.again()?))) {
            Some((out, inputs)) => annotate::write(out, opened.args, inputs, report, &drawn.report),
            None => Ok(()),
        }
    }

    fn files(&self) -> impl Iterator<Item = &OutFile> {
        [&self.page, &self.annotated].into_iter().flatten()
    }

    /// No file contains requests, because it may be sent to others.
    pub(crate) fn say_what_is_missing(&self) {
        for out in self.files() {
            complain(&format!("{} does not contain what --show-requests shows", out.path().display()));
        }
    }

    /// Says which files were not written.
    pub(crate) fn say_what_is_left(&self) {
        for out in self.files() {
            complain(&format!("{} was not written", out.path().display()));
        }
    }

    /// The inputs once more, for later requests of a served page.
    pub(crate) fn inputs_to_serve(&self, opened: &mut Opened<'_>) -> Option<Inputs> {
        self.serving().and_then(|_| opened.again())
    }

    /// Serves the page until the user ends it.
    #[cfg(unix)]
    pub(crate) fn serve(
        &self,
        opened: &Opened<'_>,
        kept: Option<Inputs>,
        output: &Output<'_>,
        (report, drawn): (&Report, &Drawn),
    ) -> anyhow::Result<()> {
        let Some(door) = &self.door else { return Ok(()) };
        let around = page::Around::of(output, true);
        let of = (opened.args, opened.ends(), opened.threads);
        let library = serve::Library::new(of, kept, report, drawn, around)?;
        door.serve(&library)
    }
}

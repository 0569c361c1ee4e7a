//! What is open, and what does a pass over it find? Everything is opened before the first byte is
//! read, and nothing later.

use std::path::Path;

use anyhow::anyhow;
use tcpwhy::input::{InputSummary, Inputs, Span, WindowError, stop};
use tcpwhy::threads::Engine;
use tcpwhy_core::report::Note;
use tcpwhy_core::{DRAWN_BYTES, DRAWN_PACKETS, Listing, Options, Report};
use tcpwhy_page::Sacks;
use tcpwhy_page::packets::note_sacks;
use tcpwhy_wire::{Decoded, Segment};

use crate::cli::InputArgs;
use crate::confine;
use crate::ends::Ends;
use crate::interim::Interim;
use crate::output::{self, Output};
#[cfg(unix)]
use crate::pager::Pager;
use crate::progress::Progress;
use crate::{Exit, NOT_ANALYSED};

/// Inputs as they are read: they are open, and nothing else can be opened any more.
pub(crate) struct Opened<'a> {
    pub(crate) args: &'a InputArgs,
    inputs: Option<Inputs>,
    /// For further passes; empty if the inputs can be read only once.
    again: Vec<Inputs>,
    pub(crate) threads: usize,
    #[cfg(unix)]
    pager: Option<Pager>,
    /// Connections that several of the inputs saw.
    ends: Option<Ends>,
}

/// What a pass found.
pub(crate) struct Analysed {
    pub(crate) summary: InputSummary,
    pub(crate) report: Report,
    /// Where all packets were kept: the SACKs, which ladders lack.
    pub(crate) sacks: Option<Sacks>,
    /// The part of the captures that was read, if not all.
    span: Option<Span>,
}

impl<'a> Opened<'a> {
    /// Opens the inputs, `more` times more, and gives up all rights except to the descriptors of
    /// `kept` and those that serving needs.
    pub(crate) fn open(
        args: &'a InputArgs,
        more: usize,
        is_paged: bool,
        kept: &[confine::Kept<'_>],
        serves: Option<usize>,
    ) -> anyhow::Result<Self> {
        #[cfg(target_os = "linux")]
        tcpwhy_sandbox::allow_many_files();
        #[cfg(target_os = "linux")]
        tcpwhy_sandbox::give_memory_back();
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        if !args.is_live() {
            tcpwhy_ahead::heap::use_large_pages(confine::HEAP.min(args.memory / 4));
        }
        let inputs = Inputs::open(&args.files);
        let again: Vec<Inputs> = (0..more).map_while(|_| inputs.open_again()).collect();
        let opened: Vec<&Inputs> = std::iter::once(&inputs).chain(&again).collect();
        #[cfg(unix)]
        let pager = Pager::start(is_paged && !args.no_pager);
        #[cfg(unix)]
        let kept: Vec<_> = kept.iter().copied().chain(pager.iter().flat_map(Pager::descriptors)).collect();
        #[cfg(not(unix))]
        let _ = is_paged;
        let threads = confined(args, &opened, &kept, serves).ok_or_else(|| anyhow!(Exit(NOT_ANALYSED)))?;
        let ends = Ends::find(args, &inputs).map_err(Exit::usage)?;
        Ok(Self {
            args,
            inputs: Some(inputs),
            again,
            threads,
            #[cfg(unix)]
            pager,
            ends,
        })
    }

    pub(crate) fn ends(&self) -> Option<&Ends> {
        self.ends.as_ref()
    }

    /// The inputs for one more pass, if they can be read again.
    pub(crate) fn again(&mut self) -> Option<Inputs> {
        self.again.pop()
    }

    /// The pager that shows the answer, if there is one.
    #[cfg(unix)]
    pub(crate) fn pager(&mut self) -> Option<Pager> {
        self.pager.take()
    }

    /// Lets the first pass count streams as Wireshark does, if there is one input: each file has
    /// its own numbers. Returns how many bytes of `memory` that takes.
    pub(crate) fn count_streams(&mut self, memory: usize) -> usize {
        let one = self.inputs.as_mut().filter(|inputs| inputs.count() == 1);
        one.map_or(0, |inputs| inputs.aside.count_streams(memory))
    }

    /// Lets the first pass keep all packets, if there is one short file that is read whole, or else
    /// remember where they lie. Returns how much memory that takes.
    pub(crate) fn prepare_to_draw(&mut self, options: &mut Options, for_a_page: bool) -> usize {
        let whole = self.inputs.as_mut().filter(|inputs| inputs.count() == 1 && self.args.window().is_none());
        let Some(inputs) = whole else { return 0 };
        if let Listing::Thinned(most) = options.listing
            && for_a_page
            && options.memory / 4 > DRAWN_BYTES
            && inputs.is_short(DRAWN_PACKETS)
        {
            options.listing = Listing::Drawn(most);
            return DRAWN_BYTES;
        }
        inputs.aside.learn_places(options.memory)
    }

    /// The first pass; reports what could not be read.
    pub(crate) fn analyse(&mut self, options: Options) -> anyhow::Result<Analysed> {
        let inputs = self.inputs.take().unwrap_or_else(|| unreachable!("there is one first pass"));
        let analysed = self.pass(inputs, options, self.threads)?;
        output::troubles(&analysed.summary);
        if analysed.summary.is_failure() {
            return Err(Exit(NOT_ANALYSED).into());
        }
        Ok(analysed)
    }

    /// A further pass.
    pub(crate) fn pass(&self, inputs: Inputs, options: Options, threads: usize) -> anyhow::Result<Analysed> {
        analyse(self.args, inputs, self.ends(), options, threads).map_err(Exit::usage)
    }

    /// The printer of these results.
    pub(crate) fn output(&self, analysed: &Analysed) -> Output<'a> {
        Output::new(self.args, &analysed.summary, analysed.span, self.ends())
    }
}

impl Analysed {
    /// The printer of the results of one capture.
    pub(crate) fn output<'a>(&self, args: &'a InputArgs) -> Output<'a> {
        Output::new(args, &self.summary, self.span, None)
    }
}

/// Gives up all rights, with everything open that will be read or written, except what threads that
/// serve need. Returns how many threads to use; `None` if nothing may be read.
pub(crate) fn confined(
    args: &InputArgs,
    opened: &[&Inputs],
    keep: &[confine::Kept<'_>],
    serves: Option<usize>,
) -> Option<usize> {
    // While signals still end the process: if the key comes from a pipe, its writer may never come.
    if let Err(error) = args.anonymizer() {
        let file = args.key.as_deref().unwrap_or(Path::new("")).display();
        output::complain(&format!("cannot read {file} for --key: {error}"));
        return None;
    }
    #[cfg(unix)]
    if let Err(error) = stop::on_signals() {
        output::complain(&format!("warning: a signal will end the program without an answer: {error}"));
    }
    // Ask the system for these while it still answers.
    let threads = args.threads();
    args.zone();
    let all = threads + serves.unwrap_or(0);
    confine::confine(args, opened, keep, all, serves.is_some()).then_some(threads)
}

/// What the inputs say besides their segments.
fn take_over(summary: &InputSummary, report: &mut Report) {
    if summary.has_unreliable_clock() {
        report.doubt_times();
    }
    if let Some((count, first_packet)) = summary.too_large() {
        report.notes.push(Note { kind: "too-large-packets", count, first_packet });
    }
}

/// One pass over the inputs: every segment that passes the filter goes into the analysis; a
/// connection seen by several inputs is taken from one of them.
pub(crate) fn analyse(
    args: &InputArgs,
    mut inputs: Inputs,
    ends: Option<&Ends>,
    mut options: Options,
    threads: usize,
) -> Result<Analysed, WindowError> {
    // An input that has been read before is at its end.
    inputs.rewind();
    options.memory = options.memory.saturating_sub(ends.map_or(0, |ends| ends.bytes));
    options.memory -= inputs.set_memory(options.memory);
    if args.every.is_some() {
        // Interim answers are drawn up from a copy of the whole analysis.
        options.memory /= 2;
    }
    let mut chosen = ends.map(Ends::choice);
    if options.listing.has_ladders() && args.from.is_some() {
        options.memory -= inputs.aside.learn_openings(options.memory);
    }
    let span = args.window().map(|window| inputs.limit(&window)).transpose()?;
    let mut engine = Engine::new(options, if args.every.is_some() { 1 } else { threads });
    let mut names = args.anonymizer().ok().flatten();
    let mut progress = Progress::start(args.is_live());
    let interim = Interim::of(args);
    let style = args.style();
    let mut passes = |input, segment: &Segment| {
        args.filter.as_ref().is_none_or(|filter| filter.matches_connection(segment.src, segment.dst))
            && chosen.as_mut().is_none_or(|chosen| chosen.has(input, segment))
    };
    let mut sacks = matches!(options.listing, Listing::Drawn(_)).then(Sacks::new);
    let all = args.filter.is_none() && ends.is_none();
    let summary = inputs.for_each_decoded(
        &args.options(),
        |so_far| {
            progress.show(so_far);
            interim.on_progress();
        },
        |input, decoded, captured| {
            if all || passes(input, &decoded.segment()) {
                if interim.is_due() {
                    interim.show(&engine, decoded.segment().packet - 1, style);
                }
                if let (Some(sacks), Decoded::Other(segment)) = (&mut sacks, decoded)
                    && segment.packet <= DRAWN_PACKETS
                {
                    note_sacks(sacks, segment);
                }
                match &mut names {
                    None => engine.on_decoded(decoded, captured),
                    Some(names) => engine.on_segment(&names.segment(&decoded.segment()), captured),
                }
            }
        },
    );
    progress.finish();
    let mut report = engine.finish();
    take_over(&summary, &mut report);
    summary.aside.openings.open(&mut report, names.as_mut());
    Ok(Analysed { summary, report, sacks, span })
}

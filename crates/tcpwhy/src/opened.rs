//! What is open, and what does a pass over it find? All is opened before the first byte is looked at, and nothing later.

use std::path::Path;

use anyhow::anyhow;
use tcpwhy::input::{InputSummary, Inputs, Span, WindowError, stop};
use tcpwhy::threads::Engine;
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

/// Inputs as they are read: opened, and nothing else can be any more.
pub(crate) struct Opened<'a> {
    pub(crate) args: &'a InputArgs,
    inputs: Option<Inputs>,
    /// For further passes; none where they can be read only once.
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
    /// Where all packets were kept, what no ladder has.
    pub(crate) sacks: Option<Sacks>,
    /// The part of the captures that was read, where it was not all.
    span: Option<Span>,
}

impl<'a> Opened<'a> {
    /// Opens the inputs, so many times more, and gives up the rest but for what is `kept` open and for threads that serve.
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

    /// The inputs for one more pass, where they can be read again.
    pub(crate) fn again(&mut self) -> Option<Inputs> {
        self.again.pop()
    }

    /// Who shows the answer by pages, if there is somebody.
    #[cfg(unix)]
    pub(crate) fn pager(&mut self) -> Option<Pager> {
        self.pager.take()
    }

    /// Has the first pass count streams as Wireshark does, of one file: each has its own. Returns how much of so many bytes that takes.
    pub(crate) fn count_streams(&mut self, memory: usize) -> usize {
        let one = self.inputs.as_mut().filter(|inputs| inputs.count() == 1);
        one.map_or(0, |inputs| inputs.aside.count_streams(memory))
    }

    /// Has the first pass keep all packets, of one short file that is read from its first packet to its last one, or remember where
    /// they lie. Returns how much of the memory that takes.
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

    /// The first pass; says what could not be read.
    pub(crate) fn analyse(&mut self, options: Options) -> anyhow::Result<Analysed> {
        let inputs = self.inputs.take().unwrap_or_else(|| unreachable!("there is one first pass"));
        let analysed = self.pass(inputs, options, self.threads)?;
        output::troubles(&analysed.summary);
        if analysed.summary.is_failure() {
            return Err(Exit(NOT_ANALYSED).into());
        }
        Ok(analysed)
    }

    /// A further one.
    pub(crate) fn pass(&self, inputs: Inputs, options: Options, threads: usize) -> anyhow::Result<Analysed> {
        analyse(self.args, inputs, self.ends(), options, threads).map_err(Exit::usage)
    }

    /// Who prints it.
    pub(crate) fn output(&self, analysed: &Analysed) -> Output<'a> {
        Output::new(self.args, &analysed.summary, analysed.span, self.ends())
    }
}

impl Analysed {
    /// Who prints it, of one capture.
    pub(crate) fn output<'a>(&self, args: &'a InputArgs) -> Output<'a> {
        Output::new(args, &self.summary, self.span, None)
    }
}

/// With all that will be read and written open, gives up the rest but for threads that serve. The threads to use; `None` where nothing
/// may be read.
pub(crate) fn confined(
    args: &InputArgs,
    opened: &[&Inputs],
    keep: &[confine::Kept<'_>],
    serves: Option<usize>,
) -> Option<usize> {
    // Before signals only ask for an end: whoever writes the key into a pipe may never come.
    if let Err(error) = args.anonymizer() {
        let file = args.key.as_deref().unwrap_or(Path::new("")).display();
        output::complain(&format!("cannot read {file} for --key: {error}"));
        return None;
    }
    #[cfg(unix)]
    if let Err(error) = stop::on_signals() {
        output::complain(&format!("warning: a signal will end the program without an answer: {error}"));
    }
    // What the system would be asked for later, while it still answers.
    let threads = args.threads();
    args.zone();
    let all = threads + serves.unwrap_or(0);
    confine::confine(args, opened, keep, all, serves.is_some()).then_some(threads)
}

/// One pass over the inputs: every segment that the filter lets through goes into the analysis; of connections that several inputs saw,
/// those of one.
pub(crate) fn analyse(
    args: &InputArgs,
    mut inputs: Inputs,
    ends: Option<&Ends>,
    mut options: Options,
    threads: usize,
) -> Result<Analysed, WindowError> {
    // What has been read before is at its end.
    inputs.rewind();
    options.memory = options.memory.saturating_sub(ends.map_or(0, |ends| ends.bytes));
    options.memory -= inputs.set_memory(options.memory);
    if args.every.is_some() {
        // What is said in between is drawn up from a copy of it all.
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
    summary.aside.openings.open(&mut report, names.as_mut());
    Ok(Analysed { summary, report, sacks, span })
}

//! What can be served? The page, the exchanges of a span from a longer list than the page's, and
//! the packets of any connection, which a pass over the captures collects on request.

use std::sync::{Arc, Mutex, PoisonError};

use tcpwhy::input::{Inputs, Places};
use tcpwhy_core::report::{Connection, Report};
use tcpwhy_core::thinned;
use tcpwhy_page::{Choice, file, origin};
use tcpwhy_wire::{Duration, Instant};

use super::request::{Asked, Refusal};
use crate::cli::InputArgs;
use crate::ends::Ends;
use crate::page::{Around, Drawn, second_pass};
use crate::passes::LISTED_FOR_PAGE;

/// Packets remembered of the connections requested last; a single connection may have as many as a
/// pass keeps.
const REMEMBERED: usize = 1_000_000;

/// What is given.
pub(super) enum Answer {
    Page(Arc<[u8]>),
    Data(Arc<[u8]>),
}

/// A capture's report, and the captures themselves.
pub(crate) struct Library<'a> {
    args: &'a InputArgs,
    ends: Option<&'a Ends>,
    /// Not read itself; each pass reads a duplicate. One pass at a time.
    inputs: Mutex<Option<Inputs>>,
    report: &'a Report,
    around: Around,
    threads: usize,
    origin: Instant,
    page: Arc<[u8]>,
    remembered: Mutex<Vec<(u64, Arc<Drawn>)>>,
}

impl<'a> Library<'a> {
    /// Serves a report whose lists are longer than the page's. Without inputs that can be read
    /// again, only what the page has is available.
    pub(crate) fn new(
        (args, ends, threads): (&'a InputArgs, Option<&'a Ends>, usize),
        inputs: Option<Inputs>,
        report: &'a Report,
        drawn: &Drawn,
        around: Around,
    ) -> std::io::Result<Self> {
        let mut page = Vec::new();
        around.write(&thinned(report, LISTED_FOR_PAGE, None), drawn, &mut page)?;
        let origin = origin(report, around.files());
        Ok(Self {
            args,
            ends,
            inputs: Mutex::new(inputs),
            report,
            around,
            threads,
            origin,
            page: page.into(),
            remembered: Mutex::default(),
        })
    }

    pub(super) fn answer(&self, asked: Asked) -> Result<Answer, Refusal> {
        match asked {
            Asked::Page => Ok(Answer::Page(Arc::clone(&self.page))),
            Asked::Exchanges(within) => {
                let some = thinned(self.report, LISTED_FOR_PAGE, Some(self.moments(within)));
                self.document(&some, &Drawn::default())
            }
            Asked::Packets(connection, within) => self.packets(connection, within),
        }
    }

    fn packets(&self, id: u64, within: Option<[i64; 2]>) -> Result<Answer, Refusal> {
        let connections = &self.report.connections;
        let at = connections.binary_search_by_key(&id, |connection| connection.id);
        let connection = at.ok().map(|at| &connections[at]).ok_or(Refusal::NotThere)?;
        let drawn = self.drawn(connection)?;
        let only = Report { connections: vec![connection.clone()], ..Report::default() };
        match within.map(|within| self.moments(within)) {
            None => self.document(&only, &drawn),
            Some([from, to]) => {
                let mut part = drawn.as_ref().clone();
                for connection in &mut part.report.connections {
                    connection.ladder.retain(|rung| rung.at >= from && rung.at <= to);
                }
                self.document(&only, &part)
            }
        }
    }

    /// The connection with its packets, remembered or found by a pass.
    fn drawn(&self, connection: &Connection) -> Result<Arc<Drawn>, Refusal> {
        // A concurrent request for the same connection then finds it remembered.
        let inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, drawn)) = remembered.iter().find(|(id, _)| *id == connection.id) {
            return Ok(Arc::clone(drawn));
        }
        let again = inputs.as_ref().and_then(Inputs::duplicate).ok_or(Refusal::NotThere)?;
        let choice = [Choice::of(connection)];
        let drawn = second_pass(
            self.args,
            again,
            self.ends,
            (self.report, &choice, &Places::default()),
            self.threads,
        );
        let drawn = Arc::new(drawn.map_err(|_| Refusal::NotThere)?);
        remembered.push((connection.id, Arc::clone(&drawn)));
        while remembered.len() > 1
            && remembered.iter().map(|(_, drawn)| drawn.packets()).sum::<usize>() > REMEMBERED
        {
            remembered.remove(0);
        }
        Ok(drawn)
    }

    fn document(&self, report: &Report, drawn: &Drawn) -> Result<Answer, Refusal> {
        let mut document = Vec::new();
        let page = self.around.page(report, drawn, Some(self.origin), 1);
        file::write_data(&page, &mut document).map_err(|_| Refusal::Busy)?;
        Ok(Answer::Data(document.into()))
    }

    fn moments(&self, within: [i64; 2]) -> [Instant; 2] {
        within.map(|ns| {
            let most = i64::MAX / 4;
            self.origin + Duration::from_nanos(ns.clamp(-most, most))
        })
    }
}

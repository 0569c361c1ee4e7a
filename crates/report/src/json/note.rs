//! Which notes limit what can be said?

use serde::Serialize;
use tcpwhy_core::report::Note;

#[derive(Debug, Serialize)]
pub(super) struct NoteDto {
    kind: &'static str,
    count: u64,
    first_packet: u64,
}

impl From<&Note> for NoteDto {
    fn from(note: &Note) -> Self {
        Self { kind: note.kind, count: note.count, first_packet: note.first_packet }
    }
}

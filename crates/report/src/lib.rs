//! One report in, one artefact out: how is it told to people, and how to programs?
//!
//! `text` is for people: the answer first, then the bill, then the fixes; also as Markdown. `csv`
//! is for spreadsheets. `json` is the document of the schema `tcpwhy.report/1`. Pure: the caller
//! decides where output goes. Strings that come from a capture or a file name pass through `escape`
//! wherever they are shown.
#![forbid(unsafe_code)]

pub mod annotate;
pub mod answer;
pub mod capture;
pub mod clock;
pub mod compare;
pub mod csv;
pub mod escape;
pub mod json;
pub mod profile;
pub mod quantity;
pub mod requests;
pub mod text;

pub use answer::answer;
pub use capture::CaptureInfo;
pub use text::Style;

//! Does everything that people look at say what the report says? The page of `--html`, the capture
//! of `--annotate`, and `compare`.

mod annotated;
mod anonymized;
mod browser;
mod common;
mod compare;
mod data;
mod serve;

//! How does the document describe requests?

use serde::Serialize;

use crate::requests::{RequestLine, Requests};

#[derive(Debug, Serialize)]
pub(super) struct RequestsDto {
    request: String,
    count: u64,
    ns: i64,
    p50_ns: i64,
    p99_ns: i64,
    max_ns: i64,
    bill: Vec<RequestLineDto>,
}

#[derive(Debug, Serialize)]
struct RequestLineDto {
    cause: &'static str,
    side: &'static str,
    ns: i64,
    hits: u64,
    p50_ns: i64,
}

impl From<Requests> for RequestsDto {
    fn from(requests: Requests) -> Self {
        let line = |line: RequestLine| RequestLineDto {
            cause: line.cause.name(),
            side: line.side.name(),
            ns: line.ns.as_nanos(),
            hits: line.hits,
            p50_ns: line.p50.as_nanos(),
        };
        Self {
            request: requests.name,
            count: requests.count,
            ns: requests.ns.as_nanos(),
            p50_ns: requests.p50.as_nanos(),
            p99_ns: requests.p99.as_nanos(),
            max_ns: requests.max.as_nanos(),
            bill: requests.bill.into_iter().map(line).collect(),
        }
    }
}

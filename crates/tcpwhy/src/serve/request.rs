//! What does a stranger's request ask for, and is it allowed? The bytes of a request in; what it
//! asks for, or the status that refuses it, out.

use std::net::IpAddr;

/// Maximum length of a request's head.
pub(super) const HEAD_MAX: usize = 8 * 1024;
const HEADERS_MAX: usize = 64;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The page itself.
    Page,
    /// The exchanges of a span, in nanoseconds since the origin.
    Exchanges([i64; 2]),
    /// The packets of a connection, of one span if given.
    Packets(u64, Option<[i64; 2]>),
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Not an HTTP/1 request, or invalid numbers.
    Malformed,
    /// Neither GET nor HEAD.
    Method,
    /// Does not exist, or the client may not know that it does.
    NotThere,
    /// The host was given by name: a page elsewhere may have had that name resolved to this
    /// address.
    Host,
    /// The request did not come in time.
    Slow,
    /// Too many bytes before the first empty line.
    TooLong,
    /// Too many other requests are being served.
    Busy,
}

impl Refusal {
    pub(super) const fn status(self) -> &'static str {
        match self {
            Self::Malformed => "400 Bad Request",
            Self::Method => "405 Method Not Allowed",
            Self::NotThere => "404 Not Found",
            Self::Host => "421 Misdirected Request",
            Self::Slow => "408 Request Timeout",
            Self::TooLong => "431 Request Header Fields Too Large",
            Self::Busy => "503 Service Unavailable",
        }
    }
}

/// Reads a request's head; `None` if there is more to come. The second value: whether only the head
/// of the answer is wanted.
pub(super) fn read(bytes: &[u8], token: &str) -> Option<Result<(Asked, bool), Refusal>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => Some(judge(&request, token)),
        Ok(httparse::Status::Partial) if bytes.len() >= HEAD_MAX => Some(Err(Refusal::TooLong)),
        Ok(httparse::Status::Partial) => None,
        Err(httparse::Error::TooManyHeaders) => Some(Err(Refusal::TooLong)),
        Err(_) => Some(Err(Refusal::Malformed)),
    }
}

fn judge(request: &httparse::Request<'_, '_>, token: &str) -> Result<(Asked, bool), Refusal> {
    let is_head = match request.method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Err(Refusal::Method),
    };
    let mut hosts = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
    let host = hosts.next().and_then(|header| std::str::from_utf8(header.value).ok());
    if hosts.next().is_some() || !host.is_some_and(is_address) {
        return Err(Refusal::Host);
    }
    let path = request.path.unwrap_or_default();
    let (given, rest) =
        path.strip_prefix('/').and_then(|path| path.split_once('/')).ok_or(Refusal::NotThere)?;
    if !is_same(given.as_bytes(), token.as_bytes()) {
        return Err(Refusal::NotThere);
    }
    let asked = match rest.split_once('?').unwrap_or((rest, "")) {
        ("", _) => Asked::Page,
        ("data", query) => data(query)?,
        _ => return Err(Refusal::NotThere),
    };
    Ok((asked, is_head))
}

fn data(query: &str) -> Result<Asked, Refusal> {
    let (mut connection, mut from, mut to) = (None, None, None);
    for word in query.split('&') {
        let (name, value) = word.split_once('=').ok_or(Refusal::Malformed)?;
        let number = value.parse::<i64>().map_err(|_| Refusal::Malformed)?;
        let place = match name {
            "connection" => &mut connection,
            "from" => &mut from,
            "to" => &mut to,
            _ => return Err(Refusal::Malformed),
        };
        if place.replace(number).is_some() {
            return Err(Refusal::Malformed);
        }
    }
    let within = from.zip(to).map(|(from, to)| [from, to]);
    let is_half = from.is_some() != to.is_some();
    let is_empty = within.is_some_and(|[from, to]| from > to);
    match (connection.map(u64::try_from), within) {
        _ if is_half || is_empty => Err(Refusal::Malformed),
        (None, Some(within)) => Ok(Asked::Exchanges(within)),
        (Some(Ok(connection)), within) => Ok(Asked::Packets(connection, within)),
        (Some(Err(_)) | None, _) => Err(Refusal::Malformed),
    }
}

/// Whether a request names its server by address, or as localhost.
fn is_address(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || bare.parse::<IpAddr>().is_ok()
}

/// Takes the same time wherever the first difference is.
fn is_same(given: &[u8], token: &[u8]) -> bool {
    given.len() == token.len() && given.iter().zip(token).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn asked(line: &str, headers: &str) -> Result<Asked, Refusal> {
        let request = format!("{line} HTTP/1.1\r\n{headers}\r\n");
        read(request.as_bytes(), TOKEN).unwrap_or(Err(Refusal::Slow)).map(|(asked, _)| asked)
    }

    fn path(path: &str) -> Result<Asked, Refusal> {
        asked(&format!("GET {path}"), "Host: 127.0.0.1:1\r\n")
    }

    #[test]
    fn what_is_there_is_found_with_the_token_alone() {
        assert_eq!(path("/0123456789abcdef/"), Ok(Asked::Page));
        assert_eq!(path("/0123456789abcdef/data?from=-5&to=9"), Ok(Asked::Exchanges([-5, 9])));
        assert_eq!(path("/0123456789abcdef/data?connection=7"), Ok(Asked::Packets(7, None)));
        let both = "/0123456789abcdef/data?to=2&connection=7&from=1";
        assert_eq!(path(both), Ok(Asked::Packets(7, Some([1, 2]))));
        for other in [
            "/",
            "/favicon.ico",
            "/0123456789abcdee/",
            "/0123456789abcdef",
            "/0123456789abcdef0/",
            "/0123456789ABCDEF/",
            "/0123456789abcdef/../etc/passwd",
            "/0123456789abcdef//",
            "http://127.0.0.1/0123456789abcdef/",
            "*",
        ] {
            assert_eq!(path(other), Err(Refusal::NotThere), "{other}");
        }
    }

    #[test]
    fn numbers_are_numbers() {
        for query in [
            "",
            "from=1",
            "from=2&to=1",
            "from=1&to=2&from=1",
            "connection=-1",
            "connection=99999999999999999999",
            "connection=1%30",
            "connection=1;from=0",
            "from=1e9&to=2e9",
            "from=1&to=2&evil=3",
            "connection",
        ] {
            let path = path(&format!("/{TOKEN}/data?{query}"));
            assert_eq!(path, Err(Refusal::Malformed), "{query}");
        }
    }

    #[test]
    fn names_of_others_methods_and_nonsense_are_refused() {
        let page = format!("GET /{TOKEN}/");
        for host in ["localhost", "localhost:80", "127.0.0.1", "[::1]:80", "192.168.1.2:9"] {
            assert_eq!(asked(&page, &format!("Host: {host}\r\n")), Ok(Asked::Page), "{host}");
        }
        for headers in ["", "Host: evil.example\r\n", "Host: 127.0.0.1.evil.example:80\r\n", "Host:\r\n"] {
            assert_eq!(asked(&page, headers), Err(Refusal::Host), "{headers}");
        }
        assert_eq!(asked(&page, "Host: localhost\r\nhost: evil.example\r\n"), Err(Refusal::Host));
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "CONNECT"] {
            let line = format!("{method} /{TOKEN}/");
            assert_eq!(asked(&line, "Host: localhost\r\n"), Err(Refusal::Method), "{method}");
        }
        assert_eq!(read(b"\x16\x03\x01\x02\x00\x01\x00\x01", TOKEN), Some(Err(Refusal::Malformed)));
        assert_eq!(read(&[b'A'; HEAD_MAX], TOKEN), Some(Err(Refusal::TooLong)));
        assert_eq!(asked(&page, &"a: b\r\n".repeat(HEADERS_MAX + 1)), Err(Refusal::TooLong));
        assert_eq!(read(b"GET / HTT", TOKEN), None);
    }
}

//! Does `read --serve` show the page that `--html` writes, with all details, to a client that knows
//! the token, and nothing to any other? With requests as browsers send them, and hostile ones.

#![cfg(unix)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{json, root, tcpwhy, write_page};
use crate::data::{column, data_of, ints, rows};
use serde_json::Value;

/// A serving tcpwhy; killed at the end of its test.
pub(crate) struct Served {
    child: Child,
    pub(crate) url: String,
    address: SocketAddr,
    token: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    pub(crate) fn start(capture: &Path, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tcpwhy"));
        let (folder, name) = (capture.parent().expect("a folder"), capture.file_name().expect("a name"));
        command.current_dir(folder).arg("read").arg(name).args(["--serve", "127.0.0.1:0"]).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("tcpwhy starts");
        let said = BufReader::new(child.stderr.take().expect("a pipe"));
        let url = said.lines().map_while(Result::ok).find_map(|line| {
            let (_, behind) = line.split_once("http://")?;
            Some(format!("http://{}", behind.split_once(' ')?.0))
        });
        let url = url.expect("it says where the page is");
        let mut parts = url.trim_start_matches("http://").split('/');
        let address = parts.next().and_then(|address| address.parse().ok()).expect("an address");
        let token = parts.next().unwrap_or_default().to_owned();
        Self { child, url, address, token }
    }

    /// Sends bytes and reads until the end.
    fn send(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        let _ = stream.set_read_timeout(Some(Duration::from_secs(20)));
        // The server does not read the rest of a request that it refuses early.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    }

    fn get(&self, path: &str) -> (String, Vec<u8>) {
        let request = format!("GET /{}/{path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.token, self.address);
        parts(&self.send(request.as_bytes()))
    }

    fn document(&self, path: &str) -> Value {
        let (head, body) = self.get(path);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("Content-Encoding: gzip"), "{head}");
        let mut plain = String::new();
        let read = flate2::read::GzDecoder::new(body.as_slice()).read_to_string(&mut plain);
        assert!(read.is_ok(), "{read:?}");
        serde_json::from_str(&plain).unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}

fn parts(answer: &[u8]) -> (String, Vec<u8>) {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
    (String::from_utf8_lossy(&answer[..end]).into_owned(), answer[end..].to_vec())
}

const CAPTURE: &str = "corpus/lab/connect-each/client.pcapng.zst";

#[test]
fn the_page_is_that_of_html_and_may_ask_where_it_came_from_and_nobody_else() {
    let capture = root().join(CAPTURE);
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let file = folder.path().join("page.html");
    write_page(&capture, &file, &[]);
    let served = Served::start(&capture, &[]);
    let (head, body) = served.get("");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    for header in
        ["Cache-Control: no-store", "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer"]
    {
        assert!(head.contains(header), "{head}");
    }
    let (page, file) =
        (String::from_utf8_lossy(&body).into_owned(), fs::read_to_string(file).unwrap_or_default());
    let policy = |page: &str| page.split_once("default-src 'none'; ").map(|(_, rest)| rest[..20].to_owned());
    assert_eq!(policy(&page).as_deref(), Some("connect-src 'self'; "));
    assert!(!file.contains("connect-src"));
    let (mut shown, written) = (data_of(&page), data_of(&file));
    assert_eq!((&shown["served"], &written["served"]), (&Value::from(true), &Value::from(false)));
    shown["served"] = Value::from(false);
    assert!(shown == written);
}

#[test]
fn spans_and_connections_are_those_of_the_json() {
    let capture = root().join(CAPTURE);
    let document = json(&capture, &[]);
    let first = document["capture"]["first_ns"].as_i64().expect("a first packet");
    let connections = document["connections"].as_array().expect("connections");
    let starts = || {
        let listed = connections.iter().filter_map(|connection| connection["exchanges"].as_array());
        listed.flatten().map(|exchange| ints(exchange, "start_ns") - first)
    };
    let served = Served::start(&capture, &[]);
    let whole = [starts().min().unwrap_or(0), starts().max().unwrap_or(0)];
    let middle = i64::midpoint(whole[0], whole[1]);
    for [from, to] in
        [whole, [whole[0], middle], [middle, middle], [whole[1] + 1, i64::MAX], [i64::MIN, i64::MAX]]
    {
        let data = served.document(&format!("data?from={from}&to={to}"));
        let mut wanted: Vec<i64> = starts().filter(|start| (from..=to).contains(start)).collect();
        wanted.sort_unstable();
        assert_eq!(column(&data["exchanges"], "start_ns"), wanted, "{from} to {to}");
        assert_eq!(data["origin"], document["capture"]["first"]);
    }
    for connection in [&connections[0], &connections[connections.len() - 1]] {
        let id = ints(connection, "id");
        let ladder = json(&capture, &["--connection", &id.to_string()]);
        let ladder = ladder["connections"][0]["ladder"].as_array().expect("a ladder");
        let numbers = |rungs: &[Value]| rungs.iter().map(|rung| ints(rung, "packet")).collect::<Vec<_>>();
        let data = served.document(&format!("data?connection={id}"));
        assert_eq!(data["packets"][0]["id"], id);
        let packets = |data: &Value| -> Vec<i64> {
            rows(&data["packets"][0], ["packet"]).iter().map(|(_, [packet])| *packet).collect()
        };
        assert_eq!(packets(&data), numbers(ladder));
        assert_eq!(column(&data["connections"], "id"), [id]);
        let at = rows(&data["packets"][0], ["at_ns"]);
        let [(_, [from]), (_, [to])] = [at[1], at[3]];
        let part = served.document(&format!("data?connection={id}&from={from}&to={to}"));
        assert_eq!(packets(&part), numbers(&ladder[1..=3]));
    }
    let (head, _) = served.get("data?connection=999999");
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
}

#[test]
fn strangers_get_nothing_and_take_nothing_away() {
    let served = Served::start(&root().join(CAPTURE), &[]);
    let (address, token) = (served.address, &served.token);
    assert_eq!((token.len(), address.ip().is_loopback()), (32, true));
    let status = fs::read_to_string(format!("/proc/{}/status", served.child.id())).unwrap_or_default();
    let is_confined = status.contains("Seccomp:\t2") && status.contains("NoNewPrivs:\t1");
    assert!(is_confined || !cfg!(target_os = "linux"), "{status}");
    let with = |line: &str, host: &str| format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes();
    let here = address.to_string();
    let long = format!("GET /{token}/{} HTTP/1.1\r\nHost: {here}\r\n\r\n", "a".repeat(20_000));
    let many = format!("GET /{token}/ HTTP/1.1\r\n{}Host: {here}\r\n\r\n", "x: y\r\n".repeat(500));
    let mut other = token.clone();
    other.replace_range(31.., if token.ends_with('0') { "1" } else { "0" });
    for (bytes, wanted) in [
        (with("GET /", &here), "404"),
        (with(&format!("GET /{other}/"), &here), "404"),
        (with(&format!("GET /{token}/../../../etc/passwd"), &here), "404"),
        (with(&format!("GET /{token}/%2e%2e/etc/passwd"), &here), "404"),
        (with(&format!("GET /{token}/data"), &here), "400"),
        (with(&format!("GET /{token}/data?from=9&to=1"), &here), "400"),
        (with(&format!("GET /{token}/data?connection=18446744073709551615"), &here), "400"),
        (with(&format!("POST /{token}/"), &here), "405"),
        (with(&format!("GET /{token}/"), "rebound.example"), "421"),
        (format!("GET /{token}/ HTTP/1.1\r\n\r\n").into_bytes(), "421"),
        (b"\x00\xff\xfe nonsense\r\n\r\n".to_vec(), "400"),
        (long.into_bytes(), "431"),
        (many.into_bytes(), "431"),
    ] {
        let (head, body) = parts(&served.send(&bytes));
        let (head, body) = (head, String::from_utf8_lossy(&body).into_owned());
        let asked = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        // If more was sent than is read, the answer may be lost with the connection.
        assert!(head.is_empty() || head.starts_with(&format!("HTTP/1.1 {wanted} ")), "{asked}: {head}");
        assert!(!body.contains("<html") && !head.contains(token) && !body.contains(token), "{asked}: {body}");
    }
    let (head, body) = parts(&served.send(&with(&format!("HEAD /{token}/"), &here)));
    assert!(head.starts_with("HTTP/1.1 200") && body.is_empty(), "{head}");
    // Connections that send nothing, or end in the middle of a word, and a request meanwhile.
    let silent: Vec<_> = (0..3).map(|_| TcpStream::connect(address)).collect();
    drop(TcpStream::connect(address).map(|mut stream| stream.write_all(b"GET /")));
    assert!(served.get("").0.starts_with("HTTP/1.1 200"));
    drop(silent);
    // Connections beyond the queue are closed; afterwards everything works as before.
    let crowd: Vec<_> = (0..200).filter_map(|_| TcpStream::connect(address).ok()).collect();
    drop(crowd);
    sleep(Duration::from_millis(300));
    assert!(served.get("data?connection=1").0.starts_with("HTTP/1.1 200"));
}

/// Forty clients that send a byte now and then: other requests are answered meanwhile, and the end
/// is not delayed. Thirty had blocked another one for 36 seconds, and the end for five.
#[test]
#[expect(clippy::disallowed_methods, reason = "how long others wait is what is asked")]
fn who_is_slow_holds_neither_others_nor_the_end() {
    let mut served = Served::start(&root().join(CAPTURE), &[]);
    let mut slow: Vec<_> = (0..40).filter_map(|_| TcpStream::connect(served.address).ok()).collect();
    let mut trickle = |count: usize| {
        for byte in b"GET /".iter().take(count) {
            for stream in &mut slow {
                drop(stream.write_all(&[*byte]));
            }
            sleep(Duration::from_millis(200));
        }
    };
    trickle(2);
    let before = Instant::now();
    assert!(served.get("").0.starts_with("HTTP/1.1 200"));
    assert!(served.get("data?connection=1").0.starts_with("HTTP/1.1 200"));
    assert!(before.elapsed() < Duration::from_secs(4), "{:?}", before.elapsed());
    trickle(3);
    let before = Instant::now();
    let told = Command::new("kill").args(["-INT", &served.child.id().to_string()]).status();
    assert!(told.is_ok_and(|told| told.success()));
    assert_eq!(served.child.wait().expect("it ends").code(), Some(0));
    assert!(before.elapsed() < Duration::from_secs(3), "{:?}", before.elapsed());
}

#[test]
fn it_ends_when_it_is_told_to_and_says_where_it_cannot_listen() {
    let mut served = Served::start(&root().join(CAPTURE), &[]);
    assert!(served.get("").0.starts_with("HTTP/1.1 200"));
    let capture = root().join(CAPTURE).to_string_lossy().into_owned();
    let taken = tcpwhy(&["read", &capture, "--serve", &served.address.to_string()]);
    let said = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert!(taken.status.code() == Some(2) && said.contains("--serve cannot listen on 127.0.0.1:"), "{said}");
    let wrong = tcpwhy(&["read", &capture, "--serve", "evil.example:80"]);
    assert_eq!(wrong.status.code(), Some(2));
    let told = Command::new("kill").args(["-INT", &served.child.id().to_string()]).status();
    assert!(told.is_ok_and(|told| told.success()));
    let ended = served.child.wait().expect("it ends");
    assert_eq!(ended.code(), Some(0));
}

//! What does the reader say? Interim answers, and finally the output of `read`, which is passed on
//! as it is.

use std::io::{self, BufRead as _, BufReader, Read};
use std::process::ChildStdout;
use std::sync::mpsc::{Receiver, Sender, channel};

use tcpwhy_view::Answer;

/// Output of the reader.
pub(super) enum Said {
    /// An interim answer.
    Answer(Box<Answer>),
    /// A part of the final output.
    Rest(Vec<u8>),
}

/// Lines up to this length are read at once; longer ones come in parts.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// Listens on a separate thread until the reader's output ends.
pub(super) fn listen(out: ChildStdout) -> io::Result<Receiver<Said>> {
    let (sender, receiver) = channel();
    std::thread::Builder::new().name("tcpwhy-relay".to_owned()).spawn(move || relay(out, &sender))?;
    Ok(receiver)
}

fn relay(out: impl Read, to: &Sender<Said>) {
    let mut out = BufReader::with_capacity(1 << 16, out);
    loop {
        let mut line = Vec::new();
        match out.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let said = match Answer::parse(&line) {
            Some(answer) => Said::Answer(Box::new(answer)),
            None => Said::Rest(line),
        };
        if to.send(said).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_from_what_is_said_at_the_end() {
        let (sender, receiver) = channel();
        let answer =
            Answer { schema: tcpwhy_view::answer::SCHEMA.to_owned(), packets: 7, ..Answer::default() };
        let line = serde_json::to_string(&answer).expect("it is plain");
        relay(format!("{line}\n{{\n  \"schema\": \"tcpwhy.report/1\"\n}}").as_bytes(), &sender);
        drop(sender);
        let said: Vec<Said> = receiver.into_iter().collect();
        assert!(matches!(&said[0], Said::Answer(told) if **told == answer));
        let rest = said[1..].iter().map(|said| match said {
            Said::Rest(bytes) => bytes.clone(),
            Said::Answer(_) => Vec::new(),
        });
        assert_eq!(rest.collect::<Vec<_>>().concat(), b"{\n  \"schema\": \"tcpwhy.report/1\"\n}");
    }
}

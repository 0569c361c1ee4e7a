//! How is a setting of a network namespace read and written? Through /proc/sys/net, by a thread
//! inside the namespace.

use std::fs;
use std::io;
use std::path::PathBuf;

use tcpwhy_sockets::namespace::Namespace;

use crate::Error;

/// The file of a setting; only those that belong to a network namespace.
fn file(key: &str) -> Result<PathBuf, Error> {
    let path = key.replace('.', "/");
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_-".contains(c);
    if !path.starts_with("net/") || path.contains("//") || !path.chars().all(plain) {
        return Err(Error::Wrong(format!("{key} is not a setting of a network namespace")));
    }
    Ok(PathBuf::from("/proc/sys").join(path))
}

fn enter<T: Send>(
    namespace: &Namespace,
    key: &str,
    work: impl FnOnce(PathBuf) -> io::Result<T> + Send,
) -> Result<T, Error> {
    let file = file(key)?;
    let remedy = "root changes settings of a network namespace";
    namespace.enter(|| work(file)).and_then(|result| result).map_err(Error::of(key, remedy))
}

/// Its value, with fields separated by single spaces.
pub(crate) fn read(namespace: &Namespace, key: &str) -> Result<String, Error> {
    let text = enter(namespace, key, fs::read_to_string)?;
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

pub(crate) fn write(namespace: &Namespace, key: &str, value: &str) -> Result<(), Error> {
    enter(namespace, key, |file| fs::write(file, value))
}

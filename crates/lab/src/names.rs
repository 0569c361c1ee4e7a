//! How do programs on a host find the other one by name? With a private `/etc/hosts` mounted over
//! the machine's, in the host's own mount namespace: it is visible nowhere else, and ends with the
//! host.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::fd::AsRawFd as _;

use crate::private::Private;

const HOSTS: &str = "/etc/hosts";

/// Adds names to the `/etc/hosts` of the calling thread's mount namespace.
pub(crate) fn add(names: &[(String, IpAddr)]) -> io::Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    // Without that file, names cannot be added this way; addresses still work.
    let mut text = String::new();
    for (name, address) in names {
        // Writing to a String never fails.
        let _ = writeln!(text, "{address}\t{name}");
    }
    text.push_str(&std::fs::read_to_string(HOSTS)?);

    // The mount keeps the content; the name is not needed any more.
    let private = Private::make("tcpwhy-hosts-")?;
    let mut file = File::options().write(true).create_new(true).open(private.path().join("hosts"))?;
    file.write_all(text.as_bytes())?;
    readable_by_all(&file)?;
    let source = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::mount::mount_bind(source, HOSTS)?)
}

/// Programs on the host may run as another user.
fn readable_by_all(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

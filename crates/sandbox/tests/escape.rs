//! Is a restricted thread unable to do what it must not, and still able to do what it must? Each
//! attempt is made before and after.

#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Command;

/// Runs the attempt in a separate thread that has given up its rights, while the test's other
/// threads have not.
fn restricted<T: Send + 'static>(attempt: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::spawn(|| {
        assert_eq!(tcpwhy_sandbox::restrict(), [], "this kernel has Landlock and seccomp");
        attempt()
    });
    thread.join().unwrap_or_else(|_| panic!("the attempt itself does not panic"))
}

fn file(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("tcpwhy-escape-{name}-{}", std::process::id()));
    fs::write(&path, b"secret").unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path
}

#[track_caller]
fn refused<T>(attempt: &str, result: io::Result<T>) {
    match result {
        Ok(_) => panic!("{attempt} succeeded"),
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{attempt}: {error}"),
    }
}

#[test]
fn no_file_is_opened_made_changed_or_removed() {
    let path = file("files");
    restricted({
        let path = path.clone();
        move || {
            refused("reading a file", fs::read(&path));
            refused("reading /etc/passwd", fs::read("/etc/passwd"));
            refused("writing a file", fs::write(&path, b"other"));
            refused("making a file", File::create(path.with_extension("new")));
            refused("making a directory", fs::create_dir(path.with_extension("dir")));
            refused("listing a directory", fs::read_dir("/"));
            refused("removing a file", fs::remove_file(&path));
            refused("renaming a file", fs::rename(&path, path.with_extension("moved")));
            refused("linking a file", fs::hard_link(&path, path.with_extension("link")));
            refused(
                "linking by name",
                std::os::unix::fs::symlink("/etc/passwd", path.with_extension("link")),
            );
            refused("asking about a file", fs::metadata(&path));
            refused("reading a link", fs::read_link("/proc/self/exe"));
            refused("own memory by its file", File::open("/proc/self/mem"));
            refused(
                "permissions",
                fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o777)),
            );
            refused("leaving the directory", std::env::set_current_dir("/"));
        }
    });
    assert_eq!(fs::read(&path).ok().as_deref(), Some(&b"secret"[..]), "the file is as it was");
    let _ = fs::remove_file(path);
}

#[test]
fn what_serves_takes_connections_and_makes_none() {
    let path = file("serving");
    let Ok(listener) = TcpListener::bind("127.0.0.1:0") else { panic!("a port") };
    let Ok(address) = listener.local_addr() else { panic!("an address") };
    let asks = std::thread::spawn(move || {
        let mut answer = String::new();
        let asked = TcpStream::connect(address).and_then(|mut stream| {
            stream.write_all(b"word")?;
            stream.read_to_string(&mut answer)
        });
        (asked.is_ok(), answer)
    });
    let serves = std::thread::spawn({
        let path = path.clone();
        move || {
            assert_eq!(tcpwhy_sandbox::restrict_to_serving(), [], "this kernel has Landlock and seccomp");
            let (mut stream, _) = listener.accept()?;
            stream.set_read_timeout(Some(std::time::Duration::from_secs(10)))?;
            let mut word = [0; 4];
            stream.read_exact(&mut word)?;
            stream.write_all(&word)?;
            stream.shutdown(std::net::Shutdown::Both)?;
            refused("connecting", TcpStream::connect(address));
            refused("listening", TcpListener::bind("127.0.0.1:0"));
            refused("a socket of datagrams", UdpSocket::bind("127.0.0.1:0"));
            refused("other options", stream.set_nodelay(true));
            refused("reading a file", fs::read(&path));
            refused("a program", Command::new("/bin/true").status());
            Ok::<_, io::Error>(())
        }
    });
    let served = serves.join().unwrap_or_else(|_| panic!("nothing was allowed that must not be"));
    assert!(served.is_ok(), "{served:?}");
    assert_eq!(asks.join().ok(), Some((true, "word".to_owned())));
    let _ = fs::remove_file(path);
}

#[test]
fn below_one_folder_files_are_read_and_nothing_else_is_done() {
    let folder = std::env::temp_dir().join(format!("tcpwhy-escape-folder-{}", std::process::id()));
    let outside = file("outside");
    let made = fs::create_dir_all(folder.join("deeper"))
        .and_then(|()| fs::write(folder.join("deeper/file"), b"content"))
        .and_then(|()| std::os::unix::fs::symlink(&outside, folder.join("link")))
        .and_then(|()| std::os::unix::fs::symlink("..", folder.join("up")));
    assert!(made.is_ok(), "{made:?}");
    let thread = std::thread::spawn({
        let (folder, outside) = (folder.clone(), outside.clone());
        move || {
            assert_eq!(tcpwhy_sandbox::restrict_to_reading(&folder), []);
            let inside = folder.join("deeper/file");
            assert_eq!(fs::read(&inside).ok().as_deref(), Some(&b"content"[..]));
            assert!(inside.exists());
            refused("a file elsewhere", fs::read(&outside));
            refused("a link that leads out", fs::read(folder.join("link")));
            let up = folder.join("up").join(outside.file_name().unwrap_or_default());
            refused("the way out by ..", fs::read(up));
            refused("/etc/passwd", fs::read("/etc/passwd"));
            refused("writing", File::options().write(true).open(&inside));
            refused("appending", File::options().append(true).open(&inside));
            refused("emptying", File::create(&inside));
            refused("making", File::create(folder.join("new")));
            refused("listing", fs::read_dir(&folder));
            refused("removing", fs::remove_file(&inside));
            refused("renaming", fs::rename(&inside, folder.join("other")));
            refused("a program", Command::new("true").spawn());
            refused("a datagram", UdpSocket::bind("127.0.0.1:0"));
            refused(
                "permissions",
                fs::set_permissions(&inside, std::os::unix::fs::PermissionsExt::from_mode(0o777)),
            );
        }
    });
    let done = thread.join();
    let _ = fs::remove_dir_all(folder);
    let _ = fs::remove_file(outside);
    if let Err(panic) = done {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn no_socket_is_made() {
    let listener =
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr().map(|at| (listener, at)));
    let Ok((_listener, at)) = listener else { panic!("a listener") };
    restricted(move || {
        refused("connecting", TcpStream::connect(at));
        refused("listening", TcpListener::bind("127.0.0.1:0"));
        refused("a datagram", UdpSocket::bind("127.0.0.1:0"));
        refused("a local socket", UnixStream::pair());
        refused("a local listener", UnixListener::bind("/tmp/tcpwhy-escape.sock"));
    });
}

#[test]
fn no_program_is_started_and_no_process_touched() {
    let Ok(mut other) = Command::new("sleep").arg("100").spawn() else { panic!("sleep starts") };
    let pid = i32::try_from(other.id()).unwrap_or_default();
    restricted(move || {
        refused("a program", Command::new("true").spawn());
        refused(
            "becoming a program",
            Err::<(), _>(std::os::unix::process::CommandExt::exec(&mut Command::new("true"))),
        );
        for (attempt, errno) in raw::attempts(pid) {
            assert_eq!(errno, Some(libc::EPERM), "{attempt}");
        }
    });
    assert_eq!(other.try_wait().ok().flatten(), None, "the other process lives");
    let _ = other.kill().and_then(|()| other.wait());
}

#[test]
fn a_thread_started_later_is_restricted_too() {
    restricted(|| {
        let later = std::thread::Builder::new().name("later".to_owned()).spawn(|| {
            refused("reading a file", fs::read("/etc/passwd"));
            refused("a datagram", UdpSocket::bind("127.0.0.1:0"));
            vec![1_u8; 64 << 20].iter().map(|byte| usize::from(*byte)).sum::<usize>()
        });
        let sum = later.ok().and_then(|later| later.join().ok());
        assert_eq!(sum, Some(64 << 20), "threads start, and get memory");
    });
}

#[test]
fn what_was_open_is_read_and_written() {
    let path = file("open");
    let Ok(mut open) = File::options().read(true).write(true).open(&path) else { panic!("it is there") };
    let Ok((mut from, mut to)) = io::pipe() else { panic!("a pipe") };
    restricted(move || {
        let mut text = String::new();
        assert!(open.read_to_string(&mut text).is_ok_and(|n| n == 6) && text == "secret", "{text}");
        let again = open.try_clone().and_then(|mut again| again.seek(SeekFrom::Start(3)));
        assert_eq!(again.ok(), Some(3));
        assert!(open.write_all(b"ret").is_ok());
        assert!(to.write_all(b"pipe").is_ok());
        drop(to);
        text.clear();
        assert!(from.read_to_string(&mut text).is_ok() && text == "pipe", "{text}");
        let caught = std::panic::catch_unwind(|| panic!("a panic, caught"));
        assert!(caught.is_err(), "panics unwind");
        std::thread::sleep(std::time::Duration::from_millis(1));
    });
    let _ = fs::remove_file(path);
}

/// What the standard library does not offer.
mod raw {
    #![expect(
        unsafe_code,
        reason = "the attempts are system calls, which touch no memory when they are refused"
    )]

    /// Each with its error.
    pub(crate) fn attempts(other: i32) -> Vec<(&'static str, Option<i32>)> {
        let zero = 0_usize;
        let call = |number: libc::c_long, a: i64, b: i64, c: i64| {
            // SAFETY: null pointers and numbers only; none of the calls writes to memory of this process.
            let result = unsafe { libc::syscall(number, a, b, c, zero, zero, zero) };
            if result >= 0 { None } else { std::io::Error::last_os_error().raw_os_error() }
        };
        let other = i64::from(other);
        vec![
            ("tracing a process", call(libc::SYS_ptrace, i64::from(libc::PTRACE_ATTACH), other, 0)),
            ("reading a process", call(libc::SYS_process_vm_readv, other, 0, 0)),
            ("ending a process", call(libc::SYS_kill, other, i64::from(libc::SIGKILL), 0)),
            ("ending its thread", call(libc::SYS_tgkill, other, other, i64::from(libc::SIGKILL))),
            ("a process's files", call(libc::SYS_pidfd_open, other, 0, 0)),
            ("a process of its own", call(libc::SYS_clone, i64::from(libc::SIGCHLD), 0, 0)),
            ("memory as code", call(libc::SYS_mmap, 0, 4096, i64::from(libc::PROT_EXEC | libc::PROT_READ))),
            ("typing into the terminal", call(libc::SYS_ioctl, 0, libc::TIOCSTI as i64, 0)),
            ("another name space", call(libc::SYS_unshare, i64::from(libc::CLONE_NEWUSER), 0, 0)),
            ("mounting", call(libc::SYS_mount, 0, 0, 0)),
            ("BPF", call(libc::SYS_bpf, 0, 0, 0)),
            ("io_uring", call(libc::SYS_io_uring_setup, 1, 0, 0)),
            ("performance counters", call(libc::SYS_perf_event_open, 0, 0, -1)),
            ("another user", call(libc::SYS_setuid, 0, 0, 0)),
            ("a key ring", call(libc::SYS_keyctl, 0, 0, 0)),
            ("a memory file", call(libc::SYS_memfd_create, 0, 0, 0)),
            ("opening by an old call", call(libc::SYS_openat2, 0, 0, 0)),
        ]
    }
}

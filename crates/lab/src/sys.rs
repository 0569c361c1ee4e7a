//! Which system calls have no safe wrapper? All unsafe code of the laboratory is in this file.
#![expect(unsafe_code, reason = "clone and the TUN ioctls have no safe form; each use says why it is sound")]

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::process::{Pid, WaitOptions, waitpid};
use rustix::thread::UnshareFlags;

use crate::Error;

/// Without root: makes this process root of its own user namespace, so that it may create network
/// namespaces. Does nothing for root. Call it first in `main`: the kernel refuses it to a process
/// with several threads.
///
/// # Errors
/// The machine does not allow user namespaces; the error says what would.
pub fn enter_user_namespace() -> Result<(), Error> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    if uid.is_root() {
        return Ok(());
    }
    let remedy = "Run it as root, or allow user namespaces: \
                  sysctl user.max_user_namespaces=10000 kernel.unprivileged_userns_clone=1 \
                  kernel.apparmor_restrict_unprivileged_userns=0 (whichever of them exist)";
    unshare(UnshareFlags::NEWUSER).map_err(Error::permitted("create a user namespace", remedy))?;
    // user_namespaces(7): an unprivileged process must give up setgroups before it may map its group.
    let maps = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("0 {} 1", uid.as_raw())),
        ("gid_map", format!("0 {} 1", gid.as_raw())),
    ];
    for (file, text) in maps {
        std::fs::write(format!("/proc/self/{file}"), text)
            .map_err(Error::permitted(format!("write the user namespace's {file}"), remedy))?;
    }
    Ok(())
}

/// Moves the calling thread (for the PID namespace: its future children) into its own namespaces.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    assert!(!flags.contains(UnshareFlags::FILES), "Rust's descriptors belong to the whole process");
    // SAFETY: only UnshareFlags::FILES can break the ownership of descriptors.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// The process that keeps a PID namespace alive: its first one, so that the kernel kills all others
/// with it.
#[derive(Debug)]
pub(crate) struct Keeper {
    pid: i32,
    /// Its stack, as long as it may run.
    stack: Option<Box<[u128]>>,
}

/// The keeper's calls need a few hundred bytes.
const KEEPER_STACK: usize = 16 << 10;

impl Keeper {
    /// Starts it. The calling thread must have unshared its PID namespace. The keeper ends when the
    /// other end of `lifeline` is closed, which the kernel does when this process ends, in whatever
    /// way. It mounts the namespace's own /proc if it may, and writes a byte to `ready` when it is
    /// set up: the calling thread waits for that. It has its own descriptors.
    ///
    /// It shares this process's memory. With a copy, as made by fork, every page that a thread here
    /// writes to would be copied, and the other processors stopped to take notice (do_wp_page,
    /// mm/memory.c; flush_tlb_mm_range, arch/x86/mm/tlb.c). A virtual machine then waits for a
    /// processor that its host has stopped, and the link waits with it: for milliseconds.
    pub(crate) fn start(lifeline: &OwnedFd, ready: &OwnedFd) -> io::Result<Self> {
        let mut stack = vec![0_u128; KEEPER_STACK / size_of::<u128>()].into_boxed_slice();
        // The last word of the stack is its argument; everything below it is properly aligned.
        let [below @ .., argument] = &mut *stack else { return Err(io::ErrorKind::OutOfMemory.into()) };
        *argument = (lifeline.as_raw_fd() as u128) << 32 | ready.as_raw_fd() as u128;
        // SAFETY: the stack grows down from the end of `below` and lives until the keeper has
        // ended, see `Drop`. `keep` only makes system calls, and never returns.
        let pid = unsafe {
            let top = below.as_mut_ptr_range().end.cast();
            libc::clone(keep, top, libc::CLONE_VM | libc::SIGCHLD, (&raw mut *argument).cast())
        };
        if pid == -1 { Err(io::Error::last_os_error()) } else { Ok(Self { pid, stack: Some(stack) }) }
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        let waited = Pid::from_raw(self.pid).map(|pid| waitpid(Some(pid), WaitOptions::NOHANG));
        if matches!(waited, Some(Ok(None))) {
            return false;
        }
        self.stack = None;
        true
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // A keeper that was not seen to end may still run.
        mem::forget(self.stack.take());
    }
}

/// The keeper. It shares errno, and all other thread-local data, with the thread that started it
/// and waits for the byte to `ready`: after that byte it may use none of it, as the C library's
/// `read` would.
extern "C" fn keep(descriptors: *mut libc::c_void) -> i32 {
    // SAFETY: system calls on plain numbers and static strings only. Nothing can be done here about
    // failures: without /proc programs see the outer one, and the other calls cannot fail with
    // these arguments. The argument is on the keeper's own stack.
    unsafe {
        let packed = *descriptors.cast::<u128>();
        let (lifeline, ready) = ((packed >> 32) as i32, packed as u32 as i32);
        // The terminal's signals are for the laboratory, whose end ends this process.
        let mut all: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
        // The first process of a PID namespace inherits orphans: let the kernel reap them.
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        libc::prctl(libc::PR_SET_NAME, c"tcpwhy-keeper".as_ptr());
        libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), 0, std::ptr::null());
        // Every other descriptor of the laboratory was inherited too, including the write end of
        // the lifeline.
        libc::dup2(lifeline, 0);
        libc::dup2(ready, 1);
        libc::syscall(libc::SYS_close_range, 2, u32::MAX, 0);
        let _ = rustix::io::write(BorrowedFd::borrow_raw(1), b"r");
        rustix::io::close(1);
        // With every signal blocked, nothing interrupts it.
        let _ = rustix::io::read(BorrowedFd::borrow_raw(0), &mut [0_u8]);
        libc::syscall(libc::SYS_exit_group, 0);
    }
    0
}

/// Whether the calling thread runs before every ordinary one, because a thread with precedence
/// started it.
pub(crate) fn is_realtime() -> bool {
    // SAFETY: 0 is the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
    matches!(policy, libc::SCHED_RR | libc::SCHED_FIFO)
}

/// Lets the calling thread run before every ordinary one, and before those with precedence:
/// otherwise a program of a host that writes without pause would delay its own data.
pub(crate) fn set_realtime() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: PRECEDENCE + 1 };
    // A child of this thread must not inherit the policy.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is the calling thread; `parameters` lives through the call.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Lets the calling thread run soon after it wakes: with somewhat more than its share of the
/// processor, if the system allows it, and, from Linux 6.12 on, a short slice, for which the
/// scheduler (EEVDF, `PREEMPT_SHORT`) preempts a thread with an ordinary one. Not more: at nice -20
/// the programs of the hosts got too little next to a busy link to fill a path of 1 Gb/s
/// (docs/link.md).
pub(crate) fn set_eager() -> io::Result<()> {
    // Without CAP_SYS_NICE only the slice can be set.
    set_slice(-5).or_else(|_| set_slice(0))
}

fn set_slice(nice: i32) -> io::Result<()> {
    /// linux/sched/types.h, first version.
    #[repr(C)]
    struct SchedAttr {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }
    let attributes = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice,
        priority: 0,
        runtime_ns: 100_000,
        deadline_ns: 0,
        period_ns: 0,
    };
    // SAFETY: 0 is the calling thread; `attributes` has the size that it says and lives through the call.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Creates a TUN interface in the calling thread's network namespace and binds `file` (an open
/// /dev/net/tun) to it. It goes away with the last duplicate of `file`.
pub(crate) fn tun_create(file: &impl AsFd, name: &str) -> io::Result<()> {
    // SAFETY: all zeroes is a valid ifreq.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // The last byte stays zero: the kernel expects the name to be terminated.
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes an ifreq, which `request` is.
    unsafe {
        ioctl(file.as_fd(), libc::TUNSETIFF, (&raw mut request).cast::<libc::c_void>() as libc::c_ulong)
    }
}

/// Tells the kernel which work it may leave to the reader of a TUN interface (`TUN_F_*`).
pub(crate) fn tun_set_offload(file: &impl AsFd, features: u32) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its argument by value.
    unsafe { ioctl(file.as_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(features)) }
}

/// # Safety
/// `argument` must be what `request` expects: a value, or the address of a live object of its type.
unsafe fn ioctl(fd: BorrowedFd<'_>, request: libc::Ioctl, argument: libc::c_ulong) -> io::Result<()> {
    // SAFETY: the descriptor is open; the caller is responsible for the argument.
    match unsafe { libc::ioctl(fd.as_raw_fd(), request, argument) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// A socket's maximum sending rate in bytes per second: its kernel paces it (SO_MAX_PACING_RATE,
/// socket(7)).
pub(crate) fn set_max_pacing_rate(socket: BorrowedFd<'_>, rate: u64) -> io::Result<()> {
    // SAFETY: the descriptor is open; the value is a live u64 of the size that is given.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const rate).cast::<libc::c_void>(),
            size_of::<u64>() as libc::socklen_t,
        )
    };
    if set == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The lowest real-time priority.
const PRECEDENCE: i32 = 1;

/// Gives the calling thread, and those it starts, precedence over everything that is not real-time.
/// Returns whether it was allowed.
pub fn take_precedence() -> bool {
    // SAFETY: all zeroes is a valid sched_param.
    let mut parameters: libc::sched_param = unsafe { mem::zeroed() };
    parameters.sched_priority = PRECEDENCE;
    // SAFETY: a live sched_param; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const parameters) == 0 }
}

//! Which system calls are still allowed?
//!
//! A call that is not listed fails with EPERM, as for a user without the right: a library that asks
//! for more than it needs continues without.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use crate::Extra;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// With any arguments.
const ALLOWED: &[i64] = &[
    // Open files.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_lseek,
    libc::SYS_close,
    // Only possible for files open for writing; inputs are not.
    libc::SYS_ftruncate,
    libc::SYS_fstat,
    libc::SYS_dup,
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    // Memory.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    // Threads, and their ends.
    libc::SYS_futex,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_restart_syscall,
    // Signals to itself: a stack for overflows, and handlers.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    // Time and random numbers.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
];

/// Is it a terminal (as older and newer C libraries ask), and how wide is it? The numbers are those
/// of asm-generic/ioctls.h, shared by all architectures that seccompiler supports.
const TERMINAL_QUESTIONS: [u64; 3] = [0x5401, 0x802c_542a, 0x5413];

/// For connections to a listening socket: accepting, reading and shutting down.
const SERVING: &[i64] = &[libc::SYS_accept4, libc::SYS_recvfrom, libc::SYS_shutdown];

/// `extra` also allows opening files for reading, or accepting connections.
pub(crate) fn restrict(extra: Extra) -> Result<(), String> {
    let filters = filters(extra).map_err(|error| error.to_string())?;
    filters.iter().try_for_each(|filter| seccompiler::apply_filter(filter).map_err(|error| error.to_string()))
}

fn filters(extra: Extra) -> Result<[BpfProgram; 2], seccompiler::BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let errno = |errno: i32| SeccompAction::Errno(errno as u32);
    // Its arguments are in memory, where no filter sees them. With this error the C library uses
    // clone instead.
    let without_clone3 = SeccompFilter::new(
        Rules::from([(libc::SYS_clone3, vec![])]),
        SeccompAction::Allow,
        errno(libc::ENOSYS),
        arch,
    )?;
    let allowed = SeccompFilter::new(rules(extra)?, errno(libc::EPERM), SeccompAction::Allow, arch)?;
    Ok([without_clone3.try_into()?, allowed.try_into()?])
}

/// Flags of opening for writing: `O_TMPFILE` contains the bit of `O_DIRECTORY`, which is harmless.
const NOT_FOR_READING: i32 =
    libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | (libc::O_TMPFILE & !libc::O_DIRECTORY);

fn rules(extra: Extra) -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = ALLOWED.iter().map(|call| (*call, vec![])).collect();
    let argument = |index, op, value: u64| SeccompCondition::new(index, Len::Dword, op, value);
    let one_of = |index, values: &[u64]| {
        let rules = values.iter().map(|value| SeccompRule::new(vec![argument(index, Op::Eq, *value)?]));
        rules.collect::<Result<Vec<_>, _>>()
    };
    let bits = |index, mask: i32, wanted: i32| {
        SeccompRule::new(vec![argument(index, Op::MaskedEq(mask as u64), wanted as u64)?])
            .map(|rule| vec![rule])
    };
    // Threads, but no processes.
    rules.insert(libc::SYS_clone, bits(0, libc::CLONE_THREAD, libc::CLONE_THREAD)?);
    rules.insert(libc::SYS_clone3, vec![]);
    // No memory becomes executable.
    rules.insert(libc::SYS_mmap, bits(2, libc::PROT_EXEC, 0)?);
    rules.insert(libc::SYS_mprotect, bits(2, libc::PROT_EXEC, 0)?);
    // TIOCSTI would type into the terminal.
    rules.insert(libc::SYS_ioctl, one_of(1, &TERMINAL_QUESTIONS)?);
    let fcntls = [libc::F_DUPFD_CLOEXEC, libc::F_GETFD, libc::F_GETFL].map(|what| what as u64);
    rules.insert(libc::SYS_fcntl, one_of(1, &fcntls)?);
    rules.insert(libc::SYS_prctl, one_of(0, &[libc::PR_SET_NAME as u64])?);
    if extra == Extra::Serving {
        rules.extend(SERVING.iter().map(|call| (*call, vec![])));
        // Only to the connected peer, and to no other address.
        rules.insert(
            libc::SYS_sendto,
            vec![SeccompRule::new(vec![SeccompCondition::new(4, Len::Qword, Op::Eq, 0)?])?],
        );
        let times = [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO].map(|option| {
            SeccompRule::new(vec![
                argument(1, Op::Eq, libc::SOL_SOCKET as u64)?,
                argument(2, Op::Eq, option as u64)?,
            ])
        });
        rules.insert(libc::SYS_setsockopt, times.into_iter().collect::<Result<_, _>>()?);
    }
    if extra == Extra::Opening {
        rules.insert(libc::SYS_openat, bits(2, NOT_FOR_READING, 0)?);
        #[cfg(target_arch = "x86_64")]
        rules.insert(libc::SYS_open, bits(1, NOT_FOR_READING, 0)?);
        for call in [libc::SYS_newfstatat, libc::SYS_statx] {
            rules.insert(call, vec![]);
        }
    }
    // How a panic aborts.
    rules.insert(libc::SYS_tgkill, one_of(0, &[u64::from(std::process::id())])?);
    Ok(rules)
}

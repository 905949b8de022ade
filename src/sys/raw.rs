//! Unsafe code of system calls: what rustix leaves out. (The allocator and the copying of bytes
//! have files of their own, heap.rs and mem.rs; there is none elsewhere.)
//!
//! Every block says why it is sound. Nothing here keeps state.
#![allow(unsafe_code)]

use crate::model::job::Usage;
use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// The result of `wait4` about a child.
#[derive(Clone, Debug, PartialEq)]
pub struct Reaped {
    pub pid: u32,
    /// Raw wait status.
    pub status: i32,
    /// The resource use of the process and of the children it waited for.
    pub usage: Usage,
}

/// Puts /dev/null, opened for reading alone, in the place of each standard descriptor that is
/// closed. Without this the runtime of Rust puts one there that takes every output, and what
/// the task of `blaunch HOST task >&-` writes is lost with exit code 0.
extern "C" fn fill_standard_descriptors() {
    use rustix::fs::{Mode, OFlags};
    use rustix::stdio::{stderr, stdin, stdout};
    for fd in [stdin(), stdout(), stderr()] {
        if rustix::io::fcntl_getfd(fd) != Err(rustix::io::Errno::BADF) {
            continue;
        }
        // it gets the lowest free number, which is this one: those below are open
        let null = rustix::fs::open("/dev/null", OFlags::RDONLY, Mode::empty());
        let _ = null.map(std::os::fd::IntoRawFd::into_raw_fd);
    }
}

// SAFETY: the start-up code of the C library calls each pointer in this section once, before
// `main` and its threads; the function needs nothing that is set up later.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = fill_standard_descriptors;

fn check(r: libc::c_int) -> io::Result<()> {
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reaps one child with its resource usage. `pid` as for waitpid(2). `None`: with `hang` false,
/// none has ended yet.
pub fn wait4(pid: i32, hang: bool) -> io::Result<Option<Reaped>> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers; all zeroes is a valid value.
    let mut ru: libc::rusage = unsafe { std::mem::zeroed() };
    let flags = if hang { 0 } else { libc::WNOHANG };
    let got = loop {
        // SAFETY: both pointers are to live locals of the right type for the call's duration.
        let got = unsafe { libc::wait4(pid, &mut status, flags, &mut ru) };
        if got >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break got;
        }
    };
    check(got)?;
    if got == 0 {
        return Ok(None);
    }
    let us = |t: libc::timeval| t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64;
    let usage = Usage {
        utime_us: us(ru.ru_utime),
        stime_us: us(ru.ru_stime),
        max_mem_kb: ru.ru_maxrss as u64,
        minflt: ru.ru_minflt as u64,
        majflt: ru.ru_majflt as u64,
        inblock: ru.ru_inblock as u64,
        oublock: ru.ru_oublock as u64,
        nvcsw: ru.ru_nvcsw as u64,
        nivcsw: ru.ru_nivcsw as u64,
        ..Usage::default()
    };
    Ok(Some(Reaped { pid: got as u32, status, usage }))
}

/// Takes a write lock on the whole of an open file, at once; it is let go when the last
/// descriptor of this opening is closed. `false`: somebody else has it. Kernels before 3.15 have
/// no such lock of fcntl's: flock's is taken there.
pub fn lock_whole_file(fd: BorrowedFd<'_>) -> io::Result<bool> {
    // SAFETY: flock is plain numbers; all zeroes is a valid value (from the start to the end).
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: the descriptor is open and the pointer is to a live flock for the call's duration.
    let got = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_OFD_SETLK, &lock) });
    let Err(e) = got else { return Ok(true) };
    match e.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        Some(libc::EINVAL) => {
            match rustix::fs::flock(fd, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => Ok(true),
                Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
                Err(e) => Err(e.into()),
            }
        }
        _ => Err(e),
    }
}

/// Sets the supplementary groups of the process.
pub fn setgroups(groups: &[u32]) -> io::Result<()> {
    // SAFETY: gid_t is u32 on Linux; pointer and length describe the live slice.
    check(unsafe { libc::setgroups(groups.len(), groups.as_ptr()) })
}

/// Sets real, effective and saved gid.
pub fn setresgid(gid: u32) -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::setresgid(gid, gid, gid) })
}

/// Sets real, effective and saved uid.
pub fn setresuid(uid: u32) -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::setresuid(uid, uid, uid) })
}

/// Real, effective and saved uid.
pub fn getresuid() -> io::Result<(u32, u32, u32)> {
    let (mut r, mut e, mut s) = (0, 0, 0);
    // SAFETY: three pointers to live locals.
    check(unsafe { libc::getresuid(&mut r, &mut e, &mut s) })?;
    Ok((r, e, s))
}

/// Real, effective and saved gid.
pub fn getresgid() -> io::Result<(u32, u32, u32)> {
    let (mut r, mut e, mut s) = (0, 0, 0);
    // SAFETY: three pointers to live locals.
    check(unsafe { libc::getresgid(&mut r, &mut e, &mut s) })?;
    Ok((r, e, s))
}

/// The supplementary groups of the process.
pub fn getgroups() -> io::Result<Vec<u32>> {
    // SAFETY: a zero size asks for the count and writes nothing.
    let n = unsafe { libc::getgroups(0, std::ptr::null_mut()) };
    check(n)?;
    let mut out = vec![0u32; n as usize];
    // SAFETY: the buffer holds n gid_t.
    let n = unsafe { libc::getgroups(n, out.as_mut_ptr()) };
    check(n)?;
    out.truncate(n as usize);
    Ok(out)
}

/// Puts one signal to its default action or to be ignored.
pub fn set_signal(signal: i32, ignore: bool) -> io::Result<()> {
    let how = if ignore { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: neither disposition runs code of ours.
    let got = unsafe { libc::signal(signal, how) };
    if got == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lets bind(2) fix a source address and leave the port to connect(2), so that ports are shared
/// between destinations (Linux 4.2 and later).
pub fn bind_address_no_port(fd: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: pointer and length describe the live local.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            std::ptr::from_ref(&on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    })
}

/// How long the peer of a TCP connection has been silent: its system sent neither data nor an
/// acknowledgement.
pub fn tcp_silence(fd: BorrowedFd<'_>) -> io::Result<Duration> {
    // struct tcp_info: eight bytes, then numbers of four; the twelfth and the thirteenth are the
    // milliseconds since data and since an acknowledgement came in
    let mut info = [0u32; 16];
    let mut len = size_of_val(&info) as libc::socklen_t;
    // SAFETY: pointer and length describe the live local; the kernel writes at most that length.
    check(unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &mut len,
        )
    })?;
    if (len as usize) < size_of_val(&info) {
        return Err(io::Error::from(io::ErrorKind::Unsupported));
    }
    Ok(Duration::from_millis(u64::from(info[13].min(info[14]))))
}

/// Takes over a descriptor that was handed on through exec. An error where it is not open.
pub fn inherited_fd(fd: i32) -> io::Result<OwnedFd> {
    // SAFETY: F_SETFD changes a flag and fails on a number that is no descriptor.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: it is open, and whoever called exec gave it up to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Marks every descriptor from `first` up to be closed by exec.
pub fn cloexec_from(first: u32) -> io::Result<()> {
    let (most, how) = (libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    // SAFETY: changes flags of descriptors, closes none.
    if unsafe { libc::syscall(libc::SYS_close_range, first, most, how) } == 0 {
        return Ok(());
    }
    // kernels before 5.11
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        let Some(fd) = name.to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
        if fd >= first {
            // SAFETY: changes a flag; the directory's own descriptor is among them, harmlessly.
            unsafe { libc::fcntl(fd as i32, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
    Ok(())
}

/// Closes every descriptor from `first` up. Only for a process that has just begun: nothing that it
/// has opened itself may be among them.
pub fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: closes what nothing in this process owns, as the caller promises.
    if unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) } == 0 {
        return Ok(());
    }
    // kernels before 5.9
    let entries = std::fs::read_dir("/proc/self/fd")?.flatten().map(|e| e.file_name());
    let fds: Vec<i32> = entries.filter_map(|name| name.to_str()?.parse().ok()).collect();
    for fd in fds.into_iter().filter(|fd| *fd as u32 >= first) {
        // SAFETY: as above; that of the directory is closed by now.
        unsafe { libc::close(fd) };
    }
    Ok(())
}

fn sigset(signals: &[i32]) -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the zeroed set; sigaddset gets the initialised set.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for &s in signals {
            libc::sigaddset(&mut set, s);
        }
        set
    }
}

/// The words' addresses, with null at the end.
fn pointers(words: &[CString]) -> Vec<*const libc::c_char> {
    words.iter().map(|w| w.as_ptr()).chain(std::iter::once(std::ptr::null())).collect()
}

/// Becomes another program, with every signal taken as usual; returns only with the reason why
/// not.
pub fn execve(program: &CStr, argv: &[CString], env: Vec<CString>) -> io::Error {
    let (argv, list) = (pointers(argv), pointers(&env));
    if let Err(e) = set_signal(libc::SIGPIPE, false).and(unblock_signals()) {
        return e;
    }
    // SAFETY: both lists end with null, and what they point to lives until the call returns.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), list.as_ptr()) };
    io::Error::last_os_error()
}

/// Starts a program as a child with no signal blocked and none ignored, whatever this process
/// blocks; its descriptors 0, 1 and 2 are these; `dir`: it begins there; `group`: it leads a
/// process group of its own. Nothing of this process is copied, as it would be by fork.
pub fn spawn(
    program: &CStr,
    argv: &[CString],
    env: &[CString],
    stdio: [BorrowedFd<'_>; 3],
    dir: Option<&CStr>,
    group: bool,
) -> io::Result<u32> {
    let done = |e: libc::c_int| if e == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(e)) };
    let (argv, env) = (pointers(argv), pointers(env));
    let (mut all, none) = (sigset(&[]), sigset(&[]));
    let (mut pid, mut attr, mut files) = (0, MaybeUninit::zeroed(), MaybeUninit::zeroed());
    // SAFETY: the set, the attributes and the actions are initialised here before they are used;
    // the last two are destroyed below, after their only use.
    unsafe {
        libc::sigfillset(&mut all);
        done(libc::posix_spawnattr_init(attr.as_mut_ptr()))?;
        done(libc::posix_spawn_file_actions_init(files.as_mut_ptr()))?;
    }
    let (attr, files) = (attr.as_mut_ptr(), files.as_mut_ptr());
    // its number is 0 by default: the child's own
    let group = if group { libc::POSIX_SPAWN_SETPGROUP } else { 0 };
    let flags = libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF | group;
    // SAFETY: everything pointed to is initialised, alive until the call returns, and of the
    // right type; both lists end with null. A descriptor that is its own target stays open.
    let started = unsafe {
        done(libc::posix_spawnattr_setflags(attr, flags as libc::c_short))
            .and_then(|()| done(libc::posix_spawnattr_setsigmask(attr, &none)))
            .and_then(|()| done(libc::posix_spawnattr_setsigdefault(attr, &all)))
            .and_then(|()| {
                (0..).zip(stdio).try_for_each(|(to, from)| {
                    done(libc::posix_spawn_file_actions_adddup2(files, from.as_raw_fd(), to))
                })
            })
            .and_then(|()| match dir {
                Some(dir) => done(libc::posix_spawn_file_actions_addchdir_np(files, dir.as_ptr())),
                None => Ok(()),
            })
            .and_then(|()| {
                let (argv, env) = (argv.as_ptr().cast(), env.as_ptr().cast());
                done(libc::posix_spawn(&mut pid, program.as_ptr(), files, attr, argv, env))
            })
    };
    // SAFETY: both were initialised above and are not used again.
    unsafe {
        libc::posix_spawn_file_actions_destroy(files);
        libc::posix_spawnattr_destroy(attr);
    }
    started.map(|()| pid as u32)
}

/// Has this process take signals as a program expects them that is started by hand: none ignored
/// but SIGPIPE, none blocked but these. A daemon inherits both from who started it.
pub fn begin_signals(blocked: &[i32]) -> io::Result<()> {
    let fixed = [libc::SIGKILL, libc::SIGPIPE, libc::SIGSTOP];
    // those between are the C library's own
    for signal in (1..=31).chain(35..=64).filter(|s| !fixed.contains(s)) {
        set_signal(signal, false)?;
    }
    let set = sigset(blocked);
    // SAFETY: the set is initialised, the old mask is not asked for.
    let e = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &set, std::ptr::null_mut()) };
    if e == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(e)) }
}

/// How a process takes memory of NUMA nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryMode {
    /// One of the nodes goes first.
    PreferOne,
    /// No other node serves.
    Only,
    /// The nodes go before all others.
    PreferAny,
}

/// Has this process, and what it becomes, take memory of these NUMA nodes: bits, the lowest first.
pub fn set_memory_policy(mode: MemoryMode, nodes: &[u64]) -> io::Result<()> {
    // MPOL_PREFERRED, MPOL_BIND, MPOL_PREFERRED_MANY
    let mode: libc::c_int = match mode {
        MemoryMode::PreferOne => 1,
        MemoryMode::Only => 2,
        MemoryMode::PreferAny => 5,
    };
    // the kernel reads one bit fewer than it is told
    let bits = nodes.len() * u64::BITS as usize + 1;
    // SAFETY: the kernel reads as many bits as the slice has, which lives for the call's duration.
    let done = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, nodes.as_ptr(), bits) };
    check(done as libc::c_int)
}

/// Has the orphans among the descendants of this process become its children, not those of init.
/// Kept over exec; a child does not inherit it.
pub fn adopt_orphans() -> io::Result<()> {
    // SAFETY: takes numbers only.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })
}

/// Arguments of clone3(2), of the second version of its structure and with the group of the third.
#[repr(C, align(8))]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Makes a copy as [`fork_beside`] does, which begins in the control group of this directory. An
/// error where the kernel cannot (before 5.7, or forbidden by a filter).
pub fn fork_beside_in(group: BorrowedFd<'_>) -> io::Result<u32> {
    /// CLONE_INTO_CGROUP, which does not fit the type of the constants in libc.
    const INTO_CGROUP: u64 = 1 << 33;
    let arguments = CloneArguments {
        // with CLONE_PARENT the signal at its end is that of this process: SIGCHLD
        flags: INTO_CGROUP | libc::CLONE_PARENT as u64,
        cgroup: group.as_raw_fd() as u64,
        ..CloneArguments::default()
    };
    let size = size_of::<CloneArguments>();
    // SAFETY: the structure lives during the call and is as large as told; without memory or stack
    // of its own the copy is like that of fork(2).
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size) };
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid as u32) }
}

/// Makes a copy of this process that is a child of its parent, not of itself; 0 in the copy.
/// Only for a process of one thread: what others hold locked would stay so in the copy.
pub fn fork_beside() -> io::Result<u32> {
    let how = libc::c_long::from(libc::CLONE_PARENT | libc::SIGCHLD);
    // SAFETY: like fork(2), without memory or stack of its own; numbers only. The thread ID that
    // the C library remembers is wrong in the copy, which starts no thread.
    let pid = unsafe { libc::syscall(libc::SYS_clone, how, 0, 0, 0, 0) };
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid as u32) }
}

/// Unblocks every signal in this thread.
pub fn unblock_signals() -> io::Result<()> {
    let set = sigset(&[]);
    // SAFETY: the set is initialised, the old mask is not asked for.
    let e = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &set, std::ptr::null_mut()) };
    if e == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(e)) }
}

/// Makes a child the foreground process group of the terminal that is its standard input, before it
/// becomes its program, so that no key reaches another process; then it unblocks all signals. The
/// caller must have blocked them: the kernel would stop a process that is not in the foreground
/// yet.
pub fn in_front(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt;
    let front = || {
        // fails only where that is no terminal of the session
        let _ = rustix::termios::tcsetpgrp(rustix::stdio::stdin(), rustix::process::getpid());
        unblock_signals()
    };
    // SAFETY: system calls alone; nothing is allocated or locked in the child.
    unsafe { command.pre_exec(front) };
}

/// The signals that a thread blocks.
#[derive(Clone, Copy)]
pub struct SignalMask(libc::sigset_t);

impl SignalMask {
    /// This thread's.
    pub fn now() -> io::Result<SignalMask> {
        let mut set = sigset(&[]);
        // SAFETY: no new set is given; the old one is written to a live local.
        let e = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut set) };
        if e == 0 { Ok(SignalMask(set)) } else { Err(io::Error::from_raw_os_error(e)) }
    }
}

/// Has a child block these signals; it would block those of its parent.
pub fn with_mask(command: &mut std::process::Command, mask: SignalMask) {
    use std::os::unix::process::CommandExt;
    let begin = move || {
        // SAFETY: the set is initialised, the old mask is not asked for.
        let e = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &mask.0, std::ptr::null_mut()) };
        if e == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(e)) }
    };
    // SAFETY: system calls alone; nothing is allocated or locked in the child.
    unsafe { command.pre_exec(begin) };
}

/// Has the kernel kill a child when this thread ends, however that ends.
pub fn die_with_parent(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt;
    let parent = std::process::id() as i32;
    let begin = move || {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // the parent may have ended before that
        let now = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
        if now == parent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    };
    // SAFETY: system calls alone; nothing is allocated or locked in the child.
    unsafe { command.pre_exec(begin) };
}

/// Signals read as data: blocks them in this thread (and those it starts) and opens a
/// descriptor that tells of them.
#[derive(Debug)]
pub struct SignalFd(OwnedFd);

/// A signal that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signalled {
    pub signal: i32,
    /// The process that has sent it; `None`: the kernel, as for a terminal.
    pub sender: Option<u32>,
}

impl SignalFd {
    pub fn new(signals: &[i32]) -> io::Result<Self> {
        let set = sigset(signals);
        // SAFETY: the set is initialised, the old mask is not asked for.
        let e = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
        if e != 0 {
            return Err(io::Error::from_raw_os_error(e));
        }
        // SAFETY: -1 makes a new descriptor; the set is initialised.
        let fd = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        check(fd)?;
        // SAFETY: signalfd has just returned this descriptor to us alone.
        Ok(SignalFd(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The next signal, if one is due.
    pub fn take(&self) -> io::Result<Option<i32>> {
        Ok(self.take_from()?.map(|signalled| signalled.signal))
    }

    /// The next signal, if one is due, with its sender.
    pub fn take_from(&self) -> io::Result<Option<Signalled>> {
        let mut info = [0u8; std::mem::size_of::<libc::signalfd_siginfo>()];
        match rustix::io::read(&self.0, &mut info) {
            Ok(n) if n == info.len() => {
                // ssi_signo, ssi_errno, ssi_code and ssi_pid are its first fields, of 4 bytes each.
                let field = |at: usize| {
                    i32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]])
                };
                // only a process has a code that is not positive
                let process = field(8) <= 0;
                let sender = u32::try_from(field(12)).ok().filter(|pid| process && *pid != 0);
                Ok(Some(Signalled { signal: field(0), sender }))
            }
            Ok(_) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    pub fn fd(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_reaped_with_its_usage() {
        let child = std::process::Command::new("/bin/sh")
            .args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 7"])
            .spawn()
            .unwrap();
        let got = wait4(child.id() as i32, true).unwrap().unwrap();
        assert_eq!((got.pid, got.status), (child.id(), 7 << 8));
        assert!(got.usage.cpu_secs() > 0.0 && got.usage.max_mem_kb > 100);
        assert!(wait4(child.id() as i32, false).is_err());
    }

    #[test]
    fn ids_are_read_back() {
        let (r, e, s) = getresuid().unwrap();
        assert_eq!((r, e), (s, s));
        assert_eq!(e, crate::sys::euid());
        assert_eq!(getresgid().unwrap().1, rustix::process::getegid().as_raw());
        assert!(getgroups().is_ok());
        assert!(e == 0 || setresuid(0).is_err());
    }

    #[test]
    fn signals_are_read_as_data() {
        std::thread::spawn(|| {
            let s = SignalFd::new(&[libc::SIGUSR2]).unwrap();
            assert_eq!(s.take().unwrap(), None);
            // SAFETY: raises a signal that this thread blocks.
            unsafe { libc::raise(libc::SIGUSR2) };
            assert_eq!(s.take().unwrap(), Some(libc::SIGUSR2));
            assert_eq!(s.take().unwrap(), None);
        })
        .join()
        .unwrap();
    }
}

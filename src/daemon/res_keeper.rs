//! The keeper of res: a process that holds a second copy of the descriptors of res's tasks, and
//! hands them to the next res, so that the end of a res, killed or replaced by a newer program, is
//! not the end of the tasks. res starts it with its first task; it is of res's user and knows
//! nothing but this file's packets, so the launcher, which is root, need not take part.
//!
//! Invariants: one res at a time; a res that comes back gets everything before anything is taken
//! from it; a descriptor that res lets go of is let go of here, else a task would never see the end
//! of its input; without a res the keeper ends after [`ALONE`], at once where it holds nothing, and
//! the tasks see that all their ends are closed.

use crate::net::sock::{self, recv_fds, send_fds};
use crate::proto::launch::TaskId;
use crate::proto::res::KeptTask;
use crate::res::TASKS_MAX;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// The name of the process.
pub const NAME: &str = "reskeeper";
/// The path of the socket, below the directory of run-time files.
pub const SOCKET: &str = "authd/reskeeper";
/// Longest packet, bytes; a directory or command of a task may need six for each of its own.
pub(super) const PACKET_MAX: usize = 32 << 10;
/// How long the next res may take to come.
const ALONE: Duration = Duration::from_secs(30);
/// How long a res may take to read what it is given.
const SLOW: Duration = Duration::from_secs(5);

/// The place of a descriptor in a task. A terminal has its master in the place of the output, and
/// the way to the leader of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum EndSlot {
    Input,
    Output,
    Errors,
    Control,
    /// A file with the numbers of `TaskProgress`.
    Progress,
}

/// The packets between res and its keeper, each with the descriptors that it names.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum KeeperPacket {
    /// Keep these; to a res: these were kept.
    Keep { task: Box<KeptTask>, slots: Vec<EndSlot> },
    /// Let go of a descriptor.
    Close { task: TaskId, slot: EndSlot },
    /// Let go of a task.
    Forget { task: TaskId },
    /// To a res that has come back: that was all.
    End,
    /// Answer with this number, once all before is done. One of an older release does not.
    Ask { number: u64 },
    /// To res: all before its question of this number is done.
    Done { number: u64 },
}

/// Sends a packet. Never blocks.
pub(super) fn send(to: &OwnedFd, packet: &KeeperPacket, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = serde_json::to_vec(packet)?;
    if bytes.len() > PACKET_MAX {
        return Err(io::Error::other("a packet for the keeper is too long"));
    }
    send_fds(to, &bytes, fds)
}

/// Receives a packet; `None`: the other side is gone. Never blocks.
pub(super) fn receive(
    from: &OwnedFd,
    room: &mut [u8],
) -> io::Result<Option<(KeeperPacket, Vec<OwnedFd>)>> {
    match recv_fds(from, room) {
        Ok((0, _)) => Ok(None),
        Ok((len, fds)) => Ok(Some((serde_json::from_slice(&room[..len])?, fds))),
        Err(e) => Err(e),
    }
}

/// Waits until a descriptor is ready; whether it is.
pub(super) fn wait_for(fd: &OwnedFd, flags: PollFlags, time: Duration) -> io::Result<bool> {
    let time = Timespec::try_from(time).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(fd, flags)], Some(&time)) {
        Err(rustix::io::Errno::INTR) => Ok(false),
        got => Ok(got? > 0),
    }
}

/// A task and its descriptors.
struct Held {
    task: Box<KeptTask>,
    ends: BTreeMap<EndSlot, OwnedFd>,
}

struct Keeper {
    listener: OwnedFd,
    /// The connection to res; without one, since when.
    res: Result<OwnedFd, Instant>,
    tasks: BTreeMap<TaskId, Held>,
}

/// Keeps the descriptors of the res at the other end of `res` and of those that come after it to
/// the socket at `path`, as long as there are any.
///
/// # Errors
/// `res` is no socket of a process of our own user; the other socket cannot be made.
pub fn serve(res: OwnedFd, path: &Path) -> io::Result<()> {
    // called by hand it does nothing
    sock::own_peer(res.as_fd())?;
    // the signals that res blocks are not for it to hear of
    crate::sys::raw::unblock_signals()?;
    rustix::process::chdir("/")?;
    let listener = sock::listen_packets(path)?;
    let mut me = Keeper { listener, res: Ok(res), tasks: BTreeMap::new() };
    let mut room = vec![0; PACKET_MAX];
    while me.turn(&mut room)? {}
    Ok(())
}

impl Keeper {
    /// Waits for one thing and does it; whether there is a reason to stay.
    fn turn(&mut self, room: &mut [u8]) -> io::Result<bool> {
        let since = match &self.res {
            Ok(res) => {
                if wait_for(res, PollFlags::IN, SLOW)? && !self.heard(room) {
                    self.res = Err(Instant::now());
                }
                return Ok(true);
            }
            Err(since) => *since,
        };
        let left = ALONE.saturating_sub(since.elapsed());
        if self.tasks.is_empty() || left.is_zero() {
            return Ok(false);
        }
        if wait_for(&self.listener, PollFlags::IN, left)? {
            let flags = rustix::net::SocketFlags::CLOEXEC | rustix::net::SocketFlags::NONBLOCK;
            let came = rustix::net::accept_with(&self.listener, flags)?;
            if sock::own_peer(came.as_fd()).is_ok() && self.hand_over(&came).is_ok() {
                self.res = Ok(came);
            }
        }
        Ok(true)
    }

    /// Takes what res has sent; whether it is still there.
    fn heard(&mut self, room: &mut [u8]) -> bool {
        loop {
            let Ok(res) = &self.res else { return false };
            match receive(res, room) {
                Ok(Some((packet, fds))) => self.take(packet, fds),
                Ok(None) => return false,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return true,
                // what cannot be read belongs to a res of another kind
                Err(e) if e.kind() == ErrorKind::InvalidData => {}
                Err(_) => return false,
            }
        }
    }

    fn take(&mut self, packet: KeeperPacket, fds: Vec<OwnedFd>) {
        match packet {
            // where descriptors are short, some did not come: a part of a task is of no use
            KeeperPacket::Keep { task, slots }
                if self.tasks.len() < TASKS_MAX && slots.len() == fds.len() =>
            {
                let ends = slots.into_iter().zip(fds).collect();
                self.tasks.insert(task.id, Held { task, ends });
            }
            KeeperPacket::Close { task, slot } => {
                if let Some(held) = self.tasks.get_mut(&task) {
                    held.ends.remove(&slot);
                }
            }
            KeeperPacket::Forget { task } => _ = self.tasks.remove(&task),
            KeeperPacket::Ask { number } => {
                if let Ok(res) = &self.res {
                    // a res that does not read asks no more, either
                    let _ = send(res, &KeeperPacket::Done { number }, &[]);
                }
            }
            KeeperPacket::Keep { .. } | KeeperPacket::End | KeeperPacket::Done { .. } => {}
        }
    }

    /// Gives a res that has come everything there is.
    fn hand_over(&self, res: &OwnedFd) -> io::Result<()> {
        for held in self.tasks.values() {
            let slots = held.ends.keys().copied().collect();
            let fds: Vec<BorrowedFd<'_>> = held.ends.values().map(AsFd::as_fd).collect();
            let task = held.task.clone();
            send_patiently(res, &KeeperPacket::Keep { task, slots }, &fds)?;
        }
        send_patiently(res, &KeeperPacket::End, &[])
    }
}

/// Sends to a res that may be slow to read.
fn send_patiently(res: &OwnedFd, packet: &KeeperPacket, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    loop {
        match send(res, packet, fds) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                if !wait_for(res, PollFlags::OUT, SLOW)? {
                    return Err(ErrorKind::TimedOut.into());
                }
            }
            done => return done,
        }
    }
}

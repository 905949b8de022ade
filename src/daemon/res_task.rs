//! The descriptors of one task of res: what it is given and what is taken from it, within its
//! credit, and noted for the next res.
//!
//! Invariants: no read goes beyond the task's credit; nothing here blocks.

use super::driver::ShellControl;
use super::res_keeper::EndSlot;
use super::res_kept::{KeeperLink, LeftTask, ProgressFile};
use crate::proto::Input;
use crate::proto::launch::TaskId;
use crate::proto::res::{DATA_MAX, Pty, TaskNews, TaskOp, TaskProgress};
use crate::sys::term;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;

/// The place of the way to the leader of a terminal's session among a task's tokens.
pub(super) const CONTROL: usize = 3;
/// The places of the outputs.
const OUTPUTS: [EndSlot; 2] = [EndSlot::Output, EndSlot::Errors];

/// The descriptors of one task.
#[derive(Default)]
pub(super) struct Task {
    pub(super) uid: u32,
    /// Empty once it was shown.
    pub(super) token: Vec<u8>,
    /// An interactive job that is not here yet.
    pub(super) awaited: Option<AwaitedJob>,
    pub(super) input: Option<File>,
    pub(super) outs: [Option<File>; 2],
    /// The way to the leader of a terminal's session.
    pub(super) control: Option<mio::net::UnixStream>,
    pub(super) pty: bool,
    pub(super) queue: VecDeque<InputBlock>,
    /// The bytes of the queue's first block that are written.
    pub(super) written: usize,
    pub(super) close_in: bool,
    /// The last input was not a whole line.
    pub(super) in_line: bool,
    /// The last of the queue is an end of input, which is not put there twice.
    pub(super) end_queued: bool,
    pub(super) allow: usize,
    pub(super) draining: bool,
    pub(super) progress: TaskProgress,
    /// The keeper knows the task by this.
    pub(super) kept: Option<(TaskId, ProgressFile)>,
    /// The descriptors that were closed and that the keeper is to close too.
    pub(super) closed: Vec<EndSlot>,
}

/// A piece of a task's input.
pub(super) struct InputBlock {
    bytes: Vec<u8>,
    /// The command has sent it; else the end of input of a terminal.
    sent: bool,
}

/// An interactive job for which a bsub waits, and that bsub's terminal.
pub(super) struct AwaitedJob {
    pub(super) job: u32,
    pub(super) pty: Option<Pty>,
}

pub(super) fn token(n: u64, slot: usize) -> usize {
    4 * n as usize + slot
}

pub(super) fn tell(shell: &mut ShellControl, n: u64, news: TaskNews) {
    shell.input(Input::Task { n, news });
}

impl Task {
    /// A task of the res before this one. Nothing is read from it before its command is back.
    pub(super) fn left(left: LeftTask) -> Task {
        let (id, uid, pty) = (left.task.id, left.task.uid, left.task.pty);
        let mut task = Task { uid, pty, ..Task::default() };
        for (slot, fd) in left.ends {
            match slot {
                EndSlot::Input => task.input = Some(File::from(fd)),
                EndSlot::Output => task.outs[0] = Some(File::from(fd)),
                EndSlot::Errors => task.outs[1] = Some(File::from(fd)),
                EndSlot::Control => {
                    let sock = std::os::unix::net::UnixStream::from(fd);
                    task.control = Some(mio::net::UnixStream::from_std(sock));
                }
                EndSlot::Progress => {
                    let file = ProgressFile::left(fd);
                    let unknown = TaskProgress { in_doubt: [true; 2], ..TaskProgress::default() };
                    task.progress = file.read().unwrap_or(unknown);
                    task.kept = Some((id, file));
                }
            }
        }
        if pty {
            task.input = task.outs[0].as_ref().and_then(|master| master.try_clone().ok());
        }
        task
    }

    pub(super) fn watch(&self, n: u64, shell: &mut ShellControl) -> io::Result<()> {
        let all = [&self.input, &self.outs[0], &self.outs[1]];
        for (slot, fd) in all.into_iter().enumerate().filter_map(|(s, f)| Some((s, f.as_ref()?))) {
            shell.watch(fd.as_fd(), token(n, slot), slot == 0)?;
        }
        match &self.control {
            Some(control) => shell.watch(control.as_fd(), token(n, CONTROL), false),
            None => Ok(()),
        }
    }

    /// Has the keeper close what was closed here.
    pub(super) fn tell_closed(&mut self, keeper: &mut KeeperLink) {
        let closed = std::mem::take(&mut self.closed);
        if let Some((id, _)) = &self.kept {
            closed.into_iter().for_each(|slot| keeper.close(*id, slot));
        }
    }

    /// Notes for the next res what was moved. `in_doubt`: the direction of what follows, in which
    /// this res may end.
    fn note_progress(&mut self, in_doubt: [bool; 2]) {
        if let Some((_, file)) = &self.kept {
            self.progress.in_doubt = in_doubt;
            // it is in memory
            let _ = file.write(&self.progress);
        }
    }

    pub(super) fn act(&mut self, n: u64, op: TaskOp, chunk: &mut [u8], shell: &mut ShellControl) {
        match op {
            TaskOp::Write(bytes) => {
                self.in_line = !bytes.ends_with(b"\n") && !bytes.ends_with(b"\r");
                // very many small ones take no more room than one
                let fits = |last: &&mut InputBlock| last.bytes.len() + bytes.len() <= DATA_MAX;
                match self.queue.back_mut().filter(fits) {
                    Some(last) if !self.end_queued => last.bytes.extend_from_slice(&bytes),
                    _ => self.queue.push_back(InputBlock { bytes, sent: true }),
                }
                self.end_queued = false;
                self.feed(n, shell);
            }
            TaskOp::CloseIn => {
                self.close_in = true;
                self.end_line();
                self.feed(n, shell);
            }
            TaskOp::Allow(more) => {
                self.allow += more;
                self.take(n, chunk, shell);
            }
            TaskOp::Close(port) => {
                let n = usize::from(port).wrapping_sub(1);
                if let Some(out) = self.outs.get_mut(n) {
                    *out = None;
                    self.closed.push(OUTPUTS[n]);
                }
            }
            TaskOp::Resize { rows, cols } => {
                if let Some(master) = self.outs[0].as_ref().filter(|_| self.pty) {
                    // a terminal that is gone has no size
                    let _ = term::set_size(master.as_fd(), (rows, cols));
                }
            }
            TaskOp::Continue => {
                if let Some(control) = &mut self.control {
                    let _ = control.write(b"c");
                }
            }
            TaskOp::Drain => {
                self.draining = true;
                self.take(n, chunk, shell);
            }
            TaskOp::Resume => {
                let progress = self.progress;
                self.note_progress([false; 2]);
                tell(shell, n, TaskNews::Resumed(progress));
            }
            TaskOp::Expect { .. }
            | TaskOp::ExpectJob { .. }
            | TaskOp::Forget
            | TaskOp::Keep(_)
            | TaskOp::Account(_) => {}
        }
    }

    /// Once there is a terminal, its input is not closed but told to end.
    pub(super) fn end_line(&mut self) {
        let Some(master) = self.outs[0].as_ref().filter(|_| self.pty && self.close_in) else {
            return;
        };
        let eof = term::eof(master.as_fd());
        // within a line the first only hands on what there is of it
        if self.queue.is_empty() || !self.end_queued {
            let bytes = vec![eof; if self.in_line { 2 } else { 1 }];
            self.queue.push_back(InputBlock { bytes, sent: false });
        }
        (self.in_line, self.close_in, self.end_queued) = (false, false, true);
    }

    /// Writes as much of a task's input as the task accepts.
    pub(super) fn feed(&mut self, n: u64, shell: &mut ShellControl) {
        // the doubt that an earlier res has left stays until the command has heard of it
        let moves = self.input.is_some() && !self.queue.is_empty();
        if moves {
            self.note_progress([true, false]);
        }
        let Some(input) = &mut self.input else { return };
        let mut wrote = 0;
        let gone = loop {
            let Some(first) = self.queue.front() else { break self.close_in };
            match input.write(&first.bytes[self.written..]) {
                Ok(some) => {
                    self.written += some;
                    wrote += some;
                    self.progress.written += if first.sent { some as u64 } else { 0 };
                    if self.written == first.bytes.len() {
                        self.queue.pop_front();
                        self.written = 0;
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => break false,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // nobody reads it: the command is not asked for more
                Err(_) => break true,
            }
        };
        if gone {
            self.input = None;
            self.queue.clear();
            if !self.pty {
                self.closed.push(EndSlot::Input);
            }
        }
        if moves {
            self.note_progress([false; 2]);
        }
        if wrote > 0 {
            tell(shell, n, TaskNews::Wrote(wrote));
        }
    }

    /// Takes what the task has put out, within its credit.
    pub(super) fn take(&mut self, n: u64, chunk: &mut [u8], shell: &mut ShellControl) {
        let mut dry = true;
        let moves = self.allow > 0 && self.outs.iter().any(Option::is_some);
        if moves {
            self.note_progress([false, true]);
        }
        for (i, slot) in self.outs.iter_mut().enumerate() {
            while let Some(out) = slot {
                if self.allow == 0 {
                    // without credit it is at its end where nothing waits in it
                    dry &= rustix::io::ioctl_fionread(&*out).is_ok_and(|waiting| waiting == 0);
                    break;
                }
                let most = chunk.len().min(self.allow);
                match out.read(&mut chunk[..most]) {
                    Ok(some) if some > 0 => {
                        self.allow -= some;
                        self.progress.read[i] += some as u64;
                        tell(shell, n, TaskNews::Read(i as u8 + 1, chunk[..some].to_vec()));
                    }
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    // its end; on a terminal an error
                    _ => {
                        *slot = None;
                        self.closed.push(OUTPUTS[i]);
                    }
                }
            }
        }
        if moves {
            self.note_progress([false; 2]);
        }
        if self.draining && dry {
            self.draining = false;
            tell(shell, n, TaskNews::Drained);
        }
    }

    pub(super) fn heard(&mut self, n: u64, shell: &mut ShellControl) {
        let Some(control) = &mut self.control else { return };
        let mut byte = [0u8; 16];
        while let Ok(some) = control.read(&mut byte) {
            if some == 0 {
                self.control = None;
                return;
            }
            tell(shell, n, TaskNews::Stopped);
        }
    }
}

//! Our own output, while it carries that of remote tasks: written without waiting, and in the order
//! in which it came.

use crate::sys::words;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::stdio;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A line up to this length stays whole among those of other tasks, bytes.
pub const LINE_MAX: usize = 8 << 10;
/// The names of our outputs, in the order of their descriptors.
pub(super) const OUTPUTS: [&str; 2] = ["standard output", "standard error"];
/// Bytes of a pipe that much goes through.
const PIPE: usize = 256 << 10;

/// Makes a pipe longer, so that its two ends meet less often; it works as it is, too.
pub(super) fn widen(fd: BorrowedFd<'_>) {
    if rustix::pipe::fcntl_getpipe_size(fd).is_ok_and(|n| n < PIPE) {
        let _ = rustix::pipe::fcntl_setpipe_size(fd, PIPE);
    }
}

/// One of our outputs.
pub(super) struct LocalOutput {
    pub(super) fd: OwnedFd,
    pub(super) queue: VecDeque<Vec<u8>>,
    /// The bytes of the queue's first block that are written.
    written: usize,
    pub(super) closed: bool,
    /// Why it takes no more, where that is not for want of a reader.
    failed: Option<Errno>,
    /// res knows the end of the input.
    pub(super) told: bool,
}

impl LocalOutput {
    /// A pipe or a terminal is opened anew, so that it can be written to without waiting and
    /// without a change to others who have it.
    pub(super) fn new(fd: BorrowedFd<'_>) -> io::Result<LocalOutput> {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode);
        let polled = matches!(kind, FileType::Fifo | FileType::CharacterDevice);
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
        // one that takes no output has none opened behind its back: it stands for a closed one
        let mode = rustix::fs::fcntl_getfl(fd)? & OFlags::ACCMODE;
        let polled = polled && mode != OFlags::RDONLY;
        let how = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let anew = rustix::fs::open(path, how, Mode::empty()).ok().filter(|_| polled);
        let fd = match anew {
            Some(fd) => fd,
            None => fd.try_clone_to_owned()?,
        };
        widen(fd.as_fd());
        let (queue, failed) = (VecDeque::new(), None);
        Ok(LocalOutput { fd, queue, written: 0, closed: false, failed, told: false })
    }

    /// Writes these bytes behind what waits; how much was done with.
    pub(super) fn put(&mut self, mut bytes: &[u8]) -> usize {
        let mut done = 0;
        while self.queue.is_empty() && !self.closed && !bytes.is_empty() {
            match rustix::io::write(&self.fd, bytes) {
                Ok(n) => {
                    bytes = &bytes[n..];
                    done += n;
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(e) => self.close(e),
            }
        }
        if self.closed {
            done += bytes.len();
        } else if !bytes.is_empty() {
            self.queue.push_back(bytes.to_vec());
        }
        done
    }

    /// Writes what can be written; how much left the queue.
    pub(super) fn flush(&mut self) -> usize {
        let mut done = 0;
        while let Some(first) = self.queue.front() {
            match rustix::io::write(&self.fd, &first[self.written..]) {
                Ok(n) => {
                    self.written += n;
                    done += n;
                    if self.written == first.len() {
                        self.queue.pop_front();
                        self.written = 0;
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(e) => {
                    // what nobody wants is done with: the host is given its credit back
                    done += self.queue.iter().map(Vec::len).sum::<usize>() - self.written;
                    self.queue.clear();
                    self.written = 0;
                    self.close(e);
                }
            }
        }
        done
    }

    fn close(&mut self, why: Errno) {
        self.closed = true;
        self.failed = Some(why).filter(|why| *why != Errno::PIPE);
    }

    /// Why what came was not written, in words, once; a reader that has gone wants no more.
    pub(super) fn take_failure(&mut self) -> Option<String> {
        self.failed.take().map(|why| words(&why.into()))
    }

    /// Bytes that are not written yet.
    pub(super) fn waiting(&self) -> usize {
        self.queue.iter().map(Vec::len).sum::<usize>() - self.written
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether it has no reader any more, which is told once.
    pub(super) fn take_closed(&mut self) -> bool {
        self.closed && !std::mem::replace(&mut self.told, self.closed)
    }
}

impl AsFd for LocalOutput {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Our standard output and standard error.
pub(super) fn local_outputs() -> io::Result<[LocalOutput; 2]> {
    Ok([LocalOutput::new(stdio::stdout())?, LocalOutput::new(stdio::stderr())?])
}

/// Hands on the whole lines of what a task has written, and keeps the beginning of the next one; a
/// line that is too long is not kept.
pub(super) fn whole_lines(begun: &mut Vec<u8>, bytes: &[u8], put: &mut dyn FnMut(&[u8])) {
    let last = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let (whole, rest) = bytes.split_at(last);
    if !whole.is_empty() {
        if begun.is_empty() {
            put(whole);
        } else {
            begun.extend_from_slice(whole);
            put(begun);
            begun.clear();
        }
    }
    begun.extend_from_slice(rest);
    if begun.len() > LINE_MAX {
        put(begun);
        begun.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_task_are_handed_on_whole() {
        let mut out: Vec<Vec<u8>> = Vec::new();
        let mut begun = Vec::new();
        for piece in [&b"a"[..], b"b\nc", b"d\n", b"e\nf\ng"] {
            whole_lines(&mut begun, piece, &mut |piece| out.push(piece.to_vec()));
        }
        assert_eq!(out, [&b"ab\n"[..], b"cd\n", b"e\nf\n"]);
        assert_eq!(begun, b"g");
        whole_lines(&mut begun, &vec![b'x'; LINE_MAX], &mut |piece| out.push(piece.to_vec()));
        assert_eq!((out[3].len(), begun.len()), (LINE_MAX + 1, 0));
    }
}

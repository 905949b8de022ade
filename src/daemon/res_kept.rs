//! res's side of its keeper (`super::res_keeper`): what is kept of each task, and what the res
//! before this one has left.
//!
//! Invariant: nothing here blocks but [`KeeperLink::inherit`], before res serves anybody. Where
//! there is no keeper, or it is lost, tasks go on and end with this res.

use super::res_keeper::{self, EndSlot, KeeperPacket, NAME, PACKET_MAX, SOCKET, receive, wait_for};
use crate::model::time::US;
use crate::net::sock;
use crate::proto::launch::TaskId;
use crate::proto::res::{KeptTask, TaskProgress};
use crate::sys::procs::Proc;
use crate::sys::{files, words};
use rustix::event::PollFlags;
use rustix::process::Signal;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long the keeper may take to hand over what it has.
const SLOW: Duration = Duration::from_secs(5);
/// Packets that wait for a keeper that does not read; one that is further behind is given up.
const BEHIND_MAX: usize = 1024;
/// How long the keeper may take to do what it is told, microseconds. A keeper that stands still
/// longer is ended: tasks do not see the end of their input while it holds the other end, too.
const STANDS_STILL: u64 = 5 * US;
/// Longest packet of a keeper to a res that it serves, bytes.
const ANSWER_MAX: usize = 128;

/// The way to the keeper.
pub(super) struct KeeperLink {
    path: PathBuf,
    sock: Option<OwnedFd>,
    /// Packets that the socket has no room for.
    waiting: VecDeque<(KeeperPacket, Vec<OwnedFd>)>,
    /// A keeper that this res has started.
    child: Option<Child>,
    /// The keeper of an earlier res.
    inherited: Option<Proc>,
    asks: Questions,
}

/// The questions to the keeper, by which it is known that it does what it is told.
#[derive(Default)]
struct Questions {
    /// The keeper was told something since the last question.
    due: bool,
    /// The number of the last question.
    number: u64,
    /// When that was asked; `None`: it is answered.
    since: Option<u64>,
    /// The keeper answers, unlike one of an older release.
    answers: bool,
}

/// A task that the res before this one has left.
pub(super) struct LeftTask {
    pub task: Box<KeptTask>,
    pub ends: Vec<(EndSlot, OwnedFd)>,
}

impl KeeperLink {
    /// Finds the keeper of the res before this one, if there is one, and takes what it has.
    pub(super) fn inherit(rundir: &Path) -> (KeeperLink, Vec<LeftTask>) {
        let path = rundir.join(SOCKET);
        let (waiting, asks) = (VecDeque::new(), Questions { due: true, ..Questions::default() });
        let mut link = KeeperLink { path, sock: None, waiting, child: None, inherited: None, asks };
        let mut left = Vec::new();
        let Ok(sock) = sock::dial_packets(&link.path) else { return (link, left) };
        link.inherited = peer(&sock);
        match take_all(&sock, &mut left) {
            Ok(()) => link.sock = Some(sock),
            Err(e) => {
                log::warn!("tasks of the last RES are lost: its keeper: {}", words(&e));
                left.clear();
                end_inherited(link.inherited.take());
            }
        }
        (link, left)
    }

    /// The connection, to be watched for writing.
    pub(super) fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.sock.as_ref().map(AsFd::as_fd)
    }

    /// Makes sure that there is a keeper; whether it was started now.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn ensure(&mut self) -> io::Result<bool> {
        if self.sock.is_some() {
            return Ok(false);
        }
        let (ours, theirs) = sock::packet_pair()?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0(NAME).arg(&self.path).env_clear().stdin(theirs);
        // a list of processes tells whose it is
        let named = ["LSF_ENVDIR", "LSF_LOCAL_HOST"].map(|name| (name, std::env::var_os(name)));
        command.envs(named.into_iter().filter_map(|(name, value)| Some((name, value?))));
        self.child = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        self.sock = Some(ours);
        self.asks = Questions { answers: true, ..Questions::default() };
        Ok(true)
    }

    /// Has a task kept; `false`: it is not.
    pub(super) fn keep(&mut self, task: Box<KeptTask>, ends: &[(EndSlot, BorrowedFd<'_>)]) -> bool {
        let slots = ends.iter().map(|end| end.0).collect();
        let fds: Vec<BorrowedFd<'_>> = ends.iter().map(|end| end.1).collect();
        self.send(KeeperPacket::Keep { task, slots }, &fds)
    }

    /// A descriptor of a task is not needed any more.
    pub(super) fn close(&mut self, task: TaskId, slot: EndSlot) {
        self.send(KeeperPacket::Close { task, slot }, &[]);
    }

    /// A task is over.
    pub(super) fn forget(&mut self, task: TaskId) {
        self.send(KeeperPacket::Forget { task }, &[]);
    }

    /// When a keeper that has not answered is given up.
    pub(super) fn deadline(&self) -> Option<u64> {
        let since = self.asks.since.filter(|_| self.asks.answers && self.sock.is_some())?;
        Some(since + STANDS_STILL)
    }

    /// Asks the keeper whether it has done what it was told; one that has been asked for too long
    /// is ended.
    pub(super) fn look(&mut self, now: u64) {
        let late = |link: &KeeperLink| link.deadline().is_some_and(|at| at <= now);
        // its answer may have come while we stood still ourselves
        if late(self) && self.ready() && late(self) {
            self.lost(&format!("it has stood still for {} seconds", STANDS_STILL / US));
        }
        if self.sock.is_some() && self.asks.due && self.asks.since.is_none() {
            self.asks.number += 1;
            if self.send(KeeperPacket::Ask { number: self.asks.number }, &[]) {
                (self.asks.since, self.asks.due) = (Some(now), false);
            }
        }
    }

    fn send(&mut self, packet: KeeperPacket, fds: &[BorrowedFd<'_>]) -> bool {
        self.asks.due = true;
        let Some(sock) = &self.sock else { return false };
        if self.waiting.is_empty() {
            match res_keeper::send(sock, &packet, fds) {
                Ok(()) => return true,
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => return self.lost(&words(&e)),
            }
        }
        if self.waiting.len() >= BEHIND_MAX {
            return self.lost("it does not read");
        }
        let copies = fds.iter().map(|fd| fd.try_clone_to_owned()).collect::<io::Result<_>>();
        match copies {
            Ok(copies) => self.waiting.push_back((packet, copies)),
            Err(e) => return self.lost(&words(&e)),
        }
        true
    }

    /// The keeper reads again, or is gone; `false`: it is gone.
    pub(super) fn ready(&mut self) -> bool {
        let Some(sock) = &self.sock else { return true };
        loop {
            match receive(sock, &mut [0; ANSWER_MAX]) {
                Ok(Some((KeeperPacket::Done { number }, _))) => {
                    self.asks.answers = true;
                    self.asks.since = self.asks.since.filter(|_| number != self.asks.number);
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                _ => return self.lost("it has ended"),
            }
        }
        while let Some((packet, fds)) = self.waiting.front() {
            let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
            match res_keeper::send(sock, packet, &fds) {
                Ok(()) => _ = self.waiting.pop_front(),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return true,
                Err(e) => return self.lost(&words(&e)),
            }
        }
        true
    }

    fn lost(&mut self, why: &str) -> bool {
        log::warn!("the keeper of RES: {why}; the tasks that run end with this RES");
        self.sock = None;
        (self.waiting, self.asks) = (VecDeque::new(), Questions::default());
        // one that does not read holds descriptors that tasks wait to see closed
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            // the kernel may take its time, in which res serves others
            std::thread::spawn(move || child.wait());
        }
        end_inherited(self.inherited.take());
        false
    }
}

/// The keeper at the other end of a connection that was dialled, which has listened there.
fn peer(sock: &OwnedFd) -> Option<Proc> {
    let (.., pid) = sock::peer_cred(sock.as_fd()).ok()?;
    Proc::of(pid).filter(|keeper| keeper.pid != std::process::id())
}

/// Ends the keeper of an earlier res, and no process that has its pid since.
fn end_inherited(keeper: Option<Proc>) {
    if let Some(keeper) = keeper {
        let _ = keeper.signal(Signal::KILL);
    }
}

fn take_all(sock: &OwnedFd, left: &mut Vec<LeftTask>) -> io::Result<()> {
    let mut room = vec![0; PACKET_MAX];
    loop {
        match receive(sock, &mut room) {
            Ok(Some((KeeperPacket::Keep { task, slots }, fds))) if slots.len() == fds.len() => {
                left.push(LeftTask { task, ends: slots.into_iter().zip(fds).collect() });
            }
            Ok(Some((KeeperPacket::End, _))) => return Ok(()),
            Ok(Some(_)) => {}
            Ok(None) => return Err(ErrorKind::UnexpectedEof.into()),
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                if !wait_for(sock, PollFlags::IN, SLOW)? {
                    return Err(ErrorKind::TimedOut.into());
                }
            }
            Err(e) => return Err(e),
        }
    }
}

/// The numbers of a [`TaskProgress`] in a file without a name, which is kept with the descriptors:
/// what the last res wrote there before it was killed is true.
pub(super) struct ProgressFile(File);

/// The length of the file, bytes: the doubts as bits, and the three numbers.
const PROGRESS: usize = 32;

impl ProgressFile {
    /// # Errors
    /// Errors of the system.
    pub(super) fn new(rundir: &Path, now: &TaskProgress) -> io::Result<ProgressFile> {
        let file = ProgressFile(files::unlinked(rundir, "res.progress")?);
        file.write(now)?;
        Ok(file)
    }

    /// The file that another res has left.
    pub(super) fn left(fd: OwnedFd) -> ProgressFile {
        ProgressFile(File::from(fd))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// # Errors
    /// Errors of the system.
    pub(super) fn write(&self, now: &TaskProgress) -> io::Result<()> {
        let mut bytes = [0; PROGRESS];
        let [input, output] = now.in_doubt.map(u64::from);
        let numbers = [input | output << 1, now.written, now.read[0], now.read[1]];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        self.0.write_all_at(&bytes, 0)
    }

    /// # Errors
    /// Errors of the system; the file is shorter.
    pub(super) fn read(&self) -> io::Result<TaskProgress> {
        let mut bytes = [0; PROGRESS];
        self.0.read_exact_at(&mut bytes, 0)?;
        let mut numbers = bytes.as_chunks::<8>().0.iter().map(|place| u64::from_le_bytes(*place));
        let mut next = || numbers.next().unwrap_or_default();
        let (doubt, written, read) = (next(), next(), [next(), next()]);
        Ok(TaskProgress { written, read, in_doubt: [doubt & 1 != 0, doubt & 2 != 0] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::JobKey;
    use crate::proto::launch::TaskStep;
    use std::io::{Read, Write};

    fn task(n: u32) -> Box<KeptTask> {
        let key = JobKey { job: n, idx: 1 << 31, attempt: 5 };
        Box::new(KeptTask {
            id: TaskId { key, step: TaskStep::Task },
            uid: 1001,
            user: "ann".into(),
            from_host: "h2".into(),
            pty: false,
            note: None,
            // the longest there is
            cwd: vec![0xff; crate::proto::res::KEPT_TEXT].into(),
            command: vec![0xff; crate::proto::res::KEPT_TEXT].into(),
        })
    }

    /// A keeper in a thread, and a link to it as of the res that has started it.
    fn keeper(name: &str) -> (KeeperLink, PathBuf, std::thread::JoinHandle<io::Result<()>>) {
        let dir = std::env::temp_dir().join(format!("lsf-keeper-{name}-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("authd")).unwrap();
        let path = dir.join(SOCKET);
        let (ours, theirs) = sock::packet_pair().unwrap();
        let serves = {
            let path = path.clone();
            std::thread::spawn(move || res_keeper::serve(theirs, &path))
        };
        let (sock, waiting, child) = (Some(ours), VecDeque::new(), None);
        let asks = Questions { answers: true, ..Questions::default() };
        (KeeperLink { path, sock, waiting, child, inherited: None, asks }, dir, serves)
    }

    #[test]
    fn next_res_gets_what_was_kept_and_not_closed() {
        let (mut link, dir, serves) = keeper("next");
        let mut readers = Vec::new();
        for n in 1..=300 {
            let (out_read, out_write) = io::pipe().unwrap();
            let (in_read, in_write) = io::pipe().unwrap();
            let progress = TaskProgress { written: n.into(), ..TaskProgress::default() };
            let progress = ProgressFile::new(&dir, &progress).unwrap();
            let ends = [
                (EndSlot::Input, in_write.as_fd()),
                (EndSlot::Output, out_read.as_fd()),
                (EndSlot::Progress, progress.fd()),
            ];
            assert!(link.keep(task(n), &ends));
            while !link.waiting.is_empty() {
                assert!(link.ready());
            }
            readers.push((in_read, out_write));
        }
        // res closes both of the input, and is done with the second task
        link.close(task(1).id, EndSlot::Input);
        link.forget(task(2).id);
        assert_eq!(readers[0].0.read(&mut [0; 8]).unwrap(), 0);
        // nobody reads its output any more, as soon as the keeper has taken that
        let until = std::time::Instant::now() + SLOW;
        while readers[1].1.write(b"x").is_ok() {
            assert!(std::time::Instant::now() < until, "somebody reads it");
            std::thread::sleep(Duration::from_millis(1));
        }
        readers[2].1.write_all(b"three").unwrap();
        drop(link);
        let (link, left) = KeeperLink::inherit(&dir);
        assert!(link.socket().is_some());
        let ids: Vec<u32> = left.iter().map(|left| left.task.id.key.job).collect();
        assert_eq!(ids, [1].into_iter().chain(3..=300).collect::<Vec<_>>());
        assert_eq!(left[0].task, task(1));
        for (at, mut left) in left.into_iter().enumerate().take(2) {
            let slots: Vec<EndSlot> = left.ends.iter().map(|end| end.0).collect();
            let (_, progress) = left.ends.pop().unwrap();
            let written = ProgressFile::left(progress).read().unwrap().written;
            if at == 0 {
                assert_eq!((slots, written), (vec![EndSlot::Output, EndSlot::Progress], 1));
            } else {
                let mut got = [0; 5];
                File::from(left.ends.pop().unwrap().1).read_exact(&mut got).unwrap();
                assert_eq!((&got, written), (b"three", 3));
            }
        }
        // what it holds goes when nobody comes; that is not waited for here
        drop(serves);
        drop(link);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    /// Takes what the keeper says until it has answered.
    fn answered(link: &mut KeeperLink) {
        let until = std::time::Instant::now() + SLOW;
        while link.asks.since.is_some() {
            assert!(link.ready() && std::time::Instant::now() < until);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn keeper_that_does_not_do_what_it_is_told_is_given_up() {
        let (mut link, dir, serves) = keeper("still");
        link.look(1);
        assert_eq!(link.deadline(), None, "it was told nothing");
        let (read, _write) = io::pipe().unwrap();
        assert!(link.keep(task(1), &[(EndSlot::Output, read.as_fd())]));
        link.look(1);
        assert_eq!(link.deadline(), Some(1 + STANDS_STILL));
        // one that has answered in time stays, however late that is seen
        std::thread::sleep(Duration::from_millis(200));
        link.look(2 + STANDS_STILL);
        assert!(link.socket().is_some() && link.deadline().is_none());
        drop(link);
        let (mut link, left) = KeeperLink::inherit(&dir);
        assert_eq!(left.len(), 1);
        // the next res asks first, as this may be one of an older release
        link.look(3);
        assert!(link.asks.since.is_some());
        answered(&mut link);
        link.forget(task(1).id);
        link.look(4);
        answered(&mut link);
        drop(link);
        serves.join().unwrap().unwrap();
        // one that reads nothing
        let (ours, theirs) = sock::packet_pair().unwrap();
        let (path, sock, waiting) = (dir.join(SOCKET), Some(ours), VecDeque::new());
        let asks = Questions { answers: true, ..Questions::default() };
        let mut link = KeeperLink { path, sock, waiting, child: None, inherited: None, asks };
        link.forget(task(1).id);
        link.look(1);
        link.look(STANDS_STILL);
        assert!(link.socket().is_some());
        link.look(1 + STANDS_STILL);
        assert!(link.socket().is_none() && link.deadline().is_none());
        drop(theirs);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn keeper_that_holds_nothing_ends_with_its_res() {
        let (mut link, dir, serves) = keeper("idle");
        let (read, _write) = io::pipe().unwrap();
        assert!(link.keep(task(1), &[(EndSlot::Output, read.as_fd())]));
        link.forget(task(1).id);
        drop(link);
        serves.join().unwrap().unwrap();
        let (link, left) = KeeperLink::inherit(&dir);
        assert!(link.socket().is_none() && left.is_empty());
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn keeper_that_is_called_by_hand_takes_no_file_away() {
        let path = std::env::temp_dir().join(format!("lsf-keeper-hand-{}", std::process::id()));
        std::fs::write(&path, "mine").unwrap();
        let null = OwnedFd::from(File::open("/dev/null").unwrap());
        assert!(res_keeper::serve(null, &path).is_err());
        let (_ours, theirs) = sock::packet_pair().unwrap();
        assert!(res_keeper::serve(theirs, &path).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn progress_is_read_as_it_was_written() {
        let all = TaskProgress { written: 1 << 40, read: [7, u64::MAX], in_doubt: [false, true] };
        let file = ProgressFile::new(&std::env::temp_dir(), &TaskProgress::default()).unwrap();
        assert_eq!(file.read().unwrap(), TaskProgress::default());
        file.write(&all).unwrap();
        assert_eq!(file.read().unwrap(), all);
    }
}

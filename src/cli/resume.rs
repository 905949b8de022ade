//! A command comes back to its task where the res of the task was killed or replaced: the next res
//! has the task's descriptors (`daemon::res_keeper`), and this file what the command needs to go on
//! with it (lsrun(1), blaunch(1)).
//!
//! Invariants: no byte of the input is lost or given twice where the last res knew what it had
//! given; output that the last res had taken and not sent is told.

use super::client::{self, Client, ClientError};
use super::site::LocalSite;
use crate::model::reason::err;
use crate::proto::Msg;
use crate::proto::launch::TaskId;
use crate::proto::res::{DATA_MAX, IN, ResMsg, TaskProgress, WINDOW};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a command tries to come back.
const TRY: Duration = Duration::from_secs(10);
/// Pause between two tries.
pub const AGAIN: Duration = Duration::from_millis(200);
/// How long a res may take to answer.
const ANSWER: Duration = Duration::from_secs(5);

/// The input of tasks that may have to be given once more, by its place in all of the input.
#[derive(Default)]
pub struct KeptInput {
    /// The place of the first byte that is kept.
    from: u64,
    bytes: VecDeque<u8>,
}

impl KeptInput {
    /// The bytes of all of the input.
    pub fn end(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }

    /// Keeps what is given to the tasks.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// The tasks have what comes before this place.
    pub fn forget_before(&mut self, place: u64) {
        let n = place.saturating_sub(self.from).min(self.bytes.len() as u64);
        self.bytes.drain(..n as usize);
        self.from += n;
    }

    /// The bytes from a place on; `None`: it is not kept.
    pub fn from(&self, place: u64) -> Option<Vec<u8>> {
        let skip = place.checked_sub(self.from).filter(|n| *n <= self.bytes.len() as u64)?;
        Some(self.bytes.range(skip as usize..).copied().collect())
    }
}

/// The facts that a command has of a task that outlives its res.
#[derive(Default)]
pub struct TaskThread {
    /// The task outlives its res, and is known by this.
    pub kept: Option<TaskId>,
    /// The bytes that have come of each output.
    pub got: [u64; 2],
}

impl TaskThread {
    /// Counts what has come of a port.
    pub fn count(&mut self, port: u8, bytes: &[u8]) {
        if let Some(got) = self.got.get_mut(usize::from(port).wrapping_sub(1)) {
            *got += bytes.len() as u64;
        }
    }
}

/// A connection to a res that was lost.
pub struct LostRes {
    until: Instant,
    next: Instant,
    pub why: ClientError,
}

/// The result of one try.
pub enum Tried {
    Resumed(Box<Resumed>),
    /// There may be a res later.
    Later,
    Gone,
}

/// A task that goes on.
pub struct Resumed {
    pub client: Client,
    /// Bytes of input that may still be sent.
    pub room: usize,
    /// The place in the input that the task has.
    pub written: u64,
    /// Whether some may have been lost: of the input, of the output.
    pub doubts: [bool; 2],
}

impl LostRes {
    /// The connection to the res of a task that is kept is lost; `None`: the task cannot go on.
    pub fn new(why: &ClientError, thread: &TaskThread) -> Option<LostRes> {
        thread.kept?;
        let ClientError::Lost(text) = why else { return None };
        let now = Instant::now();
        Some(LostRes { until: now + TRY, next: now, why: ClientError::Lost(text.clone()) })
    }

    /// When the next try is due.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Puts off the next try; whether there is time for one.
    pub fn put_off(&mut self) -> bool {
        self.next = Instant::now() + AGAIN;
        self.next <= self.until
    }

    /// Tries to come back, and gives the task the input that it has not got. `input`: what is kept
    /// of that; `ended`: it has ended.
    pub fn try_again(
        site: &LocalSite,
        host: &str,
        thread: &TaskThread,
        (input, ended): (&KeptInput, bool),
    ) -> Tried {
        let Some(task) = thread.kept else { return Tried::Gone };
        let asked = client::res_of(site, host).and_then(|mut client| {
            client.send(&Msg::Res(ResMsg::Resume { task }))?;
            let answer = client.next(Some(ANSWER))?;
            Ok((client, answer))
        });
        let (mut client, progress) = match asked {
            Ok((client, Msg::Res(ResMsg::Resumed(progress)))) => (client, progress),
            Err(ClientError::Refused(r)) if r.code != err::BUSY => return Tried::Gone,
            Ok(_) => return Tried::Gone,
            Err(_) => return Tried::Later,
        };
        let TaskProgress { written, read, in_doubt } = progress;
        let rest = input.from(written).filter(|rest| rest.len() <= WINDOW);
        let input_lost = rest.is_none() || in_doubt[0];
        let output_lost = in_doubt[1] || read.iter().zip(thread.got).any(|(took, got)| *took > got);
        let rest = rest.unwrap_or_default();
        let mut sent = rest.chunks(DATA_MAX).try_for_each(|piece| client.send_data(IN, piece));
        if ended {
            sent = sent.and_then(|()| client.send_data(IN, &[]));
        }
        if sent.is_err() {
            return Tried::Later;
        }
        let (room, doubts) = (WINDOW - rest.len(), [input_lost, output_lost]);
        Tried::Resumed(Box::new(Resumed { client, room, written, doubts }))
    }
}

impl Resumed {
    /// The message for input or output of which some may be missing.
    pub fn doubts(&self, command: &str, host: &str) -> String {
        let names = ["input", "output"].into_iter().zip(self.doubts);
        let doubtful = names.filter(|(_, doubt)| *doubt);
        doubtful.map(|(name, _)| format!("{command}: {host}: {name} may be incomplete\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_that_a_task_has_not_got_is_given_once_more() {
        let mut input = KeptInput::default();
        input.push(b"abcdef");
        assert_eq!((input.end(), input.from(2).unwrap()), (6, b"cdef".to_vec()));
        input.forget_before(4);
        input.push(b"gh");
        assert_eq!((input.end(), input.from(4).unwrap()), (8, b"efgh".to_vec()));
        assert_eq!(input.from(8).unwrap(), b"");
        // forgotten already, and never sent
        assert_eq!((input.from(3), input.from(9)), (None, None));
        input.forget_before(100);
        assert_eq!((input.end(), input.from(8).unwrap()), (8, b"".to_vec()));
    }
}

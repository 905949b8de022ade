//! Messages, frames and the contract between machines and runners.
//!
//! Every message of every connection is a variant of [`Msg`]; `client`, `sbd`, `launch`, `res`
//! and `lim` hold the bodies by who speaks to whom. A golden-bytes test pins their JSON.

pub mod caps;
pub mod client;
pub mod frame;
pub mod held;
pub mod launch;
pub mod lim;
pub mod machine;
pub mod res;
pub mod sbd;

pub use machine::{Daemon, Effect, Endpoint, Input, Keep, Machine, Peer};

use serde::{Deserialize, Serialize};

/// Lowest protocol version this build reads and writes.
pub const PROTO_LOW: u16 = 1;
/// Highest protocol version this build speaks. What is said before both ends have agreed, and
/// what is never agreed on (datagrams, Unix sockets), is of [`PROTO_LOW`].
pub const PROTO_HIGH: u16 = 1;

/// What [`high`] tells, in figures. Tests make a file of the next version of one of this by
/// changing them; who can do that to a file in use has no need to.
static SPOKEN: [u8; 20] = *b"lsf protocol up to 1";

/// [`PROTO_HIGH`] as the file that runs has it.
pub fn high() -> u16 {
    // not known before the program runs
    let digit = std::hint::black_box(&SPOKEN)[SPOKEN.len() - 1];
    u16::from(digit.wrapping_sub(b'0'))
}

/// What a daemon logs from now on (limdebug, mbdtime and their like); what is not there stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Logging {
    /// 0 as lsf.conf says, 1 debugging, 2 all.
    pub level: Option<u8>,
    /// Which turns are told with the time that they took: 0 none, 1 those of 0.1 s and more, each
    /// further level those ten times shorter, 5 all.
    pub timing: Option<u8>,
    /// The file is named FILE.DAEMON.log.HOST, in LSF_LOGDIR unless FILE has a directory; empty:
    /// as usual.
    pub file: Option<String>,
}

/// Any message on any authenticated connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Msg {
    /// A command and mbatchd.
    Client(client::ClientMsg),
    /// mbatchd and sbatchd.
    Sbd(sbd::SbdMsg),
    /// sbatchd and its launcher (Unix socket).
    Launch(launch::LaunchMsg),
    /// A LIM and whoever asks it; LIM datagrams.
    Lim(lim::LimMsg),
    /// A command and res.
    Res(res::ResMsg),
    /// Input or output of a task: a stream frame, not JSON.
    #[serde(skip)]
    Data(res::Data),
    /// The request was refused.
    Refused(Refusal),
    /// Liveness probe and its answer.
    Ping {
        n: u64,
    },
    Pong {
        n: u64,
    },
}

impl Msg {
    /// Does a further message of the same answer follow when this one was read?
    pub fn goes_on(&self) -> bool {
        use client::ClientMsg::{Controlled, Rows};
        match self {
            Msg::Client(Rows { more, .. } | Controlled { more, .. }) => *more,
            Msg::Launch(launch::LaunchMsg::Tasks { more, .. }) => *more,
            _ => false,
        }
    }
}

/// Why a request was refused: an lsberrno and the words that go with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub code: i32,
    /// What the text is about (`nosuch` in `nosuch: No such queue`); empty none.
    pub about: String,
    /// Words beyond the standard text of the code; empty: the standard text.
    pub text: String,
    /// Seconds after which the same may be taken; 0: no use to ask again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub again: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Refusal {
    pub fn new(code: i32) -> Self {
        Refusal { code, about: String::new(), text: String::new(), again: 0 }
    }
    pub fn about(code: i32, about: impl Into<String>) -> Self {
        Refusal { code, about: about.into(), text: String::new(), again: 0 }
    }
    pub fn text(code: i32, text: impl Into<String>) -> Self {
        Refusal { code, about: String::new(), text: text.into(), again: 0 }
    }
    /// `about: words`, without a final full stop.
    pub fn words(&self) -> String {
        let text = if self.text.is_empty() {
            crate::model::reason::err_text(self.code)
        } else {
            &self.text
        };
        if self.about.is_empty() { text.to_string() } else { format!("{}: {text}", self.about) }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_file_tells_the_version_of_its_source() {
        assert_eq!(super::high(), super::PROTO_HIGH);
    }
}

#[cfg(test)]
#[path = "golden_tests.rs"]
mod golden;

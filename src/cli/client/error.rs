//! The reason why there is no answer, and the message for the user: LSF's words, or the site's own.
//! Nothing is tried or written here.

use super::LocalSite;
use crate::auth::shake::AuthError;
use crate::cli::site;
use crate::model::reason::{err, err_text};
use crate::proto::Refusal;
use crate::proto::frame::FrameError;
use std::io::{self, ErrorKind};

/// The message of LSF when no daemon listens.
pub const DOWN: &str = "LSF is down. Please wait ...";
/// The message of LSF when a daemon cannot be reached.
pub const UNREACHED: &str = "Cannot connect to LSF. Please wait ...";
/// The message of LSF while an answer takes long.
pub const PROCESSING: &str = "LSF is processing your request. Please wait ...";

/// The messages while there is no answer; lsf.conf may replace their texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitNotice {
    Down,
    Unreached,
    Processing,
}

impl WaitNotice {
    /// The text of lsf.conf or the environment, else LSF's own text.
    pub(super) fn words(self, site: &LocalSite) -> String {
        let (name, usual) = match self {
            WaitNotice::Down => ("LSB_MBD_DOWN_MSG", DOWN),
            WaitNotice::Unreached => ("LSB_MBD_CONNECT_FAIL_MSG", UNREACHED),
            WaitNotice::Processing => ("LSB_MBD_BUSY_MSG", PROCESSING),
        };
        site::param(Some(site), name).unwrap_or_else(|| usual.to_string())
    }
}

/// The reason why there is no answer, and the message for the user: LSF's words, or the site's own.
/// Nothing is tried or written here.
#[derive(Debug)]
pub enum ClientError {
    /// No daemon listens: the words of the last try.
    Down(String),
    /// A daemon may listen but does not answer in time.
    Timeout(String),
    /// The connection was lost after it was made.
    Lost(String),
    /// This side or the other does not believe the other.
    Auth(AuthError),
    /// The configuration names no server.
    Conf(String),
    /// The daemon refuses what was asked.
    Refused(Refusal),
    /// An answer that does not belong to the question.
    Unexpected,
}

impl ClientError {
    /// The lsberrno that goes with it; `None` where the configuration is at fault.
    pub fn code(&self) -> Option<i32> {
        Some(match self {
            ClientError::Down(_) => err::CONN_REFUSED,
            ClientError::Timeout(_) | ClientError::Lost(_) => err::TIMEOUT,
            ClientError::Auth(e) => e.code(),
            ClientError::Refused(r) => r.code,
            // Batch protocol error.
            ClientError::Unexpected => 57,
            ClientError::Conf(_) => return None,
        })
    }

    /// LSF's words, without a final full stop.
    pub fn words(&self) -> String {
        match self {
            ClientError::Refused(r) => r.words(),
            ClientError::Conf(why) => why.clone(),
            // Causes that this side knows and can repair.
            ClientError::Auth(
                e @ (AuthError::NoGrant { .. }
                | AuthError::NotEnabled { .. }
                | AuthError::Unproved { .. }),
            ) => format!("{}: {e}", err_text(e.code())),
            other => err_text(other.code().unwrap_or_default()).to_string(),
        }
    }

    /// The cause behind the message, for diagnosis.
    pub fn detail(&self) -> String {
        match self {
            ClientError::Down(w) | ClientError::Timeout(w) | ClientError::Lost(w) => w.clone(),
            ClientError::Auth(AuthError::NoGrant { .. }) => String::new(),
            ClientError::Auth(AuthError::NotEnabled { .. }) => String::new(),
            ClientError::Auth(AuthError::Unproved { .. }) => String::new(),
            ClientError::Auth(e) => e.to_string(),
            _ => String::new(),
        }
    }

    /// Whether another try may help.
    pub(super) fn passing(&self) -> bool {
        match self {
            ClientError::Down(_) | ClientError::Timeout(_) | ClientError::Lost(_) => true,
            ClientError::Refused(r) => r.code == err::BUSY,
            ClientError::Auth(AuthError::Denied { code }) => *code == err::BUSY,
            _ => false,
        }
    }

    /// Whether another way to prove who is calling may do: this one could not be had, or did not
    /// convince.
    pub(super) fn unproved(&self) -> bool {
        match self {
            ClientError::Auth(AuthError::Denied { code }) => *code != err::BUSY,
            ClientError::Auth(AuthError::Unproved { .. } | AuthError::NoGrant { .. }) => true,
            // one that asks others takes its time
            ClientError::Timeout(_) => true,
            _ => false,
        }
    }

    /// The message before another attempt.
    pub(super) fn notice(&self) -> WaitNotice {
        match self {
            ClientError::Timeout(_) => WaitNotice::Unreached,
            _ => WaitNotice::Down,
        }
    }
}

impl std::fmt::Display for ClientError {
    /// LSF's words; with `{:#}` also what lies behind them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words())?;
        let detail = self.detail();
        if f.alternate() && !detail.is_empty() { write!(f, " ({detail})") } else { Ok(()) }
    }
}
impl std::error::Error for ClientError {}

impl From<AuthError> for ClientError {
    fn from(e: AuthError) -> Self {
        ClientError::Auth(e)
    }
}
impl From<FrameError> for ClientError {
    fn from(e: FrameError) -> Self {
        match e {
            FrameError::Short => ClientError::Lost(e.to_string()),
            e => ClientError::Auth(AuthError::Frame(e)),
        }
    }
}

pub(crate) fn lost(e: &io::Error) -> ClientError {
    let words = crate::sys::words(e);
    match e.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => ClientError::Timeout(words),
        _ => ClientError::Lost(words),
    }
}

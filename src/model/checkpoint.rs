//! Checkpoints of a job: `dir [init=minutes] [period] [method=name]` as bsub -k and CHKPNT of
//! lsb.queues have it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Longest path of a checkpoint directory, bytes.
pub const MAX_DIRECTORY: usize = 4000;
/// Longest period, minutes: ten years.
pub const MAX_PERIOD: u32 = 5_256_000;

/// The checkpoint directory of a job, and the times of its checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Each job has a directory of its own in it.
    pub dir: Box<str>,
    /// Minutes from the start to the first checkpoint, where they are not `period`.
    pub init: Option<u32>,
    /// Minutes between two checkpoints; none: no periodic ones.
    pub period: Option<u32>,
    /// The name of echkpnt.NAME and erestart.NAME; empty: the host's.
    pub method: Box<str>,
}

/// A request for a checkpoint (bchkpnt).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckpointOrder {
    /// -k: the job ends after a checkpoint that succeeded.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub kill: bool,
    /// -f: also where the method would refuse.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// -p: minutes between checkpoints from now on, 0 none; there is no checkpoint now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<u32>,
}

/// The last checkpoint of an attempt, as its host tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckpointEnd {
    /// Counts the checkpoints of the attempt from 1; 0: there was none.
    #[serde(skip_serializing_if = "is_zero")]
    pub number: u32,
    pub succeeded: bool,
    /// The job was to end after it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub kill: bool,
    /// The checkpoint was requested, not due by the period.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
    /// The period in force, minutes, where bchkpnt -p has changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<u32>,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl CheckpointEnd {
    pub fn is_none(&self) -> bool {
        *self == CheckpointEnd::default()
    }
}

/// Can a program be named echkpnt.NAME after it?
pub fn is_method(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
}

/// Minutes of a period that is one.
pub fn minutes(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|n| digits && (1..=MAX_PERIOD).contains(n))
}

impl Checkpoint {
    /// The value of a text; else the word that is wrong, empty where the directory is missing.
    pub fn parse(text: &str) -> Result<Checkpoint, &str> {
        let mut words = text.split_whitespace();
        let dir = words.next().ok_or("")?;
        if dir.len() > MAX_DIRECTORY {
            return Err(dir);
        }
        let mut all = Checkpoint { dir: dir.into(), ..Checkpoint::default() };
        for word in words {
            if let Some(name) = word.strip_prefix("method=") {
                if !all.method.is_empty() || !is_method(name) {
                    return Err(word);
                }
                all.method = name.into();
                continue;
            }
            let (to, number) = match word.strip_prefix("init=") {
                Some(number) => (&mut all.init, number),
                None => (&mut all.period, word),
            };
            let number = minutes(number).filter(|_| to.is_none());
            *to = Some(number.ok_or(word)?);
        }
        Ok(all)
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.dir)?;
        if let Some(minutes) = self.init {
            write!(f, " init={minutes}")?;
        }
        if let Some(minutes) = self.period {
            write!(f, " {minutes}")?;
        }
        if !self.method.is_empty() {
            write!(f, " method={}", self.method)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_in_any_order_and_written_in_one() {
        let all = Checkpoint::parse(" /c  method=my-app_1 init=5\t30 ").unwrap();
        assert_eq!((all.init, all.period, &*all.method), (Some(5), Some(30), "my-app_1"));
        assert_eq!(all.to_string(), "/c init=5 30 method=my-app_1");
        assert_eq!(Checkpoint::parse(&all.to_string()), Ok(all));
        assert_eq!(Checkpoint::parse("dir").unwrap().to_string(), "dir");
    }

    #[test]
    fn a_wrong_word_is_named() {
        for (text, wrong) in [
            ("", ""),
            ("/c 0", "0"),
            ("/c -3", "-3"),
            ("/c +3", "+3"),
            ("/c 3 4", "4"),
            ("/c init=", "init="),
            ("/c init=1 init=2", "init=2"),
            ("/c method=", "method="),
            ("/c method=../x", "method=../x"),
            ("/c method=a method=b", "method=b"),
            ("/c 5256001", "5256001"),
        ] {
            assert_eq!(Checkpoint::parse(text), Err(wrong), "{text}");
        }
    }
}

//! Signals by name and number, as bkill -s, bsub -wa and what is logged of them have them.

use std::borrow::Cow;

/// HUP, INT, QUIT, ABRT, KILL and TERM: the signals of bkill -s that end a job which waits.
pub const ENDING_SIGNALS: [i32; 6] = [1, 2, 3, 6, 9, 15];

/// CHLD, CONT, URG and WINCH, which end no process that does not ask for them.
pub const IGNORED_SIGNALS: [i32; 4] = [17, 18, 23, 28];

/// Signals by name and number, in the order that `-l` lists them.
pub const ALL: [(&str, i32); 33] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("IOT", 6),
    ("FPE", 8),
    ("KILL", 9),
    ("BUS", 7),
    ("SEGV", 11),
    ("SYS", 31),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("STOP", 19),
    ("TSTP", 20),
    ("CONT", 18),
    ("CHLD", 17),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("IO", 29),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("PWR", 30),
    ("USR1", 10),
    ("USR2", 12),
    ("POLL", 29),
];

/// Highest signal number there is.
pub const MAX_SIGNAL: i32 = 64;

/// The number of `USR1`, `SIGUSR1`, `usr1` or `10`.
pub fn number(word: &str) -> Option<i32> {
    let upper = word.trim().to_ascii_uppercase();
    let upper = upper.strip_prefix("SIG").unwrap_or(&upper);
    match upper.parse::<i32>() {
        Ok(n) if (1..=MAX_SIGNAL).contains(&n) && !upper.starts_with('+') => Some(n),
        Ok(_) => None,
        Err(_) => ALL.iter().find(|(name, _)| *name == upper).map(|s| s.1),
    }
}

/// The first name of a number.
pub fn name(number: i32) -> Option<&'static str> {
    ALL.iter().find(|(_, n)| *n == number).map(|(name, _)| *name)
}

/// The name of a number, or its digits where it has none.
pub fn text(number: i32) -> Cow<'static, str> {
    name(number).map_or_else(|| Cow::Owned(number.to_string()), Cow::Borrowed)
}

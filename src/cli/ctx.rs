//! The context of an applet: its words and its two output streams.
//!
//! Invariant: an applet never touches the process's stdout or stderr itself and never exits;
//! it writes through [`Ctx`] and returns its exit code. Streams remember their first failure
//! ([`Stream`]), so that an applet may ignore the result of each write: the dispatcher ends
//! quietly where the reader went away and complains where the device is full.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};

/// Exit code of every failure (C's `exit(-1)`).
pub const FAIL: i32 = 255;

/// Says how words are read.
pub type Readings = fn(&[OsString]) -> Vec<String>;

/// One call of one applet.
pub struct Ctx<'a> {
    /// The name it was called by: an entry of the applet table.
    pub name: &'static str,
    /// The words after the name; need not be UTF-8.
    pub args: Vec<OsString>,
    /// Data. Buffered: flush before waiting for something.
    pub out: &'a mut dyn Write,
    /// Notices and complaints.
    pub err: &'a mut dyn Write,
    /// Says how words with a glued value are read: for a command that fails.
    pub readings: Option<Readings>,
    /// Names the applets that get links.
    pub linked: fn(bool) -> Vec<&'static str>,
}

impl<'a> Ctx<'a> {
    pub fn new(
        name: &'static str,
        args: Vec<OsString>,
        out: &'a mut dyn Write,
        err: &'a mut dyn Write,
    ) -> Ctx<'a> {
        Ctx { name, args, out, err, readings: None, linked: |_| Vec::new() }
    }

    /// The words with what is not UTF-8 replaced.
    pub fn words(&self) -> Vec<String> {
        self.args.iter().map(|a| a.to_string_lossy().into_owned()).collect()
    }

    /// Sends what is buffered; failures are remembered by the stream.
    pub fn flush(&mut self) {
        let _ = self.out.flush();
        let _ = self.err.flush();
    }
}

/// Writes a line of data: `outln!(ctx, "Job <{id}>")`.
#[macro_export]
macro_rules! outln {
    ($ctx:expr) => {{ let _ = writeln!($ctx.out); }};
    ($ctx:expr, $($arg:tt)*) => {{ let _ = writeln!($ctx.out, $($arg)*); }};
}

/// Writes a line of complaint or notice, after the data written so far.
#[macro_export]
macro_rules! errln {
    ($ctx:expr) => {{ let _ = $ctx.out.flush(); let _ = writeln!($ctx.err); }};
    ($ctx:expr, $($arg:tt)*) => {{
        let _ = $ctx.out.flush();
        let _ = writeln!($ctx.err, $($arg)*);
    }};
}

/// A writer that remembers its first failure and writes nothing after it.
pub struct Stream<W: Write> {
    inner: W,
    failed: Option<io::ErrorKind>,
    words: String,
}

impl<W: Write> Stream<W> {
    pub fn new(inner: W) -> Self {
        Stream { inner, failed: None, words: String::new() }
    }

    /// The words of the first failure, if it is one to complain about: a reader that went away
    /// is not.
    pub fn complaint(&self) -> Option<&str> {
        match self.failed {
            None | Some(io::ErrorKind::BrokenPipe) => None,
            Some(_) => Some(&self.words),
        }
    }

    fn note<T>(&mut self, got: io::Result<T>) -> io::Result<T> {
        if let Err(e) = &got
            && self.failed.is_none()
            && e.kind() != io::ErrorKind::Interrupted
        {
            self.failed = Some(e.kind());
            self.words = os_words(e);
        }
        got
    }
}

/// Shows what is written without terminal escapes: errors quote what users typed, also other
/// users.
pub struct Plain<W: Write>(pub W);

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut shown = text.to_vec();
        let mut last = 0;
        for byte in &mut shown {
            // C1 controls are C2 80 to C2 9F in UTF-8
            let c1 = last == 0xc2 && (0x80..0xa0).contains(byte);
            last = *byte;
            if c1 || *byte == 0x7f || *byte < 0x20 && !matches!(*byte, b'\n' | b'\t') {
                *byte = b'?';
            }
        }
        self.0.write_all(&shown)?;
        Ok(text.len())
    }

    // in one piece: the tasks of a job have one file, and one that is killed leaves no half line
    fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        self.write_all(text.to_string().as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The system's words for an error, without Rust's `(os error N)`.
pub fn os_words(e: &io::Error) -> String {
    let text = e.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_string(),
        None => text,
    }
}

impl<W: Write> Write for Stream<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if let Some(kind) = self.failed {
            return Err(io::Error::from(kind));
        }
        let got = self.inner.write(buf);
        self.note(got)
    }

    fn write_fmt(&mut self, text: fmt::Arguments<'_>) -> io::Result<()> {
        if let Some(kind) = self.failed {
            return Err(io::Error::from(kind));
        }
        let got = self.inner.write_fmt(text);
        self.note(got)
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(kind) = self.failed {
            return Err(io::Error::from(kind));
        }
        let got = self.inner.flush();
        self.note(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fails(io::ErrorKind, usize);
    impl Write for Fails {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            self.1 += 1;
            if self.1 > 1 { Err(io::Error::from(self.0)) } else { Ok(buf.len()) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_first_failure_is_kept() {
        let mut s = Stream::new(Fails(io::ErrorKind::StorageFull, 0));
        assert!(writeln!(s).is_ok());
        assert!(s.complaint().is_none());
        assert!(writeln!(s).is_err());
        assert!(s.flush().is_err());
        assert_eq!(s.inner.1, 2);
        assert!(s.complaint().is_some());
    }

    #[test]
    fn line_of_several_values_is_written_in_one_piece() {
        let mut s = Stream::new(Plain(Fails(io::ErrorKind::StorageFull, 0)));
        let name = "pam";
        assert!(writeln!(s, "{name}: {}", 5 + name.len()).is_ok());
        assert_eq!(s.inner.0.1, 1);
    }

    #[test]
    fn a_closed_pipe_is_no_complaint() {
        let mut s = Stream::new(Fails(io::ErrorKind::BrokenPipe, 1));
        assert!(writeln!(s).is_err());
        assert!(s.complaint().is_none());
    }

    #[test]
    fn words_of_the_system_alone() {
        assert_eq!(os_words(&io::Error::from_raw_os_error(2)), "No such file or directory");
    }
}

//! Terminals: their modes as they travel to a remote task, raw mode and back.

use crate::proto::res::Pty;
use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex as S,
    Termios, Winsize, tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize,
};
use std::io;
use std::os::fd::BorrowedFd;

/// End of input where a terminal says nothing (^D).
const EOT: u8 = 4;

/// The control characters that travel, in their order.
const CHARS: [S; 16] = [
    S::VINTR,
    S::VQUIT,
    S::VERASE,
    S::VKILL,
    S::VEOF,
    S::VTIME,
    S::VMIN,
    S::VSTART,
    S::VSTOP,
    S::VSUSP,
    S::VEOL,
    S::VREPRINT,
    S::VDISCARD,
    S::VWERASE,
    S::VLNEXT,
    S::VEOL2,
];

/// Rows and columns; `None`: not a terminal.
pub fn size(fd: BorrowedFd<'_>) -> Option<(u16, u16)> {
    tcgetwinsize(fd).ok().map(|w| (w.ws_row, w.ws_col))
}

pub fn set_size(fd: BorrowedFd<'_>, (rows, cols): (u16, u16)) -> io::Result<()> {
    let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(fd, size)?)
}

/// The modes and size with which a remote terminal becomes like this one.
pub fn read(fd: BorrowedFd<'_>) -> Option<Pty> {
    let t = tcgetattr(fd).ok()?;
    let modes =
        [t.input_modes.bits(), t.output_modes.bits(), t.control_modes.bits(), t.local_modes.bits()];
    let chars = CHARS.iter().map(|c| t.special_codes[*c]).collect();
    let (rows, cols) = size(fd).unwrap_or_default();
    Some(Pty { modes, chars, rows, cols, shell: false })
}

/// Makes a terminal like that one, where anything is said of its modes.
pub fn apply(fd: BorrowedFd<'_>, pty: &Pty) -> io::Result<()> {
    if pty.modes != [0; 4] {
        let mut t = tcgetattr(fd)?;
        let [i, o, _, l] = pty.modes;
        t.input_modes = InputModes::from_bits_retain(i);
        t.output_modes = OutputModes::from_bits_retain(o);
        t.local_modes = LocalModes::from_bits_retain(l);
        // speed and line are the terminal's own; eight bits pass
        t.control_modes |= ControlModes::CS8 | ControlModes::CREAD;
        for (at, value) in CHARS.iter().zip(&pty.chars) {
            t.special_codes[*at] = *value;
        }
        tcsetattr(fd, OptionalActions::Now, &t)?;
    }
    set_size(fd, (pty.rows, pty.cols))
}

/// The character that ends the input of the terminal behind this end of it.
pub fn eof(fd: BorrowedFd<'_>) -> u8 {
    let set = tcgetattr(fd).ok().map(|t| t.special_codes[S::VEOF]);
    set.filter(|c| *c != 0).unwrap_or(EOT)
}

/// Raw mode; returns the modes to go back to.
pub fn raw(fd: BorrowedFd<'_>) -> io::Result<Termios> {
    let old = tcgetattr(fd)?;
    let mut t = old.clone();
    t.make_raw();
    tcsetattr(fd, OptionalActions::Drain, &t)?;
    Ok(old)
}

/// Back to these modes.
pub fn restore(fd: BorrowedFd<'_>, modes: &Termios) {
    // a terminal that is gone needs none
    let _ = tcsetattr(fd, OptionalActions::Drain, modes);
}

//! Asks whoever has called badmin before it does what cannot be taken back.

use lsf::cli::ctx::Ctx;
use lsf::outln;
use std::io::IsTerminal;

/// Asks on the terminal; never called without one.
pub fn ask(ctx: &mut Ctx, question: &str) -> bool {
    loop {
        let _ = write!(ctx.out, "{question} [y/n] ");
        ctx.flush();
        match read_line().as_deref().map(str::trim) {
            Some("y" | "Y" | "yes") => return true,
            Some("n" | "N" | "no") | None => return false,
            Some(_) => outln!(ctx, "Please answer y or n."),
        }
    }
}

/// Whether somebody is there to answer.
pub fn interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// A line of standard input; `None` at its end.
pub fn read_line() -> Option<String> {
    let mut line = String::new();
    let mut input = std::io::Read::take(std::io::stdin().lock(), MAX_LINE as u64);
    match std::io::BufRead::read_line(&mut input, &mut line) {
        Ok(n) if n > 0 => Some(line.trim_end().to_string()),
        _ => None,
    }
}

/// Longest line read at the prompt, bytes.
const MAX_LINE: usize = 4096;

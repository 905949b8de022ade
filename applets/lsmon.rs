//! lsmon: the load of hosts, again and again: full screen on a terminal, one table after the other
//! elsewhere. See lsmon(1).

use super::lsload::{LoadListing, listing};
use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front;
use lsf::cli::lim::Cluster;
use lsf::proto::lim::INDEX_NAMES;
use lsf::{errln, outln};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Show the load of hosts again and again. Keys: q ends, ^L draws anew, b goes on writing the
/// file of -L in the background, N and E count run queues in another way, i, n and R ask for
/// interval, number of hosts and requirement.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// normalised run queue lengths
    #[argh(switch, short = 'N')]
    normalised: bool,
    /// effective run queue lengths
    #[argh(switch, short = 'E')]
    effective: bool,
    /// at most this many hosts
    #[argh(option, short = 'n', arg_name = "num_hosts")]
    number: Option<usize>,
    /// hosts that meet this requirement, in its order
    #[argh(option, short = 'R', arg_name = "res_req")]
    res_req: Option<String>,
    /// only the named load indices
    #[argh(option, short = 'I', arg_name = "index[:index...]")]
    indices: Option<String>,
    /// seconds between two tables (default: 10)
    #[argh(option, short = 'i', arg_name = "interval")]
    interval: Option<u64>,
    /// append every table to this file
    #[argh(option, short = 'L', arg_name = "file")]
    log: Option<String>,
    /// hosts to show; default: all hosts
    #[argh(positional, greedy, arg_name = "host_name")]
    hosts: Vec<String>,
}

/// Seconds between two looks.
const INTERVAL: u64 = 10;
/// Home and clear, clear to the end of the line, clear below.
const HOME: &str = "\x1b[H\x1b[2J";

pub fn run(ctx: &mut Ctx) -> i32 {
    let o = match front::parse_of::<Options>(ctx) {
        Ok(parsed) => parsed.options,
        Err(exit) => return exit.show(ctx),
    };
    if o.effective && o.normalised {
        return front::usage_error::<Options>(ctx.name, "-E and -N exclude each other").show(ctx);
    }
    let wanted = LoadListing {
        effective: o.effective,
        normalised: o.normalised,
        number: o.number,
        res_req: o.res_req,
        indices: o.indices,
        ..LoadListing::default()
    };
    let every = Duration::from_secs(o.interval.unwrap_or(INTERVAL).max(1));
    let mut mon = Monitor { wanted, hosts: o.hosts, log: o.log, every };
    let terminal = isatty(rustix::stdio::stdout()) && isatty(rustix::stdio::stdin());
    let done = if terminal { mon.screen(ctx) } else { mon.plain(ctx) };
    match done {
        Ok(()) => 0,
        Err(why) => {
            errln!(ctx, "lsmon: {why}");
            FAIL
        }
    }
}

struct Monitor {
    wanted: LoadListing,
    hosts: Vec<String>,
    log: Option<String>,
    every: Duration,
}

impl Monitor {
    fn look(&self) -> Result<String, String> {
        if let Some(file) = &self.log {
            self.append(file)?;
        }
        listing(&self.wanted, &self.hosts)
    }

    /// One line a host: time, name, status, values; the first line of the file names the indices.
    fn append(&self, file: &str) -> Result<(), String> {
        let fail = |e: std::io::Error| format!("{file}: {e}");
        let hosts = Cluster::open()?.hosts(&self.hosts)?;
        let mut how = std::fs::OpenOptions::new();
        let mut out = how.create(true).append(true).open(file).map_err(fail)?;
        let mut text = String::new();
        if out.metadata().map_err(fail)?.len() == 0 {
            text = format!("{}\n", INDEX_NAMES.join(" "));
        }
        for h in hosts {
            let values: Vec<String> = h.index.iter().map(|v| format!("{v:.2}")).collect();
            let time = lsf::sys::now().secs();
            let (host, status) = (&h.host, lsf::cli::load::status_word(h.status));
            text.push_str(&format!("{time} {host} {status} {}\n", values.join(" ")));
        }
        out.write_all(text.as_bytes()).map_err(fail)
    }

    /// Writes without a terminal, until nobody reads any more.
    fn plain(&mut self, ctx: &mut Ctx) -> Result<(), String> {
        loop {
            let text = self.look()?;
            if ctx.out.write_all(text.as_bytes()).and_then(|()| ctx.out.flush()).is_err() {
                return Ok(());
            }
            std::thread::sleep(self.every);
        }
    }

    fn screen(&mut self, ctx: &mut Ctx) -> Result<(), String> {
        let raw = Raw::begin().map_err(|e| e.to_string())?;
        let mut next = Instant::now();
        loop {
            if Instant::now() >= next {
                self.draw(ctx);
                next = Instant::now() + self.every;
            }
            let Some(key) = key(next.saturating_duration_since(Instant::now())) else { continue };
            next = Instant::now();
            match key {
                b'q' => break,
                b'N' => {
                    self.wanted.normalised ^= true;
                    self.wanted.effective = false;
                }
                b'E' => {
                    self.wanted.effective ^= true;
                    self.wanted.normalised = false;
                }
                b'i' => {
                    if let Some(Ok(secs)) = raw.ask(ctx, "interval (seconds): ").map(|t| t.parse())
                    {
                        self.every = Duration::from_secs(u64::max(secs, 1));
                    }
                }
                b'n' => {
                    let text = raw.ask(ctx, "number of hosts (0: all): ");
                    self.wanted.number = text.and_then(|t| t.parse().ok());
                }
                b'R' => {
                    let text = raw.ask(ctx, "resource requirement: ");
                    self.wanted.res_req = text.filter(|t| !t.is_empty());
                }
                b'b' if self.log.is_some() => {
                    drop(raw);
                    return self.leave(ctx);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Goes on writing the file in the background.
    fn leave(&self, ctx: &mut Ctx) -> Result<(), String> {
        let every = self.every.as_secs().to_string();
        let file = self.log.as_deref().unwrap_or_default();
        let own = lsf::cli::links::own_binary()?;
        let mut c = Command::new(own);
        c.args(["lsmon", "-i", &every, "-L", file]).args(&self.hosts);
        c.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // ^C at the terminal is not for it
        let child = c.process_group(0).spawn().map_err(|e| lsf::sys::words(&e))?;
        outln!(ctx, "[{}] lsmon continues to write {file}", child.id());
        Ok(())
    }

    fn draw(&self, ctx: &mut Ctx) {
        let text = self.look().unwrap_or_else(|why| format!("{why}\n"));
        let rows = tcgetwinsize(rustix::stdio::stdout()).map_or(24, |w| w.ws_row.max(2));
        let lines: Vec<&str> = text.lines().take(usize::from(rows) - 1).collect();
        let _ = write!(ctx.out, "{HOME}{}\r\n", lines.join("\r\n"));
        ctx.flush();
    }
}

/// A key, if one is struck within this time.
fn key(wait: Duration) -> Option<u8> {
    let stdin = rustix::stdio::stdin();
    let time = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    if poll(&mut fds, Some(&time)).ok()? == 0 {
        return None;
    }
    let mut byte = [0u8];
    match rustix::io::read(stdin, &mut byte) {
        Ok(1) => Some(byte[0]),
        // the terminal is gone
        _ => Some(b'q'),
    }
}

/// A terminal that gives every key at once, as long as this lives.
struct Raw(Termios);

impl Raw {
    fn begin() -> rustix::io::Result<Raw> {
        let before = tcgetattr(rustix::stdio::stdin())?;
        Raw(before.clone()).set(true);
        Ok(Raw(before))
    }

    fn set(&self, raw: bool) {
        use rustix::termios::LocalModes;
        let mut modes = self.0.clone();
        if raw {
            modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        }
        // a terminal that does not take it is left as it is
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &modes);
    }

    /// Asks for a line.
    fn ask(&self, ctx: &mut Ctx, question: &str) -> Option<String> {
        self.set(false);
        let _ = write!(ctx.out, "{question}");
        ctx.flush();
        let mut line = String::new();
        let read = std::io::stdin().read_line(&mut line);
        self.set(true);
        read.ok().map(|_| line.trim().to_owned())
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.set(false);
    }
}

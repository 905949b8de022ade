//! The limits of the machine itself, measured in the same run as the figures.

use super::table::{Figure, Unit, ms};
use super::{RUNS, shells};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Processes started in one run.
const SPAWNS: u32 = 200;
/// Length of a run that counts what happens in it.
const RUN: Duration = Duration::from_millis(500);
/// Socket pairs of the round trips.
const PAIRS: usize = 64;
/// Bytes of a message, and of an appended record.
const MESSAGE: usize = 256;

/// Starts a program and waits for it, one after the other; milliseconds each.
pub fn spawn(name: &str, program: &Path, args: &[&str]) -> Figure {
    let one = || {
        let from = Instant::now();
        for _ in 0..SPAWNS {
            let mut command = Command::new(program);
            command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let _ = command.status();
        }
        ms(from.elapsed()) / f64::from(SPAWNS)
    };
    Figure::new(name, Unit::Ms, (0..RUNS).map(|_| one()).collect())
}

/// Four shells that start /bin/true; processes a second, together.
pub fn shells_spawn() -> Figure {
    let one = || shells("/bin/true", SPAWNS * 2, |_| {}, Duration::from_secs(20));
    Figure::new(
        "spawn+wait of /bin/true from 4 shells",
        Unit::PerSec,
        (0..RUNS).filter_map(|_| one()).collect(),
    )
}

/// Round trips a second between two threads over 64 socket pairs, one message under way in each.
pub fn round_trips() -> Figure {
    let one = || {
        let (near, far): (Vec<_>, Vec<_>) =
            (0..PAIRS).filter_map(|_| UnixStream::pair().ok()).unzip();
        let echo = std::thread::spawn(move || turn(far, false));
        let count = turn(near, true);
        let _ = echo.join();
        count as f64 / RUN.as_secs_f64()
    };
    Figure::new(
        "epoll round trips over 64 socket pairs",
        Unit::PerSec,
        (0..RUNS).map(|_| one()).collect(),
    )
}

/// Answers each message with one; ends after the run, or when the other side has gone. Returns
/// the messages read.
fn turn(mut ends: Vec<UnixStream>, first: bool) -> u64 {
    let Ok(mut poll) = Poll::new() else { return 0 };
    let mut buf = [0u8; MESSAGE];
    for (i, end) in ends.iter_mut().enumerate() {
        let _ = end.set_nonblocking(true);
        let fd = end.as_raw_fd();
        let _ = poll.registry().register(&mut SourceFd(&fd), Token(i), Interest::READABLE);
        if first {
            let _ = end.write_all(&buf);
        }
    }
    let (until, mut count) = (Instant::now() + RUN, 0);
    let mut events = Events::with_capacity(PAIRS);
    loop {
        if first && Instant::now() >= until {
            return count;
        }
        let _ = poll.poll(&mut events, Some(Duration::from_millis(100)));
        for event in &events {
            let end = &mut ends[event.token().0];
            loop {
                match end.read(&mut buf) {
                    Ok(0) => return count,
                    Ok(_) => {
                        count += 1;
                        let _ = end.write_all(&buf);
                    }
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(_) => return count,
                }
            }
        }
    }
}

/// Appends of one record, each made durable, a second; in the directory of the cluster's log.
pub fn syncs(dir: &Path) -> Figure {
    let one = |n: usize| {
        let path = dir.join(format!("bench.sync.{n}"));
        let mut file = File::create(&path).ok()?;
        let (from, mut count) = (Instant::now(), 0u32);
        while from.elapsed() < RUN {
            file.write_all(&[b'x'; MESSAGE]).ok()?;
            file.sync_data().ok()?;
            count += 1;
        }
        let rate = f64::from(count) / from.elapsed().as_secs_f64();
        let _ = std::fs::remove_file(&path);
        Some(rate)
    };
    Figure::new("appending fdatasync", Unit::PerSec, (0..RUNS).filter_map(one).collect())
}

/// Reading a log and finding its fields; MB a second, and milliseconds for the whole of it.
pub fn scan(log: &Path) -> (Figure, Figure) {
    let (mut rates, mut times) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let from = Instant::now();
        let Ok(text) = std::fs::read(log) else { break };
        let fields: usize = text.split(|b| *b == b'\n').map(fields).sum();
        let took = from.elapsed();
        if std::hint::black_box(fields) > 0 {
            rates.push(text.len() as f64 / 1e6 / took.as_secs_f64());
            times.push(ms(took));
        }
    }
    let rate = Figure::new("text scan of lsb.events", Unit::MbPerSec, rates);
    (rate, Figure::new("scan of its lsb.events", Unit::Ms, times))
}

/// Fields of a record: blanks outside quotes part them.
fn fields(line: &[u8]) -> usize {
    let (mut n, mut quoted) = (1, false);
    for b in line {
        match b {
            b'"' => quoted = !quoted,
            b' ' if !quoted => n += 1,
            _ => {}
        }
    }
    n
}

#[test]
fn blanks_in_quotes_part_nothing() {
    assert_eq!(fields(br#""A" "1 2" 3 "x ""y"" z""#), 4);
}

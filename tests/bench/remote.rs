//! Remote tasks: what lsrun costs, and what goes through it, beside the machine's own limits.

use super::RUNS;
use super::rig::Rig;
use super::table::{Figure, Table, Unit, ms};
use lsf::proto::Msg;
use lsf::proto::frame::{Decoder, MAX_FRAME, Session, SessionKey, Side};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Bytes that go through `lsrun cat`.
const BYTES: usize = 1 << 30;
/// Bytes of a stream frame.
const FRAME: usize = 64 << 10;
/// Commands in one run.
const TASKS: u32 = 100;

/// The same bytes through a socket pair, each frame signed at one end and verified at the other.
fn pair() -> Figure {
    let one = || {
        let (mut near, mut far) = UnixStream::pair().ok()?;
        let key = || SessionKey::new([7; 32]);
        let from = Instant::now();
        let writer = std::thread::spawn(move || {
            let mut session = Session::signed(1, &key(), Side::Client);
            let (data, mut out) = (vec![0u8; FRAME], Vec::new());
            for _ in 0..BYTES / FRAME {
                out.clear();
                let sealed = session.seal_data(1, &data, &mut out).is_ok();
                if !sealed || near.write_all(&out).is_err() {
                    return;
                }
            }
        });
        let mut session = Session::signed(1, &key(), Side::Server);
        let (mut dec, mut chunk) = (Decoder::new(MAX_FRAME), vec![0u8; FRAME * 2]);
        let mut got = 0;
        while got < BYTES {
            let n = far.read(&mut chunk).ok().filter(|n| *n > 0)?;
            dec.push(&chunk[..n]);
            while let Ok(Some(raw)) = dec.take() {
                let Ok(Msg::Data(data)) = session.open_msg(&raw) else { return None };
                got += data.bytes.len();
            }
        }
        let _ = writer.join();
        Some(ms(from.elapsed()))
    };
    let name = "1 GB through a socket pair, one HMAC at each end";
    Figure::new(name, Unit::Ms, (0..RUNS).filter_map(|_| one()).collect())
}

pub fn measure(rig: &Rig, table: &mut Table, spawn: &Figure) {
    // until res answers
    while rig.run("lsrun", &["-m", "host1", "true"]).code != 0 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let each = |args: &[&str]| {
        let from = Instant::now();
        for _ in 0..TASKS {
            rig.cmd("lsrun").args(args).status().ok().filter(|s| s.success())?;
        }
        Some(ms(from.elapsed()) / f64::from(TASKS))
    };
    for (name, args) in [
        ("lsrun true, the host named", &["-m", "host1", "true"][..]),
        ("lsrun true, the host chosen", &["true"]),
    ] {
        let runs = (0..RUNS).map_while(|_| each(args)).collect();
        table.add(Figure::new(name, Unit::Ms, runs), Some(spawn.clone()));
    }
    let limit = table.limit(pair());
    let through = |input: bool| {
        let mut feed = Command::new("head");
        feed.args(["-c", &BYTES.to_string(), "/dev/zero"]).stdout(Stdio::piped());
        let from = Instant::now();
        let mut c = rig.cmd("lsrun");
        if input {
            let mut feed = feed.spawn().ok()?;
            c.args(["-m", "host1", "cat"]).stdin(feed.stdout.take()?);
            c.stdout(Stdio::from(File::create("/dev/null").ok()?));
            c.status().ok().filter(|s| s.success())?;
            let _ = feed.wait();
        } else {
            c.args(["-m", "host1", "head", "-c", &BYTES.to_string(), "/dev/zero"]);
            c.stdout(Stdio::from(File::create("/dev/null").ok()?));
            c.status().ok().filter(|s| s.success())?;
        }
        Some(ms(from.elapsed()))
    };
    for (name, input) in [("1 GB into and out of lsrun cat", true), ("1 GB out of lsrun", false)] {
        let runs = (0..RUNS).map_while(|_| through(input)).collect();
        table.add(Figure::new(name, Unit::Ms, runs), Some(limit.clone()));
    }
}

//! Remote tasks: what lsrun costs, and what goes through it, beside the machine's own limits.

use super::RUNS;
use super::figures::Machine;
use super::rig::Rig;
use super::table::{Figure, FigureTable, Unit, ms};
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

/// Takes `BYTES` from the socket, verified, and hands on each frame's.
fn taken(sock: &mut UnixStream, session: &mut Session, to: &mut dyn FnMut(&mut Session, &[u8])) {
    let (mut dec, mut chunk) = (Decoder::new(MAX_FRAME), vec![0u8; FRAME * 2]);
    let mut got = 0;
    while got < BYTES {
        let Some(n) = sock.read(&mut chunk).ok().filter(|n| *n > 0) else { return };
        dec.push(&chunk[..n]);
        while let Ok(Some(raw)) = dec.take() {
            let Ok(Some((_, bytes))) = session.open_data(&raw) else { return };
            got += bytes.len();
            to(session, bytes);
        }
    }
}

/// The bytes through a socket pair, each frame signed at one end and verified at the other; `back`:
/// and back again, as through cat.
fn pair(name: &str, back: bool) -> Figure {
    let one = || {
        let (mut near, mut far) = UnixStream::pair().ok()?;
        let (mut from_far, mut to_far) = (near.try_clone().ok()?, near.try_clone().ok()?);
        let key = || SessionKey::new([7; 32]);
        let from = Instant::now();
        let writer = std::thread::spawn(move || {
            let mut session = Session::signed(1, &key(), Side::Client);
            let (data, mut out) = (vec![0u8; FRAME], Vec::new());
            for _ in 0..BYTES / FRAME {
                out.clear();
                let sealed = session.seal_data(1, &data, &mut out).is_ok();
                if !sealed || to_far.write_all(&out).is_err() {
                    return;
                }
            }
        });
        let reader = std::thread::spawn(move || {
            let mut session = Session::signed(1, &key(), Side::Client);
            if back {
                taken(&mut from_far, &mut session, &mut |_, _| {});
            }
        });
        let mut session = Session::signed(1, &key(), Side::Server);
        let (mut answers, mut out) = (far.try_clone().ok()?, Vec::new());
        taken(&mut far, &mut session, &mut |session, bytes| {
            out.clear();
            if back && session.seal_data(1, bytes, &mut out).is_ok() {
                let _ = answers.write_all(&out);
            }
        });
        let _ = (writer.join(), reader.join());
        near.flush().ok()?;
        Some(ms(from.elapsed()))
    };
    Figure::new(name, Unit::Ms, (0..RUNS).filter_map(|_| one()).collect())
}

pub fn measure(rig: &Rig, table: &mut FigureTable, machine: &Machine) {
    // until res answers
    while rig.run("lsrun", &["-L", "-m", "host1", "true"]).code != 0 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let each = |applet: &str, args: &[&str]| {
        let from = Instant::now();
        for _ in 0..TASKS {
            rig.cmd(applet)
                .args(args)
                .stderr(Stdio::null())
                .status()
                .ok()
                .filter(|s| s.success())?;
        }
        Some(ms(from.elapsed()) / f64::from(TASKS))
    };
    let spawns = (0..RUNS).map_while(|_| each("lsid", &["-V"])).collect();
    table.limit(Figure::new("a spawn of lsf (lsid -V)", Unit::Ms, spawns));
    for (name, args) in [
        ("lsrun true, this host chosen", &["true"][..]),
        ("lsrun true, this host named", &["-m", "host1", "true"]),
        ("lsrun -L true, by RES, the host named", &["-L", "-m", "host1", "true"]),
        ("lsrun -L true, by RES, the host chosen", &["-L", "true"]),
    ] {
        let runs = (0..RUNS).map_while(|_| each("lsrun", args)).collect();
        table.add(Figure::new(name, Unit::Ms, runs), Some(machine.spawn.clone()));
    }
    let one_way = "1 GB through a socket pair, one HMAC at each end";
    let both = table.limit(pair("the same, and back", true));
    let limit = table.limit(pair(one_way, false));
    let through = |input: bool| {
        let mut feed = Command::new("head");
        feed.args(["-c", &BYTES.to_string(), "/dev/zero"]).stdout(Stdio::piped());
        let from = Instant::now();
        let mut c = rig.cmd("lsrun");
        if input {
            let mut feed = feed.spawn().ok()?;
            c.args(["-L", "-m", "host1", "cat"]).stdin(feed.stdout.take()?);
            c.stdout(Stdio::from(File::create("/dev/null").ok()?));
            c.status().ok().filter(|s| s.success())?;
            let _ = feed.wait();
        } else {
            c.args(["-L", "-m", "host1", "head", "-c", &BYTES.to_string(), "/dev/zero"]);
            c.stdout(Stdio::from(File::create("/dev/null").ok()?));
            c.status().ok().filter(|s| s.success())?;
        }
        Some(ms(from.elapsed()))
    };
    for (name, input) in [("1 GB into and out of lsrun cat", true), ("1 GB out of lsrun", false)] {
        let runs = (0..RUNS).map_while(|_| through(input)).collect();
        let limit = if input { both.clone() } else { limit.clone() };
        table.add(Figure::new(name, Unit::Ms, runs), Some(limit));
    }
}

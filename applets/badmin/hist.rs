//! badmin hist, qhist, hhist, mbdhist: what the event log tells of queues, hosts and mbatchd
//! (badmin(8)).

use crate::bhist::files::{ALL, Damage, Range, each_record};
use crate::bhist::lines::{EventKinds, system};
use crate::bhist::log_dir;
use crate::control::interval;
use argh::{ArgsInfo, FromArgs};
use jiff::tz::TimeZone;
use lsf::cli::clock::Clock;
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::{clean, paragraph};
use lsf::cli::site;
use std::path::{Path, PathBuf};

/// The words of the four commands.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// events of this interval
    #[argh(option, short = 't', arg_name = "time0,time1")]
    interval: Option<String>,
    /// read this event log
    #[argh(option, short = 'f', arg_name = "logfile")]
    file: Option<String>,
    /// the queues or hosts
    #[argh(positional, greedy, arg_name = "name")]
    _names: Vec<String>,
}

pub fn hist(ctx: &mut Ctx) -> Result<i32, Exit> {
    show(ctx, EventKinds { queues: true, hosts: true, mbatchd: true, ..EventKinds::default() })
}

pub fn qhist(ctx: &mut Ctx) -> Result<i32, Exit> {
    show(ctx, EventKinds { queues: true, ..EventKinds::default() })
}

pub fn hhist(ctx: &mut Ctx) -> Result<i32, Exit> {
    show(ctx, EventKinds { hosts: true, ..EventKinds::default() })
}

pub fn mbdhist(ctx: &mut Ctx) -> Result<i32, Exit> {
    show(ctx, EventKinds { mbatchd: true, ..EventKinds::default() })
}

fn show(ctx: &mut Ctx, what: EventKinds) -> Result<i32, Exit> {
    let parsed = front::parse::<Opts>("badmin", &ctx.args)?;
    // what has no names takes none
    if let Some(word) = parsed.operands.first().filter(|_| what.mbatchd) {
        let words = format!("badmin: unexpected word -- {}", clean(&word.to_string_lossy()));
        return Err(Exit::fail(words));
    }
    let (zone, now) = (TimeZone::system(), lsf::sys::now().secs());
    let interval = interval(&parsed.options.interval, now, &zone)?;
    let names: Vec<String> =
        parsed.operands.iter().map(|n| n.to_string_lossy().into_owned()).collect();
    let files = match &parsed.options.file {
        Some(file) => vec![PathBuf::from(file)],
        None => {
            let site = site::find().map_err(|e| Exit::fail(e.to_string()))?;
            let dir = log_dir(&site).map_err(|e| Exit::fail(format_args!("badmin: {e}")))?;
            // An interval may lie in older logs.
            let range = if interval.is_some() { Range::parse("0") } else { None };
            range.unwrap_or(Range::CURRENT).files(Path::new(&dir))
        }
    };
    let clock = Clock::of(zone);
    let mut damage = Damage::default();
    for file in files {
        let mut out = String::new();
        let read = each_record(&file, &ALL, &mut damage, |rec| {
            if interval.is_none_or(|i| i.holds(rec.time))
                && let Some(words) = system(&rec.event, what, &names)
            {
                let mut line = String::new();
                clock.long(&mut line, rec.time);
                line.push_str(": ");
                line.push_str(&words);
                paragraph(&mut out, &line, true);
            }
        });
        let _ = ctx.out.write_all(out.as_bytes());
        read.map_err(|e| Exit::fail(format_args!("badmin: {}", clean(&e))))?;
    }
    damage.tell(ctx);
    Ok(0)
}

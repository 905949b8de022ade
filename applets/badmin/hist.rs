//! badmin hist, qhist, hhist, mbdhist: what the event log tells of queues, hosts and mbatchd
//! (commands.md badmin; samples/badmin.txt).

use crate::bhist::files::{ALL, Damage, Range, each_record};
use crate::bhist::log_dir;
use crate::control::interval;
use argh::{ArgsInfo, FromArgs};
use jiff::tz::TimeZone;
use lsf::cli::clock::Clock;
use lsf::cli::ctx::Ctx;
use lsf::cli::front::{self, Exit};
use lsf::cli::long::{clean, paragraph, push_clean};
use lsf::cli::site;
use lsf::cli::submission::push;
use lsf::model::event::{Ctrl, Event};
use std::fmt::Write;
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

/// Which events.
#[derive(Clone, Copy, Debug, Default)]
struct What {
    queues: bool,
    hosts: bool,
    mbatchd: bool,
}

pub fn hist(ctx: &mut Ctx) -> Result<i32, Exit> {
    show(ctx, What { queues: true, hosts: true, mbatchd: true })
}

pub fn qhist(ctx: &mut Ctx) -> Result<i32, Exit> {
    show(ctx, What { queues: true, ..What::default() })
}

pub fn hhist(ctx: &mut Ctx) -> Result<i32, Exit> {
    show(ctx, What { hosts: true, ..What::default() })
}

pub fn mbdhist(ctx: &mut Ctx) -> Result<i32, Exit> {
    show(ctx, What { mbatchd: true, ..What::default() })
}

fn show(ctx: &mut Ctx, what: What) -> Result<i32, Exit> {
    let parsed = front::parse::<Opts>("badmin", &ctx.args)?;
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
                && let Some(words) = sentence(&rec.event, what, &names)
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

/// What an event says; `None` where it is not asked for.
fn sentence(e: &Event, what: What, names: &[String]) -> Option<String> {
    let wanted = |name: &String| names.is_empty() || names.contains(name);
    let mut t = String::new();
    match e {
        Event::QueueCtrl { op, queue, user, message, .. } if what.queues && wanted(queue) => {
            push(&mut t, "Queue ", queue);
            t.push_str(match op {
                Ctrl::Open => " opened",
                Ctrl::Close => " closed",
                Ctrl::Activate => " activated",
                Ctrl::Inactivate => " inactivated",
            });
            push(&mut t, " by user or administrator ", user);
            remark(&mut t, message);
        }
        Event::HostCtrl { op, host, user, message, .. } if what.hosts && wanted(host) => {
            push(&mut t, "Host ", host);
            t.push_str(if *op == Ctrl::Close { " closed" } else { " opened" });
            push(&mut t, " by administrator ", user);
            remark(&mut t, message);
        }
        Event::MbdStart { master, cluster, hosts, queues } if what.mbatchd => {
            push(&mut t, "mbatchd started on host ", master);
            push(&mut t, "; cluster name ", cluster);
            let _ = write!(t, ", {hosts} server hosts, {queues} queues.");
        }
        Event::MbdDie { master, code, message, .. } if what.mbatchd => {
            push(&mut t, "mbatchd on host ", master);
            let _ = write!(t, " died: exit code {code}");
            remark(&mut t, message);
        }
        _ => return None,
    }
    Some(t)
}

/// The full stop, and what was said with -C.
fn remark(t: &mut String, message: &str) {
    t.push('.');
    if !message.is_empty() {
        t.push(' ');
        push_clean(t, message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// samples/badmin.txt.
    #[test]
    fn sentences() {
        let all = What { queues: true, hosts: true, mbatchd: true };
        let queue = Event::QueueCtrl {
            op: Ctrl::Close,
            queue: "normal".into(),
            uid: 1,
            user: "lsfadmin".into(),
            message: "disk full".into(),
        };
        let words = "Queue <normal> closed by user or administrator <lsfadmin>. disk full";
        assert_eq!(sentence(&queue, all, &[]).as_deref(), Some(words));
        assert_eq!(sentence(&queue, all, &["night".into()]), None);
        assert_eq!(sentence(&queue, What { hosts: true, ..What::default() }, &[]), None);
        let start =
            Event::MbdStart { master: "vm".into(), cluster: "c".into(), hosts: 1, queues: 5 };
        let words = "mbatchd started on host <vm>; cluster name <c>, 1 server hosts, 5 queues.";
        assert_eq!(sentence(&start, all, &[]).as_deref(), Some(words));
        let host = Event::HostCtrl {
            op: Ctrl::Open,
            host: "vm2".into(),
            uid: 1,
            user: "a".into(),
            message: String::new(),
        };
        let words = "Host <vm2> opened by administrator <a>.";
        assert_eq!(sentence(&host, all, &[]).as_deref(), Some(words));
    }
}

//! The custom collectors: programs of the site that write files of custom objects. They run as long
//! as the collector does; one that ends is started again.

use crate::model::time::US;
use crate::proto::Effect;
use crate::proto::collect::CollectorEffect;
use crate::proto::nlb::NlbEffect;

/// A program that lived less than this has ended quickly, microseconds.
const QUICK: u64 = US;
/// Quick ends in a row after which a program has to wait.
const MAX_QUICK: u32 = 5;
/// That wait, microseconds.
const WAIT: u64 = 90 * US;

/// One program.
struct Program {
    name: String,
    /// When it was started, if it runs.
    since: Option<u64>,
    /// When it is to be started, microseconds; `None`: it runs, or is a file.
    at: Option<u64>,
    quick: u32,
    /// The last reason why it was not started.
    told: String,
}

/// All programs of a collector.
pub(super) struct Programs {
    list: Vec<Program>,
}

impl Programs {
    pub(super) fn new(names: &[String]) -> Programs {
        let one = |name: &String| {
            let (name, told) = (name.clone(), String::new());
            Program { name, since: None, at: Some(0), quick: 0, told }
        };
        Programs { list: names.iter().map(one).collect() }
    }

    /// Starts those whose time has come.
    pub(super) fn start(&mut self, now: u64, out: &mut Vec<Effect>) {
        for (program, p) in self.list.iter_mut().enumerate() {
            if p.at.is_some_and(|at| at <= now) {
                (p.at, p.since) = (None, Some(now));
                let start = CollectorEffect::Start { program };
                out.push(Effect::Nlb(NlbEffect::Collector(start)));
            }
        }
    }

    /// When the next one is to be started.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.list.iter().filter_map(|p| p.at).min()
    }

    /// One has ended; it starts again at `next`, the next interval, or later.
    pub(super) fn ended(&mut self, n: usize, how: &str, now: u64, next: u64) -> Option<String> {
        let p = self.list.get_mut(n)?;
        let lived = now.saturating_sub(p.since.take()?);
        p.quick = if lived < QUICK { p.quick.saturating_add(1) } else { 0 };
        p.told.clear();
        let at = if p.quick >= MAX_QUICK { now + WAIT } else { next };
        p.at = Some(at);
        let secs = at.saturating_sub(now) / US;
        Some(format!("{}: {how}; it is started again in {secs} s", p.name))
    }

    /// One could not be started; it is tried again at `next`. Each reason is told once.
    pub(super) fn not_started(&mut self, n: usize, why: &str, next: u64) -> Option<String> {
        let p = self.list.get_mut(n)?;
        (p.since, p.at) = (None, Some(next));
        let news = p.told != why;
        p.told = why.to_owned();
        news.then(|| format!("{}: not started: {why}", p.name))
    }

    /// One is no program but a file.
    pub(super) fn is_file(&mut self, n: usize) {
        if let Some(p) = self.list.get_mut(n) {
            (p.since, p.at) = (None, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(programs: &mut Programs, now: u64) -> usize {
        let mut out = Vec::new();
        programs.start(now, &mut out);
        out.len()
    }

    #[test]
    fn programs_that_end_start_again_and_those_that_end_at_once_wait() {
        let mut p = Programs::new(&["a".to_owned(), "b".to_owned()]);
        assert_eq!(started(&mut p, 0), 2);
        assert_eq!((started(&mut p, US), p.deadline()), (0, None));
        // one that lived is started at the next interval, however often it ends
        for n in 1..9 {
            let now = n * 30 * US;
            let line = p.ended(0, "ended with exit code 1", now - 5 * US, now).unwrap();
            assert_eq!(line, "a: ended with exit code 1; it is started again in 5 s");
            assert_eq!((started(&mut p, now - 1), started(&mut p, now)), (0, 1));
        }
        let mut now = 300 * US;
        p.ended(0, "ended", now, now).unwrap();
        for n in 1..=7 {
            assert_eq!(started(&mut p, now), 1);
            let next = now + 30 * US;
            p.ended(0, "ended", now + 10, next).unwrap();
            now = if n < 5 { next } else { now + 10 + WAIT };
            assert_eq!(p.deadline(), Some(now), "{n}");
        }
        assert_eq!(started(&mut p, now), 1);
        p.ended(0, "ended", now + 2 * US, now + 3 * US).unwrap();
        assert_eq!(p.deadline(), Some(now + 3 * US));
    }

    #[test]
    fn a_program_that_cannot_start_is_told_of_once_for_each_reason() {
        let mut p = Programs::new(&["a".to_owned()]);
        let mut at = 0;
        let mut fails = |why: &str| {
            assert_eq!(started(&mut p, at), 1);
            at += 30;
            p.not_started(0, why, at)
        };
        assert_eq!(fails("gone").as_deref(), Some("a: not started: gone"));
        assert_eq!(fails("gone"), None);
        assert_eq!(fails("denied").as_deref(), Some("a: not started: denied"));
        started(&mut p, 1_000);
        p.is_file(0);
        assert_eq!(p.deadline(), None);
    }
}

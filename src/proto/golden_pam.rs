//! The messages of pam for the test that pins the JSON of every message (golden_tests.rs).

use super::pam::PamMsg;
use crate::model::JobRef;
use crate::model::job::Usage;

/// Number of variants of `PamMsg`.
pub(super) const PAM_VARIANTS: usize = 7;

pub(super) fn pam_name(m: &PamMsg) -> &'static str {
    match m {
        PamMsg::Hello { .. } => "Pam.Hello",
        PamMsg::Started { .. } => "Pam.Started",
        PamMsg::Failed { .. } => "Pam.Failed",
        PamMsg::Exited { .. } => "Pam.Exited",
        PamMsg::Welcome { .. } => "Pam.Welcome",
        PamMsg::Ack => "Pam.Ack",
        PamMsg::Signal { .. } => "Pam.Signal",
    }
}

pub(super) fn pam_samples() -> Vec<PamMsg> {
    let job = JobRef { job: 7, idx: 2 };
    let usage = Box::new(Usage { utime_us: 5, ..Usage::default() });
    vec![
        PamMsg::Hello { job: None, pid: 9, again: None, command: String::new() },
        PamMsg::Hello { job: Some(job), pid: 9, again: Some(3), command: "./a.out 5".into() },
        PamMsg::Started { pid: 10, ticks: 77, outside: String::new() },
        PamMsg::Started { pid: 10, ticks: 77, outside: "down".into() },
        PamMsg::Failed { errno: 2, why: "No such file or directory".into() },
        PamMsg::Exited { status: 256, usage, time: 1_800_000_000 },
        PamMsg::Welcome { tid: 3, job, pam_ms: None },
        PamMsg::Welcome { tid: 3, job, pam_ms: Some(20) },
        PamMsg::Ack,
        PamMsg::Signal { signal: 15 },
    ]
}

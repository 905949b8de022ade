//! Submitters: each sends its jobs one after the other over connections that break, repeating a
//! submission under the same request id until it is answered. In between they change jobs that they
//! have submitted ([`super::verbs`]).

use super::change::{JobChangeRequest, SimulatedSite, Submitted};
use super::checkpoints::checkpointing;
use super::groups::any_group;
use super::limits::{any_queue, shape};
use super::rng::Rng;
use crate::model::ByteStr;
use crate::model::further::{Further, Mark};
use crate::model::job::{JobSpec, opt, opt2};
use crate::proto::Msg;
use crate::proto::client::{ClientMsg, IdSel, Submit, env_hash};
use crate::proto::machine::ConnId;
use std::collections::VecDeque;

/// A submission.
#[derive(Clone, Debug)]
pub struct Wish {
    pub request: String,
    pub spec: JobSpec,
    /// Elements.
    pub size: u32,
}

/// Share of jobs that go back to their queue by the exit value of their first attempts.
const BY_EXIT: f64 = 0.1;
/// Attempts that end so, at most: fewer than there are hosts, so that EXCLUDE() leaves one.
const BY_EXIT_ATTEMPTS: u64 = 2;
/// Share of jobs that are submitted held (-H) and resumed at the end.
const HELD: f64 = 0.15;
/// Share of jobs that run for minutes.
const LONG_OF_FEW: f64 = 0.08;
const LONG_OF_MANY: f64 = 0.01;
/// Requirements of jobs, by turns. Of these indices a host has enough whatever is reserved, memory
/// apart, of which two jobs at a time have enough.
const RESERVE: [&str; 4] =
    ["", "rusage[r1m=0.5:duration=1:decay=1,ut=0.1/task]", "rusage[pg=2]", "rusage[mem=3500]"];

/// A submitter.
#[derive(Debug)]
pub struct Client {
    pub host: usize,
    pub user: String,
    pub uid: u32,
    pub wishes: Vec<Wish>,
    pub next: usize,
    /// The connection, when there is one.
    pub conn: Option<ConnId>,
    /// Ignores what belongs to an earlier connection.
    pub dials: u64,
    /// The last job acknowledged: later ones may name it.
    pub last: Option<u32>,
    /// The master has said that it keeps the environment.
    pub env_kept: bool,
    pub jobs: Vec<Submitted>,
    /// Requested and not answered.
    pub change: Option<JobChangeRequest>,
    /// Jobs that may be stopped or held and are to be resumed at the end.
    pub stopped: Vec<IdSel>,
    /// Answers that are to come on this connection; `false`: to the second of two equal requests.
    pub answers: VecDeque<bool>,
}

/// Every other job asks for further slots, half of these with a notification command.
fn resizing(further: &mut Further, may: bool, number: usize) {
    if may && number.is_multiple_of(2) {
        further.autoresize = Mark(true);
        further.resize_command = if number.is_multiple_of(4) { "tell" } else { "" }.into();
    }
}

impl Client {
    /// `site`: what jobs of this cluster may ask for.
    pub fn new(n: usize, host: usize, jobs: usize, site: &SimulatedSite, rng: &mut Rng) -> Client {
        let mut wishes = Vec::new();
        let mut left = jobs as u32;
        while left > 0 {
            let request = format!("c{n}-{}", wishes.len());
            let size = if left > 4 && rng.chance(0.1) { 2 + rng.below(3) as u32 } else { 1 };
            left -= size;
            let limit = if rng.chance(0.5) { "%1" } else { "" };
            let name = match size {
                1 => String::new(),
                n => format!("arr[1-{n}]{limit}"),
            };
            // the job runs so many milliseconds and ends with this code
            // some outlast the death of a host
            let share = if jobs > 100 { LONG_OF_MANY } else { LONG_OF_FEW };
            let long = match size == 1 && rng.chance(share) {
                true => 200_000 + rng.below(700_000),
                false => 0,
            };
            let (ms, code) = (50 + rng.below(9000) + long, if rng.chance(0.2) { 3 } else { 0 });
            let mut command = format!("work {ms} {code}");
            let mut further = Further::default();
            let (least, most, span) = shape(site.pairs, rng);
            // where hosts are excluded, one is left
            if most == 1 && rng.chance(BY_EXIT) {
                command = format!("work {ms} 99 {}", 1 + rng.below(BY_EXIT_ATTEMPTS));
                let values = if rng.chance(0.5) { "99" } else { "EXCLUDE(99)" };
                further.requeue = values.into();
            }
            further.job_group = any_group(rng).into();
            resizing(&mut further, site.resizes && most > 1, wishes.len());
            checkpointing(&mut further, site.checkpoints, wishes.len());
            let spec = JobSpec {
                name,
                command: command.into(),
                further,
                queue: if rng.chance(0.4) { any_queue(rng) } else { String::new() },
                min_slots: least,
                max_slots: most,
                options: if rng.chance(0.4) { opt::RERUNNABLE } else { 0 },
                options2: if rng.chance(HELD) { opt2::HOLD } else { 0 },
                res_req: format!("{}{span}", RESERVE[wishes.len() % RESERVE.len()]),
                depend: if rng.chance(0.15) { "ended(last)".into() } else { String::new() },
                ..JobSpec::default()
            };
            wishes.push(Wish { request, spec, size });
        }
        let (user, uid) = (format!("user{n}"), 1000 + n as u32);
        Client {
            host,
            user,
            uid,
            wishes,
            next: 0,
            conn: None,
            dials: 0,
            last: None,
            env_kept: false,
            jobs: Vec::new(),
            change: None,
            stopped: Vec::new(),
            answers: VecDeque::new(),
        }
    }

    pub fn done(&self) -> bool {
        self.next >= self.wishes.len() && self.change.is_none() && self.stopped.is_empty()
    }

    /// The change that is to be made, or the next submission.
    pub fn ask(&self) -> Option<Msg> {
        if let Some(change) = &self.change {
            return Some(change.msg.clone());
        }
        let w = self.wishes.get(self.next)?;
        let mut spec = w.spec.clone();
        if !spec.depend.is_empty() {
            spec.depend = self.last.map_or(String::new(), |j| format!("ended({j})"));
        }
        let env = ByteStr::from("A=1\0B=2\0");
        let (env, env_hash) = match self.env_kept {
            true => (ByteStr::default(), env_hash(&env)),
            false => (env, String::new()),
        };
        let request = w.request.clone();
        let submit = Submit { request, spec, env, env_hash, ..Submit::default() };
        Some(Msg::Client(ClientMsg::Submit(Box::new(submit))))
    }
}

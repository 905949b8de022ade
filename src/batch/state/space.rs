//! Space that the jobs of each user take on the master: bytes in the spool (scripts, environments,
//! exact submissions) and of submissions in memory, and how many jobs there are. Like all counters
//! of the state it is kept by `apply` alone. Bytes that a job leaves behind in the spool file that
//! is written count until the log is switched: the file goes only then.

use crate::batch::state::job::Job;
use crate::batch::state::modifications::Modifications;
use crate::batch::state::names::{HostId, UserId};
use crate::model::event::{Event, HostUsage, JobSignal, elements};
use crate::model::idmap::IdMap;
use crate::model::job::{JobSpec, SpoolRef};
use crate::proto::machine::Effect;
use std::collections::HashMap;

/// Bytes that a job takes in memory beside its texts.
const JOB_BYTES: u64 = 256;
/// Bytes that a job may take in the scheduler where it asks for something of its own, beside the
/// texts that it asks with.
const CLASS_BYTES: u64 = 1024;

/// The space of one user's jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserSpace {
    /// Jobs and arrays in memory, ended ones included.
    pub jobs: u64,
    /// Bytes of these jobs.
    pub bytes: u64,
    /// Bytes of jobs that have left memory, in the spool file that is written.
    pub gone: u64,
}

/// The space that each user's jobs take.
#[derive(Debug, Default)]
pub struct Space {
    by_user: IdMap<UserId, UserSpace>,
    /// How many jobs share an environment.
    envs: HashMap<SpoolRef, u32>,
    /// The environment that was looked up last; jobs mostly share it with the one before.
    last: (SpoolRef, u32),
    /// The newest spool file that a job lies in.
    newest: u32,
    /// Sum of what is gone.
    gone: u64,
}

impl Space {
    pub fn of(&self, user: UserId) -> UserSpace {
        self.by_user.get(&user).copied().unwrap_or_default()
    }

    /// The users who have jobs.
    pub fn each(&self) -> impl Iterator<Item = (UserId, UserSpace)> + '_ {
        self.by_user.iter().filter(|(_, k)| k.jobs > 0).map(|(user, kept)| (*user, *kept))
    }

    /// Bytes in the spool file that is written of which no job has any use.
    pub fn gone(&self) -> u64 {
        self.gone
    }

    fn uses(&mut self, env: SpoolRef) -> &mut u32 {
        if self.last.0 != env {
            let (old, uses) = self.last;
            match uses {
                0 => drop(self.envs.remove(&old)),
                uses => drop(self.envs.insert(old, uses)),
            }
            self.last = (env, self.envs.get(&env).copied().unwrap_or(0));
        }
        &mut self.last.1
    }

    fn leave(&mut self, user: UserId, at: SpoolRef) {
        if at.len > 0 && at.spool == self.newest {
            let len = u64::from(at.len);
            self.by_user.entry(user).or_default().gone += len;
            self.gone += len;
        }
    }

    /// The spool file that was written is whole; what is gone goes with it.
    pub(super) fn switched(&mut self) {
        self.by_user.values_mut().for_each(|k| k.gone = 0);
        self.gone = 0;
    }
}

/// Bytes of a submission.
pub fn spec_bytes(s: &JobSpec) -> u64 {
    let texts = [&s.name, &s.queue, &s.project, &s.user_group, &s.description, &s.res_req];
    let more = [&s.depend, &s.limit_spec, &s.from_host, &s.mail_user];
    let bytes = [&s.command, &s.in_file, &s.out_file, &s.err_file, &s.cwd, &s.home];
    let further = [&s.login_shell, &s.pre_exec, &s.post_exec];
    let texts = texts.into_iter().chain(more).map(|t| t.len()).sum::<usize>();
    let bytes = bytes.into_iter().chain(further).map(|b| b.len()).sum::<usize>();
    let hosts = s.hosts.iter().map(|h| h.len() + 24).sum::<usize>();
    (texts + bytes + hosts + s.further.bytes()) as u64 + class_bytes(s)
}

/// Bytes that a submission takes in the scheduler; it may share them with others.
fn class_bytes(s: &JobSpec) -> u64 {
    let fixed = &s.further.host_lines;
    let own = !(s.res_req.is_empty() && s.hosts.is_empty() && fixed.is_empty());
    if !own && s.max_slots <= 1 {
        return 0;
    }
    let hosts = s.hosts.iter().map(|h| h.len() + 24).sum::<usize>();
    let fixed = fixed.len() * size_of::<(HostId, u32)>();
    CLASS_BYTES + (s.res_req.len() + fixed + hosts) as u64
}

/// Bytes of a record of no text.
const RECORD: u64 = 160;
/// Bytes of a record with the usage of a job, without text.
const RECORD_USED: u64 = 320;
/// Bytes of a record of lsb.acct, without text.
const RECORD_ACCT: u64 = 448;

/// Bytes of the usage of hosts in a record.
fn hosts_bytes(hosts: &[HostUsage]) -> u64 {
    hosts.iter().map(|host| host.host.len() as u64 + 32).sum()
}

/// About how many bytes these effects write to lsb.events, lsb.acct and the spool.
pub fn log_bytes(effects: &[Effect]) -> u64 {
    let signal = |s: &JobSignal| {
        let texts = [&s.user, &s.host, &s.reason, &s.request];
        let texts = texts.into_iter().map(|t| t.len() as u64).sum::<u64>();
        RECORD + texts + s.action.word().len() as u64
    };
    let record = |event: &Event| match event {
        Event::JobSignal(s) => signal(s),
        Event::ArraySignal(s) => signal(&s.signal) + 24 * s.elems.len() as u64,
        Event::ArrayMove(m) => RECORD + 24 * m.elems.len() as u64,
        Event::ArraySwitch { elems, .. } => RECORD + 24 * elems.len() as u64,
        Event::JobStatus(s) if s.usage.is_some() => {
            RECORD_USED + s.after.len() as u64 + hosts_bytes(&s.hosts)
        }
        Event::JobModify(m) => RECORD_USED + spec_bytes(&m.spec) + 24 * m.elems.len() as u64,
        Event::JobNew(n) => RECORD_USED + spec_bytes(&n.spec),
        Event::JobMessage(m) => RECORD + m.text.len() as u64,
        _ => RECORD,
    };
    let bytes = |effect: &Effect| match effect {
        Effect::Append(rec) => record(&rec.event),
        Effect::Account(f) => RECORD_ACCT + spec_bytes(&f.spec) + hosts_bytes(&f.hosts_used),
        Effect::AccountElements(f, elems) => elements(elems) * (RECORD_ACCT + spec_bytes(&f.spec)),
        Effect::AccountResize(_) | Effect::AccountReservation(_) => RECORD_ACCT,
        Effect::Spool { data, .. } => data.len() as u64,
        _ => 0,
    };
    effects.iter().map(bytes).sum()
}

/// Bytes of a job but for its first environment, which others may share.
fn bytes_of(job: &Job, modifications: &Modifications) -> u64 {
    let changed: u64 = modifications.places(job.id).iter().map(|at| u64::from(at.len)).sum();
    let script = if modifications.first(job.id).is_some() { 0 } else { job.script.len };
    JOB_BYTES + spec_bytes(&job.spec) + u64::from(script) + u64::from(job.exact.len) + changed
}

fn first_env(job: &Job, modifications: &Modifications) -> SpoolRef {
    modifications.first(job.id).map_or(job.env, |first| first.env)
}

impl Space {
    /// A job is in memory from now on.
    pub(super) fn came(&mut self, job: &Job, modifications: &Modifications) {
        let (mut bytes, env) = (bytes_of(job, modifications), first_env(job, modifications));
        let newest = env.spool.max(job.script.spool).max(job.exact.spool);
        self.newest = self.newest.max(newest);
        if env.len > 0 {
            let uses = self.uses(env);
            *uses += 1;
            bytes += if *uses == 1 { u64::from(env.len) } else { 0 };
        }
        let kept = self.by_user.entry(job.user).or_default();
        (kept.jobs, kept.bytes) = (kept.jobs + 1, kept.bytes + bytes);
    }

    /// A job leaves memory.
    pub(super) fn went(&mut self, job: &Job, modifications: &Modifications) {
        let (mut bytes, env) = (bytes_of(job, modifications), first_env(job, modifications));
        let mut left = vec![job.script, job.exact];
        left.extend(modifications.places(job.id));
        left.sort_unstable();
        left.dedup();
        left.retain(|at| *at != env);
        if env.len > 0 {
            let uses = self.uses(env);
            *uses = uses.saturating_sub(1);
            if *uses == 0 {
                bytes += u64::from(env.len);
                left.push(env);
            }
        }
        left.into_iter().for_each(|at| self.leave(job.user, at));
        let kept = self.by_user.entry(job.user).or_default();
        debug_assert!(kept.jobs > 0 && kept.bytes >= bytes, "{kept:?} of a user, less {bytes}");
        kept.jobs = kept.jobs.saturating_sub(1);
        kept.bytes = kept.bytes.saturating_sub(bytes);
        if *kept == UserSpace::default() {
            self.by_user.remove(&job.user);
        }
    }

    /// Bytes of a job before it changes; [`Space::changed`] takes them.
    pub(super) fn before(job: Option<&Job>, modifications: &Modifications) -> u64 {
        job.map_or(0, |job| bytes_of(job, modifications))
    }

    /// A job was changed, to what lies at these places.
    pub(super) fn changed(
        &mut self,
        job: &Job,
        modifications: &Modifications,
        before: u64,
        places: &[SpoolRef],
    ) {
        let after = bytes_of(job, modifications);
        let newest = places.iter().map(|at| at.spool).max().unwrap_or(0);
        self.newest = self.newest.max(newest);
        let kept = self.by_user.entry(job.user).or_default();
        kept.bytes = (kept.bytes + after).saturating_sub(before);
    }
}

//! Compares two states in all that lsb.events has to bring back. For the tests and the simulator:
//! what a restart makes of the log must be what mbatchd knew before.
//!
//! Invariant: every field of the state and of a job is named here, so that a new one has to be
//! compared or left out on purpose.

use crate::batch::state::resize::Resize;
use crate::batch::state::slot_reservations::ReservedHost;
use crate::batch::state::started_elements::{Share, StartedElements};
use crate::batch::state::{
    Body, Elem, ElemState, ElementSpec, HostControl, Job, Pend, QueueControl, Run, State,
};
use crate::model::JobRef;
use crate::model::reason::PendReason;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::{Debug, Write};
use std::sync::Arc;

/// Differences told at most.
const TOLD: usize = 8;

/// Is an element of an array as if nothing had ever happened to it?
fn is_pristine(e: &Elem, submitted: i64, held: Option<PendReason>) -> bool {
    let waits = |p: &Pend| p.since == submitted && p.held == held && p.reason.is_none();
    e.attempts == 0 && e.part == 0 && matches!(&e.state, ElemState::Pend(p) if waits(p))
}

impl State {
    /// The differences between this state and another one, in words; empty: there is none. `but`:
    /// jobs that are not compared.
    pub fn differences(&self, other: &State, but: &BTreeSet<u32>) -> Vec<String> {
        let mut out = Vec::new();
        let mut put = |key: &str, a: &str, b: &str| {
            if a != b && out.len() < TOLD {
                out.push(format!("{key}: [{a}] is [{b}]"));
            }
        };
        let (mine, theirs) = (self.told(but), other.told(but));
        let keys: BTreeSet<&String> = mine.keys().chain(theirs.keys()).collect();
        let text = |of: &BTreeMap<String, String>, key| of.get(key).cloned().unwrap_or_default();
        for key in keys {
            put(key, &text(&mine, key), &text(&theirs, key));
        }
        let leaving = |of: &State| of.ended.ids().collect::<HashSet<u32>>();
        let (my_leaving, their_leaving) = (leaving(self), leaving(other));
        let ids: BTreeSet<u32> = self.jobs.keys().chain(other.jobs.keys()).collect();
        for id in ids.into_iter().filter(|id| !but.contains(id)) {
            let (a, b) = (self.jobs.get(&id), other.jobs.get(&id));
            // most are of one submission, which is long
            let alike = a.zip(b).is_some_and(|(a, b)| a.spec == b.spec);
            let of = |state: &State, job: Option<&Box<Job>>, leaving: &HashSet<u32>| match job {
                Some(job) => {
                    let beside = state.beside(job, leaving.contains(&id));
                    (state.job_told(job, !alike), job.damaged, beside)
                }
                None => Default::default(),
            };
            let (a, b) = (of(self, a, &my_leaving), of(other, b, &their_leaving));
            put(&format!("job <{id}>"), &a.0, &b.0);
            put(&format!("job <{id}> held"), &a.1.to_string(), &b.1.to_string());
            put(&format!("job <{id}> beside"), &a.2, &b.2);
            for (state, job) in [(self, self.jobs.get(&id)), (other, other.jobs.get(&id))] {
                let of = |counted| job.map_or(String::new(), |j| state.started_told(j, counted));
                put(&format!("started elements of job <{id}>"), &of(false), &of(true));
            }
        }
        for (request, job) in self.requests.iter() {
            let kept = other.requests.get(request) == Some(job);
            if self.jobs.contains_key(&job) && !but.contains(&job) && !kept {
                out.push(format!("the request of job <{job}> is forgotten"));
            }
        }
        out
    }

    /// The state of one job; `all`: also the places of its changes in the spool.
    pub fn about(&self, job: u32, all: bool) -> String {
        let Some(job) = self.jobs.get(&job) else { return String::new() };
        let leaves = self.ended.ids().any(|id| id == job.id);
        let beside = if all { self.beside(job, leaves) } else { String::new() };
        self.job_told(job, true) + &beside
    }

    /// The state without its jobs, thing by thing.
    fn told(&self, but: &BTreeSet<u32>) -> BTreeMap<String, String> {
        let State {
            names: _,
            jobs,
            next_job,
            // of the log, not of what it says
            carried_at: _,
            started_at,
            // the order of submission alone counts
            next_order: _,
            // compared by themselves: those of jobs that left memory are no longer in the log
            requests: _,
            queue_control: _,
            host_control: _,
            group_hosts,
            counts,
            // told with the counts
            space: _,
            // that of jobs which left memory may be gone from the log
            retries: _,
            given_groups: _,
            remains: _,
            // told with the jobs whose conditions have them
            job_names: _,
            // counted from the last switch on
            finished: _,
            reserved: _,
            // told with their jobs
            moved: _,
            modifications: _,
            tries: _,
            left: _,
            posts: _,
            issued: _,
            messages: _,
            job_groups,
            reservations,
            alone: _,
            slot_reservations: _,
            chunks: _,
            waited: _,
            last_starts: _,
            ended: _,
            kinds: _,
        } = self;
        let mut out = ComparedValues::default();
        let in_order: BTreeMap<u64, &Job> = jobs.values().map(|j| (j.order, &**j)).collect();
        let order: Vec<u32> = in_order.values().map(|j| j.id).collect();
        out.put(
            "the order of submission",
            order.iter().filter(|id| !but.contains(id)).collect::<Vec<_>>(),
        );
        out.put("the next job", next_job);
        out.put("the start of mbatchd", started_at);
        out.put("group hosts", group_hosts);
        out.put("last starts", self.starts_told());
        for (path, group) in job_groups.each() {
            out.put(format!("job group {path}"), group);
        }
        for r in reservations.each() {
            out.put(format!("reservation {}", r.id), r);
        }
        out.put("the next reservations", reservations.numbers().collect::<Vec<_>>());
        self.controls_told(&mut out);
        if but.is_empty() {
            self.counts_told(counts, &mut out);
        }
        out.0
    }

    /// The last starts that every log has, by the names of their hosts.
    fn starts_told(&self) -> BTreeMap<Arc<str>, i64> {
        let starts = self.names.host_ids().filter_map(|id| Some((id, self.last_starts.of(id)?)));
        let kept = starts.filter(|(_, last)| self.last_starts.is_kept(*last));
        kept.map(|(id, last)| (self.names.host(id).clone(), last)).collect()
    }

    fn controls_told(&self, out: &mut ComparedValues) {
        for (queue, control) in self.queue_control.iter().filter(|(_, c)| c.closed || c.inactive) {
            let QueueControl { closed, inactive, comment, by, time } = control;
            out.put(
                format!("queue {}", self.names.queue(*queue)),
                (closed, inactive, comment, by, time),
            );
        }
        for (host, control) in self.host_control.iter().filter(|(_, c)| c.shut()) {
            let HostControl { closed, locks, comment, by, time } = control;
            out.put(format!("host {}", self.names.host(*host)), (closed, locks, comment, by, time));
        }
    }

    /// The state of a job that is kept beside it. `leaves`: it is among the jobs that are to leave
    /// memory.
    fn beside(&self, job: &Job, leaves: bool) -> String {
        let State { moved, modifications, tries, left, posts, issued, alone, waited, .. } = self;
        let reserved = self.slot_reservations.iter().filter(|of| of.at.job == job.id);
        let chunked = self.chunks.of_job(job.id).map(|at| (at, self.chunks.runner(at)));
        let id = job.id;
        let mut beside = String::new();
        let changed = (modifications.has(id), modifications.places(id), modifications.first(id));
        let _ = write!(beside, "{:?} {changed:?} {}", moved.get(&id), self.ended.last_end(job));
        for (at, runner) in chunked {
            let _ = write!(beside, " {at} waits for {runner:?}");
        }
        for (at, t) in tries.of_job(id) {
            let passed: Vec<_> = t.passed.iter().map(|host| self.names.host(*host)).collect();
            let counts = (t.requeues, t.pre_exec, t.failed, t.checkpointed);
            let _ = write!(beside, " {at} tried {counts:?} {passed:?} {:?}", t.wait);
        }
        for l in left.of_job(id) {
            let _ = write!(beside, " {} left {} on {}", l.key, l.slots, self.names.host(l.host));
        }
        for (at, w) in waited.of_job(id) {
            let _ = write!(beside, " {at} waited {w:?}");
        }
        for at in alone.range(JobRef::all_of(id)) {
            let _ = write!(beside, " {at} alone");
        }
        for of in reserved {
            let amounts = |on: &ReservedHost| {
                let memory = (on.memory, on.kept_memory);
                (self.names.host(on.host).clone(), (on.planned, on.kept), memory)
            };
            let hosts: Vec<_> = of.hosts.iter().map(amounts).collect();
            let times = (of.since, of.until, of.start, of.end);
            let _ = write!(beside, " {} reserves {times:?} {hosts:?}", of.at);
        }
        for key in posts.of_job(id) {
            let _ = write!(beside, " {key} posts");
        }
        issued.each(id, &mut |at, action, host, why| {
            let _ = write!(beside, " {at} {action:?} from {} {why:?}", self.names.host(host));
        });
        for (at, index, message) in self.messages.of_job(id) {
            let _ = write!(beside, " {at} message {index} {message:?}");
        }
        // or it would never leave memory
        let over = job.tally().unfinished() == 0 && job.tally().total > 0;
        if over && !leaves {
            beside.push_str(" will not be cleaned");
        }
        beside
    }

    fn counts_told(&self, counts: &crate::batch::state::counts::Counts, out: &mut ComparedValues) {
        let crate::batch::state::counts::Counts {
            queue,
            user,
            host,
            hosts_with_suspended,
            suspended,
            queue_user,
        } = counts;
        let names = &self.names;
        for (user, kept) in self.space.each() {
            out.put(format!("kept by {}", self.names.user(user)), (kept.jobs, kept.bytes));
        }
        for (id, slots) in queue.iter().filter(|(_, slots)| slots.all() > 0) {
            out.put(format!("slots of queue {}", names.queue(id)), slots);
        }
        for (id, slots) in user.iter().filter(|(_, slots)| slots.all() > 0) {
            out.put(format!("slots of user {}", names.user(id)), slots);
        }
        for (id, on) in host.iter().filter(|(_, on)| on.slots.all() > 0) {
            out.put(format!("slots of host {}", names.host(id)), (&on.slots, &on.jobs));
        }
        for at in suspended {
            out.put(format!("element {at}"), "SSUSP");
        }
        for id in hosts_with_suspended {
            out.put(format!("elements of host {}", names.host(*id)), "suspended for load");
        }
        for ((a, b), n) in queue_user.iter().filter(|(_, n)| **n > 0) {
            out.put(format!("slots of queue, user {} {}", names.queue(*a), names.user(*b)), n);
        }
    }

    /// `all`: with the submission.
    fn job_told(&self, job: &Job, all: bool) -> String {
        let Job {
            id: _,
            order: _,
            uid,
            gid,
            user,
            queue,
            submit_time,
            spec,
            name,
            env,
            script,
            exact,
            depend,
            body,
            // by itself
            damaged: _,
        } = job;
        let (user, queue) = (self.names.user(*user), self.names.queue(*queue));
        let mut out = format!("{uid} {gid} {user} {queue} {submit_time} {name:?}");
        if all {
            let _ = write!(out, " {spec:?}");
        }
        // of what a name stands for only what is in memory counts
        let known = |id: &&u32| self.jobs.contains_key(id);
        let waits = depend.as_deref().map(|depend| {
            let groups = depend.groups();
            let members = groups.iter().flat_map(|(_, g)| g.members.iter().filter(known).copied());
            (depend.to_string(), members.collect::<Vec<u32>>())
        });
        let tally = job.tally();
        let _ = write!(out, " {env:?} {script:?} {exact:?} {waits:?} {tally:?}");
        match body {
            Body::Single(e) => self.elem_told(&mut out, job, 0, e),
            Body::Array(a) => {
                // an element that has waited in a chunk, of which the log has nothing any more
                let pristine = |e: &Elem| is_pristine(e, *submit_time, a.held);
                let (back, own): (Vec<_>, Vec<_>) = a.own.iter().partition(|(_, e)| pristine(e));
                let back = back.into_iter().map(|(idx, _)| *idx);
                let fresh: BTreeSet<u32> = a.fresh_indices().chain(back).collect();
                let fresh = crate::batch::state::element_groups::ranges(fresh);
                let _ = write!(out, " {:?} {:?} fresh {fresh:?}", a.spec, a.held);
                own.into_iter().for_each(|(idx, e)| self.elem_told(&mut out, job, *idx, e));
                for part in &a.parts {
                    let ElementSpec { queue, spec, spot } = &part.look;
                    let queue = self.names.queue(*queue);
                    let _ = write!(out, " part {queue} {spec:?} {spot:?}");
                    let crate::batch::state::ElementGroup { elems, waiting, pend, started, .. } =
                        part;
                    let _ = write!(out, " {elems:?} {waiting:?} {pend} {started}");
                }
            }
        }
        out
    }

    /// The slots of the started elements of an array, part by part: as they are kept, or counted
    /// anew.
    fn started_told(&self, job: &Job, counted: bool) -> String {
        let Body::Array(a) = &job.body else { return String::new() };
        let mut all: BTreeMap<u32, StartedElements> = BTreeMap::new();
        for e in a.own.values().filter(|_| counted) {
            if let ElemState::Run(run) = &e.state {
                all.entry(e.part).or_default().note(run, true);
            }
        }
        let mut out = String::new();
        for part in 0..=a.parts.len() as u32 {
            let kept = if counted { all.get(&part) } else { Some(a.started_elements(part)) };
            let none = StartedElements::default();
            let StartedElements { slots, jobs, hosts, .. } = kept.unwrap_or(&none);
            let name = |(host, n): (&_, &Share)| (self.names.host(*host).to_string(), *n);
            let hosts: BTreeMap<String, Share> = hosts.iter().map(name).collect();
            let _ = write!(out, " {part}: {slots:?} {jobs} {hosts:?}");
        }
        out
    }

    fn elem_told(&self, out: &mut String, job: &Job, idx: u32, e: &Elem) {
        let requirement = job.effective_requirement(e);
        let Elem { attempts, part, state } = e;
        let _ = write!(out, " [{idx}] {attempts} {part}");
        match state {
            ElemState::Pend(p) => {
                let _ = write!(out, " {p:?}");
            }
            ElemState::Run(run) => self.run_told(out, run, requirement),
            ElemState::End(end) => {
                let crate::batch::state::ElementEnd {
                    end_time,
                    done,
                    status,
                    exit_info,
                    unknown,
                    cpu,
                    usage,
                    hosts,
                    run,
                    post,
                } = &**end;
                let _ = write!(out, " ended {end_time} {done} {status:?} {exit_info} {unknown}");
                let _ = write!(out, " {cpu:.3} {usage:?} {hosts:?} {post:?}");
                run.iter().for_each(|run| self.run_told(out, run, requirement));
            }
        }
    }

    fn run_told(&self, out: &mut String, run: &Run, requirement: Option<&Arc<str>>) {
        let Run {
            key,
            start_time,
            hosts,
            task_order,
            host_factor,
            // told with what was given to all
            own_requirement: _,
            times_given: _,
            slice,
            allowance,
            boot,
            phase,
            forced,
            account,
            affinity,
            placed,
            unknown,
            pid,
            pgid,
            exec,
            killed,
            as_done,
            requeue,
            migrates,
            checkpoint,
            window_signal,
            susp_since,
            susp_total,
            resumed_at,
            preempted,
            resize,
            // what the host tells again
            soft: _,
        } = run;
        let _ = write!(out, " {key} at {start_time} on");
        for (host, slots) in task_order.as_deref().unwrap_or(hosts) {
            let _ = write!(out, " {slots}*{}", self.names.host(*host));
        }
        let _ = write!(out, " {host_factor} {requirement:?} {boot:?} {phase:?} {pid} {pgid}");
        let _ = write!(out, " {exec:?} {killed:?} {as_done} {requeue:?} {window_signal}");
        if let Some(resize) = resize {
            // hosts by name: two states may number them otherwise
            let mut told = Resize::clone(resize);
            for (host, n) in told.under_way.iter_mut().flat_map(|change| change.hosts.drain(..)) {
                let _ = write!(out, " {}*{n}", self.names.host(host));
            }
            let _ = write!(out, " {told:?}");
        }
        let _ = write!(out, " {resumed_at} {preempted:?}");
        let _ = write!(
            out,
            " {susp_since} {susp_total} {unknown} {forced:?} {migrates} {checkpoint:?}"
        );
        let _ = write!(out, " {account:?} {affinity} {placed:?} {slice} {allowance:?}");
    }
}

#[derive(Default)]
struct ComparedValues(BTreeMap<String, String>);

impl ComparedValues {
    fn put(&mut self, key: impl Into<String>, value: impl Debug) {
        self.0.insert(key.into(), format!("{value:?}"));
    }
}

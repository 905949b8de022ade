//! The sentences of bhist -l, one a record (bhist(1)).

use jiff::tz::TimeZone;
use lsf::cli::clock::Clock;
use lsf::cli::long_format::{clean, push_clean, size_words};
use lsf::cli::submission::{cpu_words, dispatched, end_words, push, push_note};
use lsf::model::action::JobAction;
use lsf::model::checkpoint::CheckpointOrder;
use lsf::model::event::{
    CheckpointStep, Ctrl, Event, JobCheckpoint, JobModify, JobResize, JobSignal, JobStatus,
    NamedHosts, ResizeStep,
};
use lsf::model::further::WarnTime;
use lsf::model::job::JobSpec;
use lsf::model::job_state::JobState;
use lsf::model::reason::{PendReason, susp_text, term, term_text};
use lsf::model::resize::NOTIFY_OK;
use lsf::model::specfield::SpecField;
use lsf::model::{ByteStr, JobRef, signals};
use std::fmt::Write;

/// The job or element that a record is about.
pub fn concerns(e: &Event) -> Option<JobRef> {
    match e {
        Event::JobStart(s) => Some(s.at),
        Event::JobStatus(s) => Some(s.at),
        Event::JobSignal(s) => Some(s.at),
        Event::JobStartAccept { at, .. }
        | Event::JobExecute { at, .. }
        | Event::JobRequeue { at, .. }
        | Event::Hold { at, .. }
        | Event::Release { at, .. } => Some(*at),
        Event::JobForce(force) => Some(force.at),
        Event::JobMigrate(m) => Some(m.at),
        Event::JobCheckpoint(c) => Some(c.at),
        Event::JobResize(r) => Some(r.at),
        Event::RunLimit(r) => Some(r.at),
        Event::JobMessage(m) => Some(m.at),
        Event::JobAttachment(a) => Some(a.at),
        Event::JobSwitch { at, .. } | Event::JobMove { at, .. } => Some(*at),
        Event::JobModify(m) => Some(JobRef { job: m.job, idx: 0 }),
        Event::ArrayMove(m) => Some(JobRef { job: m.job, idx: 0 }),
        Event::ArraySwitch { job, .. } => Some(JobRef { job: *job, idx: 0 }),
        _ => None,
    }
}

/// Adds the account of a start where that is not the owner's of the job.
pub fn with_account(mut line: String, e: &Event, owner: &str) -> String {
    if let Event::JobExecute { pid, user, .. } = e
        && !user.is_empty()
        && user != owner
    {
        let before = format!("Execution Pid <{pid}>");
        let mut account = String::new();
        push(&mut account, ", Execution user name ", user);
        if let Some(at) = line.find(&before) {
            line.insert_str(at + before.len(), &account);
        }
    }
    line
}

/// The sentence of a record, with its final `;`; `None` for a record without one.
pub fn sentence(e: &Event, tasks: bool) -> Option<String> {
    let mut t = String::new();
    match e {
        Event::JobStart(s) => {
            dispatched(&mut t, &s.hosts, &s.eff_res_req, tasks);
            if let Some(placed) = &s.placed {
                let _ = write!(t, " {};", placed.words());
            }
        }
        Event::JobStartAccept { pid, .. } => {
            let _ = write!(t, "Starting (Pid {pid});");
        }
        Event::JobExecute { pid, cwd, home, note, .. } => {
            push(&mut t, "Running with execution home ", home);
            push(&mut t, ", Execution CWD ", cwd);
            let _ = write!(t, ", Execution Pid <{pid}>;");
            push_note(&mut t, " ", note);
        }
        Event::JobStatus(s) => status(&mut t, s)?,
        Event::JobSignal(s) => signal(&mut t, s),
        Event::JobRequeue { exit: Some(value), .. } => {
            let _ = write!(t, "Pending: {};(exit code {value})", PendReason::Requeued.text());
        }
        Event::JobRequeue { .. } => t.push_str("Pending: Job has been requeued;"),
        Event::JobModify(m) => modified(&mut t, m)?,
        Event::JobSwitch { queue, route: Some(route), .. } => {
            let at = if route.host.is_empty() { "" } else { "@" };
            let to = format!("Routed to {queue}{at}{} {};", route.host, route.words());
            push_clean(&mut t, &to);
        }
        Event::JobSwitch { queue, user, .. } | Event::ArraySwitch { queue, user, .. } => {
            push(&mut t, "Switched to Queue ", queue);
            push(&mut t, " by user or administrator ", user);
            t.push(';');
        }
        Event::JobMove { position, top, user, .. } => moved(&mut t, *position, *top, user),
        Event::ArrayMove(m) => moved(&mut t, m.position, m.top, &m.user),
        Event::JobMigrate(_) | Event::JobForce(_) => moved_by_hand(&mut t, e),
        Event::JobCheckpoint(c) => checkpoint(&mut t, c),
        Event::JobResize(r) => resize(&mut t, r),
        Event::RunLimit(r) => {
            let kind = if r.hard { "Hard run limit is set to" } else { "Run limit is extended to" };
            let _ = write!(t, "{kind} {:.1} min;", r.secs as f64 / 60.0);
        }
        Event::JobMessage(m) => {
            let (text, user) = (clean(&m.text), clean(&m.user));
            let _ = write!(
                t,
                "External Message \"{text}\" was posted from \"{user}\" to message box {};",
                m.index
            );
        }
        Event::JobAttachment(a) => {
            push(&mut t, "Data file ", &a.file);
            let _ = write!(t, " of {} bytes attached to message box {};", a.size, a.index);
        }
        Event::Hold { why, .. } => {
            t.push_str("Held: ");
            push_clean(&mut t, why);
            t.push(';');
        }
        Event::Release { user, .. } => {
            push(&mut t, "Released by user or administrator ", user);
            t.push(';');
        }
        _ => return None,
    }
    Some(t)
}

/// btop and bbot.
fn moved(t: &mut String, position: u32, top: bool, user: &str) {
    let end = if top { "top" } else { "bottom" };
    let _ = write!(t, "Job moved to position {position} relative to <{end}> by user or ");
    push(t, "administrator ", user);
    t.push(';');
}

/// bmig and brun.
fn moved_by_hand(t: &mut String, e: &Event) {
    match e {
        Event::JobMigrate(m) => {
            push(t, "Migration requested by user or administrator ", &m.user);
            if !m.hosts.is_empty() {
                push(t, "; Specified Hosts ", &m.hosts.join(" "));
            }
        }
        Event::JobForce(force) => {
            let words = "Job is forced to run or forwarded by user or administrator ";
            push(t, words, &force.user);
        }
        _ => {}
    }
    t.push(';');
}

/// The sentence beside that of a record of a job whose host cannot be reached; `None`: the record
/// has its own alone.
pub fn unreached(e: &Event) -> Option<&'static str> {
    let ends = |s: &JobStatus| s.status.is_finished() && s.unknown_end;
    let forced = |s: &JobStatus| [term::FORCE_OWNER, term::FORCE_ADMIN].contains(&s.exit_info);
    match e {
        Event::JobSignal(s) if s.action == JobAction::Kill => {
            Some("Termination request issued; but unable to reach the execution host;")
        }
        Event::JobRequeue { uncounted: true, .. } => Some(HOST_GONE),
        Event::JobStatus(s) if ends(s) && !forced(s) => Some(HOST_GONE),
        _ => None,
    }
}

/// A job leaves a host that cannot be reached.
const HOST_GONE: &str = "Execution host unavailable; job is killed;";

/// bchkpnt, and the ends of checkpoints.
fn checkpoint(t: &mut String, c: &JobCheckpoint) {
    let _ = match c.step {
        CheckpointStep::Asked(CheckpointOrder { period: Some(0), .. }) => {
            write!(t, "Periodic checkpointing is disabled;")
        }
        CheckpointStep::Asked(CheckpointOrder { period: Some(minutes), .. }) => {
            write!(t, "Checkpoint period is set to {minutes} min.;")
        }
        CheckpointStep::Asked(_) => write!(t, "Checkpoint initiated (actpid {});", c.pid),
        CheckpointStep::Ended(end) if end.succeeded => {
            write!(t, "Checkpoint succeeded (actpid {});", c.pid)
        }
        CheckpointStep::Ended(_) => write!(t, "Checkpoint failed (actpid {});", c.pid),
    };
}

/// bresize, and changes of the slots of a job.
fn resize(t: &mut String, r: &JobResize) {
    let on = |t: &mut String, hosts: &NamedHosts| {
        let slots: u32 = hosts.iter().map(|host| host.1).sum();
        let _ = write!(t, "{slots} Hosts/Processors");
        let each = hosts.iter().flat_map(|(host, n)| std::iter::repeat_n(host, *n as usize));
        each.for_each(|host| push(t, " ", host));
    };
    let by = |t: &mut String| push(t, " by user or administrator ", &r.user);
    match &r.step {
        ResizeStep::Released { cancels, hosts, .. } => {
            t.push_str("Release of ");
            on(t, hosts);
            t.push_str(if *cancels {
                " requested, with the pending request canceled,"
            } else {
                " requested"
            });
            by(t);
        }
        ResizeStep::Asked { total, least, .. } => {
            let _ =
                write!(t, "Allocation of {total} slots requested, at least {least} more at once,");
            by(t);
        }
        ResizeStep::Cancelled => {
            t.push_str("Pending allocation request canceled");
            by(t);
        }
        ResizeStep::Begun { grows, hosts, command, .. } => {
            t.push_str(if *grows { "Additional allocation on " } else { "Release allocation on " });
            on(t, hosts);
            if !command.is_empty() {
                push(t, ", Resize Notification Command ", command);
            }
        }
        ResizeStep::Accepted { pid: 0, .. } => t.push_str("Resize notification accepted"),
        ResizeStep::Accepted { pid, .. } => {
            let _ = write!(
                t,
                "Resize notification accepted. Notification command initialized (Command PID {pid})"
            );
        }
        ResizeStep::Done { status, .. } => {
            let done = if *status == NOTIFY_OK { "completed" } else { "failed, change not taken" };
            let _ = write!(t, "Resize notification {done} (Exit Status {status})");
        }
    }
    t.push(';');
}

fn signal(t: &mut String, s: &JobSignal) {
    match &s.action {
        JobAction::Requeue(_) => {
            t.push_str("Job is being requeued;");
            return;
        }
        JobAction::Remove => t.push_str("Delete"),
        JobAction::WindowSignal(signal) => push(t, "Signal ", &signals::text(signal.0)),
        action => push(t, "Signal ", &action.word()),
    }
    push(t, " requested by user or administrator ", &s.user);
    t.push(';');
    if !s.reason.is_empty() {
        push(t, " Reason ", &s.reason);
        t.push(';');
    }
}

/// The changes by bmod with the new values. An option without value, and one that was taken back,
/// is named alone.
fn modified(t: &mut String, m: &JobModify) -> Option<()> {
    let s = &m.spec;
    for (i, field) in m.fields.iter().enumerate() {
        t.push_str(if i == 0 { "Parameters of Job are changed: " } else { ", " });
        t.push_str(field.label());
        t.push(' ');
        let lossy = |b: &ByteStr| b.lossy().into_owned();
        let value = match field {
            SpecField::AbsolutePriority => {
                let _ = match s.further.aps {
                    Some(setting) => write!(t, "changed to : {setting}"),
                    None => write!(t, "deleted"),
                };
                continue;
            }
            SpecField::Name => s.name.clone(),
            SpecField::Description => s.description.clone(),
            SpecField::Command => lossy(&s.command),
            SpecField::Queue => s.queue.clone(),
            SpecField::Project => s.project.clone(),
            SpecField::ResReq => s.res_req.clone(),
            SpecField::Slots => format!("{},{}", s.min_slots, s.max_slots),
            SpecField::Hosts => s.hosts.join(" "),
            SpecField::InFile => lossy(&s.in_file),
            SpecField::OutFile => lossy(&s.out_file),
            SpecField::ErrFile => lossy(&s.err_file),
            SpecField::Depend => s.depend.clone(),
            SpecField::Cwd => lossy(&s.cwd),
            SpecField::Priority => s.priority.to_string(),
            SpecField::UserGroup => s.user_group.clone(),
            SpecField::MailUser => s.mail_user.clone(),
            SpecField::LoginShell => lossy(&s.login_shell),
            SpecField::PreExec => lossy(&s.pre_exec),
            SpecField::PostExec => lossy(&s.post_exec),
            field => match limit_value(*field, s).or_else(|| further_value(*field, s)) {
                Some(value) => value,
                None => {
                    t.pop();
                    continue;
                }
            },
        };
        push(t, "", &value);
    }
    t.push(';');
    (!m.fields.is_empty()).then_some(())
}

/// The new value of a limit or of a time.
fn limit_value(field: SpecField, s: &JobSpec) -> Option<String> {
    let limits = &s.limits;
    let minutes = |secs: u64| match s.limit_spec.as_str() {
        "" => format!("{:.1} min", secs as f64 / 60.0),
        host => format!("{:.1} min of {host}", secs as f64 / 60.0),
    };
    let time = |secs: i64| {
        let mut text = String::new();
        Clock::of(TimeZone::system()).long(&mut text, secs);
        (secs > 0).then_some(text)
    };
    match field {
        SpecField::RunLimit => limits.run.map(minutes),
        SpecField::CpuLimit => limits.cpu.map(minutes),
        SpecField::MemLimit => limits.rss.map(size_words),
        SpecField::SwapLimit => limits.swap.map(size_words),
        SpecField::CoreLimit => limits.core.map(size_words),
        SpecField::DataLimit => limits.data.map(size_words),
        SpecField::StackLimit => limits.stack.map(size_words),
        SpecField::FileLimit => limits.fsize.map(size_words),
        SpecField::ProcessLimit => limits.process.map(|n| n.to_string()),
        SpecField::ThreadLimit => limits.thread.map(|n| n.to_string()),
        SpecField::Begin => time(s.begin_time),
        SpecField::Term => time(s.term_time),
        _ => None,
    }
}

/// The new value of an option that is kept by its name.
fn further_value(field: SpecField, s: &JobSpec) -> Option<String> {
    let minutes = |secs: Option<u64>| secs.map(|secs| format!("{:.1} min", secs as f64 / 60.0));
    match field {
        SpecField::PendLimit => minutes(s.further.pend_limit),
        SpecField::EligibleLimit => minutes(s.further.eligible_limit),
        SpecField::WarnTime => match s.further.warn_time? {
            WarnTime::Seconds(secs) => minutes(Some(secs)),
            WarnTime::Percent(share) => Some(format!("{share}%")),
        },
        field => s.further.text(field.word()).map(|text| text.into_owned()),
    }
}

fn status(t: &mut String, s: &JobStatus) -> Option<()> {
    if let Some(succeeded) = s.status.post() {
        let how = if succeeded { "done successfully" } else { "failed" };
        let _ = write!(t, "Post job process {how};");
        return Some(());
    }
    let _ = match s.status.state()? {
        JobState::Pend | JobState::Psusp if s.reason == 0 => write!(t, "Pending;"),
        JobState::Pend | JobState::Psusp => {
            let _ = write!(t, "Pending: {}", PendReason::of_number(s.reason).text());
            let note = s.retry.as_ref().map_or("", |retry| &retry.note);
            if !note.is_empty() {
                t.push_str(": ");
                push_clean(t, note);
            }
            write!(t, ";")
        }
        JobState::Run => write!(t, "Running;"),
        JobState::Ususp => write!(t, "Suspended by the user or administrator;"),
        JobState::Ssusp => write!(t, "Suspended: {};", susp_text(s.reason)),
        state @ (JobState::Done | JobState::Exit) => {
            // A job that never started has no attempt; other logs have no attempts at all.
            let started = s.attempt > 0 || s.usage.is_some() || s.exit_status != 0 || s.cpu > 0.0;
            let raw = (started && !s.unknown_end).then_some(i64::from(s.exit_status));
            let known = started && (raw.is_some() || s.cpu > 0.0);
            let mut words = end_words(state == JobState::Done, started, raw);
            if started && [term::FORCE_OWNER, term::FORCE_ADMIN].contains(&s.exit_info) {
                words = words.replacen("Exited", "Exited; job has been forced to exit", 1);
            }
            let wrote = write!(t, "{words}.{};", cpu_words(known.then_some(s.cpu)));
            push_note(t, " ", &s.after);
            wrote
        }
        JobState::Unkwn => write!(t, "Unknown; unable to reach the execution host;"),
        JobState::Wait | JobState::Zombi => return None,
    };
    Some(())
}

/// The sentence after the end of a job that LSF ended: `Completed <exit>; TERM_OWNER: ...`.
pub fn completed(e: &Event) -> Option<String> {
    let Event::JobStatus(s) = e else { return None };
    let done = s.status.is_done();
    if s.exit_info == 0 || s.status.post().is_some() || !s.status.is_finished() {
        return None;
    }
    let (name, text) = term_text(s.exit_info);
    Some(format!("Completed <{}>; {name}: {text};", if done { "done" } else { "exit" }))
}

/// The kinds of events to list besides events of jobs.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventKinds {
    pub queues: bool,
    pub hosts: bool,
    pub mbatchd: bool,
    /// Events of the log itself.
    pub switches: bool,
}

/// Exit codes of another LSF's mbatchd.
const RESIGNED: i32 = 201;
const RECONFIGURED: i32 = 202;

/// The sentence of an event of queues, hosts or mbatchd; `None` when it is not selected. Without
/// `names`: of all queues and hosts.
pub fn system(e: &Event, what: EventKinds, names: &[String]) -> Option<String> {
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
        Event::GroupHost { add, group, host, user, message, .. }
            if what.hosts && (wanted(host) || wanted(group)) && !user.is_empty() =>
        {
            push(&mut t, "Host ", host);
            t.push_str(if *add { " added to" } else { " deleted from" });
            push(&mut t, " host group ", group);
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
            t.push_str(" died: ");
            let _ = match code {
                0 => write!(t, "stopped as asked"),
                &RESIGNED => write!(t, "master resigned"),
                &RECONFIGURED => write!(t, "reconfiguration initiated"),
                203..=205 => write!(t, "fatal errors"),
                n => write!(t, "killed by signal <{n}>"),
            };
            remark(&mut t, message);
        }
        Event::LogSwitch { last_job } if what.switches => {
            let _ = write!(t, "event file is switched; last JobId <{last_job}>");
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

    /// The documented sentences of `badmin hist` and `bhist -t`.
    #[test]
    fn events_are_told_in_the_sentences_of_lsf() {
        let all = EventKinds { queues: true, hosts: true, mbatchd: true, switches: true };
        let queue = Event::QueueCtrl {
            op: Ctrl::Close,
            queue: "normal".into(),
            uid: 1,
            user: "lsfadmin".into(),
            message: "disk full".into(),
        };
        let words = "Queue <normal> closed by user or administrator <lsfadmin>. disk full";
        assert_eq!(system(&queue, all, &[]).as_deref(), Some(words));
        assert_eq!(system(&queue, all, &["night".into()]), None);
        assert_eq!(system(&queue, EventKinds { hosts: true, ..EventKinds::default() }, &[]), None);
        let start =
            Event::MbdStart { master: "vm".into(), cluster: "c".into(), hosts: 1, queues: 5 };
        let words = "mbatchd started on host <vm>; cluster name <c>, 1 server hosts, 5 queues.";
        assert_eq!(system(&start, all, &[]).as_deref(), Some(words));
        let host = Event::HostCtrl {
            op: Ctrl::Open,
            host: "vm2".into(),
            uid: 1,
            user: "a".into(),
            message: String::new(),
            lock: String::new(),
        };
        let words = "Host <vm2> opened by administrator <a>.";
        assert_eq!(system(&host, all, &[]).as_deref(), Some(words));
        for (code, how) in [
            (0, "stopped as asked."),
            (201, "master resigned."),
            (202, "reconfiguration initiated."),
            (203, "fatal errors."),
            (9, "killed by signal <9>."),
        ] {
            let (master, message) = ("vm".to_string(), String::new());
            let die = Event::MbdDie { master, removed: 0, code, message };
            let words = format!("mbatchd on host <vm> died: {how}");
            assert_eq!(system(&die, all, &[]), Some(words));
        }
        let switch = Event::LogSwitch { last_job: 25 };
        let words = "event file is switched; last JobId <25>";
        assert_eq!(system(&switch, all, &[]).as_deref(), Some(words));
    }
}

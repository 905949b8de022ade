//! The bounds of one message: each cap with its name and unit, and the table of all messages. A
//! frame is bounded ([`super::frame::MAX_FRAME_USER`], [`super::frame::MAX_FRAME`]); these caps
//! bound what grows faster than the frame: wherever one length of a message meets another, or a
//! length meets the number of jobs, hosts or users. Beyond a cap the answer is a refusal in words,
//! before anything is done.
//!
//! | message | lengths that meet | bounded by |
//! |---|---|---|
//! | Client.Submit | fields x jobs of a user | `check_spec`; MAX_USER_SPACE, MAX_USER_JOBS |
//! | Client.Control | IDs x elements | MAX_IDS, MAX_RANGES, MAX_ELEMENTS |
//! | | elements acted on x (reason, submission) | MAX_ACTED, MAX_LOG_BYTES; done in slices |
//! | | elements x outcomes of the answer | pieces of OUTCOMES_PIECE, else MAX_OUTCOMES |
//! | | elements moved at once | MAX_MOVED |
//! | | words for hosts of brun | MAX_FORCED_HOSTS |
//! | Client.Modify | parts of an array x submission | MAX_MODIFY_BYTES; elements as above |
//! | | slices of the elements x submission | MAX_LOG_BYTES |
//! | Client.Peek, Stored, Wait.watch | IDs x elements | MAX_IDS, MAX_RANGES, MAX_ELEMENTS |
//! | Client.Jobs | jobs x columns x fields | MAX_COLS, MAX_COL_REPEATS, `check_spec`; slices |
//! | | IDs x elements | MAX_IDS, MAX_RANGES; the ranges of a job are merged |
//! | Client.Dependencies | parents x levels | MAX_ROWS, MAX_LEVEL (dependency.rs) |
//! | Client.JobGroup | names x groups | MAX_JOB_GROUPS, MAX_DELETED (src/batch/lifecycle) |
//! | Client.Reservation | names x reservations | MAX_NAMES, MAX_RESERVATIONS, MAX_USERS (src/batch/lifecycle) |
//! | Client.Message | data x messages | MAX_ATTACHMENT; MAX_JOB_MSG_NUM, MAX_USER_SPACE |
//! | Client.Wait | texts x jobs | MAX_TEXT |
//! | | watchers x IDs and texts | MAX_WATCHED, MAX_SELECT_BYTES |
//! | Client.Queues, Applications, Hosts, Slots, Users, Groups | names x objects | MAX_NAMES; each object once |
//! | Client.Partitions | names x objects | MAX_NAMES; each object once |
//! | Client.Limits | names x counters | MAX_NAMES; each counter once |
//! | Client.Admin | names x hosts or queues | MAX_NAMES; each object once |
//! | Sbd.Inventory, State | tasks x texts | MAX_TASKS, MAX_SHOWN, MAX_NOTE; MAX_TOLD |
//! | | memberships | MAX_INVENTORY |
//! | | pieces x tasks | MAX_INVENTORY; what is lost is worked off in slices |
//! | Sbd.Usage | processes x jobs | MAX_PIDS |
//! | Sbd.Join | jobs of other hosts x submission | MEMBERS_MAX of sbatchd |
//! | Sbd.Start | attempts x submission | ATTEMPTS_MAX, `check_spec` of mbatchd; NOTES_MAX |
//! | Sbd.Blob | places x bytes | BLOBS_MAX |
//! | Sbd.Validate | questions x names of a host | VALIDATIONS_MAX of sbatchd, MAX_HOST_NAMES |
//! | Sbd.Validated | texts x users and hosts | MAX_VERDICT; ANSWERS_MAX of mbatchd |
//! | Lim.Hosts, Adjust | names x hosts | MAX_NAMES; each host once |
//! | Lim.Exclusive, Loads | names x hosts | MAX_HOSTS; each host once |
//! | Lim.Beat, Announce, Join, NotJoined | no product | MAX_DATAGRAM; DATAGRAM_TURN_US |
//! | Lim.Join | senders x names | MAX_HOST_NAME, MAX_STRANGERS (src/net/limits.rs) |
//! | Res.Join | control characters; tasks | MAX_CHARS; TASKS_MAX |
//! | Res.Run | arguments x environment | MAX_ARGS, RUN_MAX, MAX_RLIMITS, TASKS_MAX |
//! | Res data | frames x tasks | WINDOW, one end of input at a time |
//! | Launch.Start, Note | tasks x notes | TASKS_MAX, NOTE_MAX, NOTES_MAX |
//! | Launch.Tasks | tasks x notes | pieces of LIST_BYTES, each when the one before was read |
//! | frames | connections x frame | MAX_PARTIAL, OUT_MAX (src/net/limits.rs) |
//!
//! The effects and inputs of src/proto/machine.rs stay within one process.

use super::Refusal;
use super::client::{AdminOp, ClientMsg, Col, Control, IdSel, JobQuery, JobSelect, Modify, Verb};
use super::host_command::HostCommandState;
use super::job_group::JobGroupRequest;
use super::job_message::{MAX_ATTACHMENT, MessageRequest};
use super::lim::LimMsg;
use super::res::{Pty, RUN_MAX, ResMsg, RunTask};
use super::reservation::{ChosenHosts, NewReservation, ReservationChange, ReservationRequest};
use super::sbd::{SbdMsg, TaskState};
use super::validation::Verdict;
use crate::model::cut;
use crate::model::further::RESOLVED_CONDITION;
use crate::model::job::JobSpec;
use crate::model::reason::err;
use crate::model::reservation::ReservationTime;
use crate::model::resize::{MAX_RELEASED, NotifyCommand, ResizeRequest};

/// Job IDs in one request.
pub const MAX_IDS: usize = 100_000;
/// Ranges of elements in one request, over all of its IDs.
pub const MAX_RANGES: usize = 100_000;
/// Elements that the ranges of one request name, over all of its IDs.
pub const MAX_ELEMENTS: u64 = 1_000_000;
/// Elements that one btop or bbot names: they are moved at once, by one record.
pub const MAX_MOVED: u64 = 4096;
/// Longest command of qmgr, bytes: 1,000 destinations.
pub const MAX_COMMAND: usize = 256 << 10;
/// Words for hosts in one brun.
pub const MAX_FORCED_HOSTS: usize = 10_000;
/// Elements and jobs that one request acts on.
pub const MAX_ACTED: u64 = 10_000_000;
/// Bytes that one request writes to lsb.events, lsb.acct and the spool, over all that it acts on,
/// as `batch::state::space::log_bytes` counts them.
pub const MAX_LOG_BYTES: u64 = 1 << 30;
/// Outcomes in one message of an answer that comes in pieces.
pub const OUTCOMES_PIECE: usize = 8192;
/// Outcomes in an answer to a client that takes one message; what goes beyond is left out.
pub const MAX_OUTCOMES: usize = 100_000;
/// Bytes of submissions that one bmod writes, over all parts of an array.
pub const MAX_MODIFY_BYTES: usize = 16 << 20;
/// Columns of a listing.
pub const MAX_COLS: usize = 256;
/// How often one column may be asked for.
pub const MAX_COL_REPEATS: usize = 8;
/// Names of hosts, queues, users or groups in one request.
pub const MAX_NAMES: usize = 10_000;
/// Job IDs that one bjobs --watch names.
pub const MAX_WATCHED: usize = 1000;
/// Bytes of the texts of one selection of jobs.
pub const MAX_SELECT_BYTES: usize = 32 << 10;
/// Further filters of a selection of jobs.
pub const MAX_GIVEN: usize = 16;
/// Fields that one bmod names.
pub const MAX_FIELDS: usize = 128;
/// Longest request id, bytes.
pub const MAX_REQUEST_ID: usize = 128;

/// Longest environment of one job, bytes.
pub const MAX_ENV: usize = 4 << 20;
/// Longest script, bytes.
pub const MAX_SCRIPT: usize = 4 << 20;
/// Longest command text, path, requirement or description, bytes (LSF's own limit for texts).
pub const MAX_TEXT: usize = 4094;
/// Longest name of a job, project, group, queue or host, bytes.
pub const MAX_NAME: usize = 4094;
/// Longest text about the files of a user that were looked into, bytes.
pub const MAX_VERDICT: usize = 512;
/// Most slots one job may ask for.
pub const MAX_SLOTS: u32 = 1 << 20;
/// Words of bsub -m.
pub const MAX_HOST_WORDS: usize = 10_000;
/// Bytes of the words of bsub -m.
pub const MAX_HOST_BYTES: usize = 256 << 10;
/// Further options of a submission.
pub const MAX_EXTRA: usize = 64;
/// Bytes of the further options of a submission; the lines of -hostfile are among them.
pub const MAX_EXTRA_BYTES: usize = 512 << 10;

/// Attempts in one message of a host. A host that knows of more tells them in pieces.
pub const MAX_TASKS: usize = 1024;
/// Attempts in one piece of an inventory.
pub const TASKS_PIECE: usize = 256;
/// Attempts that one host tells of in all pieces of its inventory.
pub const MAX_INVENTORY: usize = 2 * super::launch::TASKS_MAX;
/// Processes of one attempt.
pub const MAX_PIDS: usize = 32_768;
/// Longest note of a host about an attempt, bytes.
pub const MAX_NOTE: usize = 64 << 10;
/// Longest path or user name that a host tells of an attempt, bytes: a path of the system, each
/// byte of which may be shown by three.
pub const MAX_SHOWN: usize = 3 * 4096;
/// Bytes of the texts about all attempts that one host tells of at a time. Beyond it each attempt
/// has an equal share.
pub const MAX_TOLD: usize = 3 << 20;
/// Bytes of the texts in one piece of an inventory of more than one attempt.
pub const TEXTS_PIECE: usize = 256 << 10;
/// Hosts in one message between daemons.
pub const MAX_HOSTS: usize = 100_000;
/// Words of the command of a remote task.
pub const MAX_ARGS: usize = 128 << 10;
/// Limits that a remote task is started with.
pub const MAX_RLIMITS: usize = 64;
/// Control characters of a terminal.
pub const MAX_CHARS: usize = 256;

fn over(what: &str, got: impl std::fmt::Display, most: impl std::fmt::Display) -> Refusal {
    let text = format!("the request names {got} {what}; the limit is {most}");
    Refusal::text(err::BAD_ARG, text)
}

fn bound(what: &str, got: usize, most: usize) -> Result<(), Refusal> {
    if got > most { Err(over(what, got, most)) } else { Ok(()) }
}

fn long(what: &str, len: usize, most: usize) -> Result<(), Refusal> {
    match len > most {
        true => Err(Refusal::text(
            err::BAD_ARG,
            format!("{what} is {len} bytes long; the limit is {most}"),
        )),
        false => Ok(()),
    }
}

/// Is a request of a command within the caps?
///
/// # Errors
/// Words that name what goes beyond, and the cap.
pub fn check(msg: &ClientMsg) -> Result<(), Refusal> {
    match msg {
        ClientMsg::Submit(s) => {
            long("the request id", s.request.len(), MAX_REQUEST_ID)?;
            long("the hash of the environment", s.env_hash.len(), MAX_REQUEST_ID)
        }
        ClientMsg::Control(c) => check_control(c),
        ClientMsg::Modify(m) => check_modify(m),
        ClientMsg::Peek(select) => check_select(select),
        ClientMsg::Stored { id, .. } => check_ids(std::slice::from_ref(id)),
        ClientMsg::Jobs(q) => check_query(q),
        ClientMsg::Queues { names, user, host } => {
            check_names(names)?;
            check_texts(&[user, host])
        }
        ClientMsg::Hosts { names, res_req } => {
            check_names(names)?;
            check_texts(&[res_req])
        }
        ClientMsg::Slots { res_req } => check_texts(&[res_req]),
        ClientMsg::Users { names }
        | ClientMsg::Applications { names }
        | ClientMsg::Partitions { names }
        | ClientMsg::Groups { names, .. } => check_names(names),
        ClientMsg::Limits(q) => {
            let all = [&q.names, &q.users, &q.queues, &q.hosts, &q.projects, &q.apps];
            all.into_iter().chain([&q.lic_projects]).try_for_each(|names| check_names(names))
        }
        ClientMsg::Wait(w) => {
            check_texts(&[&w.expr])?;
            let Some(select) = w.watch.as_deref() else { return Ok(()) };
            bound("job IDs to be watched", select.ids.len(), MAX_WATCHED)?;
            check_select(select)
        }
        ClientMsg::Admin(op) => check_admin(op),
        ClientMsg::Message(m) => check_message(m),
        ClientMsg::JobGroup(g) => check_group(g),
        ClientMsg::Reservation(r) => check_reservation(r),
        _ => Ok(()),
    }
}

fn check_control(c: &Control) -> Result<(), Refusal> {
    long("the request id", c.request.len(), MAX_REQUEST_ID)?;
    let moved = c.select.ids.iter().map(IdSel::named).fold(0u64, u64::saturating_add);
    if matches!(c.verb, Verb::Move { .. }) && moved > MAX_MOVED {
        return Err(over("elements to be moved", moved, MAX_MOVED));
    }
    if let Verb::Force(force) = &c.verb {
        bound("hosts", force.hosts.len(), MAX_FORCED_HOSTS)?;
        let names: Vec<&String> = force.hosts.iter().map(|(name, _)| name).collect();
        check_texts(&names)?;
    }
    if let Verb::Resize(ResizeRequest::Release { hosts, notify, .. }) = &c.verb {
        bound("hosts", hosts.hosts.len(), MAX_RELEASED)?;
        let names: Vec<&String> = hosts.hosts.iter().map(|host| &host.name).collect();
        check_texts(&names)?;
        check_notify(notify)?;
    }
    if let Verb::Resize(ResizeRequest::Grow { notify, .. }) = &c.verb {
        check_notify(notify)?;
    }
    check_select(&c.select)
}

fn check_notify(notify: &NotifyCommand) -> Result<(), Refusal> {
    match notify {
        NotifyCommand::Given(text) => check_texts(&[text]),
        NotifyCommand::OfJob | NotifyCommand::None => Ok(()),
    }
}

fn check_modify(m: &Modify) -> Result<(), Refusal> {
    bound("fields", m.fields.len(), MAX_FIELDS)?;
    check_ids(std::slice::from_ref(&m.id))
}

fn check_query(q: &JobQuery) -> Result<(), Refusal> {
    bound("columns", q.cols.len(), MAX_COLS)?;
    let often = |col: &Col| q.cols.iter().filter(|other| *other == col).count();
    if let Some(most) = q.cols.iter().map(often).max() {
        bound("columns of one kind", most, MAX_COL_REPEATS)?;
    }
    check_select(&q.select)
}

fn check_select(s: &JobSelect) -> Result<(), Refusal> {
    check_ids(&s.ids)?;
    check_texts(&[&s.user, &s.queue, &s.host, &s.name, &s.project])?;
    bound("filters", s.given.len(), MAX_GIVEN)?;
    s.given.iter().try_for_each(|(option, value)| check_texts(&[option, value]))?;
    let given = s.given.iter().map(|(option, value)| option.len() + value.len()).sum::<usize>();
    let texts = [&s.user, &s.queue, &s.host, &s.name, &s.project];
    let all = texts.into_iter().map(String::len).sum::<usize>() + given;
    long("the text of all filters", all, MAX_SELECT_BYTES)
}

/// IDs, their ranges and the elements that these name, each over the whole request.
fn check_ids(ids: &[IdSel]) -> Result<(), Refusal> {
    bound("job IDs", ids.len(), MAX_IDS)?;
    bound("ranges of elements", ids.iter().map(|id| id.elems.len()).sum(), MAX_RANGES)?;
    let named = ids.iter().map(IdSel::named).fold(0u64, u64::saturating_add);
    if named > MAX_ELEMENTS {
        return Err(over("elements of arrays", named, MAX_ELEMENTS));
    }
    Ok(())
}

fn check_names(names: &[String]) -> Result<(), Refusal> {
    bound("names", names.len(), MAX_NAMES)?;
    names.iter().try_for_each(|name| long("a name", name.len(), MAX_NAME))
}

fn check_texts(texts: &[&String]) -> Result<(), Refusal> {
    texts.iter().try_for_each(|text| long("a text of the request", text.len(), MAX_TEXT))
}

fn check_group(g: &JobGroupRequest) -> Result<(), Refusal> {
    match g {
        JobGroupRequest::Add { path, sla, .. } => check_texts(&[path, sla]),
        JobGroupRequest::Modify { path, owner, .. } => check_texts(&[path, owner]),
        JobGroupRequest::Delete(delete) => check_texts(&[&delete.path, &delete.user]),
        JobGroupRequest::List { path, .. } => check_texts(&[path]),
    }
}

fn check_reservation(r: &ReservationRequest) -> Result<(), Refusal> {
    match r {
        ReservationRequest::Add(new) => {
            let NewReservation { name, users, hosts, queues, description, scripts, .. } = &**new;
            [users, hosts, queues].into_iter().try_for_each(|names| check_names(names))?;
            check_texts(&[name, description, &scripts.pre, &scripts.post, &new.res_req])?;
            check_window(&new.time)
        }
        ReservationRequest::Modify { id, change } => check_reservation_change(id, change),
        ReservationRequest::Delete { ids: names }
        | ReservationRequest::List { ids: names }
        | ReservationRequest::Policies { names } => check_names(names),
    }
}

fn check_window(time: &ReservationTime) -> Result<(), Refusal> {
    match time {
        ReservationTime::Once { .. } => Ok(()),
        ReservationTime::Weekly(window) => check_texts(&[window]),
    }
}

fn check_reservation_change(id: &String, c: &ReservationChange) -> Result<(), Refusal> {
    check_texts(&[id])?;
    let chosen = |hosts: &Option<ChosenHosts>| match hosts {
        None => Ok(()),
        Some(chosen) => check_names(&chosen.hosts).and_then(|()| check_texts(&[&chosen.res_req])),
    };
    chosen(&c.add_hosts)?;
    chosen(&c.remove_hosts)?;
    let users = c.users.as_ref().map_or(&[][..], |(_, users)| users);
    let queues = c.queues.as_deref().unwrap_or_default();
    [users, &c.add_users, &c.remove_users, queues].into_iter().try_for_each(check_names)?;
    bound("disabled spans", c.disable.len(), MAX_NAMES)?;
    c.window.iter().chain(&c.description).try_for_each(|text| check_texts(&[text]))?;
    let scripts = c.scripts.iter().flat_map(|scripts| [&scripts.pre, &scripts.post]);
    scripts.into_iter().try_for_each(|text| check_texts(&[text]))
}

fn check_message(m: &MessageRequest) -> Result<(), Refusal> {
    let job = match m {
        MessageRequest::Post(post) => {
            check_texts(&[&post.text, &post.level, &post.file])?;
            long("the data file", post.data.len(), MAX_ATTACHMENT)?;
            &post.job
        }
        MessageRequest::Read { job, .. } | MessageRequest::Attachment { job, .. } => job,
    };
    check_texts(&[&job.name])
}

fn check_admin(op: &AdminOp) -> Result<(), Refusal> {
    match op {
        AdminOp::HostCtrl { hosts, lock, .. } => {
            check_texts(&[lock])?;
            check_names(hosts)
        }
        AdminOp::QueueCtrl { queues, .. } => check_names(queues),
        AdminOp::Logging { hosts, set } => {
            set.file.as_ref().map_or(Ok(()), |file| check_texts(&[file]))?;
            check_names(hosts)
        }
        AdminOp::GroupHosts { group, hosts, .. } => {
            check_texts(&[group])?;
            check_names(hosts)
        }
        AdminOp::Perfmon { what, .. } | AdminOp::Show { what } => check_texts(&[what]),
        AdminOp::Diagnose { what, file, .. } => check_texts(&[what, file]),
        AdminOp::DefineQueues { command, .. } => long("the command", command.len(), MAX_COMMAND),
        AdminOp::Reconfig { comment } | AdminOp::Shutdown { comment } => check_texts(&[comment]),
    }
}

/// Are the lists and texts of a submission within their caps?
///
/// # Errors
/// Words that name the field, its length and its cap.
pub fn check_spec(spec: &JobSpec) -> Result<(), Refusal> {
    for (what, len) in [
        ("the command", spec.command.len()),
        ("the working directory", spec.cwd.len()),
        ("the home directory", spec.home.len()),
        ("the input file name", spec.in_file.len()),
        ("the output file name", spec.out_file.len()),
        ("the error file name", spec.err_file.len()),
        ("the job description", spec.description.len()),
        ("the resource requirement", spec.res_req.len()),
        ("the dependency condition", spec.depend.len()),
        ("the pre-execution command", spec.pre_exec.len()),
        ("the post-execution command", spec.post_exec.len()),
        ("the login shell", spec.login_shell.len()),
    ] {
        long(what, len, MAX_TEXT)?;
    }
    bound("hosts", spec.hosts.len(), MAX_HOST_WORDS)?;
    long("the list of hosts", spec.hosts.iter().map(String::len).sum(), MAX_HOST_BYTES)?;
    bound("further options", spec.further.texts().count(), MAX_EXTRA)?;
    // what a condition was resolved to is not the submitter's
    let given = spec.further.texts().filter(|(key, _)| *key != RESOLVED_CONDITION);
    let bytes = given.map(|(key, text)| key.len() + text.len()).sum();
    long("the text of all further options", bytes, MAX_EXTRA_BYTES)
}

/// Is what a sbatchd tells within the caps? `Some`: what goes beyond.
pub fn check_sbd(msg: &SbdMsg) -> Option<String> {
    let bad = match msg {
        SbdMsg::Inventory { boot_id, tasks, members, unjoined, member_slots, .. } => {
            let joined = members.as_ref().map_or(0, Vec::len);
            let joined = joined.max(unjoined.len()).max(member_slots.len());
            bound("attempts", tasks.len(), MAX_TASKS)
                .and_then(|()| bound("memberships", joined, MAX_INVENTORY))
                .and_then(|()| long("the boot id", boot_id.len(), MAX_NAME))
                .and_then(|()| tasks.iter().try_for_each(check_task))
        }
        SbdMsg::JoinRefused { why, .. } => long("the reason", why.len(), MAX_NAME),
        SbdMsg::Validated { verdict: Verdict::NoLine(why) | Verdict::NotRead(why), .. } => {
            long("the reason", why.len(), MAX_VERDICT)
        }
        SbdMsg::State(task) => check_task(task),
        SbdMsg::HostCommandTold { state: HostCommandState::Failed { why, .. }, .. } => {
            long("the reason", why.len(), MAX_NAME)
        }
        SbdMsg::HostUsage { pids, groups, .. } => {
            bound("processes", pids.len().max(groups.len()), MAX_PIDS)
        }
        SbdMsg::Usage { pids, pgids, groups, .. } => {
            let most = pids.len().max(pgids.len()).max(groups.len());
            bound("processes", most, MAX_PIDS)
        }
        _ => Ok(()),
    };
    bad.err().map(|r| r.text)
}

fn check_task(task: &TaskState) -> Result<(), Refusal> {
    for text in [&task.exec_user, &task.exec_cwd, &task.exec_home] {
        long("a text about an attempt", text.len(), MAX_SHOWN)?;
    }
    long("the note about an attempt", task.note.len().max(task.after.len()), MAX_NOTE)
}

/// Cuts the text of a verdict to the cap of [`check_sbd`].
pub fn cut_verdict(verdict: &mut Verdict) {
    match verdict {
        Verdict::Accepted => {}
        Verdict::NoLine(why) | Verdict::NotRead(why) => cut_text(why, MAX_VERDICT),
    }
}

/// Parts an inventory into pieces that a turn can take. One of them is there, if only an empty one.
pub fn pieces(tasks: Vec<TaskState>) -> Vec<Vec<TaskState>> {
    let (mut all, mut bytes) = (vec![Vec::new()], 0);
    for task in tasks {
        bytes += texts_of(&task);
        let full = all.last().is_some_and(|piece| piece.len() >= TASKS_PIECE);
        if full || bytes > TEXTS_PIECE {
            (bytes, _) = (texts_of(&task), all.push(Vec::new()));
        }
        if let Some(piece) = all.last_mut() {
            piece.push(task);
        }
    }
    all
}

fn texts_of(t: &TaskState) -> usize {
    let all = [&t.exec_user, &t.exec_cwd, &t.exec_home, &t.note, &t.after];
    all.into_iter().map(String::len).sum()
}

/// Cuts what a host tells of attempts to the caps of [`check_sbd`], and to what a frame holds: a
/// user whose directory has a very long name must not cut the host off.
pub fn cut_tasks(tasks: &mut [TaskState]) {
    let share = match tasks.iter().map(texts_of).sum::<usize>() > MAX_TOLD {
        true => MAX_TOLD / tasks.len() / 5,
        false => usize::MAX,
    };
    for t in tasks {
        for text in [&mut t.exec_user, &mut t.exec_cwd, &mut t.exec_home] {
            cut_text(text, share.min(MAX_SHOWN));
        }
        for text in [&mut t.note, &mut t.after] {
            cut_text(text, share.min(MAX_NOTE));
        }
    }
}

fn cut_text(text: &mut String, most: usize) {
    let len = cut(text, most).len();
    text.truncate(len);
}

/// Is a message to LIM within the caps?
///
/// # Errors
/// Words that name what goes beyond, and the cap.
pub fn check_lim(msg: &LimMsg) -> Result<(), Refusal> {
    let name = |name: &String| long("a name", name.len(), MAX_NAME);
    match msg {
        LimMsg::Hosts { hosts } => check_names(hosts),
        LimMsg::Adjust { hosts } => {
            bound("names", hosts.len(), MAX_NAMES)?;
            hosts.iter().try_for_each(|(host, _)| name(host))
        }
        LimMsg::Exclusive { hosts } => {
            bound("hosts", hosts.len(), MAX_HOSTS)?;
            hosts.iter().try_for_each(name)
        }
        LimMsg::Loads { hosts } => bound("hosts", hosts.len(), MAX_HOSTS),
        LimMsg::Lock { host, .. } => name(host),
        LimMsg::Master { cluster, master } => [cluster, master].into_iter().try_for_each(name),
        LimMsg::Logging(set) => set.file.as_ref().map_or(Ok(()), |file| check_texts(&[file])),
        _ => Ok(()),
    }
}

/// Is a message to RES within the caps?
///
/// # Errors
/// Words that name what goes beyond, and the cap.
pub fn check_res(msg: &ResMsg) -> Result<(), Refusal> {
    match msg {
        ResMsg::Run(run) => check_run(run),
        ResMsg::Join { pty, .. } => check_pty(pty.as_ref()),
        ResMsg::Logging(set) => set.file.as_ref().map_or(Ok(()), |file| check_texts(&[file])),
        _ => Ok(()),
    }
}

fn check_run(run: &RunTask) -> Result<(), Refusal> {
    bound("words of a command", run.argv.len(), MAX_ARGS)?;
    bound("limits", run.rlimits.len(), MAX_RLIMITS)?;
    let words = run.argv.iter().map(|word| word.len() + 1).sum::<usize>();
    long("the command with its environment", words + run.env.len(), RUN_MAX)?;
    long("the data for eexec", run.eexec.len(), RUN_MAX)?;
    long("the working directory", run.cwd.len(), MAX_SHOWN)?;
    long("the home directory", run.home.len(), MAX_SHOWN)?;
    check_pty(run.pty.as_ref())
}

fn check_pty(pty: Option<&Pty>) -> Result<(), Refusal> {
    bound("control characters", pty.map_or(0, |pty| pty.chars.len()), MAX_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::Msg;

    fn kill(ids: Vec<IdSel>) -> ClientMsg {
        let select = JobSelect { ids, ..JobSelect::default() };
        ClientMsg::Control(Box::new(Control::of(Verb::Kill, select)))
    }

    fn words(msg: &ClientMsg) -> String {
        check(msg).err().map_or(String::new(), |r| r.text)
    }

    #[test]
    fn elements_are_counted_over_the_whole_request() {
        let half = IdSel { job: 7, elems: vec![(1, 500_000, 1)] };
        assert_eq!(words(&kill(vec![half.clone(), half.clone()])), "");
        let more = kill(vec![half.clone(), half, IdSel { job: 8, elems: vec![(5, 5, 1)] }]);
        let said = "the request names 1000001 elements of arrays; the limit is 1000000";
        assert_eq!(words(&more), said);
        let all = IdSel { job: 1, elems: vec![(1, u32::MAX, 1)] };
        assert!(words(&kill(vec![all; 100])).contains("429496729500 elements"));
        // a step of 0 is one of 1, a range that ends before it begins names nothing
        let odd = IdSel { job: 1, elems: vec![(1, 2_000_000, 0), (9, 3, 1)] };
        assert!(words(&kill(vec![odd])).contains("2000000 elements"));
    }

    #[test]
    fn ids_and_columns_are_bounded() {
        let ids = vec![IdSel { job: 1, elems: vec![] }; MAX_IDS + 1];
        assert!(words(&kill(ids)).contains("100001 job IDs"));
        let cols = |n: usize, col: Col| {
            let q = JobQuery { cols: vec![col; n], ..JobQuery::default() };
            words(&ClientMsg::Jobs(Box::new(q)))
        };
        assert_eq!(cols(MAX_COL_REPEATS, Col::Job), "");
        assert!(cols(MAX_COL_REPEATS + 1, Col::Job).contains("columns of one kind"));
        assert!(cols(100_000, Col::Command).contains("100000 columns"));
        let names = vec!["a".to_string(); MAX_NAMES + 1];
        assert!(words(&ClientMsg::Users { names }).contains("10001 names"));
    }

    #[test]
    fn fields_of_a_submission_are_bounded() {
        let said = |spec: JobSpec| check_spec(&spec).err().map_or(String::new(), |r| r.text);
        assert_eq!(said(JobSpec::default()), "");
        let hosts = vec!["h".to_string(); MAX_HOST_WORDS + 1];
        assert!(said(JobSpec { hosts, ..JobSpec::default() }).contains("10001 hosts"));
        let hosts = vec!["h".repeat(4000); 100];
        assert!(said(JobSpec { hosts, ..JobSpec::default() }).contains("the list of hosts"));
        let further = std::iter::repeat_n(("g", "x"), MAX_EXTRA + 1).collect();
        assert!(said(JobSpec { further, ..JobSpec::default() }).contains("further options"));
        let further = [("a", "x".repeat(MAX_EXTRA_BYTES))].into_iter().collect();
        assert!(said(JobSpec { further, ..JobSpec::default() }).contains("further options"));
        let long = "x".repeat(MAX_TEXT + 1);
        assert!(said(JobSpec { depend: long.clone(), ..JobSpec::default() }).contains("4095"));
        assert!(said(JobSpec { res_req: long, ..JobSpec::default() }).contains("4095"));
    }

    #[test]
    fn reports_of_a_host_are_bounded() {
        let task = TaskState { note: "x".repeat(MAX_NOTE + 1), ..TaskState::default() };
        assert!(check_sbd(&SbdMsg::State(Box::new(task.clone()))).is_some());
        let tasks = vec![TaskState::default(), task];
        assert!(
            check_sbd(&SbdMsg::Inventory {
                boot_id: "b".into(),
                tasks,
                more: false,
                members: None,
                validates: false,
                unjoined: Vec::new(),
                member_slots: Vec::new(),
            })
            .is_some()
        );
        let many = |n: usize| {
            let tasks = vec![TaskState::default(); n];
            check_sbd(&SbdMsg::Inventory {
                boot_id: "b".into(),
                tasks,
                more: true,
                members: None,
                validates: false,
                unjoined: Vec::new(),
                member_slots: Vec::new(),
            })
        };
        assert!(many(MAX_TASKS).is_none() && many(MAX_TASKS + 1).is_some());
        let pids = vec![1; MAX_PIDS + 1];
        let (pgids, groups) = (vec![], vec![]);
        let (key, usage) = Default::default();
        assert!(check_sbd(&SbdMsg::Usage { key, usage, pids, pgids, groups }).is_some());
        assert!(check_sbd(&SbdMsg::State(Box::default())).is_none());
    }

    #[test]
    fn an_inventory_is_parted_by_attempts_and_by_bytes() {
        let lens = |tasks: Vec<TaskState>| pieces(tasks).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lens(vec![]), [0]);
        assert_eq!(lens(vec![TaskState::default(); 2 * TASKS_PIECE]), [TASKS_PIECE; 2]);
        let long = TaskState { note: "x".repeat(TEXTS_PIECE / 2), ..TaskState::default() };
        assert_eq!(lens(vec![long; 5]), [2, 2, 1]);
    }

    #[test]
    fn report_of_a_host_is_cut_to_the_caps() {
        let long = "/\u{fffd}".repeat(40_000);
        let task = TaskState {
            exec_cwd: long.clone(),
            exec_home: long.clone(),
            note: long.clone(),
            after: long,
            ..TaskState::default()
        };
        let mut one = vec![task.clone()];
        cut_tasks(&mut one);
        assert!(check_sbd(&SbdMsg::State(Box::new(one[0].clone()))).is_none());
        assert!(one[0].note.len() > MAX_NOTE - 4 && one[0].exec_cwd.len() > MAX_SHOWN - 4);
        let short = TaskState { note: "short".into(), ..TaskState::default() };
        let mut many = vec![task; 2000];
        many.push(short);
        cut_tasks(&mut many);
        let tasks = many.clone();
        let told = Msg::Sbd(SbdMsg::Inventory {
            boot_id: "b".into(),
            tasks,
            more: false,
            members: None,
            validates: false,
            unjoined: Vec::new(),
            member_slots: Vec::new(),
        });
        let bytes = serde_json::to_vec(&told).unwrap().len();
        assert!(bytes < super::super::frame::MAX_FRAME, "{bytes}");
        assert!(many[0].note.len() > 100 && many[2000].note == "short");
    }
}

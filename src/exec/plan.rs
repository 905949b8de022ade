//! Makes a starter's plan from a start order: the job's environment, its file names, its text.

use crate::exec::job_starter::quoted;
use crate::exec::{binding, checkpoint, env_script};
use crate::lang::exitcodes::ExitCodes;
use crate::model::ByteStr;
use crate::model::bind_job::BindPolicy;
use crate::model::bytes::b64_decode;
use crate::model::further::CopyFile;
use crate::model::job::{EEXEC_DATA, End, opt, opt2};
use crate::model::limits::{GroupMemory, LimitEnforcement, Limits};
use crate::model::topology::Topology;
use crate::proto::job_directory::TemporaryDirectory;
use crate::proto::launch::{Account, Attach, Eexec, Hook, HookOf, JobPlan, Plan, Ready, TaskPlan};
use crate::proto::res::{Pty, job_token};
use crate::proto::sbd::StartJob;
use std::fmt::Write;

/// LSB_HOSTS is left out where it would be longer, bytes.
pub const LSB_HOSTS_MAX: usize = 4096;

/// Variables of the submitter that never reach the job: they speak of another session, host or job.
/// The variables that [`job_env`] sets are dropped too.
const DROPPED: [&[u8]; 31] = [
    // of the request that the submitter is in
    b"QSUB_REQID",
    EEXEC_DATA.as_bytes(),
    b"HOME",
    b"PWD",
    b"OLDPWD",
    b"USER",
    b"TERM",
    b"TERMCAP",
    b"LS_JOBPID",
    b"LSB_JOBFILENAME",
    b"LSB_JOB_TMPDIR",
    b"LSB_CHKFILENAME",
    b"LSB_JOBPIDS",
    b"LSB_JOBPGIDS",
    b"LSB_JOBRES_PID",
    b"LSB_JOBINDEX_END",
    b"LSB_JOBINDEX_STEP",
    b"LSB_HOSTS",
    b"LSB_DJOB_HOSTFILE",
    b"LSB_DJOB_RANKFILE",
    b"LSB_AFFINITY_HOSTFILE",
    b"LSB_BIND_JOB",
    b"LSB_BIND_CPU_LIST",
    b"LSB_BIND_MEM_LIST",
    b"LSB_BIND_MEM_POLICY",
    b"LSB_OUTPUTFILE",
    b"LSB_ERRORFILE",
    b"LSB_INTERACTIVE",
    b"LSB_RESTART",
    b"LSB_JOB_STARTER",
    b"LSF_LOCAL_HOST",
];

/// Variables about the submitter's terminal: the terminal of a job on a pseudo-terminal is of the
/// same kind.
const OF_TERMINAL: [&[u8]; 2] = [b"TERM", b"TERMCAP"];

/// The environment that is the same for every job of this host.
#[derive(Clone, Debug, Default)]
pub struct HostEnvironment {
    /// This host's name.
    pub host: String,
    /// The host in identifiers of NQS requests.
    pub request_host: String,
    /// LSF_ENVDIR, LSF_BINDIR, LSF_SERVERDIR, LSF_LIBDIR, LSF_VERSION, and LSF_LOCAL_HOST where
    /// it is allowed.
    pub env: Vec<(String, String)>,
    /// LSF_SERVERDIR/eexec; empty: no LSF_SERVERDIR.
    pub eexec: String,
    /// The path of res's socket, for starters of interactive jobs.
    pub res_socket: String,
    /// The end of the names of files of jobs below ~/.lsbatch.
    pub tag: String,
    /// LSB_EXIT_IF_CWD_NOTEXIST=Y in lsf.conf.
    pub need_cwd: bool,
    /// LSB_STDOUT_DIRECT=Y in lsf.conf.
    pub direct: bool,
    /// LSB_MAILPROG, LSB_MAILTO, LSB_MAILSIZE_LIMIT (KB; 0 any).
    pub mail_program: String,
    pub mail_to: String,
    pub mail_limit_kb: u64,
    /// Seconds between INT, TERM and KILL.
    pub terminate_interval: u64,
    /// LSB_SIGSTOP: the signal that suspends every job.
    pub stop_signal: Option<i32>,
    pub enforcement: LimitEnforcement,
    /// The directory below which each job has one for its temporary files, and the variable that
    /// names it; `None`: jobs have none.
    pub tmpdir: Option<(String, String)>,
    /// LSF_BIND_JOB.
    pub bind_job: BindPolicy,
    /// The processors of this host; empty: not known.
    pub topology: Topology,
}

/// The limits that the kernel enforces for each process.
fn process_limits(limits: &Limits, enforcement: LimitEnforcement) -> Limits {
    let mut limits = limits.clone();
    limits.cpu = limits.cpu.filter(|_| enforcement.cpu_of_process);
    let each = limits.memory_of.map_or(enforcement.memory_of_process, |of| of.process);
    limits.rss = limits.rss.filter(|_| each);
    limits
}

/// The limits of the job's control group on this host: those of one task, and its tasks here; with
/// -hl those of the job.
fn group_memory(site: &HostEnvironment, o: &StartJob) -> Option<GroupMemory> {
    let here = o.hosts.iter().find(|h| *h.0 == *site.host).map_or(1, |h| u64::from(h.1.max(1)));
    let tasks = if o.spec.further.per_host.0 { 1 } else { here };
    let all = |kb: u64| kb.saturating_mul(tasks);
    let memory_kb = o.limits.rss.filter(|_| site.enforcement.memory_by_group).map(all)?;
    Some(GroupMemory { memory_kb, swap_kb: o.limits.swap.map(all) })
}

/// `%J` and `%I` of a file name. The values are digits, so no name can leave its directory by
/// them.
pub fn expand(name: &[u8], job: u32, idx: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len() + 16);
    let mut rest = name;
    while let Some((&c, tail)) = rest.split_first() {
        match (c, tail.first()) {
            (b'%', Some(b'J')) => out.extend_from_slice(job.to_string().as_bytes()),
            (b'%', Some(b'I')) => out.extend_from_slice(idx.to_string().as_bytes()),
            _ => {
                out.push(c);
                rest = tail;
                continue;
            }
        }
        rest = &tail[1..];
    }
    out
}

/// The patterns of -cwd and -outdir (bsub(1)): %J %I %EJ %EI %P %U %G %H, and the job group as %JG.
/// A name is one component of the path, so that it cannot leave the directory.
pub fn expand_dir(dir: &[u8], o: &StartJob) -> Vec<u8> {
    let spec = &o.spec;
    let host = o.hosts.first().map_or("", |h| &*h.0);
    let group = spec.further.job_group.trim_matches('/');
    let one = |name: &str| match name {
        "" | "." | ".." => "-".to_string(),
        name => name.replace('/', "-"),
    };
    let inside = |path: &str| path.split('/').map(one).collect::<Vec<_>>().join("/");
    let (job, idx) = (o.key.job.to_string(), o.key.idx.to_string());
    let patterns = [
        ("EJ", job.clone()),
        ("EI", idx.clone()),
        ("JG", if group.is_empty() { String::new() } else { inside(group) }),
        ("J", job),
        ("I", idx),
        ("P", one(&spec.project)),
        ("U", one(&o.user)),
        ("G", one(&spec.user_group)),
        ("H", one(host)),
    ];
    let mut out = Vec::with_capacity(dir.len() + 16);
    let mut rest = dir;
    while let Some((&c, tail)) = rest.split_first() {
        let hit = patterns.iter().find(|(p, _)| c == b'%' && tail.starts_with(p.as_bytes()));
        match hit {
            Some((p, value)) => {
                out.extend_from_slice(value.as_bytes());
                rest = &tail[p.len()..];
            }
            None => {
                out.push(c);
                rest = tail;
            }
        }
    }
    out
}

/// The variables the batch system sets.
pub(super) fn set_env(site: &HostEnvironment, o: &StartJob) -> Vec<(String, Vec<u8>)> {
    let spec = &o.spec;
    let slots: u32 = o.hosts.iter().map(|h| h.1.max(1)).sum();
    let mut each = String::new();
    let mut counted = String::new();
    for (host, n) in o.hosts.iter() {
        let n = (*n).max(1);
        let _ = write!(counted, "{}{host} {n}", if counted.is_empty() { "" } else { " " });
        for _ in 0..n {
            if each.len() < LSB_HOSTS_MAX {
                let _ = write!(each, "{}{host}", if each.is_empty() { "" } else { " " });
            }
        }
    }
    let id = o.key.job.to_string();
    let name = if o.name.is_empty() { spec.command.0.clone() } else { o.name.clone().into() };
    let text = |s: &str| s.as_bytes().to_vec();
    let mut vars = vec![
        ("LSB_JOBID", text(&id)),
        ("LSB_BATCH_JID", text(&id)),
        ("LSB_JOBINDEX", text(&o.key.idx.to_string())),
        ("LSB_JOBNAME", name),
        ("LSB_QUEUE", text(&spec.queue)),
        ("LSB_PROJECT_NAME", text(&spec.project)),
        ("LSB_MCPU_HOSTS", text(&counted)),
        ("LSB_DJOB_NUMPROC", text(&slots.to_string())),
        ("LSB_MAX_NUM_PROCESSORS", text(&spec.max_slots.max(1).to_string())),
        ("LSB_SUB_HOST", text(&spec.from_host)),
        ("LSB_SUB_USER", text(&o.user)),
        ("LSB_EXEC_CLUSTER", text(&o.cluster)),
        ("LSB_EFFECTIVE_RSRCREQ", text(&o.eff_res_req)),
        ("LSB_EXIT_PRE_ABORT", text("99")),
        ("LS_SUBCWD", spec.cwd.0.clone()),
        ("LS_EXEC_T", text("START")),
        ("LSFUSER", text(&o.user)),
        ("LSF_INVOKE_CMD", text("bsub")),
        ("JOB_TERMINATE_INTERVAL", text(&site.terminate_interval.to_string())),
    ];
    if each.len() < LSB_HOSTS_MAX {
        vars.push(("LSB_HOSTS", text(&each)));
    }
    if o.key.idx != 0 {
        vars.push(("LSB_JOBINDEX_END", text(&o.index_end.to_string())));
        vars.push(("LSB_JOBINDEX_STEP", text(&o.index_step.max(1).to_string())));
    }
    for (name, file) in [("LSB_OUTPUTFILE", &spec.out_file), ("LSB_ERRORFILE", &spec.err_file)] {
        if !file.is_empty() {
            vars.push((name, expand(&file.0, o.key.job, o.key.idx)));
        }
    }
    vars.extend(optional_env(site, o));
    let own = site.env.iter().map(|(n, v)| (n.clone(), text(v)));
    let bound = binding::variables(o, &site.host);
    vars.into_iter().map(|(n, v)| (n.to_string(), v)).chain(own).chain(bound).collect()
}

/// The variables that say what few jobs have.
fn optional_env(site: &HostEnvironment, o: &StartJob) -> Vec<(&'static str, Vec<u8>)> {
    let spec = &o.spec;
    let text = |s: &str| s.as_bytes().to_vec();
    let mut vars = Vec::new();
    if !spec.further.requeue.is_empty() {
        vars.push(("LSB_EXIT_REQUEUE", text(&spec.further.requeue)));
    }
    if spec.further.nqs.0 {
        let request = format!("{}.{}", o.key.job_ref(), site.request_host);
        vars.push(("QSUB_REQID", text(&request)));
    }
    if !spec.further.application.is_empty() {
        vars.push(("LSB_APPLICATION_NAME", text(&spec.further.application)));
    }
    if !o.starter.is_empty() {
        vars.push(("LSB_JOB_STARTER", text(&o.starter)));
    }
    // so that a blaunch that loses a host ends no later attempt
    if o.hosts.len() > 1 {
        vars.push(("LSB_DJOB_ATTEMPT", text(&o.key.attempt.to_string())));
    }
    if spec.options & opt::INTERACTIVE != 0 {
        vars.push(("LSB_INTERACTIVE", text("Y")));
    }
    if o.rerun && o.key.attempt > 1 || !o.restart.is_empty() {
        vars.push(("LSB_RESTART", text("Y")));
    }
    if let Some(dir) = checkpoint::directory(o) {
        vars.push(("LSB_CHKPNT_DIR", text(&dir)));
    }
    vars
}

/// The job's environment but for what only its starter knows: the submitter's, less
/// [`DROPPED`], under what the batch system sets.
fn job_env(site: &HostEnvironment, o: &StartJob, user_env: &[u8]) -> Vec<u8> {
    let set = set_env(site, o);
    let terminal = o.spec.options & opt::PTY != 0;
    let mut out = Vec::with_capacity(user_env.len() + 1024);
    for entry in entries(user_env) {
        let Some(eq) = memchr::memchr(b'=', entry).filter(|&at| at > 0) else { continue };
        let name = &entry[..eq];
        let kept = terminal && OF_TERMINAL.contains(&name);
        let dropped =
            DROPPED.contains(&name) && !kept || set.iter().any(|(n, _)| n.as_bytes() == name);
        if !dropped {
            out.extend_from_slice(entry);
            out.push(0);
        }
    }
    for (name, text) in &o.env_vars {
        if value(user_env, name).is_none() && !set.iter().any(|(n, _)| n == name) {
            out.extend_from_slice(format!("{name}={text}\0").as_bytes());
        }
    }
    for (name, value) in set {
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        out.extend(value.into_iter().filter(|&b| b != 0));
        out.push(0);
    }
    out
}

/// The variables of an environment, `name=value` each. A start looks through the whole of it more
/// than ten times, and it may have megabytes.
fn entries(mut env: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (entry, rest) = match memchr::memchr(0, env) {
            Some(end) => (&env[..end], &env[end + 1..]),
            None if env.is_empty() => return None,
            None => (env, &[][..]),
        };
        env = rest;
        Some(entry)
    })
}

/// The value of a variable of the submitter's environment.
pub(super) fn value<'a>(env: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let of = |entry: &'a [u8]| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=");
    entries(env).find_map(of)
}

fn is_yes(value: &[u8]) -> bool {
    value.eq_ignore_ascii_case(b"y") || value.eq_ignore_ascii_case(b"yes")
}

/// Whether the submitter's environment says `name=Y`.
fn yes(env: &[u8], name: &str) -> bool {
    value(env, name).is_some_and(is_yes)
}

/// Whether output goes to its files at once: the submitter stands above the site.
fn direct(site: &HostEnvironment, user_env: &[u8]) -> bool {
    value(user_env, "LSB_STDOUT_DIRECT").map_or(site.direct, is_yes)
}

/// Whether what runs after the job is part of it: the submitter stands above the site.
pub fn includes_post(o: &StartJob, user_env: &[u8]) -> bool {
    value(user_env, "LSB_JOB_INCLUDE_POSTPROC").map_or(o.include_post, is_yes)
}

/// A command that starts something in the background ends, as in LSF's job file, when that has
/// ended. Others are left alone, so that the shell can become the command.
fn with_wait(command: &[u8]) -> Vec<u8> {
    let before = |i: usize| i.checked_sub(1).map(|p| command[p]);
    let after = |i: usize| command.get(i + 1).copied();
    let background = command.iter().enumerate().any(|(i, &c)| {
        c == b'&'
            && !matches!(before(i), Some(b'&' | b'>' | b'<' | b'\\'))
            && !matches!(after(i), Some(b'&' | b'>'))
    });
    let mut out = command.to_vec();
    if background {
        out.extend_from_slice(b"\nExitStat=$?\nwait\nexit $ExitStat\n");
    }
    out
}

/// The words of a command which every shell would run as they stand: it starts with a path, which
/// no function, alias or builtin can have as its name, and holds nothing that a shell reads
/// otherwise. The job is then the program itself, as where /bin/sh is bash, at a third of the cost.
pub fn plain_words(command: &[u8]) -> Vec<ByteStr> {
    let plain = |c: &u8| c.is_ascii_alphanumeric() || b"_./,:+@%=- ".contains(c);
    let words: Vec<&[u8]> = command.split(|&c| c == b' ').filter(|w| !w.is_empty()).collect();
    let path = words.first().is_some_and(|w| w.contains(&b'/') && !w.contains(&b'='));
    if !path || !command.iter().all(plain) {
        return Vec::new();
    }
    words.into_iter().map(|w| w.to_vec().into()).collect()
}

/// The plan of a job.
pub fn plan(site: &HostEnvironment, o: &StartJob, user_env: &[u8], script: &[u8]) -> Plan {
    let spec = &o.spec;
    let name = |file: &ByteStr| ByteStr(expand(&file.0, o.key.job, o.key.idx));
    let restart = checkpoint::restart_command(o);
    let (command, script) = match &restart {
        Some(line) => (line.as_bytes(), &b""[..]),
        None => (&spec.command.0[..], script),
    };
    let env = job_env(site, o, user_env);
    let job = JobPlan {
        env_script: env_script::path(|name| value(&env, name)),
        job: o.key.job,
        idx: o.key.idx,
        submit_time: o.submit_time,
        tag: site.tag.clone(),
        command: with_wait(command).into(),
        words: plain_words(command),
        script: script.to_vec().into(),
        starter: o.starter.as_str().into(),
        env: env.into(),
        cwd: expand_dir(&spec.cwd.0, o).into(),
        // one that is named by the job is made for it
        make_cwd: spec.options2 & opt2::CWD != 0 && spec.cwd.0.contains(&b'%'),
        out_dir: expand_dir(spec.further.out_dir.as_bytes(), o).into(),
        temporary: temporary(site, o),
        home: spec.home.clone(),
        need_cwd: site.need_cwd || yes(user_env, "LSB_EXIT_IF_CWD_NOTEXIST"),
        in_file: name(&spec.in_file),
        out_file: name(&spec.out_file),
        err_file: name(&spec.err_file),
        out_over: spec.options2 & opt2::OVERWRITE_OUT != 0,
        err_over: spec.options2 & opt2::OVERWRITE_ERR != 0,
        buffered: !direct(site, user_env),
        umask: spec.umask & 0o777,
        nice: o.nice,
        limits: process_limits(&o.limits, site.enforcement),
        memory: group_memory(site, o),
        mail_program: site.mail_program.as_str().into(),
        pre: pre(o),
        pre_limit_secs: o.pre_timeout,
        login_shell: spec.login_shell.clone(),
        ranks: o.ranks.clone(),
        own_host_file: o.resizable,
        eexec: eexec(site, user_env),
        attach: None,
        account: account(o),
        interactive: interactive(site, o),
        binding: binding::binding(o, &site.host),
    };
    Plan { uid: o.uid, gid: o.gid, user: o.user.to_string(), what: TaskPlan::Job(Box::new(job)) }
}

/// `base/JOB.tmpdir`, of an element `base/JOB_INDEX.tmpdir`; %H stands for the first host.
pub fn temporary(site: &HostEnvironment, o: &StartJob) -> Option<Box<TemporaryDirectory>> {
    let (base, variable) = site.tmpdir.as_ref()?;
    let base = base.replace("%H", o.hosts.first().map_or("", |host| &*host.0));
    let name = match o.key.idx {
        0 => format!("{}.tmpdir", o.key.job),
        idx => format!("{}_{idx}.tmpdir", o.key.job),
    };
    let path = format!("{}/{name}", base.trim_end_matches('/')).into_bytes().into();
    Some(Box::new(TemporaryDirectory { path, variable: variable.clone() }))
}

/// The account of ~/.lsfhosts under which the job runs.
fn account(o: &StartJob) -> Option<Box<Account>> {
    let (user, from, host) = (o.account.clone(), o.user.to_string(), o.spec.from_host.clone());
    (!user.is_empty()).then(|| Box::new(Account { user, from, host }))
}

/// How an interactive job meets the bsub that waits for it.
fn interactive(site: &HostEnvironment, o: &StartJob) -> Option<Box<Attach>> {
    let options = o.spec.options;
    let shell = options & opt::PTY_SHELL != 0;
    (options & opt::INTERACTIVE != 0).then(|| {
        Box::new(Attach {
            socket: site.res_socket.as_str().into(),
            token: job_token(o.key).to_vec().into(),
            pty: (options & opt::PTY != 0).then(|| Pty { shell, ..Pty::default() }),
            ..Attach::default()
        })
    })
}

/// The site's eexec with what esub has printed for it.
pub fn eexec(site: &HostEnvironment, user_env: &[u8]) -> Eexec {
    let value = |entry: &[u8]| {
        let text = entry.strip_prefix(EEXEC_DATA.as_bytes())?.strip_prefix(b"=")?;
        b64_decode(std::str::from_utf8(text).ok()?)
    };
    let data = entries(user_env).find_map(value).unwrap_or_default();
    Eexec { program: site.eexec.as_str().into(), data: data.into() }
}

/// The commands before the job, in their order.
fn pre(o: &StartJob) -> Vec<Hook> {
    let mut all = Vec::new();
    hook(&mut all, HookOf::Host, o.host_pre_exec.as_bytes());
    let copies = o.spec.further.copies.iter().filter(|c| c.op.to_exec());
    all.extend(copies.map(|c| copy(o, c, &from_host(o, &c.local), c.remote.as_bytes())));
    hook(&mut all, HookOf::Queue, o.pre_exec.as_bytes());
    hook(&mut all, HookOf::Job, &o.spec.pre_exec.0);
    if let Some(restart) = checkpoint::prepare_restart_command(o) {
        let shown = "the restart from the checkpoint".into();
        all.push(Hook { shown, ..Hook::new(HookOf::Job, restart) });
    }
    all
}

/// The transfers back: part of the job, which is not over before them.
pub fn copies_back(o: &StartJob) -> Vec<Hook> {
    let back = o.spec.further.copies.iter().filter(|c| c.op.from_exec());
    back.map(|c| copy(o, c, c.remote.as_bytes(), &from_host(o, &c.local))).collect()
}

/// The commands after the job.
pub fn post(o: &StartJob) -> Vec<Hook> {
    let spooled = &o.spec.further.spooled_input;
    let mut all = Vec::new();
    hook(&mut all, HookOf::Job, &o.spec.post_exec.0);
    hook(&mut all, HookOf::Queue, o.post_exec.as_bytes());
    hook(&mut all, HookOf::Host, o.host_post_exec.as_bytes());
    // the elements of an array may share theirs
    if !spooled.is_empty() && (o.key.idx == 0 || spooled.contains("%I")) {
        let file = quoted(&expand(spooled.as_bytes(), o.key.job, o.key.idx));
        let rm = [b"test -n \"$LSB_JOBPEND\" || exec rm -f ", &file[..]].concat();
        all.push(Hook::new(HookOf::Copy, rm));
    }
    all
}

fn hook(all: &mut Vec<Hook>, of: HookOf, text: &[u8]) {
    if !text.is_empty() {
        all.push(Hook::new(of, text.to_vec()));
    }
}

/// `host:path` of a file there, relative to the directory of submission.
fn from_host(o: &StartJob, file: &str) -> Vec<u8> {
    let mut place = format!("{}:", o.spec.from_host).into_bytes();
    if !file.starts_with('/') {
        place.extend_from_slice(&o.spec.cwd.0);
        place.push(b'/');
    }
    place.extend_from_slice(file.as_bytes());
    place
}

/// A transfer by lsrcp. On this host one and the same file is left alone: it would be emptied.
/// With another host, what may be one file on both sides (a shared file system) is copied on the
/// way.
fn copy(o: &StartJob, as_asked: &CopyFile, from: &[u8], to: &[u8]) -> Hook {
    let how = if as_asked.op.appends() { "-a " } else { "" };
    let here = o.hosts.first().map_or("", |h| &*h.0);
    let other = format!("{}:", o.spec.from_host);
    let bare = |place: &[u8]| place.strip_prefix(other.as_bytes()).unwrap_or(place).to_vec();
    let word = |place: &[u8]| {
        String::from_utf8_lossy(&quoted(&expand(place, o.key.job, o.key.idx))).into_owned()
    };
    let (a, b) = (word(&bare(from)), word(&bare(to)));
    let lsrcp = format!("\"${{LSF_BINDIR:+$LSF_BINDIR/}}lsrcp\" {how}");
    let text = if here == o.spec.from_host {
        format!("test {a} -ef {b} || exec {lsrcp}{a} {b}")
    } else {
        let (from_here, from, to) = (bare(from) == from, word(from), word(to));
        let through = match from_here {
            true => format!("cat {a} > \"$t\" && {lsrcp}\"$t\" {to}"),
            false => format!("{lsrcp}{from} \"$t\" && cat \"$t\" > {b}"),
        };
        format!(
            "test {a} -ef {b} || exec {lsrcp}{from} {to}\n\
             t=$(mktemp) && {through}; r=$?; rm -f \"$t\"; exit $r"
        )
    };
    Hook { shown: as_asked.to_string(), ..Hook::new(HookOf::Copy, text.into_bytes()) }
}

/// The environment of what acts on a running job: the job's, with its processes.
pub fn control_env(
    site: &HostEnvironment,
    o: &StartJob,
    ready: &Ready,
    (leader, pids, pgids): (u32, &[u32], &[u32]),
    user_env: &[u8],
) -> Vec<u8> {
    let mut env = job_env(site, o, user_env);
    let words = |ids: &[u32]| {
        let leader = [leader];
        let ids = if ids.is_empty() { &leader } else { ids };
        ids.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
    };
    for (name, value) in [
        ("HOME", ready.home.clone()),
        ("USER", ready.user.clone()),
        ("PWD", ready.cwd.clone()),
        ("LS_JOBPID", leader.to_string()),
        ("LSB_JOBPIDS", words(pids)),
        ("LSB_JOBPGIDS", words(pgids)),
    ] {
        env.extend_from_slice(format!("{name}={value}\0").as_bytes());
    }
    env
}

/// The environment of what runs after the job: the job's, and how it ended.
pub fn post_env(
    site: &HostEnvironment,
    o: &StartJob,
    ready: &Ready,
    end: Option<(End, u32, i64)>,
    user_env: &[u8],
) -> Vec<u8> {
    let mut env = job_env(site, o, user_env);
    let status = match end {
        Some((End::Status(s), ..)) => s,
        _ => 0,
    };
    let mut put = |name: &str, value: &str| {
        env.extend_from_slice(format!("{name}={value}\0").as_bytes());
    };
    put("HOME", &ready.home);
    put("USER", &ready.user);
    put("PWD", &ready.cwd);
    put("LSB_JOBEXIT_STAT", &status.to_string());
    let signal = status & 0x7f;
    let text = if signal == 0 { String::new() } else { format!("SIGNAL {signal}") };
    put("LSB_JOBEXIT_INFO", &text);
    // one that never ran goes back, too
    if end.is_none() || goes_back(o, end) {
        put("LSB_JOBPEND", "1");
    }
    env
}

/// The environment of HOST_PRE_EXEC, and of HOST_POST_EXEC after a job with this wait status, on
/// another host than the first one.
pub fn host_env(
    site: &HostEnvironment,
    o: &StartJob,
    status: Option<i32>,
    user_env: &[u8],
) -> Vec<u8> {
    let mut env = job_env(site, o, user_env);
    env.extend_from_slice(format!("USER={}\0", o.user).as_bytes());
    if let Some(status) = status {
        env.extend_from_slice(format!("LSB_JOBEXIT_STAT={status}\0").as_bytes());
    }
    env
}

/// Whether a job that has ended so goes back to its queue.
pub fn goes_back(o: &StartJob, end: Option<(End, u32, i64)>) -> bool {
    use crate::model::reason::term;
    let Some((end, info, _)) = end else { return false };
    let codes = || ExitCodes::parse(&o.spec.further.requeue).unwrap_or_default();
    let by_code = info == 0 && end.code().is_some_and(|code| codes().has(code));
    let rerun = info == term::HOST_RESTART && o.spec.options & opt::RERUNNABLE != 0;
    rerun || by_code || matches!(info, term::REQUEUE_OWNER | term::REQUEUE_ADMIN)
}

/// The end as the user is told of it: an exit value of SUCCESS_EXIT_VALUES is success.
pub fn told_end(o: &StartJob, end: End, info: u32) -> End {
    let codes = || ExitCodes::parse(&o.success).unwrap_or_default();
    match info == 0 && !o.success.is_empty() && end.code().is_some_and(|code| codes().has(code)) {
        true => End::Status(0),
        false => end,
    }
}

/// The recipient of mail about the job: -u, else the submitter in the form of LSB_MAILTO, where
/// `!U` is the user and `!H` the host of submission. An address that mail programs would take for
/// an option becomes empty.
pub fn mail_to(site: &HostEnvironment, o: &StartJob) -> String {
    let to = match o.spec.mail_user.is_empty() {
        true => site.mail_to.replace("!U", &o.user).replace("!H", &o.spec.from_host),
        false => o.spec.mail_user.clone(),
    };
    if to.starts_with('-') || to.chars().any(char::is_control) { String::new() } else { to }
}

/// Maps a directory of the submission host to this host: below the home there becomes below the
/// home here.
pub fn map_home(dir: &[u8], home_there: &[u8], home_here: &[u8]) -> Vec<u8> {
    let there = trim_slashes(home_there);
    match dir.strip_prefix(there) {
        Some(rest) if !there.is_empty() && (rest.is_empty() || rest[0] == b'/') => {
            [trim_slashes(home_here), rest].concat()
        }
        _ => dir.to_vec(),
    }
}

fn trim_slashes(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&b| b != b'/').map_or(0, |at| at + 1);
    &path[..end]
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

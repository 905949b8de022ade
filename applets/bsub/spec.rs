//! Makes a submission from options: all that can be checked without the master is checked here,
//! with LSF's words, so that a mistake costs no connection. Names only the cluster knows (queues,
//! hosts, users, resources) are left to mbatchd.

use super::opts::BsubOpts;
use super::rejection::Rejection;
use super::{interactive, job_file, resreq, when};
use jiff::tz::TimeZone;
use lsf::cli::tasks::Tasks;
use lsf::conf::lsb_hosts::MAX_MIG;
use lsf::conf::units::{self, SizeUnit};
use lsf::conf::warning;
use lsf::lang::depend::DepExpr;
use lsf::lang::exitcodes::ExitCodes;
use lsf::lang::jobname::JobName;
use lsf::model::checkpoint::Checkpoint;
use lsf::model::further::{CopyFile, FurtherOptions, Mark, SignalNumber};
use lsf::model::job::{JobSpec, opt, opt2};
use lsf::model::nqs::asked_of_balancer;
use lsf::model::reason::{err, err_text};
use lsf::model::resize::MAX_COMMAND;
use lsf::model::{ByteStr, signals};
use std::cell::OnceCell;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Longest `-Jd` text, characters.
const MAX_DESCRIPTION: usize = 4094;

/// The inputs of a submission besides its options.
pub struct SubmissionInputs {
    /// Seconds since the epoch.
    pub now: i64,
    /// The caller's zone.
    pub zone: TimeZone,
    /// LSF_UNIT_FOR_LIMITS.
    pub unit: SizeUnit,
    /// The unit of sizes in requirement strings, in MB.
    pub requirement_unit_mb: f64,
    /// LSB_DEFAULTQUEUE; empty none.
    pub default_queue: String,
    /// LSB_DEFAULTPROJECT; empty none.
    pub default_project: String,
    /// LSB_DEFAULT_JOBGROUP, in which %p stands for the project; empty none.
    pub default_group: String,
    /// Absolute working directory.
    pub cwd: Vec<u8>,
    /// Home directory; empty unknown.
    pub home: Vec<u8>,
    /// The accounts that ~/.lsfhosts asks for on other hosts.
    pub accounts: String,
    pub umask: u32,
    /// The environment that is sent where -env does not ask for another.
    pub env: ByteStr,
    /// Whether esubs see the submission.
    pub mesub: bool,
    /// The caller's task lists, once they were read.
    pub tasks: OnceCell<Tasks>,
    /// The caller was told what the environment asks in vain of the binding to processors.
    pub binding_told: OnceCell<()>,
}

/// LSB_DEFAULT_JOBGROUP for a submission without -g.
fn default_group(opts: &BsubOpts, facts: &SubmissionInputs, spec: &mut JobSpec) {
    if opts.group.is_none() && !facts.default_group.is_empty() {
        let project = if spec.project.is_empty() { "default" } else { &spec.project };
        spec.further.job_group = facts.default_group.replace("%p", project).into();
    }
}

/// The submission asked for, without command, script and environment.
pub fn build(opts: &BsubOpts, facts: &SubmissionInputs) -> Result<JobSpec, Rejection> {
    if let Some(word) = opts.refused() {
        return Err(Rejection::new(format!("option {word} is not supported yet")));
    }
    if let Some((word, _)) = job_file::asked(opts)? {
        return Err(Rejection::new(format!("option {word} cannot be used here")));
    }
    let mut spec =
        JobSpec { umask: facts.umask, home: ByteStr(facts.home.clone()), ..JobSpec::default() };
    if opts.host_file.is_some() {
        for (word, given) in [
            ("-n", opts.slots.is_some()),
            ("-m", opts.hosts.is_some()),
            ("-R", !opts.res_req.is_empty()),
        ] {
            if given {
                let words = format!("Option -hostfile cannot be combined with option {word}");
                return Err(Rejection::new(words));
            }
        }
    }
    spec.further.accounts = facts.accounts.as_str().into();
    naming(opts, facts, &mut spec)?;
    default_group(opts, facts, &mut spec);
    (spec.min_slots, spec.max_slots) = slots(opts.slots.as_deref())?;
    limits(opts, facts.unit, &mut spec)?;
    times(opts, facts, &mut spec)?;
    files(opts, facts, &mut spec);
    hooks(opts, &mut spec)?;
    endings(opts, &mut spec)?;
    if let Some(text) = &opts.checkpoint {
        spec.further.checkpoint = Some(Box::new(checkpoint(text, facts)?));
    }
    resizing(opts, &mut spec)?;
    if let Some(text) = &opts.depend {
        let e = DepExpr::parse(text).map_err(|e| Rejection::about(text, e))?;
        spec.depend = e.text().to_string();
        spec.options |= opt::DEPEND_COND;
    }
    if !opts.res_req.is_empty() {
        spec.res_req = resreq::join(&opts.res_req, facts.requirement_unit_mb)?;
        spec.options |= opt::RES_REQ;
    }
    switches(opts, &mut spec);
    interactive::set(opts, &mut spec)?;
    Ok(spec)
}

/// -ar and -rnc.
fn resizing(opts: &BsubOpts, spec: &mut JobSpec) -> Result<(), Rejection> {
    if opts.autoresize {
        spec.further.autoresize = Mark(true);
    }
    if let Some(command) = &opts.resize_command {
        if command.len() > MAX_COMMAND {
            return Err(Rejection::new(err_text(err::RESIZE_COMMAND_LEN)));
        }
        spec.further.resize_command = command.as_str().into();
    }
    Ok(())
}

/// Names: job, description, queue, project, hosts, and those kept for later.
fn naming(opts: &BsubOpts, facts: &SubmissionInputs, spec: &mut JobSpec) -> Result<(), Rejection> {
    if let Some(text) = &opts.name {
        JobName::parse(text).map_err(|e| Rejection::about(text, e))?;
        spec.name = text.trim().to_string();
        spec.options |= opt::JOB_NAME;
    }
    if let Some(text) = &opts.description {
        if text.chars().count() > MAX_DESCRIPTION {
            return Err(Rejection::new(format!(
                "The job description is longer than {MAX_DESCRIPTION} characters"
            )));
        }
        spec.description = text.clone();
    }
    let queue = opts.queue.as_ref().unwrap_or(&facts.default_queue);
    spec.queue = one_blank(queue);
    if opts.queue.is_some() {
        if spec.queue.is_empty() {
            return Err(Rejection::new(err_text(err::QUEUE_NAME)));
        }
        spec.options |= opt::QUEUE;
    }
    let project = opts.project.as_ref().unwrap_or(&facts.default_project);
    if !project.is_empty() {
        spec.project = project.clone();
        spec.options |= opt::PROJECT_NAME;
    }
    if let Some(text) = &opts.hosts {
        spec.hosts = text.split_whitespace().map(str::to_string).collect();
        if spec.hosts.is_empty() {
            return Err(Rejection::new(err_text(err::BAD_HOST)));
        }
        spec.options |= opt::HOST;
    }
    if let Some(text) = &opts.priority {
        spec.priority = match text.parse() {
            Ok(n) if n > 0 => n,
            _ => return Err(Rejection::about(text, "Illegal job priority")),
        };
    }
    let further = &mut *spec.further;
    for (field, value) in [
        (&mut further.job_group, &opts.group),
        (&mut further.application, &opts.app),
        (&mut further.service_class, &opts.sla),
        (&mut further.license_project, &opts.license_project),
        (&mut further.reservation, &opts.reservation),
        (&mut further.estimate, &opts.estimate),
    ] {
        if let Some(value) = value {
            *field = value.trim().into();
        }
    }
    load_balancer(opts.nlb.as_deref(), further)?;
    let unusable = |text: &&String| units::time_limit(text).is_none_or(|l| l.seconds == 0);
    if let Some(text) = opts.estimate.as_ref().filter(unusable) {
        return Err(Rejection::about(text, "Bad ESTIMATED_RUNTIME specification"));
    }
    if opts.group.as_ref().is_some_and(|g| !g.trim().starts_with('/')) {
        return Err(Rejection::new(err_text(err::BAD_JGRP)));
    }
    spec.user_group = opts.user_group.clone().unwrap_or_default();
    spec.mail_user = opts.mail_user.clone().unwrap_or_default();
    if let Some(shell) = &opts.login_shell {
        spec.login_shell = ByteStr::from(shell.as_str());
        spec.options |= opt::LOGIN_SHELL;
    }
    Ok(())
}

/// -nlb: the policy of the load balancer, and attributes of the job for it.
fn load_balancer(text: Option<&str>, further: &mut FurtherOptions) -> Result<(), Rejection> {
    let Some(text) = text else { return Ok(()) };
    let fault = |(word, why)| Rejection::new(format!("-nlb <{word}>: {why}"));
    let (policy, attributes) = asked_of_balancer(text).map_err(fault)?;
    (further.nlb_policy, further.nlb_attributes) = (policy.into(), attributes.into());
    Ok(())
}

fn one_blank(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `-n min[,max]`.
fn slots(text: Option<&str>) -> Result<(u32, u32), Rejection> {
    // Zero lets the queue's default number of tasks act.
    let Some(text) = text else { return Ok((0, 0)) };
    let number = |t: &str| {
        let t = t.trim();
        let digits = !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        if digits { t.parse::<u32>().ok() } else { None }
    };
    let (min, max) = match text.split_once(',') {
        None => (number(text), number(text)),
        Some((min, max)) => (number(min), number(max)),
    };
    match (min, max) {
        (Some(0), _) | (_, Some(0)) => {
            Err(Rejection::new("The number of processors must be a positive integer"))
        }
        (Some(min), Some(max)) if min <= max => Ok((min, max)),
        _ => Err(Rejection::new("Bad argument for option -n")),
    }
}

fn limits(opts: &BsubOpts, unit: SizeUnit, spec: &mut JobSpec) -> Result<(), Rejection> {
    let mut host = None;
    let mut time = |text: &Option<String>, what: &str| -> Result<Option<u64>, Rejection> {
        let Some(text) = text else { return Ok(None) };
        match units::time_limit(text) {
            Some(limit) if limit.seconds > 0 => {
                host = limit.spec.or(host.take());
                Ok(Some(limit.seconds))
            }
            _ => Err(Rejection::about(text, format_args!("Bad {what} specification"))),
        }
    };
    let cpu = time(&opts.cpu_limit, "CPULIMIT")?;
    let run = time(&opts.run_limit, "RUNLIMIT")?;
    let size = |text: &Option<String>, what: &str, zero: bool| -> Result<Option<u64>, Rejection> {
        let Some(text) = text else { return Ok(None) };
        match units::size_kb(text.trim().trim_end_matches('!'), unit) {
            Some(kb) if kb > 0 || zero => Ok(Some(kb)),
            _ => Err(positive(text, what)),
        }
    };
    let count = |text: &Option<String>, what: &str| -> Result<Option<u64>, Rejection> {
        let Some(text) = text else { return Ok(None) };
        match text.trim().parse::<u64>() {
            Ok(n) if n > 0 && !text.contains('+') => Ok(Some(n)),
            _ => Err(positive(text, what)),
        }
    };
    let l = &mut spec.limits;
    (l.cpu, l.run) = (cpu, run);
    l.rss = size(&opts.mem_limit, "MEMLIMIT", false)?;
    let hard = opts.mem_limit.as_ref().is_some_and(|text| text.trim().ends_with('!'));
    spec.further.hard_memory = Mark(hard);
    let l = &mut spec.limits;
    l.core = size(&opts.core_limit, "CORELIMIT", true)?;
    l.data = size(&opts.data_limit, "DATALIMIT", false)?;
    l.stack = size(&opts.stack_limit, "STACKLIMIT", false)?;
    l.fsize = size(&opts.file_limit, "FILELIMIT", false)?;
    l.swap = size(&opts.swap_limit, "SWAPLIMIT", false)?;
    l.process = count(&opts.process_limit, "PROCESSLIMIT")?;
    l.thread = count(&opts.thread_limit, "THREADLIMIT")?;
    spec.limit_spec = host.unwrap_or_default();
    Ok(())
}

fn positive(text: &str, what: &str) -> Rejection {
    Rejection::about(text, format_args!("{what} value should be a positive integer"))
}

fn times(opts: &BsubOpts, facts: &SubmissionInputs, spec: &mut JobSpec) -> Result<(), Rejection> {
    let bad = |text: &str| Rejection::about(text, err_text(err::BAD_TIME));
    if let Some(text) = &opts.begin {
        let clock = when::parse(text, facts.now, &facts.zone).ok_or_else(|| bad(text))?;
        spec.begin_time = clock.at;
    }
    if let Some(text) = &opts.term {
        let clock = when::parse(text, facts.now, &facts.zone).ok_or_else(|| bad(text))?;
        if clock.at <= facts.now {
            return Err(bad(text));
        }
        spec.term_time = clock.at;
    }
    if spec.term_time != 0 && spec.begin_time > spec.term_time {
        return Err(Rejection::new(err_text(err::START_TIME)));
    }
    Ok(())
}

/// The working directory and the three files, whose relative paths follow it on the host.
fn files(opts: &BsubOpts, facts: &SubmissionInputs, spec: &mut JobSpec) {
    spec.cwd = ByteStr(facts.cwd.clone());
    if let Some(dir) = &opts.cwd {
        let base = Path::new(std::ffi::OsStr::from_bytes(&facts.cwd));
        spec.cwd = ByteStr(base.join(dir).into_os_string().into_vec());
        spec.options2 |= opt2::CWD;
        spec.further.submission_directory = String::from_utf8_lossy(&facts.cwd).into();
    }
    if let Some(path) = &opts.input {
        spec.in_file = ByteStr::from(path.as_str());
        spec.options |= opt::IN_FILE;
    }
    if let Some(path) = opts.out_over.as_ref().or(opts.out.as_ref()) {
        spec.out_file = ByteStr::from(path.as_str());
        spec.options |= opt::OUT_FILE;
    }
    if let Some(path) = opts.err_over.as_ref().or(opts.err.as_ref()) {
        spec.err_file = ByteStr::from(path.as_str());
        spec.options |= opt::ERR_FILE;
    }
    if opts.out_over.is_some() {
        spec.options2 |= opt2::OVERWRITE_OUT;
    }
    if opts.err_over.is_some() {
        spec.options2 |= opt2::OVERWRITE_ERR;
    }
}

/// The commands before and after the job, and the file transfers.
fn hooks(opts: &BsubOpts, spec: &mut JobSpec) -> Result<(), Rejection> {
    if let Some(text) = &opts.pre_exec {
        spec.pre_exec = ByteStr::from(text.as_str());
        spec.options |= opt::PRE_EXEC;
    }
    if let Some(text) = &opts.post_exec {
        spec.post_exec = ByteStr::from(text.as_str());
    }
    let copy = |text: &String| {
        CopyFile::parse(text).ok_or_else(|| Rejection::about(text, "Bad argument for option -f"))
    };
    spec.further.copies = opts.copy.iter().map(copy).collect::<Result<_, _>>()?;
    Ok(())
}

/// -k; a directory of a relative path is one below the directory of submission.
fn checkpoint(text: &str, facts: &SubmissionInputs) -> Result<Checkpoint, Rejection> {
    let bad = |word| Rejection::about(word, "Bad argument for option -k");
    let mut checkpoint = Checkpoint::parse(text).map_err(bad)?;
    if !checkpoint.dir.starts_with('/') {
        let cwd = String::from_utf8_lossy(&facts.cwd);
        checkpoint.dir = format!("{}/{}", cwd.trim_end_matches('/'), checkpoint.dir).into();
        checkpoint = Checkpoint::parse(&checkpoint.to_string()).map_err(|_| bad(text))?;
    }
    Ok(checkpoint)
}

/// The actions at the end of the job, before it, and when it never begins.
fn endings(opts: &BsubOpts, spec: &mut JobSpec) -> Result<(), Rejection> {
    let further = &mut *spec.further;
    if let Some(text) = &opts.requeue {
        if ExitCodes::parse(text).is_none() {
            return Err(Rejection::about(text, "Bad argument for option -Q"));
        }
        further.requeue = one_blank(text).into();
    }
    if let Some(text) = &opts.warn_action {
        let bad = || Rejection::about(text, err_text(err::BAD_ACTION));
        further.warn_action = Some(warning::action(text).ok_or_else(bad)?);
    }
    if let Some(text) = &opts.window_signal {
        let bad = || Rejection::about(text, "Illegal signal value");
        let number = signals::number(text).ok_or_else(bad)?;
        further.window_signal = Some(SignalNumber(number));
    }
    if let Some(text) = &opts.warn_time {
        let bad = || Rejection::about(text, "Bad argument for option -wt");
        further.warn_time = Some(warning::time(text).ok_or_else(bad)?);
    }
    for (field, option, text) in [
        (&mut further.pend_limit, "-ptl", &opts.pend_limit),
        (&mut further.eligible_limit, "-eptl", &opts.eligible_limit),
    ] {
        let Some(text) = text else { continue };
        let bad = || Rejection::about(text, format_args!("Bad argument for option {option}"));
        *field = Some(warning::minutes(text).ok_or_else(bad)?);
    }
    if let Some(text) = &opts.migrate {
        let minutes = text.trim().parse().ok().filter(|n| *n <= MAX_MIG);
        let bad = || Rejection::about(text, "Bad argument for option -mig");
        further.migration = Some(minutes.ok_or_else(bad)?);
    }
    if let Some(dir) = &opts.out_dir {
        if dir.trim().is_empty() {
            return Err(Rejection::about(dir, "Bad argument for option -outdir"));
        }
        further.out_dir = dir.as_str().into();
    }
    (further.terminate_orphan, further.per_host) = (Mark(opts.orphan), Mark(opts.per_host));
    Ok(())
}

fn switches(opts: &BsubOpts, spec: &mut JobSpec) {
    let bits = [
        (opts.exclusive, opt::EXCLUSIVE),
        (opts.mail_end, opt::NOTIFY_END),
        (opts.mail_begin, opt::NOTIFY_BEGIN),
        (opts.mail_user.is_some(), opt::MAIL_USER),
        (opts.user_group.is_some(), opt::USER_GROUP),
        (opts.rerun, opt::RERUNNABLE),
    ];
    for (_, bit) in bits.into_iter().filter(|b| b.0) {
        spec.options |= bit;
    }
    let bits = [
        (opts.hold, opt2::HOLD),
        (opts.wait, opt2::WAIT),
        (opts.mail_error, opt2::NOTIFY_ERROR),
        (opts.never_rerun, opt2::NEVER_RERUN),
    ];
    for (_, bit) in bits.into_iter().filter(|b| b.0) {
        spec.options2 |= bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn facts() -> SubmissionInputs {
        SubmissionInputs {
            now: 1_795_167_013, // 2026-11-20 09:30:13 UTC
            zone: TimeZone::UTC,
            unit: SizeUnit::KB,
            requirement_unit_mb: 1.0,
            default_queue: String::new(),
            default_project: String::new(),
            default_group: String::new(),
            cwd: b"/home/u/w".to_vec(),
            home: b"/home/u".to_vec(),
            accounts: String::new(),
            umask: 0o22,
            env: ByteStr::default(),
            mesub: true,
            tasks: OnceCell::new(),
            binding_told: OnceCell::new(),
        }
    }

    fn with(f: impl FnOnce(&mut BsubOpts)) -> Result<JobSpec, String> {
        let mut opts = BsubOpts::default();
        f(&mut opts);
        build(&opts, &facts()).map_err(|r| r.to_string())
    }

    fn some(s: &str) -> Option<String> {
        Some(s.to_string())
    }

    #[test]
    fn submission_without_options_has_the_defaults() {
        let spec = with(|_| ()).unwrap();
        assert_eq!((spec.min_slots, spec.max_slots, spec.options), (0, 0, 0));
        assert_eq!(spec.cwd, ByteStr::from("/home/u/w"));
        assert!(spec.queue.is_empty());
    }

    /// Refusals that need no master.
    #[test]
    fn rejections_have_lsf_words() {
        type Set = fn(&mut BsubOpts, &str);
        let rows: [(Set, &str, &str); 31] = [
            (|o, v| o.slots = some(v), "0", "The number of processors must be a positive integer"),
            (|o, v| o.slots = some(v), "abc", "Bad argument for option -n"),
            (|o, v| o.slots = some(v), "5,2", "Bad argument for option -n"),
            (|o, v| o.slots = some(v), "+5", "Bad argument for option -n"),
            (|o, v| o.run_limit = some(v), "abc", "abc: Bad RUNLIMIT specification"),
            (|o, v| o.run_limit = some(v), "0", "0: Bad RUNLIMIT specification"),
            (|o, v| o.cpu_limit = some(v), "1:x", "1:x: Bad CPULIMIT specification"),
            (
                |o, v| o.mem_limit = some(v),
                "abc",
                "abc: MEMLIMIT value should be a positive integer",
            ),
            (|o, v| o.mem_limit = some(v), "-1", "-1: MEMLIMIT value should be a positive integer"),
            (
                |o, v| o.process_limit = some(v),
                "0",
                "0: PROCESSLIMIT value should be a positive integer",
            ),
            (|o, v| o.name = some(v), "x[1-", "x[1-: Bad job name"),
            (|o, v| o.name = some(v), "x[0-3]", "x[0-3]: Job array index error"),
            (|o, v| o.depend = some(v), "foo(", "foo(: Dependency condition syntax error"),
            (|o, v| o.begin = some(v), "25:00", "25:00: Bad time specification"),
            (|o, v| o.term = some(v), "99", "99: Bad time specification"),
            (|o, v| o.term = some(v), "2020:1:1:0:0", "2020:1:1:0:0: Bad time specification"),
            (|o, v| o.priority = some(v), "abc", "abc: Illegal job priority"),
            (|o, v| o.res_req = vec![v.into()], "select[", "Bad resource requirement syntax"),
            (|o, v| o.res_req = vec![v.into()], "span[hosts=2]", "Bad resource requirement syntax"),
            (
                |o, v| o.res_req = vec![v.into()],
                "select[mem>1] foo[1]",
                "Bad resource requirement syntax",
            ),
            (|o, v| o.queue = some(v), " ", "Queue name must be specified"),
            (|o, v| o.requeue = some(v), "x", "x: Bad argument for option -Q"),
            (|o, v| o.window_signal = some(v), "SIGX", "SIGX: Illegal signal value"),
            (|o, v| o.warn_action = some(v), "SIGX", "SIGX: Bad or invalid action specification"),
            (|o, v| o.warn_time = some(v), "100%", "100%: Bad argument for option -wt"),
            (|o, v| o.pend_limit = some(v), "0", "0: Bad argument for option -ptl"),
            (|o, v| o.out_dir = some(v), " ", " : Bad argument for option -outdir"),
            (|o, v| o.checkpoint = some(v), "/c 0", "0: Bad argument for option -k"),
            (|o, v| o.group = some(v), "a/b", "Bad/empty job group name"),
            (|o, v| o.copy = vec![v.into()], "a", "a: Bad argument for option -f"),
            (|o, v| o.copy = vec![v.into()], "a = b", "a = b: Bad argument for option -f"),
        ];
        for (set, value, words) in rows {
            let e = with(|o| set(o, value)).unwrap_err();
            // before these stands what is wrong where
            let place = format!(" of <{value}>: {words}. Job not submitted.");
            match words.starts_with("Bad resource requirement") {
                true => assert!(e.ends_with(&place), "{e}"),
                false => assert_eq!(e, format!("{words}. Job not submitted."), "{value}"),
            }
        }
        let e = with(|o| (o.begin, o.term) = (some("12:00"), some("11:00"))).unwrap_err();
        assert_eq!(e, "Start time is later than termination time. Job not submitted.");
    }

    #[test]
    fn limits_take_units_and_hosts() {
        let spec = with(|o| {
            o.mem_limit = some("2G!");
            o.core_limit = some("0");
            o.run_limit = some("1:30/hosta");
            o.cpu_limit = some("5/hostb");
            o.thread_limit = some("8");
        })
        .unwrap();
        assert_eq!((spec.limits.rss, spec.further.hard_memory), (Some(2 << 20), Mark(true)));
        assert_eq!((spec.limits.run, spec.limits.cpu), (Some(5400), Some(300)));
        assert_eq!((spec.limits.core, spec.limits.thread), (Some(0), Some(8)));
        assert_eq!(spec.limit_spec, "hosta");
    }

    #[test]
    fn everything_given_is_recorded() {
        let spec = with(|o| {
            o.queue = some(" a  b ");
            o.name = some("n[1-3]%2");
            o.slots = some("2,4");
            o.hosts = some("h1+2 others");
            o.out_over = some("out");
            o.err = some("err");
            o.input = some("in.%I");
            o.cwd = some("sub");
            o.depend = some("done(7)");
            o.res_req = vec!["mem>10".into()];
            o.hold = true;
            o.wait = true;
            o.rerun = true;
        })
        .unwrap();
        assert_eq!((spec.queue.as_str(), spec.name.as_str()), ("a b", "n[1-3]%2"));
        assert_eq!((spec.min_slots, spec.max_slots), (2, 4));
        assert_eq!(spec.hosts, ["h1+2", "others"]);
        assert_eq!(spec.cwd, ByteStr::from("/home/u/w/sub"));
        assert_eq!((spec.depend.as_str(), spec.res_req.as_str()), ("done(7)", "mem>10"));
        let bits = opt2::OVERWRITE_OUT | opt2::CWD | opt2::HOLD | opt2::WAIT;
        assert_eq!(spec.options2, bits);
        for bit in [opt::QUEUE, opt::JOB_NAME, opt::HOST, opt::RERUNNABLE, opt::IN_FILE] {
            assert!(spec.options & bit != 0, "{bit:x}");
        }
    }

    #[test]
    fn environment_gives_defaults_of_a_submission() {
        let mut facts = facts();
        (facts.default_queue, facts.default_project) = ("night".into(), "p".into());
        let spec = build(&BsubOpts::default(), &facts).unwrap();
        assert_eq!((spec.queue.as_str(), spec.project.as_str()), ("night", "p"));
        facts.default_group = "/x/%p".into();
        assert_eq!(&*build(&BsubOpts::default(), &facts).unwrap().further.job_group, "/x/p");
        let opts = BsubOpts { group: Some("/own".into()), ..BsubOpts::default() };
        assert_eq!(&*build(&opts, &facts).unwrap().further.job_group, "/own");
        // The answer then still says "default queue".
        assert_eq!(spec.options & opt::QUEUE, 0);
    }
}

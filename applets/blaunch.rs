//! blaunch: tasks of a parallel job on its hosts, in the place of rsh and ssh. See blaunch(1).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::client;
use lsf::cli::ctx::Ctx;
use lsf::cli::front;
use lsf::cli::launch_words::{
    CommandUse, FirstOperand, LaunchOptions, WordFacts, first_operand, hosts_with_slots, names,
    names_of_lines,
};
use lsf::cli::many_tasks::{self, ManyTasks, TASKS_MAX, WORDS_AHEAD};
use lsf::cli::own_descriptors;
use lsf::cli::remote::surroundings;
use lsf::cli::site::{self, LocalSite, means_yes};
use lsf::conf::{HostTable, MAX_PAM_SECS, TASK_SECS_MAX, load};
use lsf::errln;
use lsf::model::reason::{err, err_text};
use lsf::model::task_gone::{HostLossAction, TaskGoneAction};
use lsf::model::{ByteStr, JobRef, cut};
use lsf::pam::{USAGE_MS, USAGE_MS_MAX};
use lsf::proto::client::{Control, IdSel, JobSelect, Verb};
use lsf::proto::res::{RUN_MAX, RunTask};
use lsf::sys::files::RealFiles;
use lsf::sys::users::UserDatabase;
use lsf::sys::words;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// Exit code where LSF, not a task, failed, and of a usage error.
const LSF_ERROR: i32 = 255;
/// Longest name of a host in a message, bytes.
const NAME_MAX: usize = 255;
/// How long the name service has to tell the caller's name.
const USER_WAIT: Duration = Duration::from_secs(5);
/// LSF_DJOB_TASK_REG_WAIT_TIME where it is not set, seconds.
const START_WITHIN: u64 = 300;
/// Lost hosts that the reason of the end of a job names.
const LOST_NAMED: usize = 8;
/// How long blaunch waits to be ended with the job that it has had ended.
const END_MOST: Duration = Duration::from_secs(5);
/// Longest file of host names, bytes.
const HOST_FILE_MAX: u64 = 16 << 20;

/// Run a command on hosts of the parallel job that this is called in: on the named ones, or once
/// for each slot. It takes the options of rsh and ssh.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// no input for the tasks
    #[argh(switch, short = 'n')]
    _no_input: bool,
    /// end as soon as the tasks are started
    #[argh(switch, long = "no-wait")]
    _no_wait: bool,
    /// run the words of the command themselves, without a shell
    #[argh(switch, long = "no-shell")]
    _no_shell: bool,
    /// run the command in the user's login shell
    #[argh(switch, long = "use-login-shell")]
    _login_shell: bool,
    /// a file with a host name on each line
    #[argh(option, short = 'u', arg_name = "host_file")]
    _file: Option<String>,
    /// the hosts
    #[argh(option, short = 'z', arg_name = "host_name ...")]
    _list: Option<String>,
    /// the host, where no option names any, and the command
    #[argh(positional, greedy, arg_name = "[host_name] command")]
    _command: Vec<String>,
}

/// Why nothing is run, and whether the usage is shown.
enum Fault {
    Usage(String),
    Words(String),
}

impl Fault {
    fn of(code: i32) -> Fault {
        Fault::Words(err_text(code).to_owned())
    }
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let args = ctx.args.clone();
    let fault = match prepared(&args) {
        Ok(Prepared::Help) => {
            return front::parse::<Options>(ctx.name, &["-h".into()])
                .map_or_else(|exit| exit.show(ctx), |_| 0);
        }
        Ok(Prepared::Version) => {
            return front::parse::<Options>(ctx.name, &["-V".into()])
                .map_or_else(|exit| exit.show(ctx), |_| 0);
        }
        Ok(Prepared::Tasks(site, many)) => return launched(ctx, &site, *many),
        Err(fault) => fault,
    };
    match fault {
        Fault::Usage(words) => return front::usage_error::<Options>(ctx.name, &words).show(ctx),
        Fault::Words(words) => errln!(ctx, "{}: {words}", ctx.name),
    }
    LSF_ERROR
}

enum Prepared {
    Help,
    Version,
    Tasks(Box<LocalSite>, Box<ManyTasks>),
}

/// The job that this process is of, as its environment has it; whether that is true, RES says.
struct OwnJob {
    at: JobRef,
    /// The hosts with their slots.
    hosts: Vec<(String, u32)>,
}

fn prepared(args: &[OsString]) -> Result<Prepared, Fault> {
    let mut options = LaunchOptions::default();
    let rest = options.read(args).map_err(Fault::Usage)?;
    if options.help || options.version {
        return Ok(if options.help { Prepared::Help } else { Prepared::Version });
    }
    if let Some(why) = options.conflict() {
        return Err(Fault::Usage(why.into()));
    }
    if rest.is_empty() {
        return Err(Fault::Usage("no command".into()));
    }
    let job = own_job()?;
    let site = site::find().map_err(|e| Fault::Words(e.to_string()))?;
    let members = Members { site: &site, job: &job };
    let (hosts, command) = match options.names_hosts() {
        true => (members.listed(&named(&options)?)?, rest.to_vec()),
        false => members.by_operand(&mut options, rest)?,
    };
    own_user(options.user.as_deref())?;
    if command.is_empty() {
        return Err(Fault::Usage("no command".into()));
    }
    if hosts.len() > TASKS_MAX {
        return Err(Fault::Words(format!("too many tasks: {}, {TASKS_MAX} allowed", hosts.len())));
    }
    let task = task(&options, job.at, &command)?;
    own_descriptors::raise_descriptors(hosts.len()).map_err(Fault::Words)?;
    let tasks = hosts.into_iter().zip(1..).map(|(host, n)| (host, numbered(&task, n)));
    let input = !options.no_input && !options.no_wait && own_descriptors::may_read_input();
    let start_within = Duration::from_secs(START_WITHIN);
    let many = ManyTasks {
        command: "blaunch",
        tasks: tasks.collect(),
        input,
        no_wait: options.no_wait,
        start_within,
        ignores_loss: false,
    };
    Ok(Prepared::Tasks(Box::new(site), Box::new(many)))
}

fn launched(ctx: &mut Ctx, site: &LocalSite, mut many: ManyTasks) -> i32 {
    let gone = task_gone(ctx);
    let on_loss = host_loss(ctx);
    many.ignores_loss = on_loss == HostLossAction::Ignore;
    let within = seconds(ctx, Some(site), "LSF_DJOB_TASK_REG_WAIT_TIME", MAX_PAM_SECS);
    many.start_within = within.map_or(many.start_within, Duration::from_secs);
    // the loop reads it for itself
    let _ = seconds(ctx, None, "LSB_DJOB_HB_INTERVAL", TASK_SECS_MAX);
    let usage = seconds(ctx, None, "LSB_DJOB_RU_INTERVAL", TASK_SECS_MAX).unwrap_or(0);
    let of_pam = std::env::var(USAGE_MS).ok().and_then(|text| text.parse().ok());
    let of_pam = of_pam.filter(|ms| *ms <= USAGE_MS_MAX);
    for (_, task) in &mut many.tasks {
        (task.gone, task.usage_secs) = (gone, u32::try_from(usage).unwrap_or(0));
        task.pam_ms = of_pam;
    }
    ctx.flush();
    let job = many.tasks.first().and_then(|(_, task)| task.job);
    let ends = match many_tasks::run(site, many) {
        Ok(ends) => ends,
        Err(e) => {
            errln!(ctx, "{}: {}", ctx.name, words(&e));
            return LSF_ERROR;
        }
    };
    for (output, why) in &ends.unwritten {
        errln!(ctx, "{}: {output}: {why}", ctx.name);
    }
    if ends.failed.is_empty() {
        // whatever the task said: it may have died of SIGPIPE only because we read no more
        return if ends.unwritten.is_empty() { ends.code } else { LSF_ERROR };
    }
    for (host, why) in &ends.failed {
        errln!(ctx, "{}: {host}: {why}", ctx.name);
    }
    let code = if ends.unstarted { err::DJOB_EXECUTE_TASK } else { err::DJOB_WAIT_TASK };
    errln!(ctx, "lsb_launch(): {}", err_text(code));
    if let (Some(job), HostLossAction::EndJob, false) = (job, on_loss, ends.lost.is_empty()) {
        // the end of the job is that of the launcher, by which the words come to the user
        std::thread::sleep(WORDS_AHEAD);
        end_job(ctx, job, &ends.lost);
    }
    LSF_ERROR
}

/// Has mbatchd end the job of this process, of which these hosts are lost. Waits for mbatchd as
/// any command does, because its host may be the one that was lost.
fn end_job(ctx: &mut Ctx, job: JobRef, lost: &[String]) {
    // the signals were the tasks' while there were some
    if let Err(e) = lsf::sys::raw::unblock_signals() {
        errln!(ctx, "{}: {}", ctx.name, words(&e));
    }
    let named = &lost[..lost.len().min(LOST_NAMED)];
    let more = if lost.len() > named.len() { " ..." } else { "" };
    let reason = format!("blaunch lost {}{more}", named.join(" "));
    let elems = if job.idx == 0 { vec![] } else { vec![(job.idx, job.idx, 1)] };
    let select = JobSelect { ids: vec![IdSel { job: job.job, elems }], ..JobSelect::default() };
    let attempt = std::env::var("LSB_DJOB_ATTEMPT").ok().and_then(|number| number.parse().ok());
    let attempt = attempt.unwrap_or(0);
    let control = Control { reason, lost_host: true, attempt, ..Control::of(Verb::Kill, select) };
    match client::control(ctx, control) {
        Ok((outcomes, None)) => {
            // a job that has ended meanwhile needs no end
            let fails = |code: &i32| ![0, err::JOB_FINISH].contains(code);
            if let Some(code) = outcomes.iter().map(|one| one.code).find(fails) {
                errln!(ctx, "{}: the job is not ended: {}", ctx.name, err_text(code));
            } else if outcomes.iter().any(|one| one.code == 0) {
                // a script that went on meanwhile could end as if all were well
                ctx.flush();
                std::thread::sleep(END_MOST);
            }
        }
        Ok((_, Some(e))) | Err(e) => errln!(ctx, "{}: the job is not ended: {e}", ctx.name),
    }
}

/// The job that this process is of, where this host has slots of it (lsrun(1)).
pub fn own_job_at(site: &LocalSite, host: &str) -> Option<JobRef> {
    let job = own_job().ok()?;
    Members { site, job: &job }.host(host).map(|_| job.at)
}

fn own_job() -> Result<OwnJob, Fault> {
    let var = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let number = |name: &str| var(name).and_then(|value| value.parse::<u32>().ok());
    let (Some(job), Some(_)) = (var("LSB_JOBID"), var("LSF_ENVDIR")) else {
        return Err(Fault::of(err::DJOB_CANNOT_RUN));
    };
    if std::env::var("LSB_DJOB_DISABLED").is_ok_and(|value| means_yes(&value)) {
        return Err(Fault::of(err::DJOB_DISABLED));
    }
    if std::env::var_os("LSB_JOBEXIT_STAT").is_some() {
        let why = "the job is over: its post-execution commands start no tasks";
        return Err(Fault::Words(format!("{} ({why})", err_text(err::DJOB_BAD_JOBID))));
    }
    let Some(job) = job.parse().ok().filter(|job| *job > 0) else {
        return Err(Fault::of(err::DJOB_BAD_JOBID));
    };
    let at = JobRef { job, idx: number("LSB_JOBINDEX").unwrap_or(0) };
    let hosts = hosts_with_slots(&var("LSB_MCPU_HOSTS").unwrap_or_default());
    let hosts = hosts.map_err(|word| Fault::Words(format!("LSB_MCPU_HOSTS: bad word {word}")))?;
    match hosts.is_empty() {
        true => Err(Fault::of(err::DJOB_CANNOT_RUN)),
        false => Ok(OwnJob { at, hosts }),
    }
}

/// Tasks run as the caller alone.
fn own_user(user: Option<&OsStr>) -> Result<(), Fault> {
    let Some(user) = user else { return Ok(()) };
    let own = UserDatabase::default().find_uid(lsf::sys::euid(), USER_WAIT);
    match own.is_some_and(|own| own.name.as_bytes() == user.as_bytes()) {
        true => Ok(()),
        false => Err(Fault::of(err::DJOB_BAD_USER)),
    }
}

/// The names that -z or -u gives.
fn named(options: &LaunchOptions) -> Result<Vec<String>, Fault> {
    if let Some(list) = &options.list {
        return Ok(names(list));
    }
    let path = options.file.clone().unwrap_or_default();
    let mut text = Vec::new();
    let file = std::fs::File::open(&path);
    let read = file.and_then(|file| file.take(HOST_FILE_MAX + 1).read_to_end(&mut text));
    let path = path.to_string_lossy();
    read.map_err(|e| Fault::Words(format!("{path}: {}", words(&e))))?;
    if text.len() as u64 > HOST_FILE_MAX {
        return Err(Fault::Words(format!("{path}: longer than {HOST_FILE_MAX} bytes")));
    }
    let found = names_of_lines(&String::from_utf8_lossy(&text));
    match found.is_empty() {
        true => Err(Fault::Words(format!("{path}: no host name in it"))),
        false => Ok(found),
    }
}

/// The hosts of the job, by whatever spelling the cluster knows.
struct Members<'a> {
    site: &'a LocalSite,
    job: &'a OwnJob,
}

impl Members<'_> {
    /// The hosts of the cluster with their other names and addresses.
    fn table(&self) -> HostTable {
        let host = Some(self.site.host.as_str());
        let (base, _) = load::load_base_lenient(&RealFiles, &self.site.envdir, host);
        base.map(|base| base.hosts).unwrap_or_default()
    }

    fn has(&self, name: &str) -> bool {
        self.job.hosts.iter().any(|(host, _)| host == name)
    }

    /// The host of the job that a name means, as the cluster spells it.
    fn host(&self, name: &str) -> Option<String> {
        if self.has(name) {
            return Some(name.to_owned());
        }
        if name.eq_ignore_ascii_case("localhost") {
            return Some(self.site.host.clone()).filter(|host| self.has(host));
        }
        let table = self.table();
        let addressed = || table.by_addr(name.parse().ok()?);
        let found = table.canonical(name).or_else(addressed)?;
        self.has(found).then(|| found.to_owned())
    }

    fn listed(&self, names: &[String]) -> Result<Vec<String>, Fault> {
        let host = |name: &String| self.host(name).ok_or_else(|| self.not_ours(name));
        names.iter().map(host).collect()
    }

    fn not_ours(&self, name: &str) -> Fault {
        Fault::Words(format!("{}: {}", cut(name, NAME_MAX), err_text(err::DJOB_BAD_HOST)))
    }

    /// The hosts and the command, where the first operand may be a host.
    fn by_operand(
        &self,
        options: &mut LaunchOptions,
        rest: &[OsString],
    ) -> Result<(Vec<String>, Vec<OsString>), Fault> {
        let Some((first, behind)) = rest.split_first() else {
            return Err(Fault::Usage("no command".into()));
        };
        let facts = WordFacts {
            member: &|word| self.host(word).is_some(),
            known: &|word| self.table().canonical(word).is_some(),
            program: &has_program,
        };
        match first_operand(first, !behind.is_empty(), &facts) {
            FirstOperand::BadHost => Err(self.not_ours(&first.to_string_lossy())),
            FirstOperand::Command => {
                let each = |(host, slots): &(String, u32)| {
                    std::iter::repeat_n(host.clone(), *slots as usize)
                };
                Ok((self.job.hosts.iter().flat_map(each).collect(), rest.to_vec()))
            }
            FirstOperand::Host => {
                let word = first.to_string_lossy();
                let (user, name) = match word.rsplit_once('@') {
                    Some((user, name)) => (Some(user), name),
                    None => (None, &*word),
                };
                own_user(user.map(OsStr::new))?;
                let command = options.read(behind).map_err(Fault::Usage)?;
                if options.names_hosts() {
                    return Err(Fault::Usage("a host beside -z or -u".into()));
                }
                Ok((self.listed(&[name.to_owned()])?, command.to_vec()))
            }
        }
    }
}

/// Whether a directory of PATH has such a program.
fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}

/// The task, but for its number.
fn task(options: &LaunchOptions, job: JobRef, command: &[OsString]) -> Result<RunTask, Fault> {
    let bytes = |word: &OsString| ByteStr(word.as_bytes().to_vec());
    let joined = || ByteStr(command.join(OsStr::new(" ")).as_bytes().to_vec());
    let argv = match options.how {
        CommandUse::Words => command.iter().map(bytes).collect(),
        CommandUse::Shell => vec!["/bin/sh".into(), "-c".into(), joined()],
        CommandUse::LoginShell => vec![joined()],
    };
    let long: usize = argv.iter().map(|word| word.len() + 1).sum();
    let task = RunTask {
        argv,
        via: "blaunch".into(),
        job: Some(job),
        detached: options.no_wait,
        login_shell: options.how == CommandUse::LoginShell,
        ..surroundings(false)
    };
    // with the variables of the task's number
    let all = long + task.env.len() + 128;
    match all > RUN_MAX {
        true => Err(Fault::Words(format!(
            "the command with its environment is longer than {RUN_MAX} bytes"
        ))),
        false => Ok(task),
    }
}

/// The ends of a task that end the job; the tasks of a pam are looked after by that.
fn task_gone(ctx: &mut Ctx) -> Option<TaskGoneAction> {
    if std::env::var_os("LSF_PAM_PID").is_some() {
        return None;
    }
    let name = "LSB_DJOB_RTASK_GONE_ACTION";
    let action = std::env::var_os(name).map(|text| TaskGoneAction::parse(&text.to_string_lossy()));
    Some(action.unwrap_or_else(|| Ok(TaskGoneAction::default())).unwrap_or_else(|wanted| {
        errln!(ctx, "{}: {name} is not heeded: {wanted}", ctx.name);
        TaskGoneAction::default()
    }))
}

/// The action on the loss of a host; one that is none is told.
fn host_loss(ctx: &mut Ctx) -> HostLossAction {
    let name = "LSB_DJOB_COMMFAIL_ACTION";
    let text = std::env::var_os(name).unwrap_or_default();
    HostLossAction::parse(&text.to_string_lossy()).unwrap_or_else(|wanted| {
        errln!(ctx, "{}: {name} is not heeded: {wanted}", ctx.name);
        HostLossAction::default()
    })
}

/// A number of seconds from the environment, or lsf.conf of a site; one that is none is told.
fn seconds(ctx: &mut Ctx, site: Option<&LocalSite>, name: &str, most: u64) -> Option<u64> {
    site::seconds(site, name, 1..=most).unwrap_or_else(|words| {
        errln!(ctx, "{}: {words} from 1 to {most}; not heeded", ctx.name);
        None
    })
}

/// The task with its number, by which launchers place their ranks.
fn numbered(task: &RunTask, number: usize) -> RunTask {
    let mut task = task.clone();
    for name in ["LSF_PM_TASKID", "LSB_TASKID", "LSB_TASKINDEX"] {
        if !task.env.is_empty() {
            task.env.0.push(0);
        }
        // of two of a name the later one counts
        task.env.0.extend_from_slice(format!("{name}={number}").as_bytes());
    }
    task
}

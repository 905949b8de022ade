//! The only binary: dispatches on the name it was called by, or on its first word (`lsf APPLET
//! ...`).
//!
//! Invariants: [`APPLETS`] is the only list of applets (`--list`, `--install` and tests/tidy
//! read it); an applet is a module with `run(&mut Ctx) -> i32`; only this file exits.

mod authd;
mod bacct;
mod badmin;
mod bapp;
mod battach;
mod bchkpnt;
mod bgadd;
mod bgdel;
mod bgmod;
mod bhist;
mod bhosts;
mod bhpart;
mod bjdepinfo;
mod bjgroup;
mod bjobs;
mod bkill;
mod blaunch;
mod blimits;
mod bmig;
mod bmod;
mod bparams;
mod bpeek;
mod bpost;
mod bqueues;
mod bread;
mod brequeue;
mod bresize;
mod bresources;
mod bresources_pools;
mod brestart;
mod bresume;
mod brsvadd;
mod brsvdel;
mod brsvjob;
mod brsvmod;
mod brsvs;
mod brsvsub;
mod brun;
mod bsla;
mod bslots;
mod bstatus;
mod bstop;
mod bsub;
mod bswitch;
mod btop;
mod bugroup;
mod busers;
mod bwait;
mod ccollect;
mod control;
mod cqdel;
mod cqstatl;
mod cqsub;
mod daemon;
mod delegate;
mod down;
mod eauth;
mod eauthd;
mod echkpnt;
mod eexecd;
mod erestart;
mod hostsetup;
mod job_groups;
mod job_messages;
mod launcher;
mod lim;
mod lsacct;
mod lsadmin;
mod lsclusters;
mod lsf_daemons;
mod lsfinstall;
mod lsfsim;
mod lsgrun;
mod lshosts;
mod lsid;
mod lsinfo;
mod lsload;
mod lslogin;
mod lsmake;
mod lsmon;
mod lsplace;
mod lsrcp;
mod lsrun;
mod lstasks;
mod lstcsh;
mod mbatchd;
mod melim;
mod mpirun_lsf;
mod nlbconfig;
mod nlbpolicy;
mod nlbserver;
mod pam;
mod qlimit;
mod qmgr;
mod res;
mod reservations;
mod sbatchd;
mod starter;
mod status;
mod task_starter;
mod up;

use lsf::cli::ctx::{Ctx, FAIL, Plain, Stream};
use lsf::cli::{completion, privport, version};
use lsf::{errln, outln};
use std::ffi::{CString, OsStr, OsString};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: lsf::sys::heap::Heap = lsf::sys::heap::Heap;

/// An applet: its name, how it is called, what it does.
struct Applet {
    name: &'static str,
    run: fn(&mut Ctx) -> i32,
    group: Group,
    /// One line for `lsf -h`.
    line: &'static str,
}

/// The group of an applet in help, in the order printed.
#[derive(Clone, Copy, PartialEq)]
enum Group {
    /// Called as `lsf NAME` only: the name is too common for a link.
    Own,
    Batch,
    Base,
    Site,
    /// Called as `lsf NAME`, and linked by `--install --nqs`: PBS and Grid Engine have these names.
    Nqs,
    Daemon,
    /// Called by other applets only: not listed.
    Hidden,
}

/// The groups that help shows, with their headings.
const HEADINGS: [(Group, &str); 6] = [
    (Group::Own, "A cluster of your own"),
    (Group::Batch, "Batch jobs"),
    (Group::Base, "Hosts, load and remote tasks"),
    (Group::Site, "Installation and daemons of a site"),
    (Group::Nqs, "NQS (as `lsf NAME`; `lsf --install --nqs DIR` links them)"),
    (Group::Daemon, "Daemons (started by other daemons)"),
];

use Group::{Base, Batch, Daemon, Hidden, Nqs, Own, Site};

const fn applet(
    name: &'static str,
    group: Group,
    run: fn(&mut Ctx) -> i32,
    line: &'static str,
) -> Applet {
    Applet { name, run, group, line }
}

/// Every applet, sorted by name. A new one: its file, its `mod` line and its entry here.
const APPLETS: &[Applet] = &[
    applet("TaskStarter", Batch, task_starter::run, "start a task of a parallel job for pam"),
    applet("authd", Daemon, authd::run, "signs credentials for the users of this host"),
    applet("bacct", Batch, bacct::run, "show the resource usage of finished jobs"),
    applet("badmin", Site, badmin::run, "administer the batch system"),
    applet("bapp", Batch, bapp::run, "show the application profiles"),
    applet("battach", Batch, battach::run, "run a shell on the host of a running job"),
    applet("bbot", Batch, btop::bottom, "move a pending job behind the others of its queue"),
    applet("bchkpnt", Batch, bchkpnt::run, "checkpoint started jobs"),
    applet("bgadd", Batch, bgadd::run, "make a job group"),
    applet("bgdel", Batch, bgdel::run, "delete job groups"),
    applet("bgmod", Batch, bgmod::run, "change a job group"),
    applet("bhist", Batch, bhist::run, "show the history of jobs from the event log"),
    applet("bhosts", Batch, bhosts::run, "show the hosts of the batch system"),
    applet("bhpart", Batch, bhpart::run, "show the host partitions"),
    applet("bjdepinfo", Batch, bjdepinfo::run, "show which jobs wait for which"),
    applet("bjgroup", Batch, bjgroup::run, "show job groups with the numbers of their jobs"),
    applet("bjobs", Batch, bjobs::run, "show jobs"),
    applet("bkill", Batch, bkill::run, "end jobs, or send them a signal"),
    applet("blaunch", Batch, blaunch::run, "run tasks on the hosts of a parallel job"),
    applet("blimits", Batch, blimits::run, "show limits of lsb.resources and their use"),
    applet("bmgroup", Batch, bugroup::hosts, "show the host groups"),
    applet("bmig", Batch, bmig::run, "end started jobs and run them again on another host"),
    applet("bmod", Batch, bmod::run, "change pending jobs"),
    applet("bparams", Batch, bparams::run, "show the parameters of lsb.params in force"),
    applet("bpeek", Batch, bpeek::run, "show the output of a job that still runs"),
    applet("bpost", Batch, bpost::run, "post a message to a job"),
    applet("bqueues", Batch, bqueues::run, "show the queues"),
    applet("bread", Batch, bread::run, "show a message of a job"),
    applet("brequeue", Batch, brequeue::run, "put jobs back into their queue"),
    applet("bresize", Batch, bresize::run, "change the slots of started jobs"),
    applet("bresources", Batch, bresources::run, "show what lsb.resources contains"),
    applet("brestart", Batch, brestart::run, "restart jobs from their checkpoints"),
    applet("bresume", Batch, bresume::run, "resume suspended jobs, release held ones"),
    applet("brsvadd", Batch, brsvadd::run, "make an advance reservation"),
    applet("brsvdel", Batch, brsvdel::run, "delete advance reservations"),
    applet("brsvjob", Batch, brsvjob::run, "show the jobs of an advance reservation"),
    applet("brsvmod", Batch, brsvmod::run, "change an advance reservation"),
    applet("brsvs", Batch, brsvs::run, "show advance reservations"),
    applet("brsvsub", Batch, brsvsub::run, "make an advance reservation at the first time for it"),
    applet("brun", Batch, brun::run, "start a job at once on hosts of choice"),
    applet("bsla", Batch, bsla::run, "show service classes"),
    applet("bslots", Batch, bslots::run, "show slots that jobs could backfill"),
    applet("bstatus", Batch, bstatus::run, "show or set the external status of a job"),
    applet("bstop", Batch, bstop::run, "suspend jobs"),
    applet("bsub", Batch, bsub::run, "submit a job"),
    applet("bswitch", Batch, bswitch::run, "move jobs to another queue"),
    applet("btop", Batch, btop::top, "move a pending job before the others of its queue"),
    applet("bugroup", Batch, bugroup::users, "show the user groups"),
    applet("busers", Batch, busers::run, "show users and user groups with their limits and slots"),
    applet("bwait", Batch, bwait::run, "wait until a condition of jobs is met"),
    applet("ccollect", Daemon, ccollect::run, "measures this host for the NQE load balancer"),
    applet("cqdel", Batch, cqdel::run, "delete or signal requests as users of NQS do"),
    applet("cqstatl", Batch, cqstatl::run, "show queues and requests as NQS does"),
    applet("cqsub", Batch, cqsub::run, "submit a request as users of NQS do"),
    applet(
        "delegate",
        Hidden,
        delegate::run,
        "opens files for root that another user could replace",
    ),
    applet("detach", Hidden, up::detach, "leaves the session and becomes the launcher"),
    applet("down", Own, down::run, "stop a personal cluster and its jobs"),
    applet("eauth", Daemon, eauth::run, "creates and verifies the credentials of users"),
    applet("eauthd", Hidden, eauthd::run, "runs the eauth of a site as another user"),
    applet("echkpnt", Daemon, echkpnt::run, "makes a checkpoint of a job"),
    applet("eexecd", Hidden, eexecd::run, "runs the eexec of a site as another user"),
    applet("erestart", Daemon, erestart::run, "starts a job from its checkpoint"),
    applet("hostsetup", Site, hostsetup::run, "check a host of the cluster, install its service"),
    applet("launcher", Daemon, launcher::run, "supervises the daemons and the jobs of this host"),
    applet("lim", Daemon, lim::run, "measures the load of this host and reports it"),
    applet("lsacct", Base, lsacct::run, "show the resource usage of remote tasks"),
    applet("lsacctmrg", Base, lsacct::merge, "merge files of lsacct"),
    applet("lsadmin", Site, lsadmin::run, "administer the base system"),
    applet("lsclusters", Base, lsclusters::run, "show the cluster and its master"),
    applet("lseligible", Base, lstasks::lseligible, "say whether a task may run on another host"),
    applet("lsf_daemons", Site, lsf_daemons::run, "start and stop the daemons of this host"),
    applet("lsfinstall", Site, lsfinstall::run, "write the tree of a new site"),
    applet("lsfrestart", Site, lsf_daemons::lsfrestart, "restart the daemons of all hosts"),
    applet("lsfshutdown", Site, lsf_daemons::lsfshutdown, "stop the daemons of all hosts"),
    applet("lsfsim", Site, lsfsim::run, "simulate clusters with faults"),
    applet("lsfstartup", Site, lsf_daemons::lsfstartup, "start the daemons of all hosts"),
    applet("lsgrun", Base, lsgrun::run, "run a command on several hosts"),
    applet("lshosts", Base, lshosts::run, "show the static properties of hosts"),
    applet("lsid", Base, lsid::run, "show the names of the cluster and of its master"),
    applet("lsinfo", Base, lsinfo::run, "show resources, host types and models"),
    applet("lsload", Base, lsload::run, "show the load of hosts"),
    applet(
        "lsloadadj",
        Base,
        lsplace::lsloadadj,
        "raise the load of hosts to which tasks are sent",
    ),
    applet("lslogin", Base, lslogin::run, "log in on the best host"),
    applet("lsltasks", Base, lstasks::lsltasks, "show and change the list of local tasks"),
    applet("lsmake", Base, lsmake::run, "make with recipes that run on other hosts"),
    applet("lsmakesh", Hidden, lsmake::shell, "the shell of a make of lsmake"),
    applet("lsmon", Base, lsmon::run, "show the load of hosts continuously"),
    applet("lsplace", Base, lsplace::run, "show the best hosts for tasks"),
    applet("lsrcp", Base, lsrcp::run, "copy a file from or to another host"),
    applet("lsrtasks", Base, lstasks::lsrtasks, "show and change the list of remote tasks"),
    applet("lsrun", Base, lsrun::run, "run a command on the best host"),
    applet("lstcsh", Base, lstcsh::run, "tcsh with tasks that run on other hosts"),
    applet("mbatchd", Daemon, mbatchd::run, "queues, scheduling and the event log"),
    applet("melim", Daemon, melim::run, "runs the elims of this host"),
    applet("mpirun.lsf", Batch, mpirun_lsf::run, "run an MPI program under pam"),
    applet("nlbconfig", Site, nlbconfig::run, "administer the load balancer's servers"),
    applet("nlbpolicy", Base, nlbpolicy::run, "show the hosts that a policy of NQE chooses"),
    applet("nlbserver", Daemon, nlbserver::run, "the server of the NQE load balancer"),
    applet("pam", Batch, pam::run, "run and watch the tasks of a parallel job"),
    applet("qdel", Nqs, cqdel::run, "delete or signal requests: cqdel"),
    applet("qlimit", Nqs, qlimit::run, "show which limits of requests are enforced"),
    applet("qmgr", Nqs, qmgr::run, "define and control queues as NQS does"),
    applet("qstat", Nqs, cqstatl::run, "show queues and requests: cqstatl"),
    applet("qsub", Nqs, cqsub::run, "submit a request: cqsub"),
    applet("res", Daemon, res::run, "runs tasks for commands of other hosts"),
    applet("reskeeper", Hidden, res::keep, "keeps the descriptors of tasks for the next res"),
    applet("sbatchd", Daemon, sbatchd::run, "the batch agent of this host"),
    applet("starter", Hidden, starter::run, "sets up a task and becomes its process"),
    applet("status", Own, status::run, "show the daemons of a personal cluster"),
    applet("up", Own, up::run, "create and start a personal cluster"),
];

/// Bytes of stdout gathered before a write.
const OUT_BUFFER: usize = 64 << 10;

fn main() -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let called = if words.is_empty() { OsString::from("lsf") } else { words.remove(0) };
    let called = Path::new(&called).file_name().map_or(called.clone(), OsStr::to_os_string);
    // what is shown on a closed descriptor is not missed: the job of `bsub >&-` is in
    let mut out = Stream::new(BufWriter::with_capacity(OUT_BUFFER, std::io::stdout()));
    let mut err = Stream::new(Plain(std::io::stderr()));
    if privport::is_helper(&called) {
        return ExitCode::from(privport::run(&words, &mut err) as u8);
    }
    let mut code = dispatch(&called, words, &mut out, &mut err);
    let _ = out.flush();
    if let Some(why) = out.complaint() {
        let _ = writeln!(err, "{}: write error: {why}", called.to_string_lossy());
        // one that tells of a failure says more
        if code == 0 {
            code = FAIL;
        }
    }
    ExitCode::from((code & 0xff) as u8)
}

/// Finds the applet by the name called, which is exact, and runs it.
fn dispatch(called: &OsStr, words: Vec<OsString>, out: &mut dyn Write, err: &mut dyn Write) -> i32 {
    let mut ctx = Ctx::new("lsf", words, out, err);
    ctx.linked = names;
    if called == "lsf" {
        return multi(&mut ctx);
    }
    call(called, &mut ctx)
}

/// `lsf` itself: options of its own, or the applet named by the first word.
fn multi(ctx: &mut Ctx) -> i32 {
    if ctx.args.is_empty() {
        usage(ctx.err);
        return FAIL;
    }
    let first = ctx.args.remove(0);
    match first.to_str() {
        Some("help") if !ctx.args.is_empty() => {
            let about = ctx.args.remove(0);
            ctx.args = vec![OsString::from("-h")];
            call(&about, ctx)
        }
        Some("-h" | "--help" | "help") => {
            usage(ctx.out);
            0
        }
        Some("-V" | "--version") => {
            errln!(ctx, "{}", version::line());
            0
        }
        Some("--list") => {
            shown().for_each(|a| outln!(ctx, "{}", a.name));
            0
        }
        Some("--install") => match ctx.args.as_slice() {
            [flag, dir] if flag == "--setuid" => setuid(Path::new(&dir.clone()), ctx),
            [flag, dir] if flag == "--nqs" => install(Path::new(&dir.clone()), names(true), ctx),
            [dir] => install(Path::new(&dir.clone()), names(false), ctx),
            _ => {
                errln!(ctx, "lsf: --install takes one directory");
                FAIL
            }
        },
        Some("--completion") => match ctx.args.as_slice() {
            [shell] if shell == "bash" => complete(completion::bash, ctx),
            [shell] if shell == "zsh" => complete(completion::zsh, ctx),
            _ => {
                errln!(ctx, "lsf: --completion takes bash or zsh");
                FAIL
            }
        },
        _ => call(&first, ctx),
    }
}

/// Prints a completion file from what each applet says of itself.
fn complete(file: fn(&[completion::Words]) -> String, ctx: &mut Ctx) -> i32 {
    let words = shown().map(|a| {
        let (mut out, mut help) = (Vec::new(), Vec::new());
        let args = vec![OsString::from("-h")];
        (a.run)(&mut Ctx::new(a.name, args, &mut out, &mut help));
        completion::Words::read(a.name, &String::from_utf8_lossy(&[out, help].concat()))
    });
    let words: Vec<_> = words.collect();
    let _ = ctx.out.write_all(file(&words).as_bytes());
    0
}

fn call(name: &OsStr, ctx: &mut Ctx) -> i32 {
    if let Some(a) = APPLETS.iter().find(|a| name == a.name) {
        ctx.name = a.name;
        // what the launcher starts is executed as /proc/self/exe, and would be listed as `exe`
        let _ = CString::new(a.name).map(|name| rustix::thread::set_name(&name));
        let code = (a.run)(ctx);
        if let (FAIL, Some(readings)) = (code, ctx.readings) {
            for reading in readings(&ctx.args) {
                errln!(ctx, "{}: {reading}", a.name);
            }
        }
        return code;
    }
    let name = name.to_string_lossy();
    let near = version::nearest(&name, shown().map(|a| a.name));
    if near.is_empty() {
        errln!(ctx, "lsf: {name}: no such applet; `lsf --list` names them all");
    } else {
        errln!(ctx, "lsf: {name}: no such applet; did you mean {}?", near.join(" or "));
    }
    FAIL
}

/// The names of the applets that are linked, with or without those of [`Nqs`].
fn names(nqs: bool) -> Vec<&'static str> {
    let linked = |a: &&Applet| a.group != Own && (nqs || a.group != Nqs);
    shown().filter(linked).map(|a| a.name).collect()
}

fn shown() -> impl Iterator<Item = &'static Applet> {
    APPLETS.iter().filter(|a| a.group != Hidden)
}

fn usage(to: &mut dyn Write) {
    let _ = writeln!(
        to,
        "{}\n\nFirst:  lsf up                      create and start a cluster of your own\n        \
         . ~/.lsf/conf/profile.lsf   set this shell up for it\n        \
         bsub -o out.%J hostname     submit a job; `bjobs -a` shows it\n        \
         man lsf, man lsf-tutorial   from the first job to a configuration\n\n\
         Usage:  lsf APPLET [arguments]\n        APPLET [arguments]   (through a link of \
         that name)\n        lsf --list\n        lsf --install [--setuid | --nqs] DIR\n        \
         lsf --completion bash | zsh\n        lsf help [APPLET]\n        lsf -h | -V",
        version::line()
    );
    for (group, title) in HEADINGS {
        let _ = writeln!(to, "\n{title}:");
        for a in APPLETS.iter().filter(|a| a.group == group) {
            let _ = writeln!(to, "  {:<11} {}", a.name, a.line);
        }
    }
}

/// Makes the symbolic links in `dir` that name each applet, replacing links of ours.
fn install(dir: &Path, names: Vec<&'static str>, ctx: &mut Ctx) -> i32 {
    match lsf::cli::links::install(dir, names.into_iter()) {
        Ok(n) => {
            outln!(ctx, "{n} links in {}", dir.display());
            0
        }
        Err(why) => {
            errln!(ctx, "lsf: --install: {why}");
            FAIL
        }
    }
}

/// Makes the helper for LSF_AUTH=setuid.
fn setuid(dir: &Path, ctx: &mut Ctx) -> i32 {
    match lsf::cli::links::install_setuid(dir, privport::HELPER) {
        Ok(path) => {
            outln!(ctx, "{}: owner root, mode 4755", path.display());
            0
        }
        Err(why) => {
            errln!(ctx, "lsf: --install --setuid: {why}");
            FAIL
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_described() {
        for pair in APPLETS.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} after {}", pair[0].name, pair[1].name);
        }
        for a in APPLETS {
            assert!(!a.line.is_empty() && a.line.len() <= 66, "{}", a.name);
        }
    }

    #[test]
    fn help_begins_with_the_first_steps_and_names_every_applet_once() {
        let said = |words: &[&str]| {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let words = words.iter().map(OsString::from).collect();
            let code = dispatch(OsStr::new("lsf"), words, &mut out, &mut err);
            (code, String::from_utf8([out, err].concat()).unwrap())
        };
        let (code, text) = said(&["help"]);
        assert_eq!((code, said(&["-h"])), (0, (0, text.clone())));
        assert_eq!(said(&[]), (FAIL, text.clone()));
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
        let order = ["First:  lsf up", "profile.lsf", "bsub -o", "man lsf", "\nBatch jobs:"];
        let order: Vec<usize> = order.map(at).into_iter().chain([at("\nDaemons (")]).collect();
        assert!(order.is_sorted(), "{text}");
        let own = said(&["help", "bkill"]);
        assert!(own.0 == 0 && own.1.starts_with("Usage: bkill "), "{own:?}");
        assert!(said(&["help", "bkil"]).1.contains("did you mean bkill?"));
        for a in shown() {
            let lines = text.lines().filter(|l| l.starts_with(&format!("  {} ", a.name)));
            assert_eq!(lines.count(), 1, "{}", a.name);
        }
    }

    #[test]
    fn an_unknown_name_fails_with_words() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = dispatch(OsStr::new("nosuch"), vec![], &mut out, &mut err);
        assert_eq!((code, out.len()), (FAIL, 0));
        assert!(String::from_utf8_lossy(&err).contains("nosuch: no such applet"));
    }
}

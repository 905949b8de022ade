//! esub: programs of the site that look at a submission before it is sent, and may change or refuse
//! it (bsub(1) ESUB). The programs are `esub` and `esub.NAME` of LSF_SERVERDIR: the general one,
//! those of LSB_ESUB_METHOD, then those of -a, each once. After the submission `epsub` and
//! `epsub.NAME` hear of the answer.
//!
//! Invariants: they run as the caller, with what was asked for in the file that
//! LSB_SUB_PARM_FILE names; what they change they write to LSB_SUB_MODIFY_FILE and
//! LSB_SUB_MODIFY_ENVFILE; the exit status LSB_SUB_ABORT_VALUE refuses the submission.

use super::rejection::Rejection;
use lsf::cli::site::LocalSite;
use lsf::lang::depend::DepExpr;
use lsf::model::ByteStr;
use lsf::model::bytes::b64_encode;
use lsf::model::job::{EEXEC_DATA, JobSpec, Limits, opt, opt2};
use lsf::model::reason::{err, err_text};
use lsf::sys::files::unsafe_program;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Exit status by which an esub refuses.
const ABORT: i32 = 97;
/// Most bytes read of what an esub wrote.
const MODIFY_MAX: u64 = 4 << 20;
/// Most bytes of what an esub prints for eexec.
const PRINTED_MAX: u64 = 1 << 20;

/// One program: its name, its file, its arguments.
struct Program {
    file: PathBuf,
    args: Vec<String>,
}

/// The result of the esub programs.
#[derive(Default)]
pub struct Changed {
    /// Variables to set in the job's environment, and with them what was printed for eexec.
    pub env: Vec<(String, String)>,
}

/// `a b(x,y)`: names with their arguments.
fn names(text: &str) -> Vec<(String, Vec<String>)> {
    let (mut out, mut word, mut depth) = (Vec::new(), String::new(), 0u32);
    for c in text.chars().chain([' ']) {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c.is_whitespace() && depth == 0 {
            if !word.is_empty() {
                let (name, args) = word.split_once('(').unwrap_or((&word, ""));
                let args = args.strip_suffix(')').unwrap_or(args);
                let args = args.split(',').map(|a| a.trim().to_string());
                out.push((name.to_string(), args.filter(|a| !a.is_empty()).collect()));
            }
            word.clear();
        } else {
            word.push(c);
        }
    }
    out
}

/// The programs that concern a submission; `kind` is `esub` or `epsub`.
fn programs(site: &LocalSite, kind: &str, asked: &str) -> Result<Vec<Program>, Rejection> {
    let Some(dir) = site.lsf.serverdir().map(Path::new) else { return Ok(Vec::new()) };
    let method = std::env::var("LSB_ESUB_METHOD").ok();
    let method = method.or_else(|| site.lsf.get("LSB_ESUB_METHOD").map(str::to_string));
    let mut all = names(&method.unwrap_or_default());
    all.extend(names(asked));
    let mut out: Vec<Program> = Vec::new();
    let general = dir.join(kind);
    if general.is_file() {
        out.push(Program { file: general, args: Vec::new() });
    }
    for (name, args) in all {
        let file = dir.join(format!("{kind}.{name}"));
        let bad = name.contains('/') || !file.is_file();
        match bad {
            true if kind == "esub" => {
                let text = err_text(err::ESUB_ABORT);
                return Err(Rejection::new(format!("{name}: Cannot find esub.{name}. {text}")));
            }
            true => {}
            false if out.iter().any(|p| p.file == file) => {}
            false => out.push(Program { file, args }),
        }
    }
    match out.iter().find_map(|p| unsafe_program(&p.file)) {
        Some(why) => Err(Rejection::new(why)),
        None => Ok(out),
    }
}

/// Shows the submission to each program in turn; applies what they change.
pub fn run(
    site: &LocalSite,
    caller: &str,
    asked: &str,
    spec: &mut JobSpec,
    command: &mut Vec<u8>,
) -> Result<Changed, Rejection> {
    let mut changed = Changed { env: Vec::new() };
    let programs = programs(site, "esub", asked)?;
    if programs.is_empty() {
        return Ok(changed);
    }
    let fail = |e: std::io::Error| Rejection::new(format!("esub: {}", lsf::sys::words(&e)));
    let dir = Scratch::new().map_err(fail)?;
    let mut printed = Vec::new();
    for p in programs {
        let shows = site.lsf.yes_or("LSB_SUB_COMMANDNAME", true);
        let mut parm = parameters(spec, (command, shows), asked);
        if caller == "bmod" {
            parm.push_str("LSB_SUB_MODIFY=Y\n");
        }
        let (parm_file, modify, envs) = (dir.0.join("parm"), dir.0.join("mod"), dir.0.join("env"));
        std::fs::write(&parm_file, parm).map_err(fail)?;
        for file in [&modify, &envs] {
            std::fs::write(file, "").map_err(fail)?;
        }
        let mut run = Command::new(&p.file);
        run.args(&p.args).stdin(Stdio::null()).stdout(Stdio::piped());
        run.env("LSF_INVOKE_CMD", caller).env("LSB_SUB_ABORT_VALUE", ABORT.to_string());
        run.env("LSB_SUB_PARM_FILE", &parm_file).env("LSB_SUB_MODIFY_FILE", &modify);
        run.env("LSB_SUB_MODIFY_ENVFILE", &envs);
        let mut child = run.spawn().map_err(fail)?;
        if let Some(out) = child.stdout.take() {
            out.take(PRINTED_MAX).read_to_end(&mut printed).map_err(fail)?;
        }
        let status = child.wait().map_err(fail)?;
        if status.code() == Some(ABORT) {
            return Err(Rejection::new(err_text(err::ESUB_ABORT)));
        }
        for (name, value) in assignments(&read(&modify).map_err(fail)?) {
            set(spec, command, &name, &value)?;
        }
        changed.env.extend(assignments(&read(&envs).map_err(fail)?));
    }
    if !printed.is_empty() {
        changed.env.push((EEXEC_DATA.to_string(), b64_encode(&printed)));
    }
    Ok(changed)
}

/// Tells the programs that run after a submission what came of it.
pub fn told(site: &LocalSite, caller: &str, asked: &str, job: Option<(u32, &str)>, code: i32) {
    let Ok(programs) = programs(site, "epsub", asked) else { return };
    for p in programs {
        let mut run = Command::new(&p.file);
        run.args(&p.args).stdin(Stdio::null()).stdout(Stdio::null());
        run.env("LSF_INVOKE_CMD", caller).env("LSB_SUB_JOB_ERR", code.to_string());
        let (id, queue) = job.map_or(("-1".to_string(), ""), |(id, q)| (id.to_string(), q));
        run.env("LSB_SUB_JOB_ID", id).env("LSB_SUB_JOB_QUEUE", queue);
        // the job is there whatever becomes of them
        let _ = run.status();
    }
}

/// A directory that nobody else may enter, gone with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Scratch> {
        use std::os::unix::fs::DirBuilderExt;
        let word = u64::from_ne_bytes(lsf::sys::random::<8>()?);
        let dir = std::env::temp_dir().join(format!(".lsbsub.{word:016x}"));
        std::fs::DirBuilder::new().mode(0o700).create(&dir)?;
        Ok(Scratch(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = Vec::new();
    std::fs::File::open(path)?.take(MODIFY_MAX).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// `NAME=value` and `NAME="value"` lines.
fn assignments(text: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for line in text.lines() {
        let Some((name, value)) = line.trim().split_once('=') else { continue };
        let value = value.trim();
        let inner = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
        let value = match inner {
            Some(v) => v.replace("\\\"", "\""),
            None => value.trim_matches('\'').to_string(),
        };
        out.push((name.trim().to_string(), value));
    }
    out
}

/// The numbers among the limits, by the end of their name.
fn limit<'a>(l: &'a mut Limits, name: &str) -> Option<&'a mut Option<u64>> {
    Some(match name {
        "CPU" => &mut l.cpu,
        "FSIZE" => &mut l.fsize,
        "DATA" => &mut l.data,
        "STACK" => &mut l.stack,
        "CORE" => &mut l.core,
        "RSS" => &mut l.rss,
        "RUN" => &mut l.run,
        "PROCESS" => &mut l.process,
        "SWAP" => &mut l.swap,
        "THREAD" => &mut l.thread,
        _ => return None,
    })
}

const LIMITS: [&str; 10] =
    ["CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "RUN", "PROCESS", "SWAP", "THREAD"];

/// A text among the options: what changing it sets besides.
fn text<'a>(spec: &'a mut JobSpec, name: &str) -> Option<(&'a mut String, u32)> {
    Some(match name {
        "JOB_NAME" => (&mut spec.name, opt::JOB_NAME),
        "QUEUE" => (&mut spec.queue, opt::QUEUE),
        "USER_GROUP" => (&mut spec.user_group, opt::USER_GROUP),
        "RES_REQ" => (&mut spec.res_req, opt::RES_REQ),
        "MAIL_USER" => (&mut spec.mail_user, opt::MAIL_USER),
        "PROJECT_NAME" => (&mut spec.project, opt::PROJECT_NAME),
        "JOB_DESCRIPTION" => (&mut spec.description, 0),
        "HOST_SPEC" => (&mut spec.limit_spec, 0),
        "DEPEND_COND" => (&mut spec.depend, opt::DEPEND_COND),
        _ => return None,
    })
}

const TEXTS: [&str; 9] = [
    "JOB_NAME",
    "QUEUE",
    "USER_GROUP",
    "RES_REQ",
    "MAIL_USER",
    "PROJECT_NAME",
    "JOB_DESCRIPTION",
    "HOST_SPEC",
    "DEPEND_COND",
];

/// A file or command among the options.
fn bytes<'a>(spec: &'a mut JobSpec, name: &str) -> Option<(&'a mut ByteStr, u32)> {
    Some(match name {
        "SUB_IN_FILE" => (&mut spec.in_file, opt::IN_FILE),
        "SUB_OUT_FILE" => (&mut spec.out_file, opt::OUT_FILE),
        "SUB_ERR_FILE" => (&mut spec.err_file, opt::ERR_FILE),
        "SUB_PRE_EXEC" => (&mut spec.pre_exec, opt::PRE_EXEC),
        "SUB_LOGIN_SHELL" => (&mut spec.login_shell, opt::LOGIN_SHELL),
        "SUB3_POST_EXEC" => (&mut spec.post_exec, 0),
        "SUB3_CWD" => (&mut spec.cwd, 0),
        _ => return None,
    })
}

const FILES: [&str; 7] = [
    "SUB_IN_FILE",
    "SUB_OUT_FILE",
    "SUB_ERR_FILE",
    "SUB_PRE_EXEC",
    "SUB_LOGIN_SHELL",
    "SUB3_POST_EXEC",
    "SUB3_CWD",
];

/// Switches: name, bits of the options, bits of those of our own.
const FLAGS: [(&str, u32, u32); 11] = [
    ("SUB_EXCLUSIVE", opt::EXCLUSIVE, 0),
    ("SUB_NOTIFY_BEGIN", opt::NOTIFY_BEGIN, 0),
    ("SUB_NOTIFY_END", opt::NOTIFY_END, 0),
    ("SUB_RERUNNABLE", opt::RERUNNABLE, 0),
    ("SUB_INTERACTIVE", opt::INTERACTIVE, 0),
    ("SUB_PTY", opt::PTY, 0),
    ("SUB_PTY_SHELL", opt::PTY_SHELL, 0),
    ("SUB_HOLD", 0, opt2::HOLD),
    ("SUB2_OVERWRITE_OUT_FILE", 0, opt2::OVERWRITE_OUT),
    ("SUB2_OVERWRITE_ERR_FILE", 0, opt2::OVERWRITE_ERR),
    ("SUB_BSUB_BLOCK", 0, opt2::WAIT),
];

/// The submission in the form that an esub reads. `named`: with the name of its command
/// (LSB_SUB_COMMANDNAME of lsf.conf).
fn parameters(spec: &JobSpec, (command, named): (&[u8], bool), asked: &str) -> String {
    let mut s = spec.clone();
    let mut out = String::new();
    let mut put = |name: &str, value: &str, quote: bool| {
        let value = value.replace('\n', ";");
        match quote {
            _ if value.is_empty() => {}
            true => out.push_str(&format!("LSB_{name}=\"{}\"\n", value.replace('"', "\\\""))),
            false => out.push_str(&format!("LSB_{name}={value}\n")),
        }
    };
    for name in TEXTS {
        if let Some((value, _)) = text(&mut s, name) {
            put(&format!("SUB_{name}"), value, true);
        }
    }
    for name in FILES {
        if let Some((value, _)) = bytes(&mut s, name) {
            put(name, &value.lossy(), true);
        }
    }
    for (name, ..) in FLAGS.iter().filter(|(_, a, b)| s.options & a != 0 || s.options2 & b != 0) {
        put(name, "Y", false);
    }
    for name in LIMITS {
        if let Some(Some(n)) = limit(&mut s.limits, name).as_deref() {
            put(&format!("SUB_RLIMIT_{name}"), &n.to_string(), false);
        }
    }
    let numbers = [
        ("SUB_NUM_PROCESSORS", i64::from(s.min_slots)),
        ("SUB_MAX_NUM_PROCESSORS", i64::from(s.max_slots)),
        ("SUB_BEGIN_TIME", s.begin_time),
        ("SUB_TERM_TIME", s.term_time),
        ("SUB2_JOB_PRIORITY", i64::from(s.priority)),
    ];
    for (name, n) in numbers.into_iter().filter(|(_, n)| *n != 0) {
        put(name, &n.to_string(), false);
    }
    put("SUB_HOSTS", &s.hosts.join(" "), true);
    put("SUB2_JOB_GROUP", &s.further.job_group, true);
    put("SUB3_APP", &s.further.application, true);
    put("SUB_ADDITIONAL", asked, true);
    let line = String::from_utf8_lossy(command);
    put("SUB_COMMAND_LINE", &line, true);
    if named {
        put("SUB_COMMANDNAME", line.split_whitespace().next().unwrap_or(""), true);
    }
    out
}

/// Applies one line of LSB_SUB_MODIFY_FILE.
fn set(
    spec: &mut JobSpec,
    command: &mut Vec<u8>,
    name: &str,
    value: &str,
) -> Result<(), Rejection> {
    let Some(key) = name.strip_prefix("LSB_") else { return Ok(()) };
    let reset = value == "SUB_RESET";
    let value = if reset { "" } else { value };
    let bad = || Rejection::new(format!("esub: {name}={value}: {}", err_text(err::BAD_ARG)));
    let number = || match value {
        "" => Ok(0),
        v => v.parse::<u32>().map_err(|_| bad()),
    };
    if let Some((_, one, two)) = FLAGS.iter().find(|f| f.0 == key) {
        let on = value.eq_ignore_ascii_case("y");
        spec.options = if on { spec.options | one } else { spec.options & !one };
        spec.options2 = if on { spec.options2 | two } else { spec.options2 & !two };
        return Ok(());
    }
    if let Some((to, bit)) = bytes(spec, key) {
        *to = ByteStr::from(value);
        spec.options = if value.is_empty() { spec.options & !bit } else { spec.options | bit };
        return Ok(());
    }
    let short = key.strip_prefix("SUB_").unwrap_or("");
    if short == "DEPEND_COND" && !value.is_empty() {
        DepExpr::parse(value).map_err(|e| Rejection::new(format!("{value}: {e}")))?;
    }
    if let Some((to, bit)) = text(spec, short) {
        *to = value.to_string();
        spec.options = if value.is_empty() { spec.options & !bit } else { spec.options | bit };
        return Ok(());
    }
    if let Some(l) = short.strip_prefix("RLIMIT_").and_then(|n| limit(&mut spec.limits, n)) {
        *l = if value.is_empty() { None } else { Some(value.parse().map_err(|_| bad())?) };
        return Ok(());
    }
    match key {
        "SUB_NUM_PROCESSORS" => spec.min_slots = number()?,
        "SUB_MAX_NUM_PROCESSORS" => spec.max_slots = number()?,
        "SUB_BEGIN_TIME" => spec.begin_time = i64::from(number()?),
        "SUB_TERM_TIME" => spec.term_time = i64::from(number()?),
        "SUB2_JOB_PRIORITY" => spec.priority = number()?,
        "SUB_HOSTS" => {
            spec.hosts = value.split_whitespace().map(str::to_string).collect();
            spec.options |= opt::HOST;
        }
        "SUB2_JOB_GROUP" => spec.further.job_group = value.into(),
        "SUB3_APP" => spec.further.application = value.into(),
        "SUB_COMMAND_LINE" if !value.is_empty() && spec.options2 & opt2::SCRIPT == 0 => {
            *command = value.as_bytes().to_vec();
        }
        _ => {}
    }
    Ok(())
}

/// The environment with what they set in it.
pub fn with(mut env: Vec<super::env::Var>, changed: Changed) -> Vec<super::env::Var> {
    for (name, value) in changed.env {
        let name = OsString::from(name).into_vec();
        env.retain(|(n, _)| *n != name);
        env.push((name, value.into_bytes()));
    }
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_esubs_have_arguments() {
        let of = names(" a  b(x, y z) c() ");
        let args = |n: usize| of[n].1.join("|");
        assert_eq!((of.len(), of[1].0.as_str()), (3, "b"));
        assert_eq!((args(0), args(1), args(2)), (String::new(), "x|y z".into(), String::new()));
    }

    #[test]
    fn values_shown_to_esub_can_be_changed() {
        let mut spec = JobSpec {
            queue: "night".into(),
            min_slots: 2,
            max_slots: 2,
            options: opt::EXCLUSIVE | opt::QUEUE,
            ..JobSpec::default()
        };
        spec.limits.run = Some(600);
        let hidden = parameters(&spec, (b"echo \"x\"", false), "app");
        assert!(!hidden.contains("COMMANDNAME") && hidden.contains("COMMAND_LINE"), "{hidden}");
        let shown = parameters(&spec, (b"echo \"x\"", true), "app");
        for line in [
            "LSB_SUB_QUEUE=\"night\"",
            "LSB_SUB_EXCLUSIVE=Y",
            "LSB_SUB_NUM_PROCESSORS=2",
            "LSB_SUB_RLIMIT_RUN=600",
            "LSB_SUB_ADDITIONAL=\"app\"",
            "LSB_SUB_COMMAND_LINE=\"echo \\\"x\\\"\"",
            "LSB_SUB_COMMANDNAME=\"echo\"",
        ] {
            assert!(shown.lines().any(|l| l == line), "{line} is not in\n{shown}");
        }
        let mut command = b"a".to_vec();
        let text = "LSB_SUB_QUEUE=SUB_RESET\nLSB_SUB_EXCLUSIVE=SUB_RESET\nLSB_SUB_RLIMIT_RUN=60\n\
                    LSB_SUB_OUT_FILE=\"o.%J\"\nLSB_SUB_COMMAND_LINE=\"b \\\"c\\\"\"\n\
                    LSB_SUB2_JOB_GROUP=/x\nLSB_SUB_NO_SUCH=1\n";
        for (name, value) in assignments(text) {
            set(&mut spec, &mut command, &name, &value).unwrap();
        }
        assert_eq!((spec.queue.as_str(), spec.options), ("", opt::OUT_FILE));
        assert_eq!((spec.limits.run, command.as_slice()), (Some(60), &b"b \"c\""[..]));
        assert_eq!((spec.out_file.lossy().as_ref(), &*spec.further.job_group), ("o.%J", "/x"));
        assert!(set(&mut spec, &mut command, "LSB_SUB_NUM_PROCESSORS", "x").is_err());
    }
}

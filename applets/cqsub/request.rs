//! A submission from the options and the script of a request.

use super::opts::CqsubOpts;
use super::refusal::refused;
use super::script::Source;
use super::{limits, time};
use crate::bsub::env::Var;
use crate::bsub::script::shown;
use crate::bsub::spec::SubmissionInputs;
use crate::bsub::{Stop, own_environment};
use lsf::cli::site::LocalSite;
use lsf::conf::load::load_base_lenient;
use lsf::conf::names::nearest;
use lsf::model::ByteStr;
use lsf::model::further::Mark;
use lsf::model::job::{JobSpec, opt, opt2};
use lsf::model::nqs::put_asked;
use lsf::sys::files::RealFiles;
use lsf::sys::users::UserDatabase;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Longest name of a request, characters.
const MAX_NAME: usize = 15;
/// Characters of the name in the names of the output files.
const FILE_NAME: usize = 7;
/// Largest -p.
const MAX_PRIORITY: u32 = 63;

/// A submission with its environment and script, and the notices for the user.
pub struct Made {
    pub spec: JobSpec,
    pub env: Vec<Var>,
    pub script: Vec<u8>,
    pub notices: Vec<String>,
}

/// Makes the submission.
pub fn build(
    opts: &CqsubOpts,
    facts: &SubmissionInputs,
    source: &Source,
    site: &LocalSite,
) -> Result<Made, Stop> {
    forbidden(opts, site)?;
    let mut spec = JobSpec {
        umask: facts.umask,
        home: ByteStr(facts.home.clone()),
        cwd: ByteStr(facts.home.clone()),
        command: ByteStr(shown(&source.text)),
        options2: opt2::CWD | opt2::SCRIPT,
        ..JobSpec::default()
    };
    spec.further.submission_directory = String::from_utf8_lossy(&facts.cwd).into();
    spec.further.nqs = Mark(true);
    spec.name = name(opts, source);
    spec.options |= opt::JOB_NAME;
    if let Some(queue) = &opts.queue {
        spec.queue =
            queue.split([' ', ',']).filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ");
        spec.options |= opt::QUEUE;
    }
    if let Some(text) = &opts.after {
        spec.begin_time = time::after(text, facts.now, &facts.zone).map_err(refused)?;
    }
    if let Some(account) = &opts.account {
        spec.project.clone_from(account);
        spec.options |= opt::PROJECT_NAME;
    }
    let mut notices = Vec::new();
    let mut attributes = request_attributes(opts)?;
    limits::put(opts, &mut spec, &mut attributes).map_err(refused)?;
    tapes(opts, site, (&mut spec, &mut attributes, &mut notices))?;
    spec.further.nlb_attributes = attributes.into();
    mpp(opts, &mut spec)?;
    files(opts, facts, site, &mut spec)?;
    priority(opts, &mut spec)?;
    mail(opts, &mut spec);
    without_effect(opts, &mut notices);
    let (shell, script) = shell(opts, source);
    let env = environment(opts, facts, site, (&shell, &spec.name));
    if !opts.export {
        spec.login_shell = ByteStr::from(shell.as_str());
        spec.options |= opt::LOGIN_SHELL;
    }
    Ok(Made { spec, env, script, notices })
}

/// Options that are refused.
fn forbidden(opts: &CqsubOpts, site: &LocalSite) -> Result<(), Stop> {
    if opts.password {
        return Err(refused("-P: passwords are never sent"));
    }
    let me = UserDatabase::default().by_uid(lsf::sys::euid());
    if let Some(user) = opts.user.as_ref().filter(|u| me.as_ref().is_none_or(|me| me.name != **u)) {
        return Err(refused(format!("-u <{user}>: account mapping is lsb.users'")));
    }
    match opts.destination.as_deref() {
        None | Some("nqs") => {}
        Some("nqedb") => return Err(refused("-d nqedb: there is no NQE database here")),
        Some(other) => return Err(refused(format!("-d <{other}>: nqs is wanted"))),
    }
    if opts.destination.is_none() && dest_type(site).as_deref() == Some("nqedb") {
        return Err(refused("NQS_DEST_TYPE=nqedb: there is no NQE database here"));
    }
    Ok(())
}

/// NQS_DEST_TYPE of the environment, in small letters.
fn dest_type(_: &LocalSite) -> Option<String> {
    std::env::var("NQS_DEST_TYPE").ok().map(|v| v.trim().to_ascii_lowercase())
}

/// The name: -r, the script's file, or STDIN.
fn name(opts: &CqsubOpts, source: &Source) -> String {
    let name = opts.name.clone().or(source.name.clone()).unwrap_or_else(|| "STDIN".to_owned());
    let digit = name.starts_with(|c: char| c.is_ascii_digit());
    let name = if digit { format!("R{name}") } else { name };
    // an index list would make it an array
    let plain = |c: char| if c == '[' || c == ']' || c == '%' || c.is_control() { '_' } else { c };
    name.chars().take(MAX_NAME).map(plain).collect()
}

/// -la: the attributes of the request.
fn request_attributes(opts: &CqsubOpts) -> Result<String, Stop> {
    let mut all = String::new();
    for item in opts.attributes.iter().flat_map(|text| split(text)) {
        let why = |why| refused(format!("-la <{item}>: {why}"));
        put_asked(&mut all, &item).map_err(why)?;
    }
    Ok(all)
}

/// Splits at commas that stand in no quotes.
fn split(text: &str) -> Vec<String> {
    let (mut all, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        quoted ^= c == '"';
        match c {
            ',' if !quoted => all.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    all.push(word);
    all
}

/// -lU: attributes, and resources where lsf.shared has them.
fn tapes(
    opts: &CqsubOpts,
    site: &LocalSite,
    (spec, attributes, notices): (&mut JobSpec, &mut String, &mut Vec<String>),
) -> Result<(), Stop> {
    let all = limits::tapes(opts, attributes).map_err(refused)?;
    if all.is_empty() {
        return Ok(());
    }
    let (base, _) = load_base_lenient(&RealFiles, &site.envdir, Some(&site.host));
    let resources = base.map(|b| b.shared.resources).unwrap_or_default();
    let mut wanted = Vec::new();
    for (kind, number) in all {
        let name = format!("tape_{kind}");
        match resources.iter().any(|r| r.name == name) {
            true => wanted.push(format!("{name}={number}")),
            false => notices.push(format!("-lU: no resource {name} is in lsf.shared")),
        }
    }
    if !wanted.is_empty() {
        spec.res_req = format!("rusage[{}]", wanted.join(","));
        spec.options |= opt::RES_REQ;
    }
    Ok(())
}

/// -l mpp_p and mpp_t.
fn mpp(opts: &CqsubOpts, spec: &mut JobSpec) -> Result<(), Stop> {
    for text in &opts.mpp {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        match name {
            "mpp_p" => {
                let slots = value.parse::<u32>().ok().filter(|n| *n > 0);
                let words = || refused(format!("-l <{text}>: a number from 1 is wanted"));
                let slots = slots.ok_or_else(words)?;
                (spec.min_slots, spec.max_slots) = (slots, slots);
            }
            "mpp_t" => {
                let seconds = limits::time(value).map_err(|why| refused(format!("-l {why}")))?;
                let minutes = seconds.map(|s| (s / 60.0).ceil() as u64);
                spec.limits.run = minutes.map(|m| m.saturating_mul(60));
            }
            other => {
                let near = nearest(other, ["mpp_p", "mpp_t"]);
                let near = near.map(|n| format!("; did you mean <{n}>?")).unwrap_or_default();
                return Err(refused(format!("-l <{other}>: mpp_p or mpp_t is wanted{near}")));
            }
        }
    }
    Ok(())
}

/// The files of output: NAME7.oJOBID and NAME7.eJOBID in the directory of submission, or others.
fn files(
    opts: &CqsubOpts,
    facts: &SubmissionInputs,
    site: &LocalSite,
    spec: &mut JobSpec,
) -> Result<(), Stop> {
    let base = Path::new(OsStr::from_bytes(&facts.cwd));
    let short: String = spec.name.chars().take(FILE_NAME).collect();
    // no `%` of a name may mean anything
    let short = short.replace(['%', '/'], "_");
    let place = |option: &str, given: &Option<String>, letter: char| -> Result<ByteStr, Stop> {
        let path = match given.as_deref() {
            None => base.join(format!("{short}.{letter}%J")),
            Some(text) => match text.split_once(':') {
                Some((host, path)) if !host.is_empty() && !host.contains('/') => {
                    if !same_host(site, host) {
                        let words = format!("{option} <{text}>: output returns to this host");
                        return Err(refused(words));
                    }
                    base.join(path)
                }
                _ => base.join(text),
            },
        };
        Ok(ByteStr(path.into_os_string().into_vec()))
    };
    spec.out_file = place("-o", &opts.out, 'o')?;
    spec.options |= opt::OUT_FILE;
    if !opts.err_to_out {
        spec.err_file = place("-e", &opts.err, 'e')?;
        spec.options |= opt::ERR_FILE;
    }
    Ok(())
}

/// Does a word name this host?
fn same_host(site: &LocalSite, word: &str) -> bool {
    let (base, _) = load_base_lenient(&RealFiles, &site.envdir, Some(&site.host));
    let known = base.and_then(|b| b.hosts.canonical(word).map(str::to_owned));
    known.is_some_and(|name| name == site.host) || word == site.host
}

/// -p: its place in 0 to 63 becomes one among the priorities of LSF when the request is sent.
fn priority(opts: &CqsubOpts, spec: &mut JobSpec) -> Result<(), Stop> {
    let Some(text) = &opts.priority else { return Ok(()) };
    let number = text.parse::<u32>().ok().filter(|n| *n <= MAX_PRIORITY);
    let Some(number) = number else {
        return Err(refused(format!("-p <{text}>: a number from 0 to {MAX_PRIORITY} is wanted")));
    };
    spec.priority = number.max(1);
    Ok(())
}

fn mail(opts: &CqsubOpts, spec: &mut JobSpec) {
    for (on, bit) in [(opts.mail_begin, opt::NOTIFY_BEGIN), (opts.mail_end, opt::NOTIFY_END)] {
        spec.options |= if on { bit } else { 0 };
    }
    if let Some(user) = &opts.mail_user {
        spec.mail_user.clone_from(user);
        spec.options |= opt::MAIL_USER;
    }
    match opts.never_rerun {
        true => spec.options2 |= opt2::NEVER_RERUN,
        false => spec.options |= opt::RERUNNABLE,
    }
}

/// The options that are accepted and change nothing are said.
fn without_effect(opts: &CqsubOpts, notices: &mut Vec<String>) {
    let given = [
        ("-ln", opts.nice.is_some()),
        ("-lq", opts.quick.is_some()),
        ("-lv", opts.temporary.is_some()),
        ("-lV", opts.request_temporary.is_some()),
        ("-ko", opts.keep_out),
        ("-ke", opts.keep_err),
        ("-mt", opts.mail_routed),
        ("-bb", opts.broadcast_begin),
        ("-be", opts.broadcast_end),
        ("-J", opts.job_log.as_deref().is_some_and(|v| v != "n")),
    ];
    for (option, _) in given.iter().filter(|(_, given)| *given) {
        notices.push(format!("option {option} is accepted but not acted on"));
    }
}

/// The shell of the request, and the script that begins with it: -s, the script's own, or the login
/// shell.
fn shell(opts: &CqsubOpts, source: &Source) -> (String, Vec<u8>) {
    let login = UserDatabase::default().by_uid(lsf::sys::euid()).map(|user| user.shell);
    let login = login.filter(|s| !s.is_empty()).unwrap_or_else(|| "/bin/sh".to_owned());
    let own = source.text.starts_with(b"#!");
    match &opts.shell {
        None if own => (login, source.text.clone()),
        given => {
            let shell = given.clone().unwrap_or_else(|| login.clone());
            let mut script = format!("#!{shell}\n").into_bytes();
            script.extend_from_slice(&source.text);
            (login, script)
        }
    }
}

/// The environment: what NQS sets, with -x also the caller's.
fn environment(
    opts: &CqsubOpts,
    facts: &SubmissionInputs,
    site: &LocalSite,
    (shell, name): (&str, &str),
) -> Vec<Var> {
    let caller = own_environment();
    let of = |name: &str| {
        let found = caller.iter().find(|(known, _)| known == name.as_bytes());
        found.map_or(Vec::new(), |(_, value)| value.clone())
    };
    let me = UserDatabase::default().by_uid(lsf::sys::euid()).map(|user| user.name);
    let user = me.unwrap_or_default().into_bytes();
    let mut env: Vec<Var> = if opts.export {
        crate::bsub::env::EnvAsk::everything().apply(&caller)
    } else {
        vec![(b"LOGNAME".to_vec(), user.clone()), (b"PATH".to_vec(), of("PATH"))]
    };
    let own: [(&str, Vec<u8>); 10] = [
        ("QSUB_HOME", facts.home.clone()),
        ("QSUB_HOST", site.host.clone().into_bytes()),
        ("QSUB_LOGNAME", user),
        ("QSUB_MAIL", of("MAIL")),
        ("QSUB_PATH", of("PATH")),
        ("QSUB_SHELL", shell.as_bytes().to_vec()),
        ("QSUB_TZ", of("TZ")),
        ("QSUB_WORKDIR", facts.cwd.clone()),
        ("QSUB_REQNAME", name.as_bytes().to_vec()),
        ("ENVIRONMENT", b"BATCH".to_vec()),
    ];
    env.retain(|(known, _)| own.iter().all(|(name, _)| name.as_bytes() != known));
    env.extend(own.into_iter().map(|(name, value)| (name.as_bytes().to_vec(), value)));
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(options: &[&str]) -> CqsubOpts {
        let args: Vec<_> = options.iter().map(std::ffi::OsString::from).collect();
        lsf::cli::front::parse::<CqsubOpts>("cqsub", &args).unwrap().options
    }

    #[test]
    fn attributes_of_a_request_are_named_after_job() {
        let opts = of(&["-la", "nastran,mem=1e3,app=\"a,b\"", "-la", "x"]);
        let told = r#"JOB_NASTRAN=1 JOB_MEM=1000 JOB_APP="a,b" JOB_X=1"#;
        assert_eq!(request_attributes(&opts).ok().unwrap(), told);
        for bad in ["a-b", "a=010", "a=-1", "a=0x10", "a=word", ""] {
            assert!(request_attributes(&of(&["-la", bad])).is_err(), "{bad}");
        }
    }

    #[test]
    fn name_of_a_request_is_given_or_that_of_the_script() {
        let source = |name: Option<&str>| Source { text: vec![], name: name.map(str::to_owned) };
        let of = |r: &[&str], script| name(&of(r), &source(script));
        assert_eq!(of(&["-r", "prod"], Some("x.sh")), "prod");
        assert_eq!(of(&[], Some("7days.sh")), "R7days.sh");
        assert_eq!(of(&[], None), "STDIN");
        assert_eq!(of(&["-r", "longer than fifteen"], None), "longer than fif");
        assert_eq!(of(&["-r", "a[1-3]"], None), "a_1-3_");
    }
}

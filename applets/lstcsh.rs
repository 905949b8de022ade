//! lstcsh: the site's tcsh, in which commands run on other hosts. See lstcsh(1).
//!
//! tcsh starts with a home of ours for as long as it reads its start files: ours reads the user's
//! and then makes an alias of each command of PATH that is neither tcsh's own nor an alias of the
//! user's. The alias calls this program again, which finds out whether the command is eligible, and
//! becomes it, here or through RES. The setting of lsmode is kept in the environment.

use super::lsrun::{self, Call};
use super::{lsmake, lstasks};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::links::own_binary;
use lsf::cli::remote::How;
use lsf::cli::site::{self, LocalSite};
use lsf::cli::tasks::{Tasks, requirement};
use lsf::cli::{client, remote, version};
use lsf::conf::generate::shell_quoted;
use lsf::conf::load;
use lsf::sys::files::RealFiles;
use lsf::{errln, outln};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// The directory of this shell, and what lsmode says: a letter for each that is on.
const VARS: [&str; 2] = ["LSF_TCSH_DIR", "LSF_TCSH_MODE"];
/// Words by which this program calls itself.
const TASK: &str = "--task";
const MODE: &str = "--mode";
const CONNECT: &str = "--connect";
const ALIASES: &str = "--aliases";
/// Built-in commands of tcsh, and names that must not be aliases.
const OWN: &str = "@ alias alloc bg bindkey break breaksw builtins case cd chdir complete continue \
    default dirs echo echotc else end endif endsw eval exec exit fg filetest foreach glob goto \
    hashstat history hup if jobs kill limit log login logout ls-F newgrp nice nohup notify onintr \
    popd pushd rehash repeat sched set setenv settc setty shift source stop suspend switch \
    telltc termname time umask unalias uncomplete unhash unlimit unset unsetenv wait where which \
    while connect lsmode lstask lsf tcsh csh lstcsh";

pub fn run(ctx: &mut Ctx) -> i32 {
    let words = ctx.words();
    match words.first().map(String::as_str) {
        Some("-V") => {
            errln!(ctx, "{}", version::line());
            return 0;
        }
        Some("-h") => {
            errln!(ctx, "Usage: lstcsh [tcsh options] [-L] [argument ...]");
            return 0;
        }
        Some(TASK) => return task(ctx),
        Some(MODE) => return mode(ctx, &words[1..]),
        Some(CONNECT) => return connect(ctx, &words[1..]),
        Some(ALIASES) => return aliases(ctx),
        _ => {}
    }
    ctx.flush();
    shell(ctx).unwrap_or_else(|why| {
        errln!(ctx, "lstcsh: {why}");
        FAIL
    })
}

fn shell(ctx: &Ctx) -> Result<i32, String> {
    let me = shell_quoted(&own_binary()?.to_string_lossy()) + " lstcsh";
    let mut args = ctx.args.clone();
    let asked = args.iter().position(|w| w == "-L");
    if let Some(at) = asked {
        args.remove(at);
    }
    // a script is one of tcsh's, without anything shared
    let command = args.iter().any(|w| w == "-c");
    let script = !command && args.iter().any(|w| !w.as_bytes().starts_with(b"-"));
    let mode = if asked.is_some() || !script { "o" } else { "" };
    let dir = lsmake::own_directory("lstcsh")?;
    let home = shell_quoted(&std::env::var("HOME").unwrap_or_default());
    let at = shell_quoted(&dir.to_string_lossy());
    let rc = format!(
        "setenv HOME {home}\nset home = {home}\n\
         if ( -r ~/.tcshrc ) then\nsource ~/.tcshrc\nelse if ( -r ~/.cshrc ) then\n\
         source ~/.cshrc\nendif\n\
         alias > {at}/own\n{me} {ALIASES} > {at}/all\nsource {at}/all\n\
         alias lsmode 'eval `{me} {MODE} \\!*`'\n\
         alias connect '{me} {CONNECT}'\n\
         alias lstask '{me} {TASK} lsltasks; {me} {TASK} lsrtasks'\n",
    );
    let mut c = Command::new("tcsh");
    c.args(&args).env("HOME", &dir).env(VARS[0], &dir).env(VARS[1], mode);
    let ended = std::fs::write(dir.join(".tcshrc"), rc).and_then(|()| c.status());
    let _ = std::fs::remove_dir_all(&dir);
    match ended {
        Ok(s) => Ok(s.code().unwrap_or_else(|| 128 + s.signal().unwrap_or(0))),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            Err("tcsh is not installed (Debian: package tcsh)".into())
        }
        Err(e) => Err(format!("tcsh: {}", lsf::sys::words(&e))),
    }
}

/// An alias for each command of PATH; what it says is sourced.
fn aliases(ctx: &mut Ctx) -> i32 {
    let Ok(me) = own_binary() else { return FAIL };
    let me = shell_quoted(&me.to_string_lossy()) + " lstcsh " + TASK;
    let dir = std::env::var(VARS[0]).unwrap_or_default();
    let own = std::fs::read_to_string(Path::new(&dir).join("own")).unwrap_or_default();
    let mut not: BTreeSet<String> = OWN.split_whitespace().map(str::to_owned).collect();
    let mut names = BTreeSet::new();
    if let Ok(lists) = lstasks::lists() {
        names.extend(lists.remote.into_keys());
    }
    not.retain(|n| !names.contains(n));
    not.extend(own.lines().filter_map(|l| Some(l.split_whitespace().next()?.to_owned())));
    let path = std::env::var_os("PATH").unwrap_or_default();
    for entry in std::env::split_paths(&path).filter_map(|d| d.read_dir().ok()).flatten().flatten()
    {
        let is = |m: std::fs::Metadata| m.is_file() && m.permissions().mode() & 0o111 != 0;
        // a link counts as what it leads to
        if std::fs::metadata(entry.path()).is_ok_and(is) {
            names.insert(entry.file_name().to_string_lossy().into_owned());
        }
    }
    // csh knows names of letters, digits and a few more
    let plain = |n: &String| n.chars().all(|c| c.is_ascii_alphanumeric() || "_-.+".contains(c));
    for name in names.into_iter().filter(|n| plain(n) && !not.contains(n)) {
        outln!(ctx, "alias {name} {}", shell_quoted(&format!("{me} {name}")).replace('!', "\\!"));
    }
    0
}

/// The request of `@` at the end of a line.
enum At {
    /// The line names no host.
    Unsaid,
    Local,
    /// Any host, or one that meets this.
    Eligible(Option<String>),
    Host(String),
}

/// Takes `@`, `@local`, `@/req`, `@req` or `@host` from the end; hosts and `local` may be cut.
fn at_of(site: &LocalSite, words: &mut Vec<OsString>) -> At {
    let Some(last) = words.last().and_then(|w| w.to_str()).map(str::to_owned) else {
        return At::Unsaid;
    };
    let Some(rest) = last.strip_prefix('@').filter(|_| words.len() > 1) else { return At::Unsaid };
    let (base, _) = load::load_base_lenient(&RealFiles, &site.envdir, Some(&site.host));
    let hosts = base.map(|b| b.cluster.hosts).unwrap_or_default();
    let names: Vec<&str> =
        hosts.iter().map(|h| h.name.as_str()).chain(std::iter::once("local")).collect();
    let exact = names.iter().find(|n| **n == rest);
    let mut begun = names.iter().filter(|n| n.starts_with(rest));
    let cut = begun.next().filter(|_| begun.next().is_none());
    let at = match (rest, exact.or(cut)) {
        ("", _) => At::Eligible(None),
        (_, Some(&"local")) => At::Local,
        (_, Some(host)) => At::Host((*host).to_owned()),
        (_, None) => match rest.strip_prefix('/') {
            Some(req) => At::Eligible(Some(req.to_owned())),
            // a word of the command's own
            None => return At::Unsaid,
        },
    };
    words.pop();
    at
}

/// Whether this user may say `@` (LSF_SHELL_AT_USERS).
fn may_say_at(site: &LocalSite) -> bool {
    let users = site.lsf.list("LSF_SHELL_AT_USERS");
    let me = std::env::var("USER").unwrap_or_default();
    users.is_empty() || users.contains(&me.as_str())
}

/// A command that was typed.
fn task(ctx: &mut Ctx) -> i32 {
    let mut words = ctx.args[1..].to_vec();
    let mode = std::env::var(VARS[1]).unwrap_or_default();
    let on = |letter: char| mode.contains(letter);
    let Ok(site) = site::find() else { return locally(ctx, &words) };
    if words.is_empty() || !on('o') {
        return locally(ctx, &words);
    }
    let at = at_of(&site, &mut words);
    if !matches!(at, At::Unsaid) && !may_say_at(&site) {
        errln!(ctx, "lstcsh: @: User permission denied");
        return FAIL;
    }
    let lists = lstasks::lists().unwrap_or_default();
    let listed = eligible(&lists, &words[0], on('r'));
    let (hosts, req) = match &at {
        At::Local => (None, None),
        At::Host(host) => (Some(host.clone()), None),
        At::Eligible(Some(req)) => (None, Some(req.clone())),
        _ => (None, requirement(&lists, &words[0])),
    };
    let remote = match at {
        At::Unsaid => listed,
        At::Local => false,
        _ => true,
    };
    if on('e') {
        let word = words[0].to_string_lossy();
        let what = if remote { "eligible for remote execution" } else { "to be executed locally" };
        errln!(ctx, "<<{word} is {what}>>");
    }
    let began = Instant::now();
    let code = if remote {
        elsewhere(ctx, site, &words, hosts, req, on('v'))
    } else {
        locally(ctx, &words)
    };
    if on('t') {
        errln!(ctx, "<<{:.2} seconds>>", began.elapsed().as_secs_f64());
    }
    code
}

/// Local mode: what the remote list has; remote mode: what the local list has not.
fn eligible(lists: &Tasks, word: &std::ffi::OsStr, remote_mode: bool) -> bool {
    let name = Path::new(word).file_name().unwrap_or(word).to_string_lossy().into_owned();
    lists.remote.contains_key(&name) || remote_mode && !lists.local.contains_key(&name)
}

/// Runs the command at the best host; here if there is none.
fn elsewhere(
    ctx: &mut Ctx,
    site: LocalSite,
    words: &[OsString],
    hosts: Option<String>,
    req: Option<String>,
    verbose: bool,
) -> i32 {
    let named = hosts.is_some();
    let found = lsrun::chosen(&site, hosts.as_deref(), req.as_deref(), None);
    if !named && found.as_ref().map_or(true, |f| f.best().is_none()) {
        return locally(ctx, words);
    }
    let tty = |fd| lsf::sys::term::size(fd).is_some();
    let pty = tty(rustix::stdio::stdin()) && tty(rustix::stdio::stdout());
    let how = How { pty, name: "lstcsh", ..How::default() };
    Call { site, argv: words, how: &how, verbose }.at(ctx, found, !named)
}

/// Runs the words here, as this process's child.
fn locally(ctx: &mut Ctx, words: &[OsString]) -> i32 {
    let Some(word) = words.first() else { return FAIL };
    ctx.flush();
    match Command::new(word).args(&words[1..]).status() {
        Ok(s) => remote::end(Some(s.into_raw())),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            errln!(ctx, "{}: Command not found.", word.display());
            1
        }
        Err(e) => {
            errln!(ctx, "{}: {}", word.display(), lsf::sys::words(&e));
            1
        }
    }
}

/// `lsmode`: what is evaluated then. Without words it shows what is on.
fn mode(ctx: &mut Ctx, words: &[String]) -> i32 {
    let mut mode: BTreeSet<char> = std::env::var(VARS[1]).unwrap_or_default().chars().collect();
    if words.is_empty() {
        let has =
            |c: char, yes: &'static str, no: &'static str| if mode.contains(&c) { yes } else { no };
        let line = [
            has('o', "on", "off"),
            has('r', "remote", "local"),
            has('e', "e", "-e"),
            has('v', "v", "-v"),
            has('t', "t", "-t"),
        ];
        outln!(ctx, "echo lsmode: {}", line.join(" "));
        return 0;
    }
    let mut connects = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let (letter, on) = match word.as_str() {
            "on" => ('o', true),
            "off" => ('o', false),
            "remote" => ('r', true),
            "local" => ('r', false),
            "e" | "v" | "t" => (word.chars().next().unwrap_or('e'), true),
            "-e" | "-v" | "-t" => (word.chars().nth(1).unwrap_or('e'), false),
            "@" => continue,
            "connect" => {
                connects = words[at..].to_vec();
                break;
            }
            _ => {
                outln!(ctx, "echo 'lsmode: {word}: no such mode'");
                return 1;
            }
        };
        match on {
            true => drop(mode.insert(letter)),
            false => drop(mode.remove(&letter)),
        }
    }
    let value: String = mode.into_iter().collect();
    let more =
        if connects.is_empty() { String::new() } else { format!("; {}", connects.join(" ")) };
    outln!(ctx, "setenv {} '{value}'{more}", VARS[1]);
    0
}

/// `connect [host ...]`: whether their RES lets us in; without words those that did.
fn connect(ctx: &mut Ctx, hosts: &[String]) -> i32 {
    let file = Path::new(&std::env::var(VARS[0]).unwrap_or_default()).join("connected");
    let mut known = std::fs::read_to_string(&file).unwrap_or_default();
    if hosts.is_empty() {
        outln!(ctx, "CONNECTED WITH       SERVER SHELL");
        known.lines().for_each(|h| outln!(ctx, "{h:<20} -"));
        return 0;
    }
    let mut code = 0;
    for host in hosts {
        let done = site::find().map_err(|e| e.to_string());
        let done = done.and_then(|s| client::res_of(&s, host).map_err(|e| format!("{e:#}")));
        match done {
            Ok(_) => {
                outln!(ctx, "Connected to {host}");
                if !known.lines().any(|h| h == host) {
                    known.push_str(&format!("{host}\n"));
                }
            }
            Err(why) => {
                errln!(ctx, "connect: {host}: {why}");
                code = 1;
            }
        }
    }
    // a list that is lost is only not shown
    let _ = std::fs::write(file, known);
    code
}

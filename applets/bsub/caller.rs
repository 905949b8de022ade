//! The process that submits: its directories, umask and environment, and the id of its request.

use super::env::{self, EnvAsk, Var};
use super::rejection::Rejection;
use super::spec::SubmissionInputs;
use jiff::tz::TimeZone;
use lsf::conf::LsfConf;
use lsf::lang::lsfhosts;
use lsf::model::ByteStr;
use lsf::sys::files::read_own;
use lsf::sys::users::UserDatabase;
use std::cell::OnceCell;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Bytes of a request id.
const REQUEST_BYTES: usize = 16;
/// Most bytes of ~/.lsfhosts that go with a submission.
const ACCOUNTS_MAX: usize = 8 << 10;

/// `times`: the zone is wanted; reading it costs every submission two files.
pub fn facts(conf: &LsfConf, times: bool) -> Result<SubmissionInputs, Rejection> {
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let home = home();
    let accounts = accounts(&home)?;
    Ok(SubmissionInputs {
        now: lsf::sys::now().secs(),
        zone: if times { TimeZone::system() } else { TimeZone::UTC },
        unit: conf.unit(),
        requirement_unit_mb: conf.requirement_unit_mb(),
        default_queue: var("LSB_DEFAULTQUEUE"),
        default_project: var("LSB_DEFAULTPROJECT"),
        default_group: default_group(&var("LSB_DEFAULT_JOBGROUP")),
        cwd: working_directory()?,
        home,
        accounts,
        umask: umask(),
        env: ByteStr(env::packed(&env::EnvAsk::everything().apply(&own_environment()))),
        mesub: true,
        tasks: OnceCell::new(),
        binding_told: OnceCell::new(),
    })
}

/// LSB_DEFAULT_JOBGROUP with the name of the caller for %u.
fn default_group(text: &str) -> String {
    if !text.contains("%u") {
        return text.trim().to_string();
    }
    let me = UserDatabase::default().by_uid(lsf::sys::euid());
    text.trim().replace("%u", &me.map_or(String::new(), |user| user.name))
}

/// PWD where it names the working directory, as the user knows it by; else the real path.
fn working_directory() -> Result<Vec<u8>, Rejection> {
    use std::os::unix::fs::MetadataExt;
    if let Some(pwd) = std::env::var_os("PWD")
        && pwd.as_bytes().starts_with(b"/")
        && let (Ok(a), Ok(b)) = (std::fs::metadata(&pwd), std::fs::metadata("."))
        && (a.dev(), a.ino()) == (b.dev(), b.ino())
    {
        return Ok(pwd.into_vec());
    }
    match std::env::current_dir() {
        Ok(dir) => Ok(dir.into_os_string().into_vec()),
        Err(e) => Err(Rejection::new(format!(
            "the working directory cannot be found: {}",
            lsf::sys::words(&e)
        ))),
    }
}

/// The accounts that ~/.lsfhosts asks for. A file that others can write says nothing.
fn accounts(home: &[u8]) -> Result<String, Rejection> {
    let path = Path::new(OsStr::from_bytes(home)).join(lsfhosts::NAME);
    let text = read_own(&path, lsf::sys::euid(), lsfhosts::MAX_BYTES).unwrap_or_default();
    let all = lsfhosts::proposals(&text.unwrap_or_default());
    match all.len() {
        ..=ACCOUNTS_MAX => Ok(all),
        len => Err(Rejection::new(format!(
            "{}: {len} bytes of hosts and accounts, {ACCOUNTS_MAX} allowed",
            path.display()
        ))),
    }
}

/// The home directory that passwd knows, else HOME.
pub fn home() -> Vec<u8> {
    let uid = lsf::sys::euid();
    match lsf::sys::users::UserDatabase::default().by_uid(uid) {
        Some(user) if user.home.starts_with('/') => user.home.into_bytes(),
        _ => std::env::var_os("HOME").map(OsStringExt::into_vec).unwrap_or_default(),
    }
}

/// The umask can only be read by setting it; nothing else runs in this process meanwhile.
fn umask() -> u32 {
    let old = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(old);
    old.bits()
}

/// The environment that `-env` asks for; `None`: it was not given.
pub fn asked_env(asks: &[String]) -> Result<Option<ByteStr>, Rejection> {
    if asks.is_empty() {
        return Ok(None);
    }
    let ask = EnvAsk::parse(asks).map_err(|e| Rejection::new(e.to_string()))?;
    Ok(Some(ByteStr(env::packed(&ask.apply(&own_environment())))))
}

pub fn own_environment() -> Vec<Var> {
    std::env::vars_os().map(|(n, v)| (n.into_vec(), v.into_vec())).collect()
}

pub fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some()
}

pub fn request_id() -> Result<String, Rejection> {
    let bytes = lsf::sys::random::<REQUEST_BYTES>()
        .map_err(|e| Rejection::new(format!("no random numbers: {}", lsf::sys::words(&e))))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

//! hostsetup: checks a host of the cluster and installs its service. See hostsetup(8).

use argh::{ArgsInfo, FromArgs};
use lsf::auth::KeyRing;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::hostcheck::{self, HostCheck};
use lsf::cli::site::{self, Around, LocalSite};
use lsf::cli::{front, install, links};
use lsf::conf::load::load_base_lenient;
use lsf::conf::{BaseConf, Files, Severity};
use lsf::daemon::delegate::conf_files;
use lsf::sys::files;
use lsf::sys::users::{User, UserDatabase};
use lsf::sys::words;
use lsf::{errln, outln};
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Check this host of the cluster, and install its service where nothing is amiss.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// the site's tree (default: that of the lsf.conf found)
    #[argh(option, arg_name = "DIR")]
    top: Option<String>,
    /// y: the service starts with the host
    #[argh(option, arg_name = "y|n")]
    boot: Option<String>,
    /// y: every login shell sources profile.lsf
    #[argh(option, arg_name = "y|n")]
    profile: Option<String>,
    /// copy the cluster key from this file; -: from standard input
    #[argh(option, arg_name = "FILE")]
    key: Option<String>,
    /// create the cluster key, on the first host
    #[argh(switch)]
    newkey: bool,
    /// check only
    #[argh(switch)]
    check: bool,
    /// install below this directory instead of /
    #[argh(option, arg_name = "DIR")]
    destdir: Option<String>,
    /// internal: try a directory
    #[argh(option, hidden_help)]
    probe: Option<String>,
    /// internal: try its locks
    #[argh(switch, hidden_help)]
    lock: bool,
}

/// The service; paths of the host take the place of those in ExecStart.
const UNIT: &str = include_str!("../conf-examples/systemd/lsfd.service");
const UNIT_DIR: &str = "etc/systemd/system";
const UNIT_NAME: &str = "lsfd.service";
/// Longest wait for the name service.
const NAME_WAIT: Duration = Duration::from_secs(10);
/// Largest key file read, bytes.
const MAX_KEY: u64 = 16 << 10;

pub fn run(ctx: &mut Ctx) -> i32 {
    let options: Options = match front::parse_of(ctx) {
        Ok(parsed) => parsed.options,
        Err(exit) => return exit.show(ctx),
    };
    let done = match &options.probe {
        Some(dir) => hostcheck::probe(dir, options.lock).map_or(Ok(()), Err),
        None => setup(ctx, &options).map_err(|why| format!("hostsetup: {why}")),
    };
    match done {
        Ok(()) => 0,
        Err(why) => {
            errln!(ctx, "{why}");
            FAIL
        }
    }
}

fn setup(ctx: &mut Ctx, o: &Options) -> Result<(), String> {
    if !o.check && o.destdir.is_none() && lsf::sys::euid() != 0 {
        let words = "only root can install the service: run it as root, or with --check to look";
        return Err(words.to_owned());
    }
    let around = Around::process();
    let envdir = o.top.as_ref().map(|top| OsString::from(format!("{top}/conf")));
    let around = Around { envdir: envdir.or(around.envdir.clone()), ..around };
    let files = conf_files();
    let site = site::find_with(&*files, &around).map_err(|e| e.to_string())?;
    let conf = read(&*files, &site)?;
    drop(files);
    if site.lsf.personal() && !o.check {
        return Err(format!(
            "LSF_PERSONAL=Y in {}: a personal cluster has no service; start it with `lsf up`",
            site.lsf.path
        ));
    }
    let admin = admin(&conf)?;
    bring_key(ctx, o, &site, &admin)?;
    let exe = links::own_binary()?;
    let found =
        hostcheck::problems(&HostCheck { site: &site, conf: &conf, admin: &admin, exe: &exe });
    for problem in &found {
        errln!(ctx, "hostsetup: {problem}");
    }
    if !found.is_empty() {
        return Err(format!("{} thing(s) amiss; nothing was installed", found.len()));
    }
    outln!(ctx, "{}: nothing is amiss", site.host);
    if o.check {
        return Ok(());
    }
    put(ctx, o, &site, &exe)
}

fn read(files: &dyn Files, site: &LocalSite) -> Result<BaseConf, String> {
    let (conf, diags) = load_base_lenient(files, &site.envdir, Some(&site.host));
    let wrong: Vec<String> =
        diags.iter().filter(|d| d.severity == Severity::Error).map(|d| d.to_string()).collect();
    conf.filter(|_| wrong.is_empty()).ok_or_else(|| wrong.join("\n"))
}

fn admin(conf: &BaseConf) -> Result<User, String> {
    let name = conf.cluster.admins.first().map_or("", String::as_str);
    UserDatabase::default().find_name(name, NAME_WAIT).ok_or_else(|| {
        format!("the primary administrator <{name}> is not known on this host: make the account")
    })
}

/// Puts the key on this host, where that is asked for.
fn bring_key(ctx: &mut Ctx, o: &Options, site: &LocalSite, admin: &User) -> Result<(), String> {
    let path = site.lsf.key_file();
    // lsf.conf is the administrator's: it must not have root make a file that means something
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    let named = name.starts_with("lsf") && name.ends_with(".key");
    if (o.newkey || o.key.is_some()) && lsf::sys::euid() == 0 && !named {
        return Err(format!("{path}: root writes no key but to a file named lsf*.key"));
    }
    if o.newkey {
        match install::new_key_file(path, admin)? {
            install::KeyOutcome::Made => outln!(ctx, "{path}: a new key"),
            install::KeyOutcome::Kept => outln!(ctx, "{path}: there already, and left as it is"),
            install::KeyOutcome::ForRoot => return Err(format!("{path}: only root can write it")),
        }
    }
    let Some(from) = &o.key else { return Ok(()) };
    let mut text = Vec::new();
    let read = match from.as_str() {
        "-" => std::io::stdin().take(MAX_KEY).read_to_end(&mut text),
        file => std::fs::File::open(file).and_then(|f| f.take(MAX_KEY).read_to_end(&mut text)),
    };
    read.map_err(|e| format!("{from}: {}", words(&e)))?;
    KeyRing::parse(&text).map_err(|why| format!("the key given: {why}"))?;
    let known = files::read_private(path, admin.uid, MAX_KEY as usize);
    if known.is_ok_and(|known| known.as_ref() == Some(&text)) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&text);
    install::put_key(Path::new(path), &text, admin).map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => {
            format!("{path}: holds another key; remove it if the one given is right")
        }
        _ => format!("{path}: {}", words(&e)),
    })?;
    outln!(ctx, "{path}: the key given");
    Ok(())
}

/// Installs the service and, as asked, what starts it and what users source.
fn put(ctx: &mut Ctx, o: &Options, site: &LocalSite, exe: &Path) -> Result<(), String> {
    let yes = |v: &Option<String>| v.as_deref().is_some_and(|v| v.starts_with(['y', 'Y']));
    let root = PathBuf::from(o.destdir.as_deref().unwrap_or("/"));
    let dir = root.join(UNIT_DIR);
    let unit = dir.join(UNIT_NAME);
    let link = exe.with_file_name("launcher");
    let start = if link.exists() {
        format!("{}", link.display())
    } else {
        format!("{} launcher", exe.display())
    };
    let text: String = UNIT
        .lines()
        .map(|l| match l.starts_with("ExecStart=") {
            true => format!("ExecStart={start} -d {}\n", site.envdir),
            false => format!("{l}\n"),
        })
        .collect();
    let failed = |path: &Path, e: std::io::Error| format!("{}: {}", path.display(), words(&e));
    std::fs::create_dir_all(&dir).map_err(|e| failed(&dir, e))?;
    std::fs::write(&unit, text).map_err(|e| failed(&unit, e))?;
    outln!(ctx, "{}: installed", unit.display());
    if yes(&o.boot) {
        let wants = dir.join("multi-user.target.wants");
        links::install_one(&wants, UNIT_NAME, Path::new("/").join(UNIT_DIR).join(UNIT_NAME))?;
        outln!(ctx, "{}/{UNIT_NAME}: starts with the host", wants.display());
    }
    if yes(&o.profile) {
        let dir = root.join("etc/profile.d");
        let source = lsf::conf::generate::shell_quoted(&format!("{}/profile.lsf", site.envdir));
        // the file is the administrator's, and root's shell must not do as it says
        let text = format!("[ \"$(id -u)\" = 0 ] || . {source}\n");
        let written =
            std::fs::create_dir_all(&dir).and_then(|()| std::fs::write(dir.join("lsf.sh"), text));
        written.map_err(|e| failed(&dir, e))?;
        outln!(ctx, "{}/etc/profile.d/lsf.sh: for every login shell", root.display());
    }
    if o.destdir.is_none() && Path::new("/run/systemd/system").is_dir() {
        let told = std::process::Command::new("systemctl").arg("daemon-reload").status();
        if !told.is_ok_and(|s| s.success()) {
            errln!(ctx, "hostsetup: call `systemctl daemon-reload`");
        }
    }
    Ok(())
}

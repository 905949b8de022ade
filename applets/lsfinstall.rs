//! lsfinstall: writes the tree of a new site. See lsfinstall(8) and install.config(5).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::{front, install};
use lsf::conf::generate::SitePlan;
use lsf::conf::{Diags, Severity};
use lsf::sys::files::RealFiles;
use lsf::sys::users::{User, UserDatabase};
use lsf::{errln, outln};
use std::time::Duration;

/// Write the tree of a new site: directories, configuration, binary, key. Files that exist are
/// never overwritten.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// the description of the site
    #[argh(option, short = 'f', arg_name = "install.config")]
    file: Option<String>,
}

/// Longest wait for the name service.
const NAME_WAIT: Duration = Duration::from_secs(10);

pub fn run(ctx: &mut Ctx) -> i32 {
    let parsed = match front::parse_of::<Options>(ctx) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.show(ctx),
    };
    let Some(file) = parsed.options.file else {
        errln!(ctx, "lsfinstall: name a file with -f; see install.config(5)");
        return FAIL;
    };
    match install(ctx, &file) {
        Ok(()) => 0,
        Err(why) => {
            if !why.is_empty() {
                errln!(ctx, "lsfinstall: {why}");
            }
            FAIL
        }
    }
}

/// Writes everything; an error without words has been told.
fn install(ctx: &mut Ctx, file: &str) -> Result<(), String> {
    let plan = read(ctx, file)?;
    let admin = whose(ctx, &plan)?;
    install::write_tree(&plan, &admin, &(ctx.linked)(false))?;
    let key = install::new_key_file(&plan.key_file, &admin)?;
    outln!(ctx, "{}: cluster {}, {} host(s)\n", plan.top, plan.cluster, plan.hosts.len());
    remaining(ctx, &plan, &admin, &key);
    Ok(())
}

fn read(ctx: &mut Ctx, file: &str) -> Result<SitePlan, String> {
    let mut diags = Diags::new();
    let plan = lsf::conf::install_config::parse(&RealFiles, file, &mut diags);
    for d in diags.list() {
        errln!(ctx, "{}: {d}", d.severity.word());
    }
    let wrong = diags.list().iter().any(|d| d.severity == Severity::Error);
    plan.filter(|_| !wrong).ok_or_else(String::new)
}

/// The primary administrator, who or root must be the caller.
fn whose(ctx: &mut Ctx, plan: &SitePlan) -> Result<User, String> {
    let mut users = UserDatabase::default();
    let mut primary = None;
    for name in &plan.admins {
        match users.find_name(name, NAME_WAIT) {
            Some(user) if primary.is_none() => primary = Some(user),
            Some(_) => {}
            None if primary.is_some() => {
                errln!(ctx, "lsfinstall: administrator {name} is not known on this host");
            }
            None => break,
        }
    }
    let name = plan.admins.first().map_or("", String::as_str);
    let admin = primary.ok_or(format!("the primary administrator {name} is not known here"))?;
    if admin.uid == 0 {
        return Err("the primary administrator must not be root".to_owned());
    }
    let me = lsf::sys::euid();
    if me != 0 && me != admin.uid {
        return Err(format!("run it as root, or as the primary administrator {name}"));
    }
    Ok(admin)
}

/// Tells what is still to be done on each node.
fn remaining(ctx: &mut Ctx, plan: &SitePlan, admin: &User, key: &install::KeyOutcome) {
    let (top, file) = (&plan.top, &plan.key_file);
    let setup = format!("{top}/bin/hostsetup --top={top}");
    let hosts: Vec<&str> = plan.hosts.iter().map(|(h, _)| h.as_str()).collect();
    outln!(ctx, "The remaining steps, as root:");
    outln!(ctx, "- {top} must be on every host: share it, or copy it there");
    match key {
        install::KeyOutcome::Made => outln!(ctx, "- the key of the cluster was written to {file}"),
        install::KeyOutcome::Kept => outln!(ctx, "- the key in {file} was there and is used"),
        install::KeyOutcome::ForRoot => {
            outln!(ctx, "- make the key of the cluster, on one host:  {setup} --newkey");
        }
    }
    outln!(ctx, "- bring the key to each other host, never through a shared file system:");
    outln!(ctx, "      ssh HOST {setup} --key=- < {file}");
    outln!(ctx, "- on each of {}:", hosts.join(" "));
    outln!(ctx, "      {setup}");
    outln!(ctx, "  It checks the host and installs the service: `systemctl start lsfd`. Or start");
    outln!(ctx, "  all hosts from here: `. {top}/conf/profile.lsf; lsfstartup`.");
    outln!(ctx, "\nUsers, {} among them, run `. {top}/conf/profile.lsf`.", admin.name);
}

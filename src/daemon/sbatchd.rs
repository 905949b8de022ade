//! The real sbatchd: the machine under the shell; all of the system it touches itself is /proc.

use super::boot::Boot;
use super::boot_error::BootError;
use super::driver::{DaemonDriver, ShellControl};
use super::handover::RES_SOCKET;
use super::shell;
use crate::exec::plan::HostEnvironment;
use crate::exec::sbatchd::{Sbatchd, SbatchdConf};
use crate::lim::election::Election;
use crate::model::topology::Topology;
use crate::proto::launch::{OsEffect, OsInput};
use crate::proto::{Daemon, Effect, Input};
use crate::sys::load;
use crate::sys::process_table::see;
use crate::sys::task_processes::TaskTracker;

/// Runs this host's sbatchd until it is told to end; jobs go on without it.
pub fn run(boot: Boot) -> Result<i32, BootError> {
    let machine = Sbatchd::new(conf(&boot));
    shell::run(boot.shell(Daemon::Sbatchd), machine, ProcessSampler::new())
        .map_err(|e| BootError(e.to_string()))
}

fn conf(boot: &Boot) -> SbatchdConf {
    let lsf = &boot.conf.lsf;
    let version = ("LSF_VERSION", lsf.get("LSF_VERSION").unwrap_or("10.1").to_owned());
    let env = boot.named().into_iter().chain([version]).map(|(n, v)| (n.to_owned(), v));
    let site = HostEnvironment {
        host: boot.host.clone(),
        request_host: boot.conf.request_host().unwrap_or(&boot.host).to_owned(),
        env: env.collect(),
        eexec: lsf.serverdir().map_or(String::new(), |dir| format!("{dir}/eexec")),
        tag: lsf.job_file_tag(),
        res_socket: boot.site.rundir().join(RES_SOCKET).to_string_lossy().into_owned(),
        need_cwd: lsf.yes("LSB_EXIT_IF_CWD_NOTEXIST"),
        direct: lsf.stdout_direct(),
        mail_program: lsf.mail_program().into(),
        mail_to: lsf.get("LSB_MAILTO").unwrap_or("!U").into(),
        mail_limit_kb: lsf.get("LSB_MAILSIZE_LIMIT").and_then(|v| v.parse().ok()).unwrap_or(0),
        terminate_interval: 0,
        stop_signal: lsf.stop_signal(),
        enforcement: lsf.limit_enforcement(),
        bind_job: lsf.bind_job(),
        topology: Topology::parse(&crate::sys::topology::of_host(0)).unwrap_or_default(),
        tmpdir: lsf.job_tmpdir().map(|(base, variable)| (base.into(), variable.into())),
    };
    SbatchdConf {
        site,
        cluster: boot.conf.name.clone(),
        admin: boot.conf.cluster.admins.first().cloned().unwrap_or_else(|| "lsfadmin".into()),
        candidates: Election::new(&boot.conf).candidates().to_vec(),
        pim_interval: lsf.pim_interval(),
        personal: lsf.personal(),
        zone: crate::sys::zone(),
    }
}

/// Reads the usage of the processes of jobs.
struct ProcessSampler {
    tracker: TaskTracker,
}

impl ProcessSampler {
    fn new() -> Self {
        // its parent is the launcher, to which orphans of jobs come
        let parent = see(std::process::id()).map_or(0, |me| me.parent);
        ProcessSampler { tracker: TaskTracker::new(parent) }
    }
}

impl DaemonDriver for ProcessSampler {
    type M = Sbatchd;

    fn effect(&mut self, _: &mut Sbatchd, effect: Effect, shell: &mut ShellControl) {
        match effect {
            Effect::Os(OsEffect::Sample { tasks, others }) => {
                let seen = self.tracker.sample(&tasks, &others);
                shell.input(Input::Os(OsInput::Sampled(seen, load::host_memory())));
            }
            Effect::Os(OsEffect::Look { conn, look, tasks }) => {
                let found = self.tracker.look(&look, &tasks);
                shell.input(Input::Os(OsInput::Looked { conn, look, found }));
            }
            other => log::error!("an effect not for sbatchd: {}", other.name()),
        }
    }
}

//! The real sbatchd: the machine under the shell; all of the system it touches itself is /proc.

use super::boot::{Boot, BootError};
use super::shell::{self, Ctl, Host};
use crate::conf::LsfConf;
use crate::exec::plan::Site;
use crate::exec::sbatchd::{Conf, Sbatchd};
use crate::lim::election::Election;
use crate::proto::launch::{OsEffect, OsInput};
use crate::proto::{Daemon, Effect, Input};
use crate::sys::session;

/// Runs this host's sbatchd until it is told to end; jobs go on without it.
pub fn run(boot: Boot) -> Result<i32, BootError> {
    let machine = Sbatchd::new(conf(&boot));
    shell::run(boot.shell(Daemon::Sbatchd), machine, Looks).map_err(|e| BootError(e.to_string()))
}

/// LSB_MAILPROG where lsf.conf has none.
const MAIL_PROGRAM: &str = "/usr/lib/sendmail";

/// LSB_JOB_REPORT_MAIL=N: there is none, and output without a file of its own is kept.
fn mail_program(lsf: &LsfConf) -> &str {
    match lsf.yes_or("LSB_JOB_REPORT_MAIL", true) {
        true => lsf.get("LSB_MAILPROG").unwrap_or(MAIL_PROGRAM),
        false => "",
    }
}

fn conf(boot: &Boot) -> Conf {
    let lsf = &boot.conf.lsf;
    let version = ("LSF_VERSION", lsf.get("LSF_VERSION").unwrap_or("10.1").to_owned());
    let env = boot.named().into_iter().chain([version]).map(|(n, v)| (n.to_owned(), v));
    let site = Site {
        host: boot.host.clone(),
        env: env.collect(),
        eexec: lsf.serverdir().map_or(String::new(), |dir| format!("{dir}/eexec")),
        need_cwd: lsf.yes("LSB_EXIT_IF_CWD_NOTEXIST"),
        mail_program: mail_program(lsf).into(),
        mail_to: lsf.get("LSB_MAILTO").unwrap_or("!U").into(),
        mail_limit_kb: lsf.get("LSB_MAILSIZE_LIMIT").and_then(|v| v.parse().ok()).unwrap_or(0),
        terminate_interval: 0,
    };
    Conf {
        site,
        cluster: boot.conf.name.clone(),
        admin: boot.conf.cluster.admins.first().cloned().unwrap_or_else(|| "lsfadmin".into()),
        candidates: Election::new(&boot.conf).candidates().to_vec(),
        personal: lsf.personal(),
        zone: crate::sys::zone(),
    }
}

/// Looks at the processes of jobs.
struct Looks;

impl Host for Looks {
    type M = Sbatchd;

    fn effect(&mut self, _: &mut Sbatchd, effect: Effect, ctl: &mut Ctl) {
        match effect {
            Effect::Os(OsEffect::Sample { sids }) => {
                ctl.input(Input::Os(OsInput::Sampled(session::sample(&sids))));
            }
            other => log::error!("an effect not for sbatchd: {}", other.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_may_want_no_mail() {
        let mut lsf = LsfConf::default();
        assert_eq!(mail_program(&lsf), "/usr/lib/sendmail");
        lsf.set("LSB_MAILPROG", "/opt/mail");
        assert_eq!(mail_program(&lsf), "/opt/mail");
        lsf.set("LSB_JOB_REPORT_MAIL", "N");
        assert_eq!(mail_program(&lsf), "");
    }
}

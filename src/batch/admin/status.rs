//! badmin showstatus, showconf and the verbs that have daemons log more: what this mbatchd is
//! and has seen.

use crate::batch::cluster::hosts::HostStatus;
use crate::batch::site::permissions::{Action, Caller};
use crate::batch::soft_state::status::Present;
use crate::batch::{Mbatchd, StepContext};
use crate::model::reason::{PendReason, err};
use crate::proto::client::AdminLine;
use crate::proto::machine::Effect;
use crate::proto::sbd::SbdMsg;
use crate::proto::{Logging, Msg, Refusal};

/// The slots of a host without a limit.
const UNLIMITED: u64 = u64::MAX;

fn row(about: &str, text: impl ToString) -> AdminLine {
    AdminLine { about: about.to_string(), code: 0, text: text.to_string() }
}

impl Mbatchd {
    /// Says which process this is.
    pub fn with_pid(mut self, pid: u32) -> Self {
        self.status.set_pid(pid);
        self
    }

    /// Clients, servers, CPUs, cores and slots that are there now.
    fn present(&self) -> Present {
        let known = self.site.conf.base.cluster.hosts.iter();
        let mut n = [known.filter(|h| !h.server).count() as u64, 0, 0, 0, 0];
        for (i, h) in self.links.hosts().iter().filter(|(_, h)| h.lim_ok()) {
            let Some(f) = h.load.as_ref().and_then(|l| l.facts.as_ref()) else { continue };
            let procs = u64::from(f.nprocs.max(1));
            n[1] += 1;
            n[2] += procs;
            n[3] += procs * u64::from(f.ncores.max(1));
            n[4] = n[4].saturating_add(self.view().host_max(i).unwrap_or(UNLIMITED));
        }
        n
    }

    /// Keeps the peaks; called as loads come in, of which most change nothing that is counted.
    pub(crate) fn note_peak(&mut self) {
        let facts_changes = self.links.facts_changes();
        if !self.status.is_counted(facts_changes) {
            self.status.note_present(self.present(), facts_changes);
        }
    }

    /// The lines for badmin: `what` is `status` or `conf`.
    pub(crate) fn show(&mut self, what: &str) -> Result<Vec<AdminLine>, Refusal> {
        match what {
            "status" => Ok(self.status_rows()),
            "conf" => {
                let mut rows = vec![row("@host", &self.me)];
                let values = crate::conf::settings(&self.site.conf.base.lsf);
                rows.extend(values.iter().map(|(name, value)| row(name, value)));
                Ok(rows)
            }
            "nqs" => Ok(vec![row("nqs", crate::conf::nqs::snap(&self.site.conf.batch.nqs))]),
            _ => Err(Refusal::new(err::BAD_ARG)),
        }
    }

    fn status_rows(&mut self) -> Vec<AdminLine> {
        let now = self.present();
        self.status.note_present(now, self.links.facts_changes());
        let peak = self.status.peak();
        let names = ["clients", "servers", "cpus", "cores", "slots"].into_iter();
        let shown = |n: u64| if n == UNLIMITED { "unlimited".to_owned() } else { n.to_string() };
        let pairs = names.zip(now.into_iter().zip(peak));
        let mut rows: Vec<AdminLine> = pairs
            .map(|(name, (now, peak))| row(name, format!("{}/{}", shown(now), shown(peak))))
            .collect();
        let n = self.links.hosts().len();
        let mut hosts = [0; 4];
        for i in self.links.hosts().ids() {
            let at = match self.view().host_status(i) {
                HostStatus::Ok => 0,
                HostStatus::Unreach => 2,
                HostStatus::Unavail => 3,
                _ => 1,
            };
            hosts[at] += 1;
        }
        if self.reports_refused() > 0 {
            rows.push(row("refused", self.reports_refused()));
        }
        rows.push(row("hosts", n));
        let names = ["ok", "closed", "unreach", "unavail"].into_iter().zip(hosts);
        rows.extend(names.map(|(name, n)| row(name, n)));
        let mut jobs = [0u64; 4];
        for job in self.state.each_job() {
            let t = &job.tally();
            jobs[0] += u64::from(t.run);
            jobs[1] += u64::from(t.ssusp) + u64::from(t.ususp) + u64::from(t.psusp);
            jobs[2] += u64::from(t.pend);
            jobs[3] += u64::from(t.done) + u64::from(t.exit);
        }
        rows.push(row("jobs", jobs.iter().sum::<u64>()));
        let names = ["running", "suspended", "pending", "finished"].into_iter().zip(jobs);
        rows.extend(names.map(|(name, n)| row(name, n)));
        let users = self.state.counts().users();
        rows.push(row("users", users.clone().count()));
        rows.push(row("groups", self.site.conf.batch.users.groups.len()));
        rows.push(row("active", users.filter(|of| of.1.all() > 0).count()));
        rows.extend(self.status.rows().map(|(name, value)| row(name, value)));
        rows.push(row("master", &self.me));
        rows
    }

    /// Has this daemon log otherwise, or those of hosts.
    pub(crate) fn set_logging(
        &mut self,
        context: &mut StepContext,
        who: &Caller,
        hosts: &[String],
        set: Logging,
    ) -> Result<Vec<AdminLine>, Refusal> {
        self.site.check(who, Action::Logging, "", "")?;
        if hosts.is_empty() {
            context.out.push(Effect::Logging(set));
            return Ok(vec![row(&self.me, "")]);
        }
        let mut lines = Vec::new();
        for word in hosts {
            let names = self.site.expand_host(word);
            if names.is_empty() {
                lines.push(AdminLine { code: err::BAD_HOST, ..row(word, "") });
            }
            for host in names {
                let i = self.site.host_id(&host);
                match i.and_then(|i| self.links.hosts()[i].up()) {
                    Some(conn) => {
                        context.send(conn, Msg::Sbd(SbdMsg::Logging(set.clone())));
                        lines.push(row(&host, ""));
                    }
                    None => {
                        let why = PendReason::SbatchdUnreachable.text();
                        lines.push(AdminLine { code: err::CONN_REFUSED, ..row(&host, why) });
                    }
                }
            }
        }
        Ok(lines)
    }
}

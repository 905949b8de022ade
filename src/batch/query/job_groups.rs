//! bjgroup: the job groups with the numbers of their jobs.

use crate::batch::Mbatchd;
use crate::batch::state::job_groups::JobGroup;
use crate::batch::state::{ElemState, Phase};
use crate::batch::step::Checked;
use crate::model::job_group::{is_within, lineage, path_of};
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::job_group::JobGroupInfo;
use std::collections::BTreeMap;

/// Running slots, and those of jobs suspended by the system and by users.
type StartedSlots = [u64; 3];

impl Mbatchd {
    /// The rows of a group and all below it, or of all groups.
    pub(crate) fn job_group_rows(&self, path: &str, slots: bool) -> Checked<Vec<JobGroupInfo>> {
        let groups = self.state.job_groups();
        let path = match path {
            "" => "",
            path => path_of(path).ok_or_else(|| Refusal::new(err::BAD_JGRP))?,
        };
        if !path.is_empty() && groups.get(path).is_none() {
            return Err(Refusal::new(err::NO_JGRP));
        }
        let started = if slots { self.started_slots() } else { BTreeMap::new() };
        let row = |(path, group): (&str, &JobGroup)| {
            let t = self.group_counts.tally(path);
            let [run, ssusp, ususp] = match slots {
                true => started.get(path).copied().unwrap_or_default(),
                false => [t.run, t.ssusp, t.ususp],
            };
            let pend = if slots { t.pend_slots } else { t.pend };
            JobGroupInfo {
                path: path.to_string(),
                owner: group.owner.clone(),
                sla: group.sla.clone(),
                limit: group.limit,
                started: t.started(),
                njobs: if slots { pend + run + ssusp + ususp } else { t.jobs },
                pend,
                run,
                ssusp,
                ususp,
                finish: if slots { 0 } else { t.finished },
            }
        };
        let wanted = |of: &(&str, &JobGroup)| path.is_empty() || is_within(of.0, path);
        Ok(groups.each().filter(wanted).map(row).collect())
    }

    /// The slots of started jobs by group; each element is counted on its first host.
    fn started_slots(&self) -> BTreeMap<&str, StartedSlots> {
        let mut all: BTreeMap<&str, StartedSlots> = BTreeMap::new();
        for (host, here) in self.state.counts().hosts() {
            for at in &here.jobs {
                let Some(job) = self.state.job(at.job) else { continue };
                let Some(ElemState::Run(run)) = job.elem(at.idx).map(|e| &e.state) else {
                    continue;
                };
                if run.hosts.first().is_none_or(|first| first.0 != host) {
                    continue;
                }
                let place = match run.phase {
                    Phase::Ssusp(_) => 1,
                    Phase::Ususp(_) => 2,
                    _ => 0,
                };
                for path in lineage(&job.spec.further.job_group) {
                    all.entry(path).or_default()[place] += u64::from(run.slots());
                }
            }
        }
        all
    }
}

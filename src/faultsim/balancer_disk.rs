//! Orders of the load balancer's daemons to their runners: files of a server are read and written
//! on its disk, which may fail at any step.

use super::balancer::{self, POLICIES, SERVER};
use super::world::World;
use crate::log::replace::replace;
use crate::log::simdisk::{Crash, Faults, SimDisk};
use crate::model::time::US;
use crate::proto::collect::{CollectorEffect, CollectorInput};
use crate::proto::machine::Input;
use crate::proto::nlb::{NlbEffect, NlbInput, NlbStored};

/// Operations of one change of a file, and some more.
const CHANGE_OPS: u64 = 10;

impl World {
    /// Carries out an order of the server or of a collector.
    pub(super) fn nlb_effect(&mut self, p: usize, effect: NlbEffect) {
        let Some(balancer) = &self.balancer else { return };
        let disk = balancer.disk.clone();
        let input = match effect {
            NlbEffect::Write { n, files } => match self.nlb_writes(&disk, &files) {
                Some(failed) => NlbInput::Written { n, failed },
                None => return self.kill_proc(p, true),
            },
            NlbEffect::ReadPolicies { n } => {
                let read = balancer::file(&disk, POLICIES).map(Option::unwrap_or_default);
                NlbInput::Policies { n, read }
            }
            NlbEffect::ReadConfig { n } => NlbInput::Config { n, read: Ok(None) },
            NlbEffect::Collector(CollectorEffect::Measure { .. }) => {
                let counters = balancer::counters(self.procs[p].host, self.now_us);
                let (counters, files) = (Box::new(counters), Vec::new());
                NlbInput::Collector(CollectorInput::Reading { counters, files })
            }
            NlbEffect::Collector(_) => return,
        };
        let after = 100 + self.rng.below(20_000);
        self.later(p, after, Input::Nlb(input));
    }

    /// Writes files of the server: why it failed, if it did; `None`: the server was killed there.
    fn nlb_writes(
        &mut self,
        disk: &SimDisk,
        files: &[(NlbStored, String)],
    ) -> Option<Option<String>> {
        let at = disk.ops() + 1 + self.rng.below(CHANGE_OPS);
        let faulty = self.now_us < self.scale.fault_secs * US;
        let kind = if faulty { self.rng.below(20) } else { 20 };
        let faults = match kind {
            0..2 => Faults { die_at_op: Some(at), ..Faults::default() },
            2 => Faults { fail_at_op: Some(at), ..Faults::default() },
            3 => Faults { fail_at_sync: Some(disk.syncs()), ..Faults::default() },
            4 => Faults { bytes_left: Some(self.rng.below(200)), ..Faults::default() },
            _ => Faults::default(),
        };
        disk.set_faults(faults);
        let write = |of: &(NlbStored, String)| {
            let keeps = of.0 != NlbStored::PoliciesLast;
            replace(&mut disk.clone(), of.0.name(), of.1.as_bytes(), keeps)
        };
        let written = files.iter().try_for_each(write);
        let died = kind < 2 && disk.ops() >= at;
        disk.set_faults(Faults::default());
        if died {
            disk.crash(Crash::Process);
            return None;
        }
        Some(written.err().map(|e| e.to_string()))
    }

    /// The host of the server has lost power.
    pub(super) fn nlb_power_cut(&mut self, host: usize) {
        let Some(balancer) = self.balancer.as_ref().filter(|_| host == SERVER) else { return };
        let (seed, torn) = (self.rng.draw(), self.rng.chance(0.5));
        balancer.disk.crash(if torn { Crash::PowerTorn(seed) } else { Crash::Power(seed) });
    }
}

//! The audits that tests run between steps: what is derived from the state is counted anew, and
//! compared. One audit looks at every job and every started element, so that in a large cluster it
//! is run once in several steps: its cost for a step has a bound whatever the number of jobs. A
//! wrong counter stays wrong, and the audit at the end of a test finds it.

use crate::batch::Mbatchd;

/// Jobs and elements of a cluster that is audited after each step. One of n times as many is
/// audited after each n-th.
const FOR_A_STEP: usize = 64;
/// Jobs and elements of a large cluster. One of n times as many is audited n times as seldom again.
const LARGE: usize = 1024;

/// The steps since the last audit.
#[derive(Default)]
pub(super) struct Audits {
    owed: usize,
    /// The fewest steps from one audit to the next.
    pause: usize,
}

impl Audits {
    /// From now on there are so many steps at least from one audit to the next.
    pub(super) fn pause(&mut self, steps: usize) {
        self.pause = steps;
    }

    /// A step may have changed what is derived.
    pub(super) fn after_step(&mut self, machine: &Mbatchd) {
        self.owed += 1;
        if self.owed < self.pause {
            return;
        }
        let elements: usize = machine.state.counts().hosts().map(|(_, on)| on.jobs.len()).sum();
        let all = elements + machine.state.job_count();
        if self.owed * FOR_A_STEP >= all * all.div_ceil(LARGE) {
            self.run(machine);
        }
    }

    /// The end of a test: what no audit has looked at yet.
    pub(super) fn at_end(&mut self, machine: &Mbatchd) {
        // the panic of a test that fails is the one to be read
        if self.owed > 0 && !std::thread::panicking() {
            self.run(machine);
        }
    }

    fn run(&mut self, machine: &Mbatchd) {
        self.owed = 0;
        assert_eq!(machine.reserve_audit(), Ok(()), "the reservations are not current");
        assert_eq!(machine.limits_audit(), Ok(()));
        assert_eq!(machine.preemptions_audit(), Ok(()));
        assert_eq!(machine.processor_units_audit(), Ok(()));
        assert_eq!(machine.job_groups_audit(), Ok(()));
        assert_eq!(machine.applications_audit(), Ok(()));
        assert_eq!(machine.service_classes_audit(), Ok(()));
        assert_eq!(machine.guarantees_audit(), Ok(()));
        assert_eq!(machine.fairshare_audit(), Ok(()));
        assert_eq!(machine.reservations_audit(), Ok(()));
        assert_eq!(machine.slot_reservations_audit(), Ok(()));
        assert_eq!(machine.readiness_audit(), Ok(()));
    }
}

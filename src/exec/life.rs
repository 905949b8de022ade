//! Signs of life of a daemon that the launcher runs: its loop gives them, and one that gives none
//! any more is ended, since a process that is there and does nothing holds its cluster for ever.
//!
//! Invariant: what counts is looks, each at least a pause after the one before it, never a
//! distance between clocks: where launcher and daemon both stood still (a suspended machine, a
//! debugger), that is one look, and the daemon has the time until the next ones.

use crate::model::time::US;
use crate::proto::Daemon;
use serde::{Deserialize, Serialize};

/// The daemons that give signs of life: those whose standstill holds the cluster.
pub const GIVE_SIGNS: [Daemon; 2] = [Daemon::Mbatchd, Daemon::Lim];
/// Looks without a sign within MBD_HANG_TIME.
pub const LOOKS: u32 = 6;
/// How many times MBD_HANG_TIME a daemon may take until its first sign: mbatchd reads its log.
pub const START_TIMES: u32 = 10;
/// A daemon that was ended so often in a row is one that this host cannot run at present.
pub const HUNG_OFTEN: u32 = 2;
/// Longest pause between two signs, microseconds.
const SIGN_MOST: u64 = 5 * US;

/// How often a daemon gives a sign where it may be without one for `hang` microseconds.
pub fn pause(hang: u64) -> u64 {
    (hang / u64::from(2 * LOOKS)).min(SIGN_MOST)
}

/// The signs of life of one daemon.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Life {
    /// The daemon has given a sign since its start.
    begun: bool,
    /// Looks since its last sign or its start; when the next one is due, monotonic microseconds.
    looks: u32,
    at: Option<u64>,
    /// How often it was ended for want of signs, without a good time between.
    hung: u32,
}

impl Life {
    /// The daemon was started; `hang` 0: nobody looks.
    pub fn started(&mut self, now: u64, hang: u64) {
        let at = (hang > 0).then(|| now + hang / u64::from(LOOKS));
        *self = Life { at, hung: self.hung, ..Life::default() };
    }

    /// The daemon, started at `since`, gives a sign.
    pub fn sign(&mut self, now: u64, since: u64, hang: u64) {
        if hang == 0 {
            return;
        }
        (self.begun, self.looks) = (true, 0);
        self.at.get_or_insert(now + hang / u64::from(LOOKS));
        if now.saturating_sub(since) > hang * u64::from(START_TIMES) {
            self.hung = 0;
        }
    }

    /// The daemon has ended.
    pub fn gone(&mut self) {
        *self = Life { hung: self.hung, ..Life::default() };
    }

    /// The instant of the next check.
    pub fn at(&self) -> Option<u64> {
        self.at
    }

    /// Looks where that is due. True: it has hung for too long.
    pub fn look(&mut self, now: u64, hang: u64) -> bool {
        if self.at.is_none_or(|at| at > now) {
            return false;
        }
        self.at = (hang > 0).then(|| now + hang / u64::from(LOOKS));
        self.looks += 1;
        let most = if self.begun { LOOKS } else { LOOKS * START_TIMES };
        let hung = self.looks > most;
        if hung {
            // one that cannot even be ended counts again
            (self.looks, self.begun) = (0, true);
            self.hung += 1;
        }
        hung
    }

    /// Has it hung so often that another host should run it?
    pub fn hangs_often(&self) -> bool {
        self.hung >= HUNG_OFTEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANG: u64 = 60 * US;

    /// Looks each time that one is due until `until`, signs at these seconds; when it hung.
    fn hung_at(signs: &[u64], until: u64) -> Vec<u64> {
        let (mut life, mut hung) = (Life::default(), Vec::new());
        life.started(0, HANG);
        for secs in 0..=until {
            if signs.contains(&secs) {
                life.sign(secs * US, 0, HANG);
            }
            if life.look(secs * US, HANG) {
                hung.push(secs);
            }
        }
        hung
    }

    #[test]
    fn a_daemon_without_signs_has_hung_after_the_time_and_not_before() {
        let steady: Vec<u64> = (0..=600).step_by(5).collect();
        assert!(hung_at(&steady, 605).is_empty());
        let stops: Vec<u64> = (0..=100).step_by(5).collect();
        let hung = hung_at(&stops, 175);
        assert!(matches!(hung[..], [at] if (160..=170).contains(&at)), "{hung:?}");
        // the start may take longer
        assert!(hung_at(&[], 600).is_empty());
        assert_eq!(hung_at(&[], 615), [610]);
    }

    #[test]
    fn time_in_which_nobody_looked_is_one_look() {
        let mut life = Life::default();
        life.started(0, HANG);
        life.sign(0, 0, HANG);
        // launcher and daemon stood still for an hour; the daemon's next sign comes after the look
        assert!(!life.look(3600 * US, HANG));
        life.sign(3601 * US, 0, HANG);
        let due = life.at().unwrap();
        assert!(due >= 3610 * US && !life.look(due, HANG));
    }

    #[test]
    fn a_daemon_that_hangs_again_and_again_is_told_of_until_it_had_a_good_time() {
        let mut life = Life::default();
        for round in 0..2 {
            assert!(!life.hangs_often(), "{round}");
            life.started(0, HANG);
            life.sign(0, 0, HANG);
            while !life.look(life.at().unwrap(), HANG) {}
            life.gone();
        }
        assert!(life.hangs_often() && life.at().is_none());
        life.started(0, HANG);
        life.sign(HANG, 0, HANG);
        assert!(life.hangs_often());
        life.sign(HANG * 11, 0, HANG);
        assert!(!life.hangs_often());
    }

    #[test]
    fn a_daemon_that_cannot_be_ended_counts_again_and_without_a_time_nobody_looks() {
        let mut life = Life::default();
        life.started(0, HANG);
        life.sign(0, 0, HANG);
        let mut hung = 0;
        while hung < 2 {
            hung += u32::from(life.look(life.at().unwrap(), HANG));
        }
        assert!(life.hangs_often());
        life.started(0, 0);
        life.sign(5, 0, 0);
        assert_eq!(life.at(), None);
    }
}

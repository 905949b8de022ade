//! The launcher's supervision of the daemons of its host: it starts them, starts those again that
//! end, and ends those that hang or are not to run. Tasks are none of its business.

use super::launcher_state::{LauncherState, RESTART_FIRST, runs_here};
use crate::model::{Now, time::US};
use crate::proto::launch::{LaunchMsg, OsEffect};
use crate::proto::{Daemon, Effect};

/// Longest pause; it doubles up to here while the daemon does not stay up, microseconds.
pub const RESTART_MOST: u64 = 10 * US;
/// Longest pause in a personal cluster, whose user waits at the terminal, microseconds.
pub const RESTART_MOST_OWN: u64 = US / 2;
/// A daemon that stayed up this long starts again after the first pause, microseconds.
pub const STEADY: u64 = US;
/// A daemon told to stop that is still there after this is killed, microseconds.
pub const STOP_GRACE: u64 = 5 * US;
const SIGKILL: i32 = 9;
pub(super) const SIGTERM: i32 = 15;

impl LauncherState {
    /// Ends what a launcher before this one had to run and this one has not: the host is no server
    /// any more. `daemons`: those to keep running.
    pub(super) fn retire(&mut self, now: Now, daemons: &[Daemon], out: &mut Vec<Effect>) {
        for i in 0..self.supervised.len() {
            if !runs_here(daemons, self.supervised[i].daemon) {
                self.supervised[i].want = false;
                self.stop(now, self.supervised[i].daemon, out);
            }
        }
    }

    /// The daemons that run, and those that hang whenever they do.
    pub(super) fn daemon_list(&self) -> LaunchMsg {
        let all = || self.supervised.iter();
        let pids = all().filter(|s| s.pid != 0).map(|s| (s.daemon, s.pid)).collect();
        let hung = all().filter(|s| s.life.hangs_often()).map(|s| s.daemon).collect();
        LaunchMsg::DaemonList { pids, hung }
    }

    /// A daemon is to run, or not to.
    pub(super) fn want(&mut self, now: Now, daemon: Daemon, on: bool, out: &mut Vec<Effect>) {
        let sup = self.supervised_daemon(daemon);
        sup.want = on;
        if on {
            // one that was told to stop starts again when it has ended
            sup.at = (sup.pid == 0).then_some(now.mono_us);
        } else {
            self.stop(now, daemon, out);
        }
    }

    pub(super) fn stop(&mut self, now: Now, daemon: Daemon, out: &mut Vec<Effect>) {
        let sup = self.supervised_daemon(daemon);
        sup.at = None;
        if sup.pid != 0 && sup.kill_at.is_none() {
            sup.kill_at = Some(now.mono_us + STOP_GRACE);
            out.push(kill(sup.pid, sup.ticks, SIGTERM));
        }
    }

    /// A daemon is not there (any more): has it start again after its pause, of `most` at most.
    pub(super) fn gone(&mut self, now: Now, daemon: Daemon, most: u64, down: bool) {
        let sup = self.supervised_daemon(daemon);
        if sup.pid != 0 && now.mono_us.saturating_sub(sup.since) >= STEADY {
            sup.pause = RESTART_FIRST;
        }
        (sup.pid, sup.kill_at) = (0, None);
        sup.life.gone();
        sup.at = (sup.want && !down).then_some(now.mono_us + sup.pause);
        sup.pause = (sup.pause * 2).min(most);
    }

    /// Starts and kills the daemons that are due, and ends those that have given no sign of life
    /// for too long. `hang`: MBD_HANG_TIME, microseconds.
    pub(super) fn supervise(&mut self, now: Now, hang: u64, out: &mut Vec<Effect>) {
        for sup in &mut self.supervised {
            if sup.at.is_some_and(|at| at <= now.mono_us) {
                // answered by DaemonUp or DaemonFailed, which set the next instant
                (sup.at, sup.since) = (None, now.mono_us);
                out.push(Effect::Os(OsEffect::SpawnDaemon { daemon: sup.daemon }));
            }
            if sup.kill_at.is_some_and(|at| at <= now.mono_us) {
                sup.kill_at = Some(now.mono_us + STOP_GRACE);
                out.push(kill(sup.pid, sup.ticks, SIGKILL));
            }
        }
        for sup in self.supervised.iter_mut().filter(|s| s.pid != 0) {
            if sup.life.look(now.mono_us, hang) {
                let (name, secs) = (sup.daemon.name(), hang / US);
                let text = format!(
                    "{name} (pid {}) has hung for {secs} s (MBD_HANG_TIME): it is killed",
                    sup.pid
                );
                out.push(Effect::Say { level: log::Level::Error, text });
                out.push(kill(sup.pid, sup.ticks, SIGKILL));
            }
        }
    }
}

fn kill(pid: u32, ticks: u64, signal: i32) -> Effect {
    Effect::Os(OsEffect::Signal { pid, ticks, signal })
}

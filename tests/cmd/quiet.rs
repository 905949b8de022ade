//! A cluster of the tests of refusals, which take turns: nothing happens in it but what the test
//! asks for, so that the event log and the accounts are equal before and after each request that is
//! refused.

use crate::common::*;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The logs do not change for so long when nothing is under way.
const CALM: Duration = Duration::from_millis(700);

static TURN: Mutex<()> = Mutex::new(());

/// The commands of this thread go to the quiet cluster until this is dropped.
pub struct QuietCluster {
    _turn: MutexGuard<'static, ()>,
}

/// Waits for the turn of this test.
pub fn quiet_cluster() -> QuietCluster {
    let turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    use_quiet_cluster(true);
    QuietCluster { _turn: turn }
}

impl QuietCluster {
    /// Waits until all that was asked for is done.
    pub fn settle(&self) {
        let (mut last, mut since) = (logs(), Instant::now());
        wait_for("the logs to come to rest", || {
            let now = logs();
            if now != last {
                (last, since) = (now, Instant::now());
            }
            since.elapsed() > CALM
        });
    }

    /// Runs a command that must not write to the logs.
    pub fn run_unlogged(&self, applet: &str, args: &[&str]) -> Said {
        let before = logs();
        let said = run(applet, args);
        assert_eq!(changed_since(&before), None, "{applet} {args:?} was logged");
        said
    }
}

impl Drop for QuietCluster {
    fn drop(&mut self) {
        use_quiet_cluster(false);
    }
}

/// The bytes of lsb.events and lsb.acct; none where they are not ours to read. The answer to badmin
/// comes when all before it is written.
fn logs() -> Vec<(&'static str, Vec<u8>)> {
    let Installation::Own(rig) = installation() else { return Vec::new() };
    ok("badmin", &["showstatus"]);
    let read = |name| (name, std::fs::read(rig.logdir().join(name)).unwrap_or_default());
    ["lsb.events", "lsb.acct"].map(read).into()
}

/// A log that has changed since, with the new records.
fn changed_since(before: &[(&str, Vec<u8>)]) -> Option<String> {
    let now = logs();
    let (name, before, now) = before
        .iter()
        .zip(&now)
        .find(|((_, before), (_, now))| before != now)
        .map(|((name, before), (_, now))| (name, before, now))?;
    let new = now.strip_prefix(&before[..]).unwrap_or(now);
    Some(format!("{name}: {}", String::from_utf8_lossy(new)))
}

#[test]
fn request_that_is_logged_is_noticed() {
    let quiet = quiet_cluster();
    let Installation::Own(_) = installation() else { return };
    quiet.settle();
    let before = logs();
    assert_eq!(changed_since(&before), None);
    let job = bsub(&["-H", "true"]);
    let changed = changed_since(&before).unwrap_or_default();
    assert!(changed.starts_with("lsb.events: \"JOB_NEW\" \"10.1\""), "{changed}");
    ok("bkill", &[&job]);
}

//! The process and its peaks, for badmin showstatus.

/// Clients, servers, CPUs, cores and slots.
pub(crate) type Present = [u64; 5];

/// Soft state for showstatus.
#[derive(Debug, Default)]
pub struct Status {
    pid: u32,
    /// Seconds since the epoch; 0 never.
    started: i64,
    reconfigured: i64,
    /// Most of each seen.
    peak: Present,
    /// How often the facts of hosts had changed when they were counted last; `None`: the
    /// configuration has changed since.
    counted_at: Option<u64>,
    /// How often they were counted.
    #[cfg(test)]
    counts: usize,
}

impl Status {
    pub(crate) fn set_pid(&mut self, pid: u32) {
        self.pid = pid;
    }

    pub(crate) fn note_start(&mut self, now: i64) {
        self.started = now;
    }

    pub(crate) fn note_reconfiguration(&mut self, now: i64) {
        self.reconfigured = now;
        self.counted_at = None;
    }

    /// Were the hosts counted with these facts, which have changed so often?
    pub(crate) fn is_counted(&self, facts_changes: u64) -> bool {
        self.counted_at == Some(facts_changes)
    }

    /// There are so many of each with these facts.
    pub(crate) fn note_present(&mut self, present: Present, facts_changes: u64) {
        self.counted_at = Some(facts_changes);
        #[cfg(test)]
        {
            self.counts += 1;
        }
        for (peak, now) in self.peak.iter_mut().zip(present) {
            *peak = (*peak).max(now);
        }
    }

    #[cfg(test)]
    pub(crate) fn counts(&self) -> usize {
        self.counts
    }

    pub(crate) fn peak(&self) -> Present {
        self.peak
    }

    /// The process, when it started and when it was reconfigured last: rows of showstatus.
    pub(crate) fn rows(&self) -> [(&'static str, i64); 3] {
        [("start", self.started), ("pid", self.pid.into()), ("reconfig", self.reconfigured)]
    }
}

//! Load indices out of raw counters.
//!
//! r15s, r1m and r15m are exponential averages of the run queue over 15 seconds, 1 minute and 15
//! minutes (the longer ones begin with the system's own averages); ut, pg and io are rates averaged
//! over the last minute; the rest is taken as measured. Each index is shown anew at its documented
//! interval, however often the host is measured for the averages. Thresholds on run queues count
//! the effective length, as `lsload -E` shows it. See lsload(1).

use crate::model::time::US;
use crate::proto::lim::{LoadSample, effective_queue, increasing};

/// Built-in load indices.
pub const INDICES: usize = 11;

/// Seconds after which each index is shown anew, in the order of `INDEX_NAMES`.
pub const INTERVALS: [u64; INDICES] = [15, 15, 15, 15, 15, 15, 30, 30, 120, 15, 15];
/// A measurement so little early counts for the interval that ends, microseconds.
const EARLY: u64 = US / 2;

/// The rates among the indices: there from the second measurement on.
const RATES: std::ops::Range<usize> = 3..6;

/// Time constant of the averaged rates ut, pg and io, seconds.
const RATE_SECS: f64 = 60.0;

/// An exponential average.
#[derive(Clone, Debug)]
pub struct Average {
    /// Time constant, seconds.
    secs: f64,
    value: Option<f64>,
}

impl Average {
    pub fn new(secs: f64) -> Self {
        Average { secs, value: None }
    }

    /// Takes in a reading that stands for the last `dt` seconds. The first one is the average.
    pub fn add(&mut self, reading: f64, dt: f64) {
        let keep = (-dt.max(0.0) / self.secs).exp();
        self.value = Some(match self.value {
            None => reading,
            Some(old) => old * keep + reading * (1.0 - keep),
        });
    }

    /// The average; 0 before the first reading.
    pub fn get(&self) -> f64 {
        self.value.unwrap_or(0.0)
    }
}

/// Counters of the last sample, to make rates of.
#[derive(Clone, Copy, Debug)]
struct Counters {
    mono_us: u64,
    cpu_busy: u64,
    cpu_total: u64,
    pages: u64,
    io_kb: u64,
}

/// Turns samples into a load vector.
#[derive(Clone, Debug)]
pub struct Meter {
    last: Option<Counters>,
    queues: [Average; 3],
    ut: Average,
    pg: Average,
    io: Average,
    /// ls, it, tmp, swp, mem.
    plain: [f64; 5],
    /// The value shown of each index, and its time.
    shown: [f32; INDICES],
    taken: [Option<u64>; INDICES],
}

impl Default for Meter {
    fn default() -> Self {
        Meter {
            last: None,
            queues: [Average::new(15.0), Average::new(60.0), Average::new(900.0)],
            ut: Average::new(RATE_SECS),
            pg: Average::new(RATE_SECS),
            io: Average::new(RATE_SECS),
            plain: [0.0; 5],
            shown: [0.0; INDICES],
            taken: [None; INDICES],
        }
    }
}

impl Meter {
    /// Takes in a sample measured at `mono_us`.
    pub fn take(&mut self, mono_us: u64, s: &LoadSample) {
        let now = Counters {
            mono_us,
            cpu_busy: s.cpu_busy,
            cpu_total: s.cpu_total,
            pages: s.pages,
            io_kb: s.io_kb,
        };
        let dt = self.last.map_or(0.0, |l| mono_us.saturating_sub(l.mono_us) as f64 / 1e6);
        match self.last {
            None => {
                let [one, fifteen] = s.load_avg;
                for (q, first) in self.queues.iter_mut().zip([s.run_queue, one, fifteen]) {
                    q.add(first, dt);
                }
            }
            Some(last) => {
                for q in &mut self.queues {
                    q.add(s.run_queue, dt);
                }
                self.rates(&last, &now, dt);
            }
        }
        self.plain =
            [f64::from(s.logins), s.idle_minutes, s.tmp as f64, s.swp as f64, s.mem as f64];
        let first = self.last.replace(now).is_none();
        let index = self.index();
        for (i, value) in index.into_iter().enumerate() {
            let due = |at: u64| mono_us + EARLY >= at + INTERVALS[i] * US;
            if self.taken[i].is_none_or(due) {
                self.shown[i] = value;
                self.taken[i] = (!(first && RATES.contains(&i))).then_some(mono_us);
            }
        }
    }

    /// A counter that went back (a disk left, the host was restored) makes no rate.
    fn rates(&mut self, last: &Counters, now: &Counters, dt: f64) {
        let since = |a: u64, b: u64| b.checked_sub(a).map(|d| d as f64);
        if let (Some(busy), Some(total)) =
            (since(last.cpu_busy, now.cpu_busy), since(last.cpu_total, now.cpu_total))
            && total > 0.0
        {
            self.ut.add((busy / total).min(1.0), dt);
        }
        if dt <= 0.0 {
            return;
        }
        if let Some(pages) = since(last.pages, now.pages) {
            self.pg.add(pages / dt, dt);
        }
        if let Some(kb) = since(last.io_kb, now.io_kb) {
            self.io.add(kb / dt, dt);
        }
    }

    /// The load vector as others see it: each index as it was at its last interval.
    pub fn shown(&self) -> [f32; INDICES] {
        self.shown
    }

    /// The load vector of the last measurement, in the order of `INDEX_NAMES`.
    pub fn index(&self) -> [f32; INDICES] {
        let [r15s, r1m, r15m] = [0, 1, 2].map(|i| self.queues[i].get());
        let [ls, it, tmp, swp, mem] = self.plain;
        [r15s, r1m, r15m, self.ut.get(), self.pg.get(), self.io.get(), ls, it, tmp, swp, mem]
            .map(|v| v as f32)
    }
}

/// The indices beyond their thresholds, a bit each.
pub fn over(index: &[f32; INDICES], ncpus: u32, thresholds: &[Option<f64>]) -> u32 {
    let mut bits = 0;
    for (i, (&value, limit)) in index.iter().zip(thresholds).enumerate() {
        let Some(limit) = *limit else { continue };
        let value = match i {
            0..3 => effective_queue(f64::from(value), ncpus),
            _ => f64::from(value),
        };
        if if increasing(i) { value > limit } else { value < limit } {
            bits |= 1 << i;
        }
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(queue: f64, busy: u64, total: u64, pages: u64, io_kb: u64) -> LoadSample {
        LoadSample {
            run_queue: queue,
            cpu_busy: busy,
            cpu_total: total,
            pages,
            io_kb,
            logins: 3,
            idle_minutes: 7.5,
            tmp: 1000,
            swp: 200,
            mem: 4096,
            ..LoadSample::default()
        }
    }

    fn near(a: f32, b: f64) {
        assert!((f64::from(a) - b).abs() < 1e-4 * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn run_queues_against_computed_values() {
        let mut m = Meter::default();
        m.take(0, &sample(0.0, 0, 0, 0, 0));
        // 8 runnable from now on, read every 5 s: after 15 s of it r15s has covered 1 - 1/e.
        for k in 1..=3u64 {
            m.take(k * 5_000_000, &sample(8.0, 0, k * 500, 0, 0));
        }
        let v = m.index();
        near(v[0], 8.0 * (1.0 - (-1f64).exp())); // 5.0570
        near(v[1], 8.0 * (1.0 - (-0.25f64).exp())); // 1.7696
        near(v[2], 8.0 * (1.0 - (-15.0f64 / 900.0).exp())); // 0.1322
        near(v[0], 5.0570);
        near(v[1], 1.7696);
        near(v[2], 0.1322);
    }

    #[test]
    fn the_step_between_samples_does_not_matter() {
        let (mut fine, mut coarse) = (Meter::default(), Meter::default());
        fine.take(0, &sample(4.0, 0, 0, 0, 0));
        coarse.take(0, &sample(4.0, 0, 0, 0, 0));
        for k in 1..=30u64 {
            fine.take(k * 1_000_000, &sample(1.0, 0, 0, 0, 0));
        }
        coarse.take(30_000_000, &sample(1.0, 0, 0, 0, 0));
        for i in 0..3 {
            near(fine.index()[i], f64::from(coarse.index()[i]));
        }
    }

    #[test]
    fn the_long_averages_begin_where_the_system_is() {
        let mut m = Meter::default();
        m.take(0, &LoadSample { load_avg: [1.5, 0.5], ..sample(9.0, 0, 0, 0, 0) });
        assert_eq!(m.index()[..3], [9.0, 1.5, 0.5]);
        m.take(60_000_000, &LoadSample { load_avg: [7.0, 7.0], ..sample(0.0, 0, 0, 0, 0) });
        near(m.index()[1], 1.5 * (-1f64).exp());
    }

    #[test]
    fn rates_are_per_second_and_averaged_over_a_minute() {
        let mut m = Meter::default();
        m.take(0, &sample(0.0, 100, 1_000, 50, 7_000));
        assert_eq!(m.index()[3..6], [0.0; 3]);
        // 10 s: 25% busy, 100 pages, 5,000 KB: the first rate is the average
        m.take(10_000_000, &sample(0.0, 350, 2_000, 150, 12_000));
        let v = m.index();
        near(v[3], 0.25);
        near(v[4], 10.0);
        near(v[5], 500.0);
        // another 10 s, idle
        m.take(20_000_000, &sample(0.0, 350, 3_000, 150, 12_000));
        near(m.index()[3], 0.25 * (-10.0f64 / 60.0).exp());
        near(m.index()[4], 8.4648);
        assert_eq!(m.index()[6..], [3.0, 7.5, 1000.0, 200.0, 4096.0]);
    }

    #[test]
    fn each_index_is_shown_at_its_own_interval() {
        let mut m = Meter::default();
        let mut changes = [const { Vec::new() }; INDICES];
        let mut last = [f32::NAN; INDICES];
        // everything grows, read every 5 s
        for k in 0..=48u64 {
            let grown = LoadSample {
                run_queue: k as f64,
                cpu_busy: k * k,
                cpu_total: k * 500,
                pages: k * k,
                io_kb: k * k,
                logins: k as u32,
                idle_minutes: k as f64,
                tmp: k + 1,
                swp: k + 1,
                mem: k + 1,
                ..LoadSample::default()
            };
            // a little late or early, as a host measures
            m.take(k * 5_000_000 + k % 2 * 20_000, &grown);
            for (i, value) in m.shown().into_iter().enumerate() {
                if value != last[i] && (k > 0 || !RATES.contains(&i)) {
                    changes[i].push(k * 5);
                }
                last[i] = value;
            }
        }
        for (i, times) in changes.iter().enumerate() {
            let first = if RATES.contains(&i) { 5 } else { 0 };
            let want: Vec<u64> = (first..=240).step_by(INTERVALS[i] as usize).collect();
            assert_eq!(*times, want, "index {i}");
        }
    }

    #[test]
    fn a_counter_that_goes_back_is_left_out() {
        let mut m = Meter::default();
        m.take(0, &sample(0.0, 0, 0, 1_000, 1_000));
        m.take(1_000_000, &sample(0.0, 10, 100, 1_010, 1_010));
        m.take(2_000_000, &sample(0.0, 20, 200, 0, 0));
        near(m.index()[4], 10.0);
        near(m.index()[5], 10.0);
        near(m.index()[3], 0.1);
    }

    #[test]
    fn thresholds_look_the_right_way() {
        let mut limits = vec![None; INDICES];
        limits[1] = Some(1.0); // r1m, effective
        limits[3] = Some(0.8); // ut
        limits[10] = Some(500.0); // mem: below
        let mut v = [0f32; INDICES];
        v[10] = 500.0;
        assert_eq!(over(&v, 4, &limits), 0);
        v[1] = 7.0; // (7 - 3) / 4 = 1: not beyond
        assert_eq!(over(&v, 4, &limits), 0);
        v[1] = 7.4;
        assert_eq!(over(&v, 4, &limits), 1 << 1);
        v[3] = 0.81;
        v[10] = 499.0;
        assert_eq!(over(&v, 4, &limits), 1 << 1 | 1 << 3 | 1 << 10);
        assert_eq!(over(&v, 4, &[]), 0);
    }
}

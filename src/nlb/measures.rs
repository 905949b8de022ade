//! The attributes that a collector measures, from two readings of its host and the readings of a
//! window before them. See ccollect(8).

use super::average::Readings;
use super::store::Values;
use crate::conf::nlb_objects::of_number;
use crate::model::nlb::{AttrId, MAX_STRING, Value};
use crate::proto::collect::Counters;

/// The attributes of which means are kept, and those of the means.
const AVERAGED: [(AttrId, AttrId); 12] = [
    (AttrId::float(1), AttrId::float(11)),
    (AttrId::float(2), AttrId::float(12)),
    (AttrId::float(3), AttrId::float(13)),
    (AttrId::float(5), AttrId::float(14)),
    (AttrId::float(6), AttrId::float(15)),
    (AttrId::integer(2), AttrId::integer(11)),
    (AttrId::integer(5), AttrId::integer(12)),
    (AttrId::integer(6), AttrId::integer(13)),
    (AttrId::integer(7), AttrId::integer(14)),
    (AttrId::integer(10), AttrId::integer(15)),
    (AttrId::integer(16), AttrId::integer(17)),
    (AttrId::integer(18), AttrId::integer(19)),
];

/// Picoseconds in a second.
const PICO: f64 = 1e12;

/// The facts of a host beside its counters.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// NLB_QUEUE_NAME; empty: none.
    pub queue: String,
    /// The directory of NLB_FREETMP.
    pub tmp: String,
    /// The batch agent of the host answers.
    pub batch: bool,
    /// Without the kernel's own figure: % of glances that saw more processes than processors.
    pub crowded: Option<f64>,
}

/// The attributes at the reading `now`; rates are those since `before`.
pub(super) fn values(before: &Counters, now: &Counters, around: &Surroundings) -> Values {
    let secs = now.at.saturating_sub(before.at) as f64 / 1e6;
    // a counter that went back says nothing
    let rate = |of: fn(&Counters) -> Option<u64>| {
        let more = of(now)?.checked_sub(of(before)?)?;
        (secs > 0.0).then(|| more as f64 / secs)
    };
    let cpu = before.cpu.zip(now.cpu);
    let share = |of: fn(&crate::proto::collect::CpuTime) -> u64| {
        let (old, new) = cpu?;
        let all = new.total.checked_sub(old.total).filter(|n| *n > 0)?;
        let part = of(&new).saturating_sub(of(&old)).min(all);
        Some(100.0 * part as f64 / all as f64)
    };
    let waited = rate(|c| c.waited_us).map(|us| (us / 1e4).min(100.0));
    let whole = |n: Option<u64>| n.map(|n| n as f64);
    let numbers = [
        (AttrId::float(1), share(|c| c.idle)),
        (AttrId::float(2), whole(now.runnable)),
        (AttrId::float(3), rate(|c| c.swapped_kb)),
        (AttrId::float(5), share(|c| c.system)),
        (AttrId::float(6), waited.or(around.crowded)),
        (AttrId::integer(1), whole(now.memory_kb)),
        (AttrId::integer(2), whole(now.free_memory_kb)),
        (AttrId::integer(3), now.clock_hz.map(|hz| PICO / hz)),
        (AttrId::integer(4), whole(now.cpus)),
        (AttrId::integer(5), rate(|c| c.switches)),
        (AttrId::integer(6), whole(now.processes)),
        (AttrId::integer(7), whole(now.tmp_mb)),
        (AttrId::integer(8), now.idle_minutes),
        (AttrId::integer(9), whole(now.swap_kb.map(|kb| kb / 1024))),
        (AttrId::integer(10), whole(now.free_swap_kb.map(|kb| kb / 1024))),
        (AttrId::integer(16), rate(|c| c.disk_kb)),
        (AttrId::integer(18), rate(|c| c.disk_requests)),
        (AttrId::integer(24), Some(f64::from(u8::from(around.batch)))),
        (AttrId::integer(25), now.validates.map(|on| f64::from(u8::from(on)))),
    ];
    let known = numbers.iter().filter_map(|(id, x)| Some((*id, (*x)?)));
    let mut values: Values = known.map(|(id, x)| (id, of_number(id.kind, x))).collect();
    let [system, release, version, machine] = &now.names;
    let tmp = if now.tmp_mb.is_some() { around.tmp.as_str() } else { "" };
    let strings = [system, release, version, machine].map(String::as_str);
    let strings = strings.into_iter().chain([around.queue.as_str(), tmp]);
    for (number, text) in (1..).zip(strings) {
        let fits = text.len() <= MAX_STRING && !text.chars().any(char::is_control);
        if !text.is_empty() && fits {
            values.insert(AttrId::string(number), Value::Str(text.into()));
        }
    }
    values
}

/// Adds the means over `window` microseconds, this reading of `at` included, to its values.
pub(super) fn add_means(values: &mut Values, readings: &mut Readings, at: u64, window: u64) {
    let of = |id: &AttrId| values.get(id).and_then(Value::number).unwrap_or(f64::NAN);
    readings.add(at, window, AVERAGED.iter().map(|(id, _)| of(id)).collect());
    for ((_, id), mean) in AVERAGED.iter().zip(readings.means()) {
        if let Some(mean) = mean {
            values.insert(*id, of_number(id.kind, mean));
        }
    }
}

//! Campaigns of like jobs that are looked at in one pass: a host takes as many of them as its
//! slots, its resources and its limits leave room for, however the pass comes to know that.
//! (A debug build asks every policy about each element of an array, and compares.)

use super::cluster::cluster;
use super::cluster::random::cases;
use proptest::prelude::*;

const CASES: u32 = 60;
const HOSTS: u32 = 3;
const MOST_SLOTS: u32 = 8;
const MOST_MEMORY: u32 = 3000;

/// A campaign: the properties of its jobs, and the limit of its queue on each host.
#[derive(Clone, Debug)]
struct Asked {
    /// Memory that a job reserves, MB.
    reserves: u32,
    /// The memory has to be above this, MB, before a job starts; 0: it says nothing about it.
    above: u32,
    /// HJOB_LIMIT; 0: none.
    limit: u32,
    /// The campaign is an array.
    array: bool,
}

impl Asked {
    /// How many jobs a host takes.
    fn on_host(&self, slots: u32, memory: u32) -> u32 {
        let mut jobs = 0;
        loop {
            let left = memory - jobs * self.reserves;
            let limited = self.limit > 0 && jobs >= self.limit;
            if jobs == slots || limited || left < self.reserves {
                return jobs;
            }
            if self.above > 0 && left <= self.above {
                return jobs;
            }
            jobs += 1;
        }
    }

    fn options(&self) -> String {
        let select = match self.above {
            0 => String::new(),
            above => format!("select[type==any && mem>{above}] "),
        };
        format!("-q work -R '{select}rusage[mem={}]'", self.reserves)
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    let above = prop_oneof![1 => Just(0), 2 => 1..MOST_MEMORY];
    let limit = prop_oneof![2 => Just(0), 1 => 1..=MOST_SLOTS];
    (1..600u32, above, limit, any::<bool>()).prop_map(|(reserves, above, limit, array)| Asked {
        reserves,
        above,
        limit,
        array,
    })
}

proptest! {
    #![proptest_config(cases(CASES))]

    #[test]
    fn campaign_of_like_jobs_gets_what_each_host_has_room_for(
        slots in 1..=MOST_SLOTS,
        memory in 1..MOST_MEMORY,
        jobs in 1..40u32,
        asked in asked(),
    ) {
        let limit = match asked.limit {
            0 => String::new(),
            limit => format!("; HJOB_LIMIT = {limit}"),
        };
        let site = cluster().hosts(HOSTS as usize, slots);
        let mut c = site.queue("work", &format!("PRIORITY = 30{limit}")).up();
        c.loads(&format!("mem={memory}"));
        c.badmin("qinact work");
        let options = asked.options();
        let (times, name) = match asked.array {
            true => (1, format!("-J 'a[1-{jobs}]'")),
            false => (jobs, String::new()),
        };
        for _ in 0..times {
            c.submit("ann", &format!("{name} {options}"));
        }
        c.badmin("qact work");
        let room = asked.on_host(slots, memory) * HOSTS;
        prop_assert_eq!(c.started().len(), room.min(jobs) as usize);
    }
}

//! Values and ranks of absolute priorities, and how they follow the time.

use super::*;
use crate::batch::site::Site;
use crate::batch::tests::cluster::cluster;
use crate::conf::aps::parse;
use proptest::prelude::*;

/// APS_PRIORITY with JOB_PRIORITY_OVER_TIME = 1/1 where it is asked for.
fn formula(text: &str, escalates: bool) -> ApsFormula {
    let params = match escalates {
        true => "MAX_USER_PRIORITY = 100\nJOB_PRIORITY_OVER_TIME = 1/1\n",
        false => "MAX_USER_PRIORITY = 100\n",
    };
    let params = format!("Begin Parameters\nDEFAULT_QUEUE = q\n{params}End Parameters\n");
    let c = cluster().hosts(1, 1).file("lsb.params", &params);
    let c = c.queue("q", &format!("APS_PRIORITY = {text}"));
    let conf = c.read();
    let site = Site::new(conf, &mut crate::batch::state::names::Names::default());
    ApsFormula::of(&site.conf, &site.shares, "q").unwrap()
}

fn inputs(priority: u32, tasks: u32, memory: f64) -> ApsInputs {
    ApsInputs { priority, tasks, memory, queue: 30, ..ApsInputs::default() }
}

#[test]
fn subfactors_are_weighted_and_bounded_and_so_is_their_sum() {
    // WORK 2 * (min(3 * 50, 100) + 30), RSRC -1 * (4 + 0.5 * 200)
    let text = "WEIGHT[[WORK, 2] [JPRIORITY, 3] [QPRIORITY, 1] [RSRC, -1] [PROC, 1] [MEM, 0.5]] \
                LIMIT[[JPRIORITY, 100] [RSRC, 50]]";
    let all = formula(text, false);
    let value = all.value(&inputs(50, 4, 200.0), 0, 1000);
    let of = |factor: ApsFactor| value.of_factor[factor.index()];
    assert_eq!((of(ApsFactor::JobPriority), of(ApsFactor::QueuePriority)), (100.0, 30.0));
    assert_eq!((of(ApsFactor::Work), of(ApsFactor::Memory)), (260.0, 100.0));
    assert_eq!((of(ApsFactor::Resource), value.total), (-50.0, 210.0));
}

#[test]
fn factor_without_weight_is_ignored_and_a_parent_without_one_weighs_one() {
    let all = formula("WEIGHT[[QPRIORITY, 10]]", false);
    assert_eq!(all.value(&inputs(50, 4, 200.0), 0, 1000).total, 300.0);
    let all = formula("WEIGHT[[RSRC, 10]]", false);
    assert_eq!(all.value(&inputs(50, 4, 200.0), 0, 1000).total, 0.0);
}

#[test]
fn factor_counts_from_the_end_of_its_grace_period_on() {
    let text = "WEIGHT[[JPRIORITY, 1] [QPRIORITY, 1]] \
                GRACE_PERIOD[[QPRIORITY, 30s] [WORK, 1m]]";
    let all = formula(text, false);
    let at = |t| all.value(&inputs(7, 1, 0.0), 1000, t).total;
    assert_eq!([at(1000), at(1059), at(1060)], [0.0, 0.0, 37.0]);
    let all = formula("WEIGHT[[QPRIORITY, 1]] GRACE_PERIOD[[QPRIORITY, 1]]", false);
    let at = |t| all.value(&inputs(7, 1, 0.0), 0, t).total;
    assert_eq!([at(3599), at(3600)], [0.0, 30.0]);
}

#[test]
fn setting_of_an_administrator_adds_to_the_sum_or_takes_its_place() {
    let all = formula("WEIGHT[[QPRIORITY, 1]]", false);
    let with = |text: &str| {
        let setting = Some(ApsSetting::parse(text).unwrap());
        all.value(&ApsInputs { setting, ..inputs(0, 1, 0.0) }, 0, 10).total
    };
    assert_eq!((with("admin=12.5"), with("admin=-40"), with("system=1")), (42.5, -10.0, 1.0));
}

#[test]
fn ranks_of_settings_come_before_all_calculated_ones() {
    let all = formula("WEIGHT[[JPRIORITY, 1000000000]]", false);
    let rank = |inputs: ApsInputs| all.rank(&inputs, 0, (0, 0));
    let system = |text: &str| {
        let setting = Some(ApsSetting::parse(text).unwrap());
        rank(ApsInputs { setting, ..inputs(0, 1, 0.0) })
    };
    let order = [
        rank(inputs(0, 1, 0.0)),
        rank(inputs(1, 1, 0.0)),
        rank(inputs(u32::MAX, 1, 0.0)),
        system("system=0.001"),
        system("system=1000000000"),
        FIRST_RANK,
    ];
    assert!(order.windows(2).all(|two| two[0] < two[1]), "{order:?}");
}

/// Parameters with every kind of change by time.
const TIMED: [&str; 8] = [
    "WEIGHT[[JPRIORITY, 2]]",
    "WEIGHT[[JPRIORITY, 2] [QPRIORITY, 1]] LIMIT[[JPRIORITY, 110]]",
    "WEIGHT[[WORK, 3] [JPRIORITY, 1]] LIMIT[[WORK, 170]]",
    "WEIGHT[[JPRIORITY, -2] [PROC, 5]]",
    "WEIGHT[[JPRIORITY, 1] [MEM, 1]] GRACE_PERIOD[[JPRIORITY, 3m] [MEM, 95s]]",
    "WEIGHT[[JPRIORITY, 1] [MEM, -1]] GRACE_PERIOD[[RSRC, 200s]]",
    "WEIGHT[[JPRIORITY, 1] [PROC, 4]] LIMIT[[JPRIORITY, 53]] GRACE_PERIOD[[WORK, 2m]]",
    "WEIGHT[[QPRIORITY, 3] [MEM, 0.25] [JPRIORITY, 0.5]] GRACE_PERIOD[[QPRIORITY, 61s]]",
];

proptest! {
    /// Ranks that are worked out anew at the instants that `next_change` names alone are at any
    /// time in the order of the priorities themselves.
    #[test]
    fn ranks_kept_between_their_changes_order_jobs_as_their_priorities_do(
        which in 0..TIMED.len(),
        jobs in prop::collection::vec((0i64..600, 1u32..100, 1u32..9, 0u32..300), 2..6),
    ) {
        let all = formula(TIMED[which], true);
        let origin = 5;
        let of = |job: &(i64, u32, u32, u32)| inputs(job.1, job.2, f64::from(job.3));
        let rank = |job, now| all.rank(&of(job), job.0, (origin, now));
        let mut kept: Vec<(u32, Option<i64>)> = jobs
            .iter()
            .map(|job| (rank(job, 600), all.next_change(&of(job), job.0, 600)))
            .collect();
        for now in 600..1500 {
            for (job, kept) in jobs.iter().zip(&mut kept) {
                if kept.1.is_some_and(|due| due <= now) {
                    *kept = (rank(job, now), all.next_change(&of(job), job.0, now));
                }
            }
            let value = |job| all.value(&of(job), job.0, now).total;
            for (a, of_a) in jobs.iter().zip(&kept) {
                for (b, of_b) in jobs.iter().zip(&kept) {
                    let (by_value, by_rank) = (value(a).total_cmp(&value(b)), of_a.0.cmp(&of_b.0));
                    prop_assert_eq!(by_value, by_rank, "{} {:?} {:?}", now, a, b);
                }
            }
        }
    }

    /// Jobs of one class stay in the order of their submission.
    #[test]
    fn jobs_of_one_kind_and_bucket_are_never_overtaken_by_later_ones(
        which in 0..TIMED.len(),
        times in (0i64..600, 0i64..600),
        job in (1u32..100, 1u32..9, 0u32..300),
    ) {
        let all = formula(TIMED[which], true);
        let (first, second) = (times.0.min(times.1), times.0.max(times.1));
        if all.bucket(first) == all.bucket(second) {
            let of = inputs(job.0, job.1, f64::from(job.2));
            for now in second..second + 900 {
                let value = |since| all.value(&of, since, now).total;
                prop_assert!(value(first) >= value(second), "{}", now);
            }
        }
    }
}

#[test]
fn text_of_aps_priority_is_read_whatever_its_blanks_and_case() {
    let text = "weight [[ jpriority , 1 ][QPRIORITY,10]]LIMIT[[Work,5.5]]  GRACE_PERIOD [[FS,10m]]";
    let aps = parse(text).unwrap();
    assert_eq!(aps.weight(ApsFactor::Work), 1.0);
    assert_eq!(aps.term(ApsFactor::Work).limit, Some(5.5));
    assert_eq!(aps.term(ApsFactor::Fairshare).grace, Some(600));
}

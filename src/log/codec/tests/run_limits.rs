//! LSF_RUN_LIMIT.

use super::*;
use proptest::prelude::*;

/// Any such record.
pub(super) fn any_change() -> impl Strategy<Value = Event> {
    let any = any::<(u32, u32, u32, u64, bool)>();
    any.prop_map(|(job, idx, attempt, secs, hard)| {
        Event::RunLimit(RunLimitChange { at: JobRef { job, idx }, attempt, secs, hard })
    })
}

#[test]
fn a_run_limit_has_the_documented_order_of_fields() {
    let at = JobRef { job: 11, idx: 3 };
    let text = line(Event::RunLimit(RunLimitChange { at, attempt: 2, secs: 900, hard: true }));
    assert_eq!(text, "\"LSF_RUN_LIMIT\" \"10.1\" 1700000000 11 3 2 900 1\n");
}

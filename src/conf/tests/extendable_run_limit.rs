//! EXTENDABLE_RUNLIMIT: values, mistakes with their places, defaults.

use super::*;
use crate::conf::types::ExtendableRunLimit;

/// The value of a queue, and what is told about it.
fn read(value: &str) -> (Option<ExtendableRunLimit>, Vec<String>) {
    let mut files = site();
    let text = format!(
        "Begin Queue\nQUEUE_NAME = normal\nPRIORITY = 40\nEXTENDABLE_RUNLIMIT = {value}\n\
         End Queue\n"
    );
    files.put(&format!("{BATCH}/lsb.queues"), text);
    let (conf, diags) = load_lenient(&files, ENVDIR, None);
    let said = diags.iter().map(|diag| placed(&files, diag));
    let said = said.filter(|said| said.contains("EXTENDABLE")).collect();
    (conf.and_then(|conf| conf.queue("normal")?.extendable), said)
}

#[test]
fn extendable_run_limit_is_read_with_its_defaults() {
    let of = |base, increment, grace, requeue| {
        let [base_secs, increment_secs, grace_secs] = [base, increment, grace].map(|n: u64| n * 60);
        Some(ExtendableRunLimit { base_secs, increment_secs, grace_secs, requeue })
    };
    for (value, want) in [
        ("BASE[60] INCREMENT[30] GRACE[10] REQUEUE[Y]", of(60, 30, 10, true)),
        ("BASE[ 60 ] GRACE[5]", of(60, 60, 5, false)),
        ("increment[1] base[2] requeue[n]", of(2, 1, 0, false)),
    ] {
        assert_eq!(read(value), (want, Vec::new()), "{value}");
    }
}

#[test]
fn mistakes_in_an_extendable_run_limit_are_told_with_their_places() {
    for (value, place, want) in [
        ("INCREMENT[5]", 23, "bad value <INCREMENT[5]> of EXTENDABLE_RUNLIMIT: BASE[minutes] is"),
        ("BASE[0]", 28, "bad value <0> of EXTENDABLE_RUNLIMIT: BASE is a number of minutes from 1"),
        ("BASE[5] GRACE[1:00]", 37, "<1:00> of EXTENDABLE_RUNLIMIT: GRACE is a number"),
        ("BASE[5] INCREMENT[0]", 41, "INCREMENT is a number of minutes from 1"),
        ("BASE[5] REQUEUE[maybe]", 39, "bad value <maybe> of EXTENDABLE_RUNLIMIT: Y or N"),
        ("BASE[5] BASE[6]", 31, "each keyword may stand there once"),
        ("BASE", 23, "a value in brackets is wanted behind it"),
        ("BASE[5", 23, "the bracket is not closed"),
        ("BASE[5] GRACES[1]", 31, "bad value <GRACES> of EXTENDABLE_RUNLIMIT: BASE[]"),
    ] {
        let (read, said) = read(value);
        assert_eq!(read, None, "{value}");
        let at = format!("lsb.queues EXTENDABLE_RUNLIMIT:{place} ");
        assert!(said.len() == 1 && said[0].contains(&at) && said[0].contains(want), "{said:?}");
    }
}

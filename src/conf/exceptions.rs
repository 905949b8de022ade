//! The parameters of lsb.params about exceptional hosts and jobs.

use super::lexer::shown;
use super::section::Values;
use super::types::{ExceptionParams, ExitRateTypes, RawParam, UNLIMITED_EXIT_RATE};

/// Longest period that is taken, minutes: a year.
const MAX_MINUTES: u64 = 365 * 24 * 60;

pub(super) fn exceptions(v: &mut Values<'_>) -> ExceptionParams {
    let mut p = ExceptionParams::default();
    let mut minutes = |secs: &mut u64, name: &str, least: u64| {
        if let Some(minutes) = v.number(name, least..=MAX_MINUTES) {
            *secs = minutes * 60;
        }
    };
    minutes(&mut p.trigger_secs, "EADMIN_TRIGGER_DURATION", 1);
    minutes(&mut p.exit_rate_secs, "JOB_EXIT_RATE_DURATION", 1);
    minutes(&mut p.idle_after_secs, "DETECT_IDLE_JOB_AFTER", 0);
    p.exit_rate = v.number("GLOBAL_EXIT_RATE", 1..=UNLIMITED_EXIT_RATE);
    p.exit_rate = p.exit_rate.filter(|rate| *rate < UNLIMITED_EXIT_RATE);
    v.flag(&mut p.exit_rate_per_slot, "ENABLE_EXIT_RATE_PER_SLOT");
    if let Some(types) = exit_types(v) {
        p.exit_types = types;
    }
    p
}

/// EXIT_RATE_TYPE: words; of JOBEXIT and JOBEXIT_NONLSF one.
fn exit_types(v: &mut Values<'_>) -> Option<ExitRateTypes> {
    const NAME: &str = "EXIT_RATE_TYPE";
    let mut types = ExitRateTypes::NONE;
    let words = v.words(NAME);
    for RawParam { text, pos, .. } in &words {
        let given = types.exits;
        match text.as_str() {
            "JOBEXIT" | "JOBEXIT_NONLSF" if given => {
                let why = format!("{NAME}: only one of JOBEXIT and JOBEXIT_NONLSF is wanted");
                v.diags.error(pos, why);
                return None;
            }
            "JOBEXIT" => (types.exits, types.caused_by_lsf) = (true, true),
            "JOBEXIT_NONLSF" => types.exits = true,
            "JOBINIT" => types.starts = true,
            "HPCINIT" => types.starts_of_several = true,
            other => {
                let wanted = "JOBEXIT, JOBEXIT_NONLSF, JOBINIT and HPCINIT are known";
                v.diags.error(pos, format!("bad value <{}> of {NAME}: {wanted}", shown(other)));
                return None;
            }
        }
    }
    (!words.is_empty()).then_some(types)
}

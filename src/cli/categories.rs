//! The categories in which bsub and bjobs group their options for help (`bsub -h`, `bjobs -h`). An
//! option that a command does not have may stand here; what is not here is in none.

/// Command, category, options.
const ALL: &[(&str, &str, &str)] = &[
    ("bsub", "io", "cwd e eo f i is o oo outdir tty"),
    ("bsub", "limit", "c C D eptl F hl M p ptl S T ul v W We"),
    ("bsub", "notify", "B N Ne notify u"),
    ("bsub", "pack", "pack"),
    (
        "bsub",
        "properties",
        "app ar csm data datagrp E env Ep g I Ip Is IS ISp ISs IX J Jd jsdl jsdl_strict jsm json \
         k K L P q Q r rn rnc s sla smt sp stage step_cgroup wa wt XF yaml Zs",
    ),
    (
        "bsub",
        "resource",
        "alloc_flags cn_cu cn_mem core_isolation freq gpu hostfile ln_mem ln_slots m n network \
         nnodes R",
    ),
    ("bsub", "schedule", "a b clusters ext extsched G H jobaff Lp mig t ti U w x"),
    ("bsub", "script", "Zs"),
    ("bjobs", "filter", "app aps data fwd g G J Jd Lp m N P plan psum q rusage sla ss sum u U x"),
    (
        "bjobs",
        "format",
        "A aff aps cname data env fwd gpu hms hostfile json l N noheader o plan prio psum script \
         ss sum UF w W WF WL WP X",
    ),
    ("bjobs", "state", "a d p pe pei pi psum r s sum"),
];

/// Whether a command has categories.
pub fn some(command: &str) -> bool {
    ALL.iter().any(|(of, ..)| *of == command)
}

/// The options of a category of a command.
pub fn options(command: &str, category: &str) -> Option<Vec<&'static str>> {
    let found = ALL.iter().find(|(of, name, _)| (*of, *name) == (command, category))?;
    Some(found.2.split_whitespace().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IBM's pages of -a, -app, -b, -B, -s and of bjobs -p, -psum, -s say where those belong.
    #[test]
    fn options_are_where_lsf_has_them() {
        for (command, category, option) in [
            ("bsub", "schedule", "a"),
            ("bsub", "properties", "app"),
            ("bsub", "schedule", "b"),
            ("bsub", "notify", "B"),
            ("bsub", "properties", "s"),
            ("bsub", "properties", "yaml"),
            ("bjobs", "state", "p"),
            ("bjobs", "state", "s"),
            ("bjobs", "filter", "psum"),
            ("bjobs", "format", "psum"),
            ("bjobs", "state", "psum"),
        ] {
            assert!(options(command, category).unwrap().contains(&option), "{command} {option}");
        }
        assert_eq!(options("bjobs", "notify"), None);
        assert_eq!(options("bkill", "state"), None);
    }
}

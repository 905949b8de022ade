//! The option bits of a submission as LSF's tools expect them in a record (lsb.events(5)).

use crate::model::job::JobSpec;

/// lsbatch bits of options2 that are written (the numbers of lsbatch.h).
pub(super) mod sub2 {
    pub const HOLD: u32 = 0x01;
    pub const BSUB_BLOCK: u32 = 0x04;
    /// HOST_UX, USE_DEF_PROCLIMIT and MODIFY_PEND_JOB: what a plain job of a Unix host has.
    pub const PLAIN: u32 = 0x10 | 0x400 | 0x1000;
    pub const JOB_PRIORITY: u32 = 0x200;
    pub const WARNING_TIME_PERIOD: u32 = 0x2000;
    pub const WARNING_ACTION: u32 = 0x4000;
    pub const USE_RSV: u32 = 0x8000;
    pub const JOB_GROUP: u32 = 0x40000;
    pub const SLA: u32 = 0x80000;
    pub const EXTSCHED: u32 = 0x100000;
    pub const LICENSE_PROJECT: u32 = 0x200000;
    pub const OVERWRITE_OUT_FILE: u32 = 0x400000;
    pub const OVERWRITE_ERR_FILE: u32 = 0x800000;
}

/// lsbatch bits of options3 that are written.
pub(super) mod sub3 {
    pub const POST_EXEC: u32 = 0x10;
    pub const CWD: u32 = 0x40;
    pub const JOB_DESCRIPTION: u32 = 0x2000000;
}

/// lsbatch option bits beyond those that act today.
pub(super) mod sub {
    /// niosPort is in the record only with it.
    pub const INTERACTIVE: u32 = 0x4000000;
    pub const CHKPNT_PERIOD: u32 = 0x400;
    pub const CHKPNT_DIR: u32 = 0x800;
    pub const HOST_SPEC: u32 = 0x10000;
    pub const OTHER_FILES: u32 = 0x80000;
}

/// The value of an option that was not given.
pub(super) const UNSET_SIGNAL: i64 = -65535;

/// options as LSF's tools expect them: with the bits that the filled fields imply.
pub(super) fn lsb_options(spec: &JobSpec) -> u32 {
    use crate::model::job::opt;
    let checkpoint = spec.further.checkpoint.as_deref();
    let implied = [
        (!spec.name.is_empty(), opt::JOB_NAME),
        (!spec.hosts.is_empty(), opt::HOST),
        (!spec.in_file.is_empty(), opt::IN_FILE),
        (!spec.out_file.is_empty(), opt::OUT_FILE),
        (!spec.err_file.is_empty(), opt::ERR_FILE),
        (!spec.user_group.is_empty(), opt::USER_GROUP),
        (checkpoint.is_some_and(|c| c.period.is_some()), sub::CHKPNT_PERIOD),
        (checkpoint.is_some(), sub::CHKPNT_DIR),
        (!spec.limit_spec.is_empty(), sub::HOST_SPEC),
        (!spec.further.copies.is_empty(), sub::OTHER_FILES),
        (!spec.depend.is_empty(), opt::DEPEND_COND),
        (!spec.res_req.is_empty(), opt::RES_REQ),
        (!spec.pre_exec.is_empty(), opt::PRE_EXEC),
        (!spec.login_shell.is_empty(), opt::LOGIN_SHELL),
        (!spec.mail_user.is_empty(), opt::MAIL_USER),
        (!spec.project.is_empty(), opt::PROJECT_NAME),
    ];
    implied.iter().filter(|(given, _)| *given).fold(spec.options, |all, (_, bit)| all | bit)
}

/// options2 in LSF's numbering.
pub(super) fn lsb_options2(spec: &JobSpec) -> u32 {
    let mut bits = sub2::PLAIN;
    for (ours, theirs) in OPT2 {
        if spec.options2 & ours != 0 {
            bits |= theirs;
        }
    }
    if !spec.further.job_group.is_empty() {
        bits |= sub2::JOB_GROUP;
    }
    if warned(spec) {
        bits |= sub2::WARNING_ACTION | sub2::WARNING_TIME_PERIOD;
    }
    if spec.priority != 0 { bits | sub2::JOB_PRIORITY } else { bits }
}

/// options2 of ours and of LSF.
pub(super) const OPT2: [(u32, u32); 4] = {
    use crate::model::job::opt2;
    [
        (opt2::HOLD, sub2::HOLD),
        (opt2::WAIT, sub2::BSUB_BLOCK),
        (opt2::OVERWRITE_OUT, sub2::OVERWRITE_OUT_FILE),
        (opt2::OVERWRITE_ERR, sub2::OVERWRITE_ERR_FILE),
    ]
};

/// options3 in LSF's numbering.
pub(super) fn lsb_options3(spec: &JobSpec) -> u32 {
    let post = if spec.post_exec.is_empty() { 0 } else { sub3::POST_EXEC };
    let about = if spec.description.is_empty() { 0 } else { sub3::JOB_DESCRIPTION };
    sub3::CWD | post | about
}

/// Is a warning recorded?
pub(super) fn warned(s: &JobSpec) -> bool {
    s.further.warn_action.is_some()
}

//! The parts of a submission that bmod changes: one table of the option, what histories call it,
//! and what is copied from one submission to another. A field without a row here cannot be changed.

use super::job::{JobSpec, opt, opt2};
use serde::{Deserialize, Serialize};

/// Each row: name, option, label, fields, bits.
macro_rules! spec_fields {
    ($($variant:ident $word:literal $label:literal
        [$($($field:ident).+),*] $({$bits:ident $mask:expr})*;)*) => {
        /// A part of a submission that bmod changes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum SpecField {
            $($variant,)*
        }

        impl SpecField {
            /// Every one.
            pub const ALL: &'static [SpecField] = &[$(SpecField::$variant,)*];

            /// The option of bsub and bmod, without its dash.
            pub fn word(self) -> &'static str {
                match self {
                    $(SpecField::$variant => $word,)*
                }
            }

            /// The name in histories.
            pub fn label(self) -> &'static str {
                match self {
                    $(SpecField::$variant => $label,)*
                }
            }

            /// Takes it over from another submission.
            pub fn copy(self, to: &mut JobSpec, from: &JobSpec) {
                match self {
                    $(SpecField::$variant => {
                        $(to.$($field).+ = from.$($field).+.clone();)*
                        $(to.$bits = (to.$bits & !$mask) | (from.$bits & $mask);)*
                    })*
                }
            }
        }
    };
}

spec_fields! {
    Name "J" "Job Name" [name] {options opt::JOB_NAME};
    Description "Jd" "Job Description" [description];
    Command "Z" "Command" [command] {options2 opt2::SCRIPT};
    Script "Zs" "Command File" [command] {options2 opt2::SCRIPT};
    Env "env" "Environment" [];
    Queue "q" "Queue" [queue] {options opt::QUEUE} {options2 opt2::DEFAULT_QUEUE};
    Project "P" "Project" [project] {options opt::PROJECT_NAME};
    UserGroup "G" "User Group" [user_group] {options opt::USER_GROUP};
    ResReq "R" "Requested Resources" [res_req] {options opt::RES_REQ};
    Slots "n" "Processors Requested" [min_slots, max_slots];
    Hosts "m" "Specified Hosts" [hosts] {options opt::HOST};
    InFile "i" "Input File" [in_file, further.spooled_input] {options opt::IN_FILE};
    OutFile "o" "Output File" [out_file] {options opt::OUT_FILE} {options2 opt2::OVERWRITE_OUT};
    ErrFile "e" "Error File" [err_file] {options opt::ERR_FILE} {options2 opt2::OVERWRITE_ERR};
    Depend "w" "Dependency Condition" [depend] {options opt::DEPEND_COND};
    Begin "b" "Specified Start Time" [begin_time];
    Term "t" "Specified Termination Time" [term_time];
    RunLimit "W" "RUNLIMIT" [limits.run, limit_spec];
    CpuLimit "c" "CPULIMIT" [limits.cpu, limit_spec];
    MemLimit "M" "MEMLIMIT" [limits.rss, further.hard_memory];
    SwapLimit "v" "SWAPLIMIT" [limits.swap];
    CoreLimit "C" "CORELIMIT" [limits.core];
    DataLimit "D" "DATALIMIT" [limits.data];
    StackLimit "S" "STACKLIMIT" [limits.stack];
    FileLimit "F" "FILELIMIT" [limits.fsize];
    ProcessLimit "p" "PROCESSLIMIT" [limits.process];
    ThreadLimit "T" "THREADLIMIT" [limits.thread];
    Cwd "cwd" "CWD" [cwd] {options2 opt2::CWD};
    LoginShell "L" "Login Shell" [login_shell] {options opt::LOGIN_SHELL};
    MailUser "u" "Mail User" [mail_user] {options opt::MAIL_USER};
    MailEnd "N" "Notify when job ends" [] {options opt::NOTIFY_END};
    MailError "Ne" "Notify when job fails" [] {options2 opt2::NOTIFY_ERROR};
    MailBegin "B" "Notify when job begins" [] {options opt::NOTIFY_BEGIN};
    Exclusive "x" "Exclusive Execution" [] {options opt::EXCLUSIVE};
    Rerun "r" "Re-runnable" [] {options opt::RERUNNABLE} {options2 opt2::NEVER_RERUN};
    Priority "sp" "User Priority" [priority];
    PreExec "E" "Pre-execute Command" [pre_exec] {options opt::PRE_EXEC};
    PostExec "Ep" "Post-execute Command" [post_exec];
    Files "f" "Copy Files" [further.copies];
    Group "g" "Job Group" [further.job_group];
    App "app" "Application" [further.application];
    Sla "sla" "Service Class" [further.service_class];
    Nlb "nlb" "NLB Policy" [further.nlb_policy, further.nlb_attributes];
    License "Lp" "License Project" [further.license_project];
    Reservation "U" "Reservation" [further.reservation];
    Estimate "We" "Estimated Run Time" [further.estimate];
    Requeue "Q" "Requeue Exit Values" [further.requeue];
    Checkpoint "k" "Checkpoint Directory" [further.checkpoint];
    Orphan "ti" "Terminate Orphan" [further.terminate_orphan];
    WarnAction "wa" "Warning Action" [further.warn_action];
    WindowSignal "s" "Signal" [further.window_signal];
    WarnTime "wt" "Warning Time Period" [further.warn_time];
    OutDir "outdir" "Output Directory" [further.out_dir];
    PerHost "hl" "Limits per Host" [further.per_host];
    PendLimit "ptl" "Pending Time Limit" [further.pend_limit];
    EligibleLimit "eptl" "Eligible Pending Time Limit" [further.eligible_limit];
    Migration "mig" "Migration Threshold" [further.migration];
    HostFile "hostfile" "Host File" [further.host_file, further.host_lines];
    UserLimits "ul" "User Limits" [];
    ResizeCommand "rnc" "Resize Notification Command" [further.resize_command];
    Autoresize "ar" "Autoresizable" [further.autoresize];
    AbsolutePriority "aps" "Absolute Priority Scheduling factor string" [further.aps];
    // what no job has: reset at any time
    External "ext" "External Scheduler Options" [];
    Network "network" "Network Requirement" [];
    Frequency "freq" "CPU Frequency" [];
    Data "data" "Data Requirement" [];
    Clusters "clusters" "Clusters" [];
    Gpu "gpu" "GPU Requirement" [];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_taken_over_one_by_one() {
        let from = JobSpec {
            name: "n".into(),
            min_slots: 2,
            max_slots: 4,
            options: opt::JOB_NAME | opt::EXCLUSIVE | opt::NOTIFY_END,
            ..JobSpec::default()
        };
        let mut to = JobSpec { options: opt::NOTIFY_BEGIN, ..JobSpec::default() };
        SpecField::Name.copy(&mut to, &from);
        SpecField::Exclusive.copy(&mut to, &from);
        assert_eq!((to.name.as_str(), to.max_slots), ("n", 0));
        assert_eq!(to.options, opt::NOTIFY_BEGIN | opt::JOB_NAME | opt::EXCLUSIVE);
        SpecField::MailBegin.copy(&mut to, &from);
        SpecField::Slots.copy(&mut to, &from);
        assert_eq!((to.options, to.max_slots), (opt::JOB_NAME | opt::EXCLUSIVE, 4));
        let mut words: Vec<_> = SpecField::ALL.iter().map(|f| f.word()).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), SpecField::ALL.len());
    }
}

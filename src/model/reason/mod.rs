//! Reason numbers and their texts: pending, suspending, termination, and the error numbers and
//! texts of the batch library.

mod limit;
mod pend;

pub use limit::{LimitOf, LimitOn, LimitReason, SiteResource};
pub use pend::PendReason;

/// Suspending reason codes (ours; the texts are LSF's).
pub mod susp {
    pub const USER: u32 = 1;
    pub const ADMIN: u32 = 2;
    pub const RESUMED: u32 = 3;
    pub const WINDOW: u32 = 4;
    /// Preempted by a job of a queue of higher priority.
    pub const PREEMPTED: u32 = 5;
    /// For the jobs of an advance reservation.
    pub const RESERVED: u32 = 6;
    /// First of those by load; the index number is added.
    pub const LOAD: u32 = 20;
    /// An external index that is not known more closely, as in older records.
    pub const LOAD_EXTERNAL: u32 = 31;
    /// Queue's conditions on the load; the last of those by load.
    pub const STOP_COND: u32 = 32;
    pub const RESUME_COND: u32 = 33;
    /// First of those by external indices; the place of the index among those of lsf.shared is
    /// added.
    pub const EXTERNAL: u32 = 1024;
    /// Most external indices that are told apart.
    const EXTERNAL_MAX: u32 = 1024;

    /// The code of an external index, from its place among those of lsf.shared.
    pub fn of_external(place: usize) -> u32 {
        EXTERNAL + (place as u32).min(EXTERNAL_MAX)
    }

    /// Is it the code of an external index?
    pub fn is_external(code: u32) -> bool {
        code == LOAD_EXTERNAL || (EXTERNAL..=EXTERNAL + EXTERNAL_MAX).contains(&code)
    }

    /// The bit of the reason and the number of the load index, as LSF has them in its log and in
    /// LSB_SUSP_REASONS and LSB_SUSP_SUBREASONS.
    pub fn bits(code: u32) -> (u32, u32) {
        match code {
            RESUMED => (0x1, 0),
            USER => (0x2, 0),
            WINDOW => (0x8, 0),
            LOAD..=LOAD_EXTERNAL => (0x40, code - LOAD),
            _ if is_external(code) => (0x40, code - EXTERNAL + LOAD_EXTERNAL - LOAD),
            PREEMPTED => (0x80, 0),
            STOP_COND => (0x200, 0),
            RESUME_COND => (0x400, 0),
            ADMIN => (0x4000, 0),
            RESERVED => (0x10_0000, 0),
            _ => (0, 0),
        }
    }

    /// The reason of a log of another LSF; 0: none that is known here.
    pub fn of_bits(reason: u32, index: u32) -> u32 {
        let load = match index.checked_sub(LOAD_EXTERNAL - LOAD) {
            Some(place) => of_external(place as usize),
            None => LOAD + index,
        };
        let same = |code: &u32| bits(*code).0 == reason && reason != 0;
        match reason {
            0x40 => load,
            _ => (1..=RESUME_COND).find(same).unwrap_or(0),
        }
    }
}

/// The text of a suspending reason.
pub fn susp_text(code: u32) -> &'static str {
    match code {
        1 => "The job was suspended by user",
        2 => "The job was suspended by LSF admin or root",
        3 => "Waiting for re-scheduling after being resumed by user",
        4 => "The run windows of the queue are closed",
        5 => "The job was preempted by a higher priority job",
        6 => "An advance reservation that is active needs the slots of the job",
        20 => "Host load exceeded threshold:  15-second CPU run queue length (r15s)",
        21 => "Host load exceeded threshold:  1-minute CPU run queue length (r1m)",
        22 => "Host load exceeded threshold:  15-minute CPU run queue length (r15m)",
        23 => "Host load exceeded threshold:  1-minute CPU utilization (ut)",
        24 => "Host load exceeded threshold:  Paging rate (pg)",
        25 => "Host load exceeded threshold:  Disk IO rate (io)",
        26 => "Host load exceeded threshold:  Number of login sessions (ls)",
        27 => "Host load exceeded threshold:  Idle time (it)",
        28 => "Host load exceeded threshold:  Available /tmp space (tmp)",
        29 => "Host load exceeded threshold:  Available swap space (swp)",
        30 => "Host load exceeded threshold:  Available memory (mem)",
        code if susp::is_external(code) => "Host load exceeded threshold:  External load index",
        32 => "STOP_COND is true with current host load",
        33 => "RESUME_COND is false with current host load",
        _ => "Unknown suspending reason",
    }
}

/// Termination reasons (exitInfo numbers).
pub mod term {
    pub const UNKNOWN: u32 = 0;
    pub const PREEMPT: u32 = 1;
    pub const WINDOW: u32 = 2;
    pub const LOAD: u32 = 3;
    pub const OTHER: u32 = 4;
    pub const RUNLIMIT: u32 = 5;
    pub const DEADLINE: u32 = 6;
    pub const PROCESSLIMIT: u32 = 7;
    pub const FORCE_OWNER: u32 = 8;
    pub const FORCE_ADMIN: u32 = 9;
    pub const REQUEUE_OWNER: u32 = 10;
    pub const REQUEUE_ADMIN: u32 = 11;
    pub const CPULIMIT: u32 = 12;
    pub const CHKPNT: u32 = 13;
    pub const OWNER: u32 = 14;
    pub const ADMIN: u32 = 15;
    pub const MEMLIMIT: u32 = 16;
    pub const EXTERNAL_SIGNAL: u32 = 17;
    pub const SWAP: u32 = 20;
    pub const THREADLIMIT: u32 = 21;
    pub const BUCKET_KILL: u32 = 23;
    pub const CWD_NOTEXIST: u32 = 25;
    pub const ORPHAN_SYSTEM: u32 = 27;
    pub const REMOVE_HUNG_JOB: u32 = 26;
    pub const PRE_EXEC_FAIL: u32 = 28;
    /// Ours: the launcher that held the exit status was lost.
    pub const LOST_STATUS: u32 = 9001;
    /// Ours: the host was restarted under the job.
    pub const HOST_RESTART: u32 = 9002;
    /// Ours: no destination of its pipe queue accepted the job in time.
    pub const GIVEN_UP: u32 = 9003;
    /// Ours: its pipe queue has no destinations.
    pub const NO_DESTINATIONS: u32 = 9004;
}

/// `(NAME, text)` of a termination reason: `TERM_OWNER`, `job killed by owner`.
pub fn term_text(code: u32) -> (&'static str, &'static str) {
    match code {
        1 => ("TERM_PREEMPT", "job killed after preemption"),
        2 => ("TERM_WINDOW", "job killed after queue run window is closed"),
        3 => ("TERM_LOAD", "job killed after load exceeds threshold"),
        4 => ("TERM_OTHER", "job killed by LSF for another reason"),
        5 => ("TERM_RUNLIMIT", "job killed after reaching LSF run time limit"),
        6 => ("TERM_DEADLINE", "job killed after deadline expires"),
        7 => ("TERM_PROCESSLIMIT", "job killed after reaching LSF process limit"),
        8 => ("TERM_FORCE_OWNER", "job killed by owner without time for cleanup"),
        9 => {
            ("TERM_FORCE_ADMIN", "job killed by root or LSF administrator without time for cleanup")
        }
        10 => ("TERM_REQUEUE_OWNER", "job killed and requeued by owner"),
        11 => ("TERM_REQUEUE_ADMIN", "job killed and requeued by root or LSF administrator"),
        12 => ("TERM_CPULIMIT", "job killed after reaching LSF CPU usage limit"),
        13 => ("TERM_CHKPNT", "job killed after checkpointing"),
        14 => ("TERM_OWNER", "job killed by owner"),
        15 => ("TERM_ADMIN", "job killed by root or LSF administrator"),
        16 => ("TERM_MEMLIMIT", "job killed after reaching LSF memory usage limit"),
        17 => ("TERM_EXTERNAL_SIGNAL", "job killed by a signal external to LSF"),
        19 => ("TERM_ZOMBIE", "job exited while LSF is not available"),
        20 => ("TERM_SWAP", "job killed after reaching LSF swap usage limit"),
        21 => ("TERM_THREADLIMIT", "job killed after reaching LSF thread limit"),
        23 => ("TERM_BUCKET_KILL", "job killed with bkill -b"),
        24 => ("TERM_CTRL_PID", "job terminated after control PID died"),
        25 => (
            "TERM_CWD_NOTEXIST",
            "current working directory is not accessible or does not exist on the execution host",
        ),
        26 => ("TERM_REMOVE_HUNG_JOB", "job removed from the LSF system after hung"),
        27 => ("TERM_ORPHAN_SYSTEM", "orphan job was automatically terminated by LSF"),
        28 => ("TERM_PRE_EXEC_FAIL", "job killed after reaching pre-execution retry limit"),
        9001 => {
            ("TERM_LOST_STATUS", "exit status unknown, the launcher on the execution host was lost")
        }
        9002 => ("TERM_HOST_RESTART", "execution host was restarted while the job ran"),
        9003 => ("TERM_GIVEN_UP", "job given up: no destination of its pipe queue accepted it"),
        9004 => ("TERM_NO_DESTINATIONS", "job given up: its pipe queue has no destinations"),
        _ => ("TERM_UNKNOWN", "job exited, reason unknown"),
    }
}

/// lsberrno numbers with their texts.
pub mod err {
    pub const NO_JOB: i32 = 1;
    pub const NOT_STARTED: i32 = 2;
    pub const JOB_STARTED: i32 = 3;
    pub const JOB_FINISH: i32 = 4;
    pub const DEPEND_SYNTAX: i32 = 6;
    pub const EXCLUSIVE: i32 = 7;
    pub const ROOT: i32 = 8;
    pub const NO_JOBID: i32 = 12;
    pub const ONLY_INTERACTIVE: i32 = 13;
    pub const NO_INTERACTIVE: i32 = 14;
    pub const UNKNOWN_USER: i32 = 16;
    pub const PERMISSION: i32 = 17;
    pub const BAD_QUEUE: i32 = 18;
    pub const QUEUE_NAME: i32 = 19;
    pub const QUEUE_CLOSED: i32 = 20;
    pub const QUEUE_USE: i32 = 22;
    pub const BAD_HOST: i32 = 23;
    pub const NO_HPART: i32 = 25;
    pub const BAD_HPART: i32 = 26;
    pub const PROC_NUM: i32 = 24;
    pub const QUEUE_HOST: i32 = 29;
    pub const UJOB_LIMIT: i32 = 30;
    pub const NOLSF_HOST: i32 = 34;
    pub const BAD_ARG: i32 = 35;
    pub const BAD_TIME: i32 = 36;
    pub const START_TIME: i32 = 37;
    pub const BAD_LIMIT: i32 = 38;
    pub const OVER_LIMIT: i32 = 39;
    pub const BAD_CMD: i32 = 40;
    pub const BAD_SIGNAL: i32 = 41;
    pub const BAD_JOB: i32 = 42;
    pub const MBATCHD: i32 = 47;
    pub const TIMEOUT: i32 = 60;
    pub const CONN_REFUSED: i32 = 62;
    pub const HOST_UNREACHED: i32 = 65;
    pub const IN_PROGRESS: i32 = 66;
    pub const RUNNING: i32 = 68;
    pub const MOD_UNUSED: i32 = 69;
    pub const BAD_RESREQ: i32 = 75;
    pub const QUEUE_RESERVATION: i32 = 86;
    pub const BAD_HOST_SPEC: i32 = 87;
    pub const NO_HOST: i32 = 76;
    pub const NO_RESOURCE: i32 = 79;
    pub const BAD_RESOURCE: i32 = 80;
    pub const INTERACTIVE_RERUN: i32 = 81;
    pub const NOT_IN_USER_GROUP: i32 = 85;
    pub const BAD_USER_GROUP: i32 = 88;
    pub const ESUB_ABORT: i32 = 89;
    pub const MIGRATING: i32 = 9;
    pub const NOT_CHKPNT: i32 = 10;
    pub const BAD_ACTION: i32 = 90;
    pub const NO_JGRP: i32 = 92;
    pub const BAD_JGRP: i32 = 93;
    pub const WHOLE_ARRAY: i32 = 94;
    pub const SUSPENDED: i32 = 95;
    pub const ARRAY_INDEX: i32 = 97;
    pub const ARRAY_LARGE: i32 = 98;
    pub const ARRAY_NONE: i32 = 99;
    /// The whole array is meant.
    pub const ELEMENT: i32 = 101;
    pub const BAD_JOBID: i32 = 102;
    pub const ARRAY_NAME: i32 = 103;
    pub const BAD_PRIORITY: i32 = 118;
    pub const PRIORITY_UNDEF: i32 = 119;
    pub const REQUEUED: i32 = 120;
    pub const PROC_LESS: i32 = 125;
    pub const MOD_RUNNING: i32 = 126;
    pub const DEP_ARRAY_SIZE: i32 = 131;
    pub const PJOB_LIMIT: i32 = 132;
    pub const FEWER_RESERVABLE: i32 = 190;
    pub const BAD_RSVID: i32 = 191;
    pub const NO_RSVID: i32 = 192;
    pub const RSV_POLICY_NAME: i32 = 208;
    pub const RSV_PERMISSION: i32 = 209;
    pub const RSV_POLICY_HOST: i32 = 211;
    pub const RSV_POLICY_WINDOW: i32 = 212;
    pub const RSV_NO_HOST: i32 = 217;
    pub const SLA_NULL: i32 = 220;
    pub const SLA_MEMBER: i32 = 222;
    pub const NO_APP: i32 = 252;
    pub const PROC_APP: i32 = 253;
    pub const PROC_APP_QUEUE: i32 = 254;
    pub const APP_OVER_LIMIT: i32 = 256;
    pub const APS_QUEUE_JOB: i32 = 266;
    pub const BAD_APS_JOB: i32 = 267;
    pub const BAD_APS_VAL: i32 = 268;
    pub const MOD_MIX_APS: i32 = 271;
    pub const APS_RANGE: i32 = 272;
    pub const APS_ZERO: i32 = 273;
    pub const DJOB_NO_RES_PORT: i32 = 274;
    pub const DJOB_RES_TIMEOUT: i32 = 275;
    pub const DJOB_RES_IO: i32 = 276;
    pub const DJOB_RES_FAILED: i32 = 277;
    pub const DJOB_CANNOT_RUN: i32 = 278;
    pub const DJOB_BAD_JOBID: i32 = 279;
    pub const DJOB_BAD_HOST: i32 = 280;
    pub const DJOB_BAD_USER: i32 = 281;
    pub const DJOB_EXECUTE_TASK: i32 = 282;
    pub const DJOB_WAIT_TASK: i32 = 283;
    pub const DJOB_DISABLED: i32 = 286;
    pub const RSV_NOT_RECURRING: i32 = 312;
    pub const RSV_HOST_NOT_FREE: i32 = 314;
    pub const RSV_TIME: i32 = 315;
    pub const RSV_EMPTY: i32 = 317;
    pub const RSV_SYSTEM_UNITS: i32 = 319;
    pub const RSV_NAME_TAKEN: i32 = 321;
    pub const RSV_NAME: i32 = 322;
    pub const RSV_HAS_BEGUN: i32 = 323;
    pub const RSV_DISABLE_ACTIVE: i32 = 326;
    pub const RSV_NOT_ITS_HOST: i32 = 327;
    pub const RSV_HOST_USED: i32 = 330;
    pub const RSV_DATES: i32 = 334;
    pub const RESIZE_COMMAND_LEN: i32 = 356;
    pub const NOT_RESIZABLE: i32 = 357;
    pub const RELEASE_HOSTS: i32 = 358;
    pub const RELEASE_FIRST_HOST: i32 = 360;
    pub const RESIZING: i32 = 361;
    pub const RESIZE_SLOTS: i32 = 362;
    pub const NO_RESIZE_REQUEST: i32 = 363;
    pub const NOT_ALLOCATED: i32 = 364;
    pub const RELEASE_NOTHING: i32 = 365;
    pub const RESIZE_FORCED: i32 = 366;
    pub const RESIZE_PENDING: i32 = 374;
    pub const NO_POOL: i32 = 419;
    pub const SLA_USER: i32 = 420;
    pub const SLA_QUEUE: i32 = 421;
    pub const SLA_APP: i32 = 422;
    pub const SLA_PROJECT: i32 = 423;
    pub const SLA_GROUP: i32 = 424;
    pub const SLA_STARTED: i32 = 428;
    pub const SLA_LICENSE: i32 = 435;
    /// The numbers of these two are ours.
    pub const JGRP_EXIST: i32 = 9006;
    pub const JGRP_HASJOB: i32 = 9007;
    /// Ours: a limit that a job asks for is beyond the maximum of its application profile.
    pub const OVER_APP_LIMIT: i32 = 9008;
    /// Ours: lsb.resources has no limit of that name.
    pub const NO_LIMIT: i32 = 9009;
    /// Ours: JOB_SIZE_LIST of queue or application profile does not have the number of tasks.
    pub const JOB_SIZE: i32 = 9010;
    /// Ours: the job needs more hosts than HOSTLIMIT_PER_JOB of its queue.
    pub const HOST_LIMIT: i32 = 9011;
    /// Ours: the job has no message there.
    pub const NO_MESSAGE: i32 = 9005;
    /// Ours: the event log cannot be written.
    pub const LOG_FULL: i32 = 9001;
    /// Ours: the daemon is busy and the request went past a named limit.
    pub const BUSY: i32 = 9002;
    /// Ours: a submission names its environment by hash, and it is not kept.
    pub const ENV_GONE: i32 = 9003;
    /// Ours: an earlier submission of the same batch was refused.
    pub const CHAIN: i32 = 9004;
}

/// The text of each lsberrno, in ascending order.
const ERR_TEXTS: &[(i32, &str)] = &[
    (1, "No matching job found"),
    (2, "Job has not started yet"),
    (3, "Job has already started"),
    (4, "Job has already finished"),
    (6, "Dependency condition syntax error"),
    (7, "Queue does not accept EXCLUSIVE jobs"),
    (8, "Root job submission is disabled"),
    (9, "Job is already being migrated"),
    (10, "Job is not checkpointable"),
    (12, "No job Id can be used now"),
    (13, "Queue only accepts interactive jobs"),
    (14, "Queue does not accept interactive jobs"),
    (16, "Unknown user"),
    (17, "User permission denied"),
    (18, "No such queue"),
    (19, "Queue name must be specified"),
    (20, "Queue has been closed"),
    (22, "User cannot use the queue"),
    (23, "Bad host name, host group name or cluster name"),
    (24, "Too many processors requested"),
    (25, "No host partition defined in the system"),
    (26, "No such host partition"),
    (29, "Host or host group is not used by the queue"),
    (30, "Queue does not have enough per-user job slots"),
    (34, "Request from non-LSF host rejected"),
    (35, "Bad argument"),
    (36, "Bad time specification"),
    (37, "Start time is later than termination time"),
    (38, "Bad CPU limit specification"),
    (39, "Cannot exceed queue's hard limit(s)"),
    (40, "Empty job"),
    (41, "Signal not supported"),
    (42, "Bad job name"),
    (47, "Master batch daemon internal error"),
    (57, "Batch protocol error"),
    (60, "Contacting batch daemon: Communication timeout"),
    (62, "Connection refused by server"),
    (65, "Unable to contact execution host"),
    (66, "Operation is in progress"),
    (68, "Job parameters cannot be changed now; non-repetitive job is running"),
    (69, "Modified parameters have not been used"),
    (75, "Bad resource requirement syntax"),
    (76, "Not enough host(s) currently eligible"),
    (79, "No resource defined"),
    (80, "Bad resource name"),
    (81, "Interactive job cannot be rerunnable"),
    (85, "User not in the specified user group"),
    (86, "Cannot exceed queue's resource reservation"),
    (87, "Bad host specification"),
    (88, "Bad user group name"),
    (89, "Request aborted by esub"),
    (90, "Bad or invalid action specification"),
    (92, "Job group does not exist"),
    (93, "Bad/empty job group name"),
    (94, "Cannot operate on job array"),
    (95, "Operation not supported for a suspended job"),
    (97, "Job array index error"),
    (98, "Job array index too large"),
    (99, "Job array does not exist"),
    (101, "Cannot operate on element job"),
    (102, "Bad jobId"),
    (103, "Change job name is not allowed for job array"),
    (118, "Bad user priority"),
    (119, "Job priority control undefined"),
    (120, "Job has already been requeued"),
    (125, "Too few processors requested"),
    (
        126,
        "Only the following parameters can be used to modify a running job: -c, -M, -W, -o, \
             -e, -r",
    ),
    (131, "Dependent arrays do not have the same size"),
    (132, "Pending job threshold reached"),
    (190, "Hosts have fewer slots for the reservation than are requested"),
    (191, "User may not use the advance reservation"),
    (192, "Advance reservation does not exist"),
    (208, "No such advance reservation policy"),
    (209, "No advance reservation policy permits this to the user"),
    (211, "No advance reservation policy permits this on the hosts"),
    (212, "No advance reservation policy permits this in the time window"),
    (217, "No host can be reserved"),
    (220, "Service class does not exist"),
    (222, "User cannot use the service class"),
    (252, "Application profile does not exist"),
    (253, "Number of tasks is not within the task limits of the application profile"),
    (254, "Task limits of the application profile are not within those of the queue"),
    (256, "Application profile exceeds the queue's hard limit(s)"),
    (266, "Job in an absolute priority scheduling (APS) queue cannot be moved"),
    (267, "Job is not in an absolute priority scheduling (APS) queue"),
    (268, "Illegal APS value: system=number or admin=number is wanted"),
    (271, "Option -aps cannot be combined with other options"),
    (272, "APS value is out of range"),
    (273, "APS value cannot be zero"),
    (274, "RES port is unknown"),
    (275, "Timeout in communication with RES"),
    (276, "I/O error on the connection to RES"),
    (277, "RES failed internally"),
    (278, "Cannot be run outside an LSF job"),
    (279, "Validation failed: bad job ID"),
    (280, "Validation failed: the host is not allocated to the job"),
    (281, "Validation failed: wrong user"),
    (282, "Failed while executing tasks."),
    (283, "Failed while waiting for tasks to finish."),
    (286, "The distributed application framework is disabled"),
    (312, "Only a recurring advance reservation can be disabled"),
    (314, "Host has no free slot in the time of the reservation"),
    (315, "Reserved slots are not free in the new time of the reservation"),
    (317, "The last host of an advance reservation cannot be removed"),
    (319, "A system reservation is of whole hosts"),
    (321, "Advance reservation exists"),
    (322, "Bad name of an advance reservation"),
    (323, "The begin of an active advance reservation cannot be changed"),
    (326, "An active advance reservation cannot be disabled"),
    (327, "Host is not in the advance reservation"),
    (330, "Slots of the host are in use by jobs of the reservation"),
    (334, "Bad dates"),
    (356, "Resize notification command is too long"),
    (357, "Job is not resizable"),
    (358, "Bad host specification for bresize release"),
    (360, "Cannot release the last slot of the first execution host"),
    (361, "Job resize is in progress"),
    (362, "Too few or too many slots requested"),
    (363, "Job has no active pending resize request"),
    (364, "Host is not in the allocation of the job"),
    (365, "No slot to release"),
    (366, "Cannot resize a job that was started by brun"),
    (374, "Job has a pending resize request"),
    (419, "Guaranteed resource pool does not exist"),
    (420, "User is not allowed by the access control of the service class"),
    (421, "Queue is not allowed by the access control of the service class"),
    (422, "Application profile is not allowed by the access control of the service class"),
    (423, "Project is not allowed by the access control of the service class"),
    (424, "Fairshare group is not allowed by the access control of the service class"),
    (428, "Cannot change the service class of a started job with a guarantee"),
    (435, "License project is not allowed by the access control of the service class"),
    (9001, "The event log cannot be written; no job is accepted until it can"),
    (9002, "The batch daemon is busy; try again later"),
    (9003, "The environment must be sent again"),
    (9004, "An earlier submission of this batch was refused"),
    (9005, "No message"),
    (9006, "Job group exists"),
    (9007, "Job group has jobs"),
    (9008, "Cannot exceed the application profile's hard limit(s)"),
    (9009, "No such limit"),
    (9010, "Number of tasks is not in JOB_SIZE_LIST"),
    (9011, "Too many hosts requested"),
];

/// The text of an lsberrno.
pub fn err_text(code: i32) -> &'static str {
    match ERR_TEXTS.binary_search_by_key(&code, |row| row.0) {
        Ok(at) => ERR_TEXTS[at].1,
        Err(_) => "Batch library internal error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_number_with_a_text_is_found() {
        assert!(ERR_TEXTS.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(err_text(err::NO_JOB), "No matching job found");
        assert_eq!(err_text(err::CHAIN), "An earlier submission of this batch was refused");
        assert_eq!(err_text(5), "Batch library internal error");
    }
}

//! Reason numbers and their texts: pending, suspending, termination, and the error numbers and
//! texts of the batch library.

/// Pending reason codes.
pub mod pend {
    pub const NEW: u32 = 1;
    pub const START_TIME: u32 = 2;
    pub const DEPEND: u32 = 3;
    pub const DEPEND_NEVER: u32 = 4;
    pub const PRE_EXEC: u32 = 6;
    pub const JOB_FILE: u32 = 7;
    pub const JOB_ENV: u32 = 8;
    pub const JOB_PATHS: u32 = 9;
    pub const JOB_OPEN_FILES: u32 = 10;
    pub const EXEC_INIT: u32 = 11;
    pub const ARRAY_LIMIT: u32 = 38;
    pub const PREEXEC_LIMIT: u32 = 46;
    pub const REQUEUE_LIMIT: u32 = 47;
    pub const QUEUE_INACT: u32 = 301;
    pub const QUEUE_WINDOW: u32 = 302;
    pub const QUEUE_JOB_LIMIT: u32 = 303;
    pub const QUEUE_USER_JOB_LIMIT: u32 = 304;
    pub const QUEUE_PRE_EXEC: u32 = 306;
    pub const REQUEUED: u32 = 311;
    pub const SPAN: u32 = 312;
    pub const QUEUE_PJOB: u32 = 314;
    pub const USER_JOB_LIMIT: u32 = 601;
    pub const RESUMED: u32 = 605;
    pub const USER_STOP: u32 = 607;
    pub const ADMIN_STOP: u32 = 610;
    pub const RES_REQ: u32 = 1001;
    pub const EXCLUSIVE: u32 = 1002;
    pub const ZOMBIE: u32 = 1007;
    pub const HOST_CLOSED: u32 = 1301;
    pub const HOST_LOCKED: u32 = 1302;
    pub const FIRST_HOST: u32 = 1011;
    pub const NOT_ENOUGH_SLOTS: u32 = 1303;
    pub const HOST_WINDOW: u32 = 1304;
    pub const HOST_FULL: u32 = 1305;
    pub const QUEUE_PER_CPU: u32 = 1306;
    pub const QUEUE_PER_HOST: u32 = 1307;
    pub const USER_PER_CPU: u32 = 1308;
    pub const HOST_USER: u32 = 1309;
    pub const NOT_QUEUE_HOST: u32 = 1310;
    pub const NOT_ASKED_HOST: u32 = 1311;
    pub const NO_USER: u32 = 1313;
    pub const JUST_STARTED: u32 = 1314;
    pub const LOAD_UNAVAIL: u32 = 1315;
    pub const LIM_UNREACH: u32 = 1316;
    pub const QUEUE_RES_REQ: u32 = 1318;
    pub const EXCLUSIVE_JOB: u32 = 1322;
    pub const HOST_LOCKED_MASTER: u32 = 1327;
    pub const SBD_UNREACH: u32 = 1601;
    pub const SBD_REFUSED: u32 = 1608;
    /// First of the load threshold codes; the index number is added.
    pub const LOAD: u32 = 2001;
    /// The load threshold code of external indices.
    pub const LOAD_EXTERNAL: u32 = 2012;
    /// First of the reservation codes; the index number is added.
    pub const RESERVE: u32 = 2601;
    /// The reservation code of external indices and other resources.
    pub const RESERVE_EXTERNAL: u32 = 2612;
    /// Ours: held because the log lost part of the job's history.
    pub const DAMAGED: u32 = 9001;
    /// Ours: the log cannot be written, nothing is dispatched.
    pub const LOG_FULL: u32 = 9002;
    /// Ours: it could not be started too often in a row.
    pub const START_LIMIT: u32 = 9004;
    /// Ours: it has left the host with an exit value of EXCLUDE().
    pub const EXCLUDED: u32 = 9005;
    /// Ours: RUNWINDOW of lsf.cluster has closed the host.
    pub const HOST_LOCKED_WINDOW: u32 = 9010;
}

/// The text of a pending reason.
pub fn pend_text(code: u32) -> &'static str {
    match code {
        1 => "New job is waiting for scheduling",
        2 => "The job has a specified start time",
        3 => "Job dependency condition not satisfied",
        4 => "Dependency condition invalid or never satisfied",
        6 => "The job's pre-exec command exited with non-zero status",
        7 => "Unable to access job file",
        8 => "Unable to set job's environment variables",
        9 => "Unable to determine job's home/working directories",
        10 => "Unable to open job's I/O buffers",
        11 => "Job execution initialization failed",
        46 => "The job has reached its pre-execution retry limit",
        47 => "The job has reached its requeue limit",
        38 => "The job array has reached its running element limit",
        301 => "The queue is inactivated by the administrator",
        302 => "The queue is inactivated by its time windows",
        303 => "The queue has reached its job slot limit",
        304 => "User has reached the per-user job slot limit of the queue",
        305 => "Not enough per-user job slots of the queue for the parallel job",
        306 => "The queue's pre-exec command exited with non-zero status",
        311 => "Requeued job is waiting for rescheduling",
        312 => "Not enough hosts to meet the job's spanning requirement",
        313 => "Not enough hosts to meet the queue's spanning requirement",
        314 => "The queue has not enough job slots for the parallel job",
        601 => "The user has reached his/her job slot limit",
        605 => "Waiting for scheduling after resumed by administrator or user",
        607 => "Job was suspended by the user while pending",
        610 => "The job was suspended by LSF admin or root while pending",
        1001 => "Job's resource requirements not satisfied",
        1002 => "Job's requirement for exclusive execution not satisfied",
        1007 => "Cleaning up zombie job",
        // spelt as LSF spells it
        1011 => "The specified first exection host is not eligible for this job at this time",
        1301 => "Closed by LSF administrator",
        1302 => "Host is locked by LSF administrator",
        1303 => "Not enough job slot(s)",
        1304 => "Dispatch windows closed",
        1305 => "Job slot limit reached",
        1306 => "Queue's per-CPU job slot limit reached",
        1307 => "Queue's per-host job slot limit reached",
        1308 => "User's per-CPU job slot limit reached",
        1309 => "Host's per-user job slot limit reached",
        1310 => "Not usable to the queue",
        1311 => "Not specified in job submission",
        1313 => "There is no such user account",
        1314 => "Just started a job recently",
        1315 => "Load information unavailable",
        1316 => "LIM is unreachable now",
        1318 => "Queue's resource requirements not satisfied",
        1322 => "Running an exclusive job",
        1327 => "Host is locked by master LIM",
        1601 => "Unable to reach slave batch server",
        1608 => "Slave batch server failed to accept job",
        2012 => "An external load index is beyond threshold",
        2001 => "The 15s effective CPU queue length (r15s) is beyond threshold",
        2002 => "The 1 min effective CPU queue length (r1m) is beyond threshold",
        2003 => "The 15 min effective CPU queue length (r15m) is beyond threshold",
        2004 => "The CPU utilization (ut) is beyond threshold",
        2005 => "The paging rate (pg) is beyond threshold",
        2006 => "The disk IO rate (io) is beyond threshold",
        2007 => "There are too many login users (ls)",
        2008 => "The idle time (it) is not long enough",
        2009 => "The available /tmp space (tmp) is low",
        2010 => "The available swap space (swp) is low",
        2011 => "The available memory (mem) is low",
        2601 => "Job requirements for reserving resource (r15s) not satisfied",
        2602 => "Job requirements for reserving resource (r1m) not satisfied",
        2603 => "Job requirements for reserving resource (r15m) not satisfied",
        2604 => "Job requirements for reserving resource (ut) not satisfied",
        2605 => "Job requirements for reserving resource (pg) not satisfied",
        2606 => "Job requirements for reserving resource (io) not satisfied",
        2607 => "Job requirements for reserving resource (ls) not satisfied",
        2608 => "Job requirements for reserving resource (it) not satisfied",
        2609 => "Job requirements for reserving resource (tmp) not satisfied",
        2610 => "Job requirements for reserving resource (swp) not satisfied",
        2611 => "Job requirements for reserving resource (mem) not satisfied",
        2612 => "Job's requirements for resource reservation not satisfied",
        9001 => "The event log lost part of this job's history; held for the administrator",
        9002 => "The event log cannot be written; nothing is dispatched",
        9004 => "The job has reached its start retry limit",
        9005 => "The job exited there with an exclusive requeue value (EXCLUDE)",
        9010 => "Host is locked by its run windows",
        _ => "Unknown pending reason",
    }
}

/// Suspending reason codes (ours; the texts are LSF's).
pub mod susp {
    pub const USER: u32 = 1;
    pub const ADMIN: u32 = 2;
    pub const RESUMED: u32 = 3;
    pub const WINDOW: u32 = 4;
    /// First of those by load; the index number is added.
    pub const LOAD: u32 = 20;
    /// The code of external indices.
    pub const LOAD_EXTERNAL: u32 = 31;
    /// Queue's conditions on the load; the last of those by load.
    pub const STOP_COND: u32 = 32;
    pub const RESUME_COND: u32 = 33;
}

/// The text of a suspending reason.
pub fn susp_text(code: u32) -> &'static str {
    match code {
        1 => "The job was suspended by user",
        2 => "The job was suspended by LSF admin or root",
        3 => "Waiting for re-scheduling after being resumed by user",
        4 => "The run windows of the queue are closed",
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
        31 => "Host load exceeded threshold:  External load index",
        32 => "STOP_COND is true with current host load",
        33 => "RESUME_COND is false with current host load",
        _ => "Unknown suspending reason",
    }
}

/// Termination reasons (exitInfo numbers).
pub mod term {
    pub const UNKNOWN: u32 = 0;
    pub const WINDOW: u32 = 2;
    pub const LOAD: u32 = 3;
    pub const RUNLIMIT: u32 = 5;
    pub const DEADLINE: u32 = 6;
    pub const PROCESSLIMIT: u32 = 7;
    pub const FORCE_OWNER: u32 = 8;
    pub const FORCE_ADMIN: u32 = 9;
    pub const REQUEUE_OWNER: u32 = 10;
    pub const REQUEUE_ADMIN: u32 = 11;
    pub const CPULIMIT: u32 = 12;
    pub const OWNER: u32 = 14;
    pub const ADMIN: u32 = 15;
    pub const MEMLIMIT: u32 = 16;
    pub const EXTERNAL_SIGNAL: u32 = 17;
    pub const SWAP: u32 = 20;
    pub const THREADLIMIT: u32 = 21;
    pub const BUCKET_KILL: u32 = 23;
    pub const CWD_NOTEXIST: u32 = 25;
    pub const ORPHAN_SYSTEM: u32 = 27;
    pub const PRE_EXEC_FAIL: u32 = 28;
    /// Ours: the launcher that held the exit status was lost.
    pub const LOST_STATUS: u32 = 9001;
    /// Ours: the host was restarted under the job.
    pub const HOST_RESTART: u32 = 9002;
}

/// `(NAME, text)` of a termination reason: `TERM_OWNER`, `job killed by owner`.
pub fn term_text(code: u32) -> (&'static str, &'static str) {
    match code {
        1 => ("TERM_PREEMPT", "job killed after preemption"),
        2 => ("TERM_WINDOW", "job killed after queue run window is closed"),
        3 => ("TERM_LOAD", "job killed after load exceeds threshold"),
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
    pub const IN_PROGRESS: i32 = 66;
    pub const RUNNING: i32 = 68;
    pub const MOD_UNUSED: i32 = 69;
    pub const BAD_RESREQ: i32 = 75;
    pub const BAD_HOST_SPEC: i32 = 87;
    pub const NO_HOST: i32 = 76;
    pub const NO_RESOURCE: i32 = 79;
    pub const BAD_RESOURCE: i32 = 80;
    pub const BAD_USER_GROUP: i32 = 88;
    pub const ESUB_ABORT: i32 = 89;
    pub const NOT_CHKPNT: i32 = 10;
    pub const BAD_ACTION: i32 = 90;
    pub const BAD_JGRP: i32 = 93;
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
    /// Ours: the event log cannot be written.
    pub const LOG_FULL: i32 = 9001;
    /// Ours: the daemon is busy and the request went past a named limit.
    pub const BUSY: i32 = 9002;
    /// Ours: a submission names its environment by hash, and it is not kept.
    pub const ENV_GONE: i32 = 9003;
    /// Ours: an earlier submission of the same batch was refused.
    pub const CHAIN: i32 = 9004;
}

/// The text of an lsberrno.
pub fn err_text(code: i32) -> &'static str {
    match code {
        1 => "No matching job found",
        2 => "Job has not started yet",
        3 => "Job has already started",
        4 => "Job has already finished",
        6 => "Dependency condition syntax error",
        7 => "Queue does not accept EXCLUSIVE jobs",
        8 => "Root job submission is disabled",
        10 => "Job is not checkpointable",
        12 => "No job Id can be used now",
        13 => "Queue only accepts interactive jobs",
        14 => "Queue does not accept interactive jobs",
        16 => "Unknown user",
        17 => "User permission denied",
        18 => "No such queue",
        19 => "Queue name must be specified",
        20 => "Queue has been closed",
        22 => "User cannot use the queue",
        23 => "Bad host name, host group name or cluster name",
        24 => "Too many processors requested",
        29 => "Host or host group is not used by the queue",
        30 => "Queue does not have enough per-user job slots",
        34 => "Request from non-LSF host rejected",
        35 => "Bad argument",
        36 => "Bad time specification",
        37 => "Start time is later than termination time",
        38 => "Bad CPU limit specification",
        39 => "Cannot exceed queue's hard limit(s)",
        40 => "Empty job",
        41 => "Signal not supported",
        42 => "Bad job name",
        47 => "Master batch daemon internal error",
        57 => "Batch protocol error",
        60 => "Contacting batch daemon: Communication timeout",
        62 => "Connection refused by server",
        66 => "Operation is in progress",
        68 => "Job parameters cannot be changed now; non-repetitive job is running",
        69 => "Modified parameters have not been used",
        75 => "Bad resource requirement syntax",
        76 => "Not enough host(s) currently eligible",
        79 => "No resource defined",
        80 => "Bad resource name",
        87 => "Bad host specification",
        88 => "Bad user group name",
        89 => "Request aborted by esub",
        90 => "Bad or invalid action specification",
        93 => "Bad/empty job group name",
        97 => "Job array index error",
        98 => "Job array index too large",
        99 => "Job array does not exist",
        101 => "Cannot operate on element job",
        102 => "Bad jobId",
        103 => "Change job name is not allowed for job array",
        118 => "Bad user priority",
        119 => "Job priority control undefined",
        120 => "Job has already been requeued",
        125 => "Too few processors requested",
        126 => {
            "Only the following parameters can be used to modify a running job: -c, -M, -W, -o, \
             -e, -r"
        }
        131 => "Dependent arrays do not have the same size",
        132 => "Pending job threshold reached",
        9001 => "The event log cannot be written; no job is accepted until it can",
        9002 => "The batch daemon is busy; try again later",
        9003 => "The environment must be sent again",
        9004 => "An earlier submission of this batch was refused",
        _ => "Batch library internal error",
    }
}

//! The reasons for which a job is pending: LSF's numbers and texts.
//!
//! A number is a fact of LSF: logs and the wire carry it. Everything else has the enum.

use super::limit::{LimitReason, SiteResource};
use std::cmp::Ordering;

/// Built-in load indices: r15s, r1m, r15m, ut, pg, io, ls, it, tmp, swp, mem.
const INDICES: u32 = 11;
/// The number of the first reason by load; the position of the index is added.
const LOAD: u32 = 2001;
const LOAD_EXTERNAL: u32 = LOAD + INDICES;
/// The number of the first reason by reservation, likewise.
const RESERVE: u32 = 2601;
const RESERVE_EXTERNAL: u32 = RESERVE + INDICES;

macro_rules! pending_reasons {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// Why a job is pending.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum PendReason {
            $($(#[$doc])* $name,)*
            /// The built-in load index of this position is beyond a threshold.
            Load(u8),
            /// An external load index is beyond a threshold; where known, which.
            LoadExternal(Option<SiteResource>),
            /// Too little is left to reserve of the built-in load index of this position.
            Reserve(u8),
            /// Too little is left to reserve of another resource; where known, which.
            ReserveExternal(Option<SiteResource>),
            /// A limit of lsb.resources leaves too little.
            Limit(LimitReason),
            /// A number of another LSF's log.
            Other(u32),
        }

        impl PendReason {
            /// The reason of a number; [`PendReason::Other`] where no reason has it.
            pub fn of_number(number: u32) -> PendReason {
                match number {
                    $($number => PendReason::$name,)*
                    LOAD..LOAD_EXTERNAL => PendReason::Load((number - LOAD) as u8),
                    LOAD_EXTERNAL => PendReason::LoadExternal(None),
                    RESERVE..RESERVE_EXTERNAL => PendReason::Reserve((number - RESERVE) as u8),
                    RESERVE_EXTERNAL => PendReason::ReserveExternal(None),
                    _ => match LimitReason::of_number(number) {
                        Some(limit) => PendReason::Limit(limit),
                        None => PendReason::Other(number),
                    },
                }
            }

            pub fn number(self) -> u32 {
                match self {
                    $(PendReason::$name => $number,)*
                    PendReason::Load(index) => LOAD + u32::from(index),
                    PendReason::LoadExternal(_) => LOAD_EXTERNAL,
                    PendReason::Reserve(index) => RESERVE + u32::from(index),
                    PendReason::ReserveExternal(_) => RESERVE_EXTERNAL,
                    PendReason::Limit(limit) => limit.number(),
                    PendReason::Other(number) => number,
                }
            }

            /// LSF's text, without the name of a resource of the site.
            pub fn text(self) -> &'static str {
                match self {
                    $(PendReason::$name => $text,)*
                    PendReason::Load(index) => at(&LOAD_TEXTS, index),
                    PendReason::LoadExternal(_) => "An external load index is beyond threshold",
                    PendReason::Reserve(index) => at(&RESERVE_TEXTS, index),
                    PendReason::ReserveExternal(_) => {
                        "Job's requirements for resource reservation not satisfied"
                    }
                    PendReason::Limit(limit) => limit.text(),
                    PendReason::Other(_) => UNKNOWN,
                }
            }

            /// Every reason that has no data.
            #[cfg(test)]
            const PLAIN: &[PendReason] = &[$(PendReason::$name,)*];
        }
    };
}

pending_reasons! {
    New = 1, "New job is waiting for scheduling";
    StartTime = 2, "The job has a specified start time";
    Dependency = 3, "Job dependency condition not satisfied";
    DependencyNever = 4, "Dependency condition invalid or never satisfied";
    Migrating = 5, "Migrating job is waiting for rescheduling";
    PreExec = 6, "The job's pre-exec command exited with non-zero status";
    JobFile = 7, "Unable to access job file";
    JobEnv = 8, "Unable to set job's environment variables";
    JobPaths = 9, "Unable to determine job's home/working directories";
    JobOpenFiles = 10, "Unable to open job's I/O buffers";
    ExecInit = 11, "Job execution initialization failed";
    Delayed = 13, "Scheduling of the job is delayed";
    ArrayLimit = 38, "The job array has reached its running element limit";
    GroupLimit = 45, "The specified job group has reached its job limit";
    PreExecLimit = 46, "The job has reached its pre-execution retry limit";
    RequeueLimit = 47, "The job has reached its requeue limit";
    ReservationInactive = 49, "The specified advance reservation is not active";
    QueueInactive = 301, "The queue is inactivated by the administrator";
    QueueWindow = 302, "The queue is inactivated by its time windows";
    QueueJobLimit = 303, "The queue has reached its job slot limit";
    QueueUserJobLimit = 304, "User has reached the per-user job slot limit of the queue";
    QueueUserParallelJob = 305, "Not enough per-user job slots of the queue for the parallel job";
    QueuePreExec = 306, "The queue's pre-exec command exited with non-zero status";
    Requeued = 311, "Requeued job is waiting for rescheduling";
    Span = 312, "Not enough hosts to meet the job's spanning requirement";
    QueueSpan = 313, "Not enough hosts to meet the queue's spanning requirement";
    QueueParallelJob = 314, "The queue has not enough job slots for the parallel job";
    /// The number is LSF's, the text ours.
    SlotShare = 319, "The queue has used its share of the slot pool";
    UserJobLimit = 601, "The user has reached his/her job slot limit";
    GroupJobLimit = 602, "One of the user's groups has reached its job slot limit";
    UserParallelJob = 603, "The user has not enough job slots for the parallel job";
    GroupParallelJob = 604, "One of user's groups has not enough job slots for the parallel job";
    Resumed = 605, "Waiting for scheduling after resumed by administrator or user";
    UserStop = 607, "Job was suspended by the user while pending";
    NoAccount = 609, "The user has no permission to run the job on remote host/cluster";
    AdminStop = 610, "The job was suspended by LSF admin or root while pending";
    Requirement = 1001, "Job's resource requirements not satisfied";
    Exclusive = 1002, "Job's requirement for exclusive execution not satisfied";
    Zombie = 1007, "Cleaning up zombie job";
    WindowCloses = 1009, "Job will not finish on the host before queue's run window is closed";
    PastDeadline = 1010, "Job will not finish on the host before job's termination deadline";
    /// The text is spelt as LSF spells it.
    FirstHost = 1011, "The specified first exection host is not eligible for this job at this time";
    HostClosed = 1301, "Closed by LSF administrator";
    HostLocked = 1302, "Host is locked by LSF administrator";
    NotEnoughSlots = 1303, "Not enough job slot(s)";
    HostWindow = 1304, "Dispatch windows closed";
    HostFull = 1305, "Job slot limit reached";
    QueueCpuLimit = 1306, "Queue's per-CPU job slot limit reached";
    QueueHostLimit = 1307, "Queue's per-host job slot limit reached";
    UserCpuLimit = 1308, "User's per-CPU job slot limit reached";
    HostUserLimit = 1309, "Host's per-user job slot limit reached";
    NotQueueHost = 1310, "Not usable to the queue";
    NotAskedHost = 1311, "Not specified in job submission";
    NoShare = 1312, "The user has no share in the fairshare policy";
    NoUser = 1313, "There is no such user account";
    JustStarted = 1314, "Just started a job recently";
    LoadUnavailable = 1315, "Load information unavailable";
    LimUnreachable = 1316, "LIM is unreachable now";
    QueueRequirement = 1318, "Queue's resource requirements not satisfied";
    ExclusiveJob = 1322, "Running an exclusive job";
    GroupCpuLimit = 1324, "User group's per-CPU job slot limit reached";
    HostLockedMaster = 1327, "Host is locked by master LIM";
    NotEnoughReserved = 1328, "Not enough slots of the specified advance reservation";
    WholeDuration = 1329, "Not enough slots or resources for whole duration of the job";
    NoReservation = 1330, "The specified advance reservation has expired or has been deleted";
    ReservedSlots = 1332, "Slots of the host are kept by an active advance reservation";
    NotReservedHost = 1335, "Not a host of the specified advance reservation";
    NotInUnit = 1336, "Host does not belong to a compute unit of the required type";
    UnitExclusive = 1337, "A compute unit containing the host is used exclusively";
    UnitOccupied = 1338, "CU-level exclusive job cannot start since CU is occupied";
    UnitTooSmall = 1339, "Insufficiently many usable slots on the host's compute unit";
    UnitMaximum = 1342, "Maxcus cannot be satisfied";
    UnitBalance = 1343, "Balance cannot be satisfied";
    SbatchdUnreachable = 1601, "Unable to reach slave batch server";
    SbatchdRefused = 1608, "Slave batch server failed to accept job";
    /// The number is LSF's, the text ours.
    SlotPool = 5950, "MAX_SLOTS_IN_POOL of the queue's slot pool is reached";
    /// Ours: held because the log lost part of the job's history.
    Damaged = 9001, "The event log lost part of this job's history; held for the administrator";
    /// Ours: the log cannot be written, nothing is dispatched.
    LogFull = 9002, "The event log cannot be written; nothing is dispatched";
    /// Ours: not among the hosts that the policy of the load balancer chooses.
    NlbExcluded = 9003, "Host is excluded by the NLB policy";
    /// Ours: no list of hosts has come from a server of the load balancer.
    NlbUnanswered = 9007, "No NLB server answers";
    /// Ours: a pipe queue has not routed it yet.
    PipeQueue = 9006, "The job waits in a pipe queue to be routed";
    /// Ours: too many of its starts failed in a row.
    StartLimit = 9004, "The job has reached its start retry limit";
    /// Ours: it exited on the host with a value of EXCLUDE().
    Excluded = 9005, "The job or its pre-exec command exited with a value that excludes the host";
    /// Ours: RUNWINDOW of lsf.cluster has closed the host.
    HostLockedWindow = 9010, "Host is locked by its run windows";
    /// Ours: what is left of a guaranteed pool is kept for its service classes.
    Guaranteed = 9022, "Resources of the host are kept for service classes by a guarantee";
    /// Ours: without same[] there would be hosts for the job.
    Same = 9021, "Not enough hosts that are alike as the job's same[] requirement asks";
    /// Ours: no more of its service class are started by VELOCITY, THROUGHPUT or DEADLINE.
    GoalReached = 9041, "As many jobs of the service class run as its goals want";
    /// The text is LSF's, the number ours.
    Fanout = 9043, "Failed to send fan-out information to other SBDs";
    /// Ours: the list was changed after the submission.
    JobSize = 9044, "The number of tasks is not in JOB_SIZE_LIST of queue or application profile";
    /// Ours: without HOSTLIMIT_PER_JOB there would be hosts for the job.
    HostLimit = 9045, "Not enough slots on as many hosts as the queue allows one job";
    /// The text is LSF's, the number ours: in place of reasons of hosts (CONDENSE_PENDING_REASONS).
    HostBased = 9046, "Individual host based reasons";
    /// Ours: bjobs shows the state WAIT and no reason.
    Chunk = 9042, "Waits for its turn in a chunk job";
    /// The number is ours.
    ProcessorUnits = 9031, "Affinity resource requirement cannot be met \
        because there are not enough processor units to satisfy the job affinity request";
    /// Ours: AFFINITY of lsb.hosts is not Y, or LIM does not know the units.
    NoAffinity = 9032, "The host offers no processor units to jobs with an affinity requirement";
}

const UNKNOWN: &str = "Unknown pending reason";

const LOAD_TEXTS: [&str; INDICES as usize] = [
    "The 15s effective CPU queue length (r15s) is beyond threshold",
    "The 1 min effective CPU queue length (r1m) is beyond threshold",
    "The 15 min effective CPU queue length (r15m) is beyond threshold",
    "The CPU utilization (ut) is beyond threshold",
    "The paging rate (pg) is beyond threshold",
    "The disk IO rate (io) is beyond threshold",
    "There are too many login users (ls)",
    "The idle time (it) is not long enough",
    "The available /tmp space (tmp) is low",
    "The available swap space (swp) is low",
    "The available memory (mem) is low",
];

const RESERVE_TEXTS: [&str; INDICES as usize] = [
    "Job requirements for reserving resource (r15s) not satisfied",
    "Job requirements for reserving resource (r1m) not satisfied",
    "Job requirements for reserving resource (r15m) not satisfied",
    "Job requirements for reserving resource (ut) not satisfied",
    "Job requirements for reserving resource (pg) not satisfied",
    "Job requirements for reserving resource (io) not satisfied",
    "Job requirements for reserving resource (ls) not satisfied",
    "Job requirements for reserving resource (it) not satisfied",
    "Job requirements for reserving resource (tmp) not satisfied",
    "Job requirements for reserving resource (swp) not satisfied",
    "Job requirements for reserving resource (mem) not satisfied",
];

fn at(texts: &[&'static str], index: u8) -> &'static str {
    texts.get(usize::from(index)).copied().unwrap_or(UNKNOWN)
}

impl PendReason {
    /// Does pending time with this reason count as ineligible? LSF counts so a start time ahead, a
    /// delay, a dependency and a queue that is closed; we count the hold after damage to the log,
    /// too.
    pub fn makes_ineligible(self) -> bool {
        matches!(
            self,
            PendReason::StartTime
                | PendReason::Dependency
                | PendReason::DependencyNever
                | PendReason::Delayed
                | PendReason::QueueInactive
                | PendReason::QueueWindow
                | PendReason::Damaged
        )
    }

    /// The reason in the words for a job of which some slots could start, and not all.
    pub fn for_parallel_job(self) -> PendReason {
        match self {
            PendReason::QueueJobLimit => PendReason::QueueParallelJob,
            PendReason::QueueUserJobLimit => PendReason::QueueUserParallelJob,
            PendReason::UserJobLimit => PendReason::UserParallelJob,
            PendReason::GroupJobLimit => PendReason::GroupParallelJob,
            other => other,
        }
    }

    /// The resource of the site that the reason is about.
    pub fn resource(self) -> Option<SiteResource> {
        match self {
            PendReason::LoadExternal(resource) | PendReason::ReserveExternal(resource) => resource,
            PendReason::Limit(limit) => limit.resource(),
            _ => None,
        }
    }
}

/// The order of a listing: by number; reasons about resources of the site come last.
impl Ord for PendReason {
    fn cmp(&self, other: &PendReason) -> Ordering {
        let key = |reason: &PendReason| {
            let limit = match reason {
                PendReason::Limit(limit) => limit.limit,
                _ => None,
            };
            (reason.resource(), reason.number(), limit)
        };
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for PendReason {
    fn partial_cmp(&self, other: &PendReason) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_is_found_again_by_its_number() {
        let data = (0..INDICES as u8).flat_map(|k| [PendReason::Load(k), PendReason::Reserve(k)]);
        let more = [PendReason::LoadExternal(None), PendReason::ReserveExternal(None)];
        let limits = LimitReason::all().map(PendReason::Limit);
        let all = PendReason::PLAIN.iter().copied().chain(data).chain(more).chain(limits);
        let mut numbers: Vec<u32> = Vec::new();
        for reason in all.chain([PendReason::Other(9_999)]) {
            assert_eq!(PendReason::of_number(reason.number()), reason);
            numbers.push(reason.number());
        }
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), count, "a number stands for two reasons");
    }

    #[test]
    fn reasons_about_resources_of_the_site_come_last() {
        let resource = |n| Some(SiteResource(n));
        let sorted = [
            PendReason::New,
            PendReason::HostFull,
            PendReason::Load(10),
            PendReason::ReserveExternal(None),
            PendReason::LoadExternal(resource(0)),
            PendReason::ReserveExternal(resource(0)),
            PendReason::LoadExternal(resource(1)),
        ];
        assert!(sorted.is_sorted(), "{sorted:?}");
    }

    /// Numbers that clients, logs and the C interface of LSF have in common.
    #[test]
    fn numbers_and_texts_are_those_of_lsf() {
        let known = [
            (PendReason::New, 1, "New job is waiting for scheduling"),
            (PendReason::ArrayLimit, 38, "The job array has reached its running element limit"),
            (PendReason::QueueInactive, 301, "The queue is inactivated by the administrator"),
            (PendReason::UserJobLimit, 601, "The user has reached his/her job slot limit"),
            (PendReason::HostFull, 1305, "Job slot limit reached"),
            (PendReason::Load(3), 2004, "The CPU utilization (ut) is beyond threshold"),
            (PendReason::Load(10), 2011, "The available memory (mem) is low"),
            (PendReason::LoadExternal(None), 2012, "An external load index is beyond threshold"),
            (
                PendReason::Reserve(10),
                2611,
                "Job requirements for reserving resource (mem) not satisfied",
            ),
            (PendReason::Other(5), 5, "Unknown pending reason"),
        ];
        for (reason, number, text) in known {
            assert_eq!((reason.number(), reason.text()), (number, text));
        }
    }
}

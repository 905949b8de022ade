//! Thresholds of exceptional hosts and jobs (lsb.params(5)).

/// The largest EXIT_RATE: any number of exits is no exception.
pub const UNLIMITED_EXIT_RATE: u32 = 0x7fff_ffff;

/// The exits of jobs that count for the exit rate of a host (EXIT_RATE_TYPE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitRateTypes {
    /// JOBEXIT, JOBEXIT_NONLSF: exits of started jobs.
    pub exits: bool,
    /// JOBEXIT: also exits that a user or a policy caused.
    pub caused_by_lsf: bool,
    /// JOBINIT: jobs that could not be started on their first host.
    pub starts: bool,
    /// HPCINIT: jobs of several hosts that could not be started on one of them.
    pub starts_of_several: bool,
}

/// JOBEXIT_NONLSF.
impl Default for ExitRateTypes {
    fn default() -> Self {
        ExitRateTypes { exits: true, ..ExitRateTypes::NONE }
    }
}

impl ExitRateTypes {
    pub const NONE: ExitRateTypes = ExitRateTypes {
        exits: false,
        caused_by_lsf: false,
        starts: false,
        starts_of_several: false,
    };
}

/// When hosts and jobs are exceptional, and how often eadmin is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceptionParams {
    /// EADMIN_TRIGGER_DURATION, seconds between two looks for exceptions.
    pub trigger_secs: u64,
    /// GLOBAL_EXIT_RATE: exits on a host that are no exception yet; `None`: any number.
    pub exit_rate: Option<u32>,
    /// ENABLE_EXIT_RATE_PER_SLOT: the exits that are no exception are so many for each slot.
    pub exit_rate_per_slot: bool,
    /// JOB_EXIT_RATE_DURATION, seconds during which exits are counted.
    pub exit_rate_secs: u64,
    /// EXIT_RATE_TYPE.
    pub exit_types: ExitRateTypes,
    /// DETECT_IDLE_JOB_AFTER, seconds that a job has run before it may be idle.
    pub idle_after_secs: u64,
}

impl Default for ExceptionParams {
    fn default() -> Self {
        ExceptionParams {
            trigger_secs: 60,
            exit_rate: None,
            exit_rate_per_slot: false,
            exit_rate_secs: 300,
            exit_types: ExitRateTypes::default(),
            idle_after_secs: 20 * 60,
        }
    }
}

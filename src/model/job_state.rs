//! The states of a job, with their names and numbers in LSF (JOB_STAT_* of lsbatch.h).

/// The state of a job or element, as listings name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    Pend,
    Psusp,
    Run,
    Ssusp,
    Ususp,
    Exit,
    Done,
    /// An element of a chunk that waits for its turn.
    Wait,
    /// The host cannot be reached.
    Unkwn,
    /// The job is to be killed, on a host that cannot be reached.
    Zombi,
}

/// Beside DONE or EXIT: the commands after the job have succeeded.
const PDONE: u32 = 0x80;
/// Beside DONE or EXIT: the commands after the job have failed.
const PERR: u32 = 0x100;

impl JobState {
    pub const ALL: [JobState; 10] = [
        JobState::Pend,
        JobState::Psusp,
        JobState::Run,
        JobState::Ssusp,
        JobState::Ususp,
        JobState::Exit,
        JobState::Done,
        JobState::Wait,
        JobState::Unkwn,
        JobState::Zombi,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            JobState::Pend => "PEND",
            JobState::Psusp => "PSUSP",
            JobState::Run => "RUN",
            JobState::Ssusp => "SSUSP",
            JobState::Ususp => "USUSP",
            JobState::Exit => "EXIT",
            JobState::Done => "DONE",
            JobState::Wait => "WAIT",
            JobState::Unkwn => "UNKWN",
            JobState::Zombi => "ZOMBI",
        }
    }

    pub fn of_name(name: &str) -> Option<JobState> {
        JobState::ALL.into_iter().find(|state| state.name() == name)
    }

    /// The number; of ZOMBI that of UNKWN and EXIT.
    pub const fn bits(self) -> u32 {
        match self {
            JobState::Pend => 0x01,
            JobState::Psusp => 0x02,
            JobState::Run => 0x04,
            JobState::Ssusp => 0x08,
            JobState::Ususp => 0x10,
            JobState::Exit => 0x20,
            JobState::Done => 0x40,
            JobState::Wait => 0x200,
            JobState::Unkwn => 0x10000,
            JobState::Zombi => 0x10020,
        }
    }

    /// DONE or EXIT.
    pub fn of_end(done: bool) -> JobState {
        if done { JobState::Done } else { JobState::Exit }
    }

    /// PEND or PSUSP.
    pub fn is_pending(self) -> bool {
        matches!(self, JobState::Pend | JobState::Psusp)
    }

    /// SSUSP or USUSP.
    pub fn is_suspended(self) -> bool {
        matches!(self, JobState::Ssusp | JobState::Ususp)
    }

    /// DONE or EXIT.
    pub fn is_finished(self) -> bool {
        matches!(self, JobState::Done | JobState::Exit)
    }
}

/// The status of a JOB_STATUS or JOB_FINISH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggedStatus {
    State(JobState),
    /// The commands after a job that has ended are over.
    Post {
        ended: JobState,
        succeeded: bool,
    },
    /// Bits that mean nothing here; they are kept.
    Other(u32),
}

impl Default for LoggedStatus {
    fn default() -> Self {
        LoggedStatus::Other(0)
    }
}

impl From<JobState> for LoggedStatus {
    fn from(state: JobState) -> Self {
        LoggedStatus::State(state)
    }
}

impl LoggedStatus {
    pub fn of_bits(bits: u32) -> LoggedStatus {
        let state = |bits| {
            let logged = JobState::ALL.into_iter().filter(|state| *state != JobState::Zombi);
            logged.into_iter().find(|state| state.bits() == bits)
        };
        match (state(bits), state(bits & !(PDONE | PERR)), bits & (PDONE | PERR)) {
            (Some(state), ..) => LoggedStatus::State(state),
            (_, Some(ended), PDONE | PERR) if ended.is_finished() => {
                LoggedStatus::Post { ended, succeeded: bits & PDONE != 0 }
            }
            _ => LoggedStatus::Other(bits),
        }
    }

    pub fn bits(self) -> u32 {
        match self {
            LoggedStatus::State(state) => state.bits(),
            LoggedStatus::Post { ended, succeeded } => {
                ended.bits() | if succeeded { PDONE } else { PERR }
            }
            LoggedStatus::Other(bits) => bits,
        }
    }

    fn has(self, state: JobState) -> bool {
        self.bits() & state.bits() != 0
    }

    pub fn is_done(self) -> bool {
        self.has(JobState::Done)
    }

    /// SSUSP or USUSP.
    pub fn is_suspended(self) -> bool {
        self.has(JobState::Ssusp) || self.has(JobState::Ususp)
    }

    /// DONE or EXIT, whatever else.
    pub fn is_finished(self) -> bool {
        self.has(JobState::Done) || self.has(JobState::Exit)
    }

    /// The end alone, as JOB_FINISH has it.
    pub fn end(self) -> LoggedStatus {
        LoggedStatus::of_bits(self.bits() & (JobState::Done.bits() | JobState::Exit.bits()))
    }

    /// The success of the commands after the job, where it tells of them.
    pub fn post(self) -> Option<bool> {
        let bits = self.bits() & (PDONE | PERR);
        (bits != 0).then_some(bits == PDONE)
    }

    /// The state that it tells, also by bits of another LSF beside others.
    pub fn state(self) -> Option<JobState> {
        match self {
            LoggedStatus::State(state) => Some(state),
            LoggedStatus::Post { ended, .. } => Some(ended),
            LoggedStatus::Other(_) => {
                let by_bits = [JobState::Done, JobState::Exit, JobState::Unkwn];
                by_bits.into_iter().find(|state| self.has(*state))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_those_of_lsf_and_come_back() {
        let want = [
            ("PEND", 1),
            ("PSUSP", 2),
            ("RUN", 4),
            ("SSUSP", 8),
            ("USUSP", 16),
            ("EXIT", 32),
            ("DONE", 64),
            ("WAIT", 512),
            ("UNKWN", 0x10000),
            ("ZOMBI", 0x10020),
        ];
        assert_eq!(JobState::ALL.map(|state| (state.name(), state.bits())), want);
        for state in JobState::ALL {
            assert_eq!(JobState::of_name(state.name()), Some(state));
        }
        assert_eq!(JobState::of_name("PROV"), None);
    }

    #[test]
    fn bits_of_a_record_come_back_and_known_ones_are_states() {
        for bits in (0..0x400).chain([0x10000, 0x10004, 0x10020, u32::MAX]) {
            assert_eq!(LoggedStatus::of_bits(bits).bits(), bits);
        }
        let of = LoggedStatus::of_bits;
        assert_eq!(of(0x40), JobState::Done.into());
        assert_eq!(of(0xc0), LoggedStatus::Post { ended: JobState::Done, succeeded: true });
        assert_eq!(of(0x120), LoggedStatus::Post { ended: JobState::Exit, succeeded: false });
        assert_eq!((of(0x80), of(0x80).post()), (LoggedStatus::Other(0x80), Some(true)));
        // bits of another LSF
        assert_eq!((of(0x440).state(), of(0x440).is_done()), (Some(JobState::Done), true));
        assert_eq!((of(0x10004).state(), of(0).state()), (Some(JobState::Unkwn), None));
    }
}

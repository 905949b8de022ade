//! The policy by which a job on one host is bound to processors: LSF_BIND_JOB of lsf.conf(5),
//! BIND_JOB of lsb.applications(5) and LSB_USER_BIND_JOB of the user.

/// How the processors of a job are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BindPolicy {
    /// The job is not bound.
    #[default]
    None,
    /// The processors with the fewest bound jobs, on cores and sockets with the fewest.
    Balance,
    /// The processors with the fewest bound jobs, on cores and sockets in use already.
    Pack,
    /// The processors with the fewest bound jobs, by their numbers.
    Any,
    /// LSB_USER_BIND_JOB of the user says which of these.
    User,
    /// LSB_USER_BIND_CPU_LIST of the user names the processors.
    UserCpuList,
}

/// The words of the policies, in any case; Y and N are older ones.
pub const BIND_WORDS: [(&str, BindPolicy); 8] = [
    ("NONE", BindPolicy::None),
    ("BALANCE", BindPolicy::Balance),
    ("PACK", BindPolicy::Pack),
    ("ANY", BindPolicy::Any),
    ("USER", BindPolicy::User),
    ("USER_CPU_LIST", BindPolicy::UserCpuList),
    ("Y", BindPolicy::Balance),
    ("N", BindPolicy::None),
];

impl BindPolicy {
    /// The policy of a word; `None`: it is no such word.
    pub fn of_word(word: &str) -> Option<BindPolicy> {
        let known = BIND_WORDS.iter().find(|known| known.0.eq_ignore_ascii_case(word.trim()));
        known.map(|known| known.1)
    }

    /// The policy of a word in LSB_USER_BIND_JOB; `None`: it has no meaning there.
    pub fn of_user(word: &str) -> Option<BindPolicy> {
        BindPolicy::of_word(word)
            .filter(|of| !matches!(of, BindPolicy::User | BindPolicy::UserCpuList))
    }

    /// The word of the policy.
    pub fn word(self) -> &'static str {
        BIND_WORDS.iter().find(|known| known.1 == self).map_or("", |known| known.0)
    }
}

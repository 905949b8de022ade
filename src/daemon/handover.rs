//! The contract of the launcher, its starters and the daemons: the search path, the variables and
//! the signals with which one process of theirs starts another.

/// PATH of daemons, and of jobs that have none.
pub const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// Tells mbatchd that root may submit; no user can set a daemon's environment.
pub const ROOT_JOBS: &str = "LSF_ROOT_JOBS";

/// Tells the daemons that `eauth -s` runs as another user.
pub const EAUTH_USER: &str = "LSF_EAUTH_USER";

/// Tells a starter where it asks for an eexec that runs as another user.
pub const EEXEC_SOCKET: &str = "LSF_EEXEC_SOCKET";

/// Tell a starter as whom the pre- and post-execution commands of queues run, and the programs of
/// which root may be that user.
pub const PRE_POST_USER: &str = "LSB_PRE_POST_EXEC_USER";
pub const PRE_POST_PROGRAMS: &str = "LSB_PRE_POST_EXEC_PROGRAMS";

/// The socket to which starters bring the descriptors of remote tasks and interactive jobs, below
/// the directory of run-time files.
pub const RES_SOCKET: &str = "authd/res";

/// The signals that the loop of the launcher hears of; they are blocked from its start.
pub const LAUNCHER_SIGNALS: [i32; 5] =
    [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR2, libc::SIGCHLD];

/// Names the descriptor from which LSF_EAUTH_KEY is read, to its end; 0 is standard input.
pub const EAUTH_KEY_FD: &str = "LSF_EAUTH_KEY_FD";

//! The keywords of each command, and how cut words are found among them.

/// The command that keywords begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    CreatePipe,
    CreateBatch,
    DeleteQueue,
    AddDestination,
    DeleteDestination,
    SetDestination,
    SetClient,
    SetPriority,
    SetRunLimit,
    LoadOnly,
    NoLoadOnly,
    PipeOnly,
    NoPipeOnly,
    DefaultQueue,
    NoDefaultQueue,
    RetryTime,
    RetryWait,
    NoValidation,
    Validation,
    Enable,
    Disable,
    Start,
    Stop,
    StartAll,
    StopAll,
    Purge,
    Abort,
    Hold,
    Release,
    Delete,
    Suspend,
    Resume,
    Rerun,
    Move,
    Schedule,
    ShowQueue,
    ShowPipe,
    ShowBatch,
    ShowParameters,
    ShowLimits,
    ShowManagers,
    ShowDestinations,
    Snap,
    Help,
    Quit,
    Refused(&'static str),
}

const MANAGERS: &str = "managers are the administrators of LSF: lsf.cluster, lsb.queues";
const COMPLEX: &str = "not done here: LIMITS of lsb.resources have several queues share an amount";
const LIMITS: &str = "not done here: lsb.queues has the limits of a queue";
const ACCESS: &str = "not done here: USERS of lsb.queues says who may use a queue";
const GLOBAL: &str = "not done here: LIMITS of lsb.resources limit the whole cluster";
const LOGS: &str = "not done here: LSF_LOG_MASK and LSF_LOGDIR of lsf.conf are about logs";
const DAEMONS: &str = "not done here: lsf_daemons and badmin start and stop daemons";
const SHELLS: &str = "not done here: JOB_STARTER of lsb.queues is about shells";
const NOT_HERE: &str = "not done here";
const MODIFY: &str = "not done here: bmod changes a request";
const CHECKPOINT: &str = "not done here: bchkpnt makes a checkpoint";
const ACCOUNTS: &str = "not done here: lsb.acct has the accounts of all requests";

/// Every command by its keywords.
#[rustfmt::skip]
pub(super) const PHRASES: &[(&str, Verb)] = &[
    ("create pipe_queue", Verb::CreatePipe),
    ("create batch_queue", Verb::CreateBatch),
    ("create complex", Verb::Refused(COMPLEX)),
    ("create device_queue", Verb::Refused(NOT_HERE)),
    ("create network_queue", Verb::Refused(NOT_HERE)),
    ("delete queue", Verb::DeleteQueue),
    ("delete destination", Verb::DeleteDestination),
    ("delete request", Verb::Delete),
    ("delete complex", Verb::Refused(COMPLEX)),
    ("delete managers", Verb::Refused(MANAGERS)),
    ("delete users", Verb::Refused(ACCESS)),
    ("delete groups", Verb::Refused(ACCESS)),
    ("add destination", Verb::AddDestination),
    ("add managers", Verb::Refused(MANAGERS)),
    ("add users", Verb::Refused(ACCESS)),
    ("add groups", Verb::Refused(ACCESS)),
    ("add queues", Verb::Refused(COMPLEX)),
    ("set destination", Verb::SetDestination),
    ("set pipe_client", Verb::SetClient),
    ("set priority", Verb::SetPriority),
    ("set run_limit", Verb::SetRunLimit),
    ("set loadonly", Verb::LoadOnly),
    ("set no_loadonly", Verb::NoLoadOnly),
    ("set pipeonly", Verb::PipeOnly),
    ("set no_pipeonly", Verb::NoPipeOnly),
    ("set default batch_request queue", Verb::DefaultQueue),
    ("set no_default batch_request queue", Verb::NoDefaultQueue),
    ("set default destination_retry time", Verb::RetryTime),
    ("set default destination_retry wait", Verb::RetryWait),
    ("set validation", Verb::Validation),
    ("set no_validation", Verb::NoValidation),
    ("set managers", Verb::Refused(MANAGERS)),
    ("set complex", Verb::Refused(COMPLEX)),
    ("set global", Verb::Refused(GLOBAL)),
    ("set per_process", Verb::Refused(LIMITS)),
    ("set per_request", Verb::Refused(LIMITS)),
    ("set nice_value_limit", Verb::Refused(LIMITS)),
    ("set unrestricted_access", Verb::Refused(ACCESS)),
    ("set no_access", Verb::Refused(ACCESS)),
    ("set log_file", Verb::Refused(LOGS)),
    ("set debug", Verb::Refused(LOGS)),
    ("set mail", Verb::Refused("not done here: LSB_MAILPROG of lsf.conf is about mail")),
    ("set shell_strategy", Verb::Refused(SHELLS)),
    ("set nqs_scheduling", Verb::Refused("not done here: lsb.queues says how jobs are scheduled")),
    ("set accounting", Verb::Refused(ACCOUNTS)),
    ("set no_accounting", Verb::Refused(ACCOUNTS)),
    ("enable queue", Verb::Enable),
    ("disable queue", Verb::Disable),
    ("start queue", Verb::Start),
    ("start all_queues", Verb::StartAll),
    ("start nqs", Verb::Refused(DAEMONS)),
    ("stop queue", Verb::Stop),
    ("stop all_queues", Verb::StopAll),
    ("shutdown", Verb::Refused(DAEMONS)),
    ("purge queue", Verb::Purge),
    ("abort queue", Verb::Abort),
    ("hold request", Verb::Hold),
    ("release request", Verb::Release),
    ("suspend request", Verb::Suspend),
    ("resume request", Verb::Resume),
    ("rerun request", Verb::Rerun),
    ("move request", Verb::Move),
    ("modify request", Verb::Refused(MODIFY)),
    ("checkpoint request", Verb::Refused(CHECKPOINT)),
    ("schedule request", Verb::Schedule),
    ("show queue", Verb::ShowQueue),
    ("show pipe_queue", Verb::ShowPipe),
    ("show batch_queue", Verb::ShowBatch),
    ("show parameters", Verb::ShowParameters),
    ("show limits_supported", Verb::ShowLimits),
    ("show managers", Verb::ShowManagers),
    ("show destinations", Verb::ShowDestinations),
    ("snap", Verb::Snap),
    ("help", Verb::Help),
    ("quit", Verb::Quit),
    ("exit", Verb::Quit),
];

/// The commands that act, each with its keywords and with what stands behind them.
#[rustfmt::skip]
const USAGE: &[(Verb, &str)] = &[
    (Verb::CreatePipe, "QUEUE [priority=N] [server=(pipeclient [CRI_DS [POLICY] [HOST:PORT]])] \
        [destination=(QUEUE[@HOST],...)] [run_limit=N]"),
    (Verb::CreateBatch, "QUEUE [priority=N] [run_limit=N] [loadonly] [pipeonly]"),
    (Verb::DeleteQueue, "QUEUE"),
    (Verb::AddDestination, "= (QUEUE[@HOST],...) QUEUE"),
    (Verb::DeleteDestination, "= (QUEUE[@HOST],...) QUEUE"),
    (Verb::SetDestination, "= (QUEUE[@HOST],...) QUEUE"),
    (Verb::SetClient, "= (pipeclient [CRI_DS [POLICY] [HOST:PORT]]) QUEUE"),
    (Verb::SetPriority, "= N QUEUE"),
    (Verb::SetRunLimit, "= N QUEUE"),
    (Verb::LoadOnly, "QUEUE"),
    (Verb::NoLoadOnly, "QUEUE"),
    (Verb::PipeOnly, "QUEUE"),
    (Verb::NoPipeOnly, "QUEUE"),
    (Verb::DefaultQueue, "QUEUE"),
    (Verb::NoDefaultQueue, ""),
    (Verb::RetryTime, "MINUTES"),
    (Verb::RetryWait, "HOURS"),
    (Verb::Validation, "file"),
    (Verb::NoValidation, ""),
    (Verb::Enable, "QUEUE"),
    (Verb::Disable, "QUEUE"),
    (Verb::Start, "QUEUE"),
    (Verb::StartAll, ""),
    (Verb::Stop, "QUEUE"),
    (Verb::StopAll, ""),
    (Verb::Purge, "QUEUE"),
    (Verb::Abort, "QUEUE [SECONDS]"),
    (Verb::Hold, "ID..."),
    (Verb::Release, "ID..."),
    (Verb::Delete, "ID..."),
    (Verb::Suspend, "ID..."),
    (Verb::Resume, "ID..."),
    (Verb::Rerun, "ID..."),
    (Verb::Move, "= ID QUEUE"),
    (Verb::Schedule, "ID first"),
    (Verb::ShowQueue, "[QUEUE]"),
    (Verb::ShowPipe, ""),
    (Verb::ShowBatch, ""),
    (Verb::ShowParameters, ""),
    (Verb::ShowLimits, ""),
    (Verb::ShowManagers, ""),
    (Verb::ShowDestinations, ""),
    (Verb::Snap, "[file = FILE]"),
    (Verb::Help, "[COMMAND]"),
    (Verb::Quit, ""),
];

/// The commands that act: the keywords, and what stands behind them.
pub fn phrases() -> impl Iterator<Item = (&'static str, &'static str)> {
    PHRASES.iter().filter_map(|(words, verb)| {
        let usage = USAGE.iter().find(|(of, _)| of == verb)?;
        Some((*words, usage.1))
    })
}

/// The keyword that a word stands for, among those that may stand here.
///
/// # Errors
/// The words for the user.
pub(super) fn keyword(word: &str, may: &[&'static str]) -> Result<&'static str, String> {
    let lower = word.to_ascii_lowercase();
    if let Some(whole) = may.iter().find(|k| **k == lower) {
        return Ok(whole);
    }
    let cut: Vec<&str> = may.iter().filter(|k| k.starts_with(&lower)).copied().collect();
    match cut.as_slice() {
        [] => Err(format!("<{word}> is unknown: {} is wanted", listed(may))),
        _ if lower.chars().count() < 2 => {
            Err(format!("<{word}> is too short: keywords have two letters at least"))
        }
        [one] => Ok(may.iter().find(|k| *k == one).copied().unwrap_or_default()),
        several => Err(format!("<{word}> is ambiguous: {}", listed(several))),
    }
}

/// `a, b or c`.
pub(super) fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] => format!("{} or {last}", all.join(", ")),
    }
}

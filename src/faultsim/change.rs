//! Requests of submitters that change their jobs, and the jobs and the cluster as they know them.

use crate::model::JobRef;
use crate::proto::Msg;
use crate::proto::client::{ClientMsg, Control, IdSel, JobSelect, Verb};

/// A job as its submitter knows it.
#[derive(Clone, Copy, Debug)]
pub struct Submitted {
    pub job: u32,
    /// Elements.
    pub size: u32,
    /// An exit value sends the job back to its queue and may exclude hosts.
    pub by_exit: bool,
}

/// The cluster as a request knows it.
#[derive(Clone, Copy)]
pub(super) struct SimulatedSite {
    /// A job may ask for two slots of one host.
    pub pairs: bool,
    /// Jobs change their slots.
    pub resizes: bool,
    /// Jobs have checkpoint directories.
    pub checkpoints: bool,
    pub hosts: usize,
    /// Seconds since the epoch.
    pub now: i64,
}

/// A request that changes a submitted job.
#[derive(Clone, Debug)]
pub struct JobChangeRequest {
    pub msg: Msg,
    /// The project that bmod gives to the job or element.
    pub project: Option<(JobRef, String)>,
    /// bresume of the first of the jobs that may be stopped, at the end.
    pub last: bool,
}

impl JobChangeRequest {
    pub(super) fn control(verb: Verb, id: IdSel, request: String) -> JobChangeRequest {
        let select = JobSelect { ids: vec![id], ..JobSelect::default() };
        let control = Control { request, ..Control::of(verb, select) };
        let msg = Msg::Client(ClientMsg::Control(Box::new(control)));
        JobChangeRequest { msg, project: None, last: false }
    }
}

/// The jobs that a request changes.
pub(super) fn changed_jobs(msg: &Msg) -> Vec<u32> {
    match msg {
        Msg::Client(ClientMsg::Control(c)) => c.select.ids.iter().map(|id| id.job).collect(),
        Msg::Client(ClientMsg::Modify(m)) => vec![m.id.job],
        _ => Vec::new(),
    }
}

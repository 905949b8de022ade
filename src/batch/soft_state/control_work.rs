//! A control request under way (bkill, bstop, bresume, bswitch, btop, bbot, brequeue): the jobs it
//! means, how far it has come, and the outcomes its client has not been told.

use crate::batch::site::permissions::Caller;
use crate::batch::soft_state::cursor::Cursor;
use crate::batch::soft_state::place_scan::PlaceScan;
use crate::batch::state::retries::Done;
use crate::model::event::ElementRange;
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::caps::MAX_ACTED;
use crate::proto::client::{Control, IdSel, Outcome};
use crate::proto::machine::ConnId;
use std::collections::BTreeSet;

/// The jobs that are meant.
pub(crate) enum Source {
    /// The operands, from this one on.
    Named(usize),
    /// Every job that the filters let through, from this ID on.
    All { from: u32 },
    /// The newest of them alone: those found so far, by their order.
    Newest { from: u32, found: Vec<(u64, u32)> },
    /// Chosen jobs, the last first.
    Chosen(Vec<u32>),
    /// No further one.
    Over,
}

/// The job under way.
pub(crate) struct OneJob {
    pub(crate) sel: IdSel,
    pub(crate) cursor: Cursor,
    /// The elements that -J names; none: all.
    pub(crate) named: Vec<ElementRange>,
    /// Filters that concern elements are applied first: the elements they leave so far, and
    /// whether those are all.
    pub(crate) sift: Option<(Vec<ElementRange>, bool)>,
    /// The code that is told for a whole job, which gets one answer.
    pub(crate) best: i32,
    pub(crate) by_admin: bool,
}

/// The request under way.
pub struct ControlWork {
    pub conn: Option<ConnId>,
    pub who: Caller,
    pub c: Control,
    /// Job IDs and ranges that it holds.
    pub weight: usize,
    /// The client has to take what it was told.
    pub waits: bool,
    /// The outcomes of the same request, asked for earlier.
    pub(crate) before: Option<Done>,
    pub(crate) source: Source,
    /// Jobs submitted from then on are not meant.
    pub(crate) until: u64,
    pub(crate) hosts: Option<BTreeSet<String>>,
    pub(crate) job: Option<OneJob>,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) acted: u64,
    /// Bytes that it has written, [`log_bytes`].
    pub(crate) written: u64,
    /// The places among which btop and bbot move jobs.
    pub(crate) scan: Option<PlaceScan>,
    /// When the client was last told something.
    pub(crate) said: u64,
}

impl ControlWork {
    /// Whether the request has done as much as one may.
    pub(crate) fn beyond(&self, most: u64) -> Option<Refusal> {
        let what = match () {
            () if self.acted >= MAX_ACTED => format!("at most {MAX_ACTED} are"),
            () if self.written > most => {
                format!(
                    "the log takes {most} bytes of a request and no more; ask for the rest again"
                )
            }
            () => return None,
        };
        let done = self.acted;
        let text = format!("the request was carried out for {done} jobs and elements: {what}");
        Some(Refusal::text(err::BAD_ARG, text))
    }
}

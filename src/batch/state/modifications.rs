//! The bytes of jobs that bmod changed: the places in the spool of the new values and of those of
//! the submission. The data of messages (bpost -a) count with them: they, too, are bytes that a job
//! got after its submission.

use crate::batch::state::job::Job;
use crate::model::ByteStr;
use crate::model::job::{SpoolRef, opt2};
use std::collections::BTreeMap;

/// The first command, script and environment of a job that bmod has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct First {
    pub command: ByteStr,
    /// The command shows a script.
    pub scripted: bool,
    pub script: SpoolRef,
    pub env: SpoolRef,
}

/// The changes that bmod made, by job.
#[derive(Debug, Default)]
pub struct Modifications {
    /// The places in the spool of the values that jobs were changed to, and from.
    places: BTreeMap<u32, Vec<SpoolRef>>,
    /// Command, script and environment of jobs before bmod first changed them.
    first: BTreeMap<u32, First>,
}

impl Modifications {
    /// Was the job changed?
    pub fn has(&self, job: u32) -> bool {
        self.places.contains_key(&job)
    }

    /// The places in the spool of the values that the job was changed to, and from.
    pub fn places(&self, job: u32) -> &[SpoolRef] {
        self.places.get(&job).map_or(&[], Vec::as_slice)
    }

    /// Command, script and environment of a job that bmod has changed, as they were at first.
    pub fn first(&self, job: u32) -> Option<&First> {
        self.first.get(&job)
    }

    /// Keeps what a job runs as it was submitted, before something else is put in its place.
    pub(super) fn note_first(&mut self, job: &Job) {
        if !self.first.contains_key(&job.id) {
            let first = First {
                command: job.spec.command.clone(),
                scripted: job.spec.options2 & opt2::SCRIPT != 0,
                script: job.script,
                env: job.env,
            };
            self.places.entry(job.id).or_default().extend([first.script, first.env]);
            self.first.insert(job.id, first);
        }
    }

    /// A job was changed to what lies at these places.
    pub(super) fn note(&mut self, job: u32, places: impl Iterator<Item = SpoolRef>) {
        self.places.entry(job).or_default().extend(places);
    }

    /// The job leaves memory.
    pub(super) fn forget(&mut self, job: u32) {
        self.places.remove(&job);
        self.first.remove(&job);
    }
}

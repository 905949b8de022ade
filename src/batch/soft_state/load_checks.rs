//! When hosts are looked at for jobs to be suspended or resumed by load.

use crate::batch::state::names::HostId;
use crate::model::idmap::IdMap;

/// When hosts are looked at; soft state.
#[derive(Debug)]
pub struct LoadChecks {
    /// Loads have changed.
    pub look: bool,
    /// Jobs are suspended for load, or were when it was looked last.
    pub(crate) some: bool,
    /// By host: not before this instant again.
    pub(crate) rest: IdMap<HostId, u64>,
    pub(crate) timer: Option<u64>,
    /// How often a job was looked at.
    #[cfg(test)]
    pub looks: std::cell::Cell<usize>,
}

impl LoadChecks {
    pub fn deadline(&self) -> Option<u64> {
        self.timer
    }
}

impl Default for LoadChecks {
    fn default() -> Self {
        LoadChecks {
            look: true,
            some: true,
            rest: IdMap::default(),
            timer: None,
            #[cfg(test)]
            looks: Default::default(),
        }
    }
}

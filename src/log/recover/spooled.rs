//! Bytes in the spool that records refer to, read with them.

use super::super::codec::read_exact_spec;
use super::super::disk::Disk;
use super::super::spool::{self, SpoolReader};
use crate::model::job::{JobSpec, SpoolRef};

/// The spool as far as records refer to it.
#[derive(Default)]
pub(super) struct SpoolPlaces {
    pub(super) reader: SpoolReader,
    /// Number and end of the newest spool file that something refers to.
    pub(super) seen: (u32, u64),
}

impl SpoolPlaces {
    /// Checks what a submission has in the spool; returns its exact text where there is one, or
    /// what is lost.
    pub(super) fn submission(
        &mut self,
        disk: &mut dyn Disk,
        places: &[SpoolRef],
        exact: SpoolRef,
    ) -> Result<Option<JobSpec>, String> {
        for at in places.iter().filter(|at| at.len > 0) {
            let end = at.at.saturating_add(u64::from(at.len));
            self.seen = self.seen.max((at.spool, end));
        }
        for &at in places {
            if !self.reader.holds(disk, at).unwrap_or(false) {
                return Err(format!("{} is missing or too short", spool::name(at.spool)));
            }
        }
        if exact == SpoolRef::default() {
            return Ok(None);
        }
        let bytes = self.reader.read(disk, exact).map_err(|e| e.to_string());
        let spec = bytes.and_then(|b| read_exact_spec(&b).map_err(|e| e.to_string()));
        spec.map(Some).map_err(|e| format!("{}: {e}", spool::name(exact.spool)))
    }
}

//! bmod -aps: an administrator gives pending jobs of a queue with APS_PRIORITY a priority, or adds
//! to it (bmod(1)).

use crate::batch::Mbatchd;
use crate::batch::site::permissions::Caller;
use crate::batch::state::Job;
use crate::batch::step::Checked;
use crate::model::further;
use crate::model::reason::err;
use crate::model::specfield::SpecField;
use crate::proto::Refusal;
use crate::proto::client::Modify;

impl Mbatchd {
    /// May a caller give a job what -aps or -apsn says?
    pub(crate) fn check_absolute_priority(
        &self,
        who: &Caller,
        job: &Job,
        m: &Modify,
    ) -> Checked<()> {
        if !m.fields.contains(&SpecField::AbsolutePriority) {
            return Ok(());
        }
        if m.fields.len() > 1 {
            return Err(Refusal::new(err::MOD_MIX_APS));
        }
        let roles = self.site.roles(who, "", self.state.names().queue(job.queue));
        if !(roles.admin || roles.root || roles.queue_admin) {
            return Err(Refusal::new(err::PERMISSION));
        }
        let (meant, _) = self.meant(job, &m.id);
        let absolute = |part| self.has_absolute_priority(job, part);
        let set = m.spec.further.aps.is_some();
        if set && !meant.iter().all(|meant| absolute(meant.part)) {
            return Err(Refusal::new(err::BAD_APS_JOB));
        }
        if m.spec.further.unreadable(further::APS).is_some() {
            return Err(Refusal::new(err::BAD_APS_VAL));
        }
        Ok(())
    }

    /// Are the jobs of an element group ordered by absolute priority?
    pub(crate) fn has_absolute_priority(&self, job: &Job, part: u32) -> bool {
        self.site.queue(job.queue_of(part)).is_some_and(|queue| queue.aps.is_some())
    }
}

//! The names of requests.

use crate::batch::Mbatchd;
use crate::model::JobRef;

impl Mbatchd {
    /// The identifier of a request: its job ID, and the first master candidate, which stays the
    /// same over a takeover.
    pub(crate) fn request_name(&self, at: JobRef) -> String {
        format!("{at}.{}", self.site.conf.base.request_host().unwrap_or(&self.me))
    }
}

//! Whether queries are noted in a file, as badmin diagnose asked last.

use crate::model::Now;

/// The last request of badmin; it stands above ENABLE_DIAGNOSE, and ends with this mbatchd.
#[derive(Debug, Default)]
pub struct Diagnose {
    asked: Option<QueryLogging>,
}

#[derive(Debug)]
struct QueryLogging {
    on: bool,
    /// The usual one where it is empty.
    file: String,
    /// The instant at which the diagnosis ends, microseconds of the monotonic clock.
    until: Option<u64>,
}

/// The last request, as it stands now.
pub(crate) enum QueryLoggingState<'a> {
    Off,
    /// To this file, or the usual one.
    On(Option<&'a str>),
}

impl Diagnose {
    /// Begins or ends the records of queries, in this file (empty: the usual one) until this
    /// instant.
    pub(crate) fn ask(&mut self, on: bool, file: String, until: Option<u64>) {
        self.asked = Some(QueryLogging { on, file, until });
    }

    /// The request that stands now; `None`: ENABLE_DIAGNOSE decides.
    pub(crate) fn asked(&mut self, now: Now) -> Option<QueryLoggingState<'_>> {
        self.asked.take_if(|asked| asked.until.is_some_and(|until| until <= now.mono_us));
        self.asked.as_ref().map(|asked| match asked.on {
            false => QueryLoggingState::Off,
            true => {
                QueryLoggingState::On(Some(asked.file.as_str()).filter(|file| !file.is_empty()))
            }
        })
    }
}

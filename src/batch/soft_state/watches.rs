//! The connections of `bjobs --watch`.

use crate::batch::site::permissions::Caller;
use crate::proto::client::JobSelect;
use crate::proto::machine::ConnId;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct Watcher {
    pub(crate) who: Caller,
    pub(crate) select: JobSelect,
    /// The client waits to be told.
    pub(crate) asks: bool,
    /// Something changed since it was told.
    pub(crate) changed: bool,
}

#[derive(Debug, Default)]
pub struct Watches {
    pub(crate) by_conn: BTreeMap<ConnId, Watcher>,
}

impl Watches {
    pub fn is_empty(&self) -> bool {
        self.by_conn.is_empty()
    }
    pub fn close(&mut self, conn: ConnId) {
        self.by_conn.remove(&conn);
    }
}

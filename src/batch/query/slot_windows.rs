//! bslots: the slots that are free, and for how long before pending jobs need them.

use crate::batch::cluster::hosts::HostStatus;
use crate::batch::{Mbatchd, StepContext};
use crate::lang::resreq::SelectContext;
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::{ClientMsg, SlotWindow};
use crate::proto::machine::ConnId;
use std::collections::BTreeSet;

/// Windows that a listing has; those that end later than these are left out.
const MOST_WINDOWS: usize = 256;

impl Mbatchd {
    pub(crate) fn list_slots(&mut self, context: &mut StepContext, conn: ConnId, req: &str) {
        let parsed = match req.is_empty() {
            true => Ok(None),
            false => self.site.names.parse(req).map(Some),
        };
        let Ok(req) = parsed else {
            return context.refuse(conn, Refusal::about(err::BAD_RESREQ, req));
        };
        let (view, now) = (self.view(), context.now.secs());
        let selects = |host| {
            let simple = req.as_ref().and_then(|req| req.first());
            simple.is_none_or(|s| s.selects(&view.snapshot(host), &SelectContext::default()))
        };
        let open = |host: &_| view.host_status(*host) == HostStatus::Ok && selects(*host);
        let hosts: Vec<_> = self.links.hosts().ids().filter(open).collect();
        let all = self.state.slot_reservations();
        let starts = all.iter().map(|of| of.start).chain(view.reservations.begins());
        let mut starts: BTreeSet<i64> = starts.filter(|time| *time > now).collect();
        while starts.len() > MOST_WINDOWS {
            starts.pop_last();
        }
        let mut rows: Vec<SlotWindow> = Vec::new();
        for until in std::iter::once(None).chain(starts.into_iter().rev().map(Some)) {
            let secs = until.and_then(|until| u64::try_from(until - now).ok());
            let mut row = SlotWindow { secs, hosts: Vec::new() };
            for &host in &hosts {
                let kept = all
                    .on_host(host)
                    .filter(|(of, _)| of.start == 0 || until.is_none_or(|until| until > of.start));
                let kept: u64 = kept.map(|(_, on)| u64::from(on.kept)).sum();
                let until = until.unwrap_or(i64::MAX);
                let kept = kept
                    .saturating_add(view.reservations.kept_now(host, ""))
                    .saturating_add(view.reservations.kept_until(host, until, ""));
                let slots = view.free_slots(host).saturating_sub(kept);
                // a host without a limit would count for all others
                if slots > 0 && view.host_max(host).is_some() {
                    row.hosts.push((self.links.hosts()[host].name.clone(), slots));
                }
            }
            let more = rows.last().is_none_or(|last| last.hosts != row.hosts);
            if !row.hosts.is_empty() && more {
                rows.push(row);
            }
        }
        context.reply(conn, ClientMsg::SlotRows { rows });
    }
}

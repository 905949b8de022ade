//! The connections of mbatchd to the servers of the load balancer: who is called, asked and left,
//! and to whom an answer goes. It decides nothing about jobs.

use crate::batch::cluster::nlb_lists::KnownWords;
use crate::batch::soft_state::nlb_servers::{Purpose, Query, ServerWork};
use crate::batch::{Mbatchd, StepContext};
use crate::proto::Msg;
use crate::proto::machine::{ConnId, Effect, Endpoint};
use crate::proto::nlb::{NlbMsg, NlbRanking};

impl Mbatchd {
    /// Carries out what the connections to servers need.
    pub(crate) fn nlb_servers_due(&mut self, context: &mut StepContext) {
        if self.nlb_servers.is_idle() {
            return;
        }
        for work in self.nlb_servers.work(context.now.mono_us, self.nlb_waits()) {
            match work {
                ServerWork::Dial(conn, to) => {
                    let host = self.site.canonical(&to.host).unwrap_or(&to.host).to_owned();
                    let to = Endpoint::Nlb { host, port: to.port };
                    context.out.push(Effect::Connect { conn, to });
                }
                ServerWork::Send(conn, query) => {
                    context.send(conn, Msg::Nlb(NlbMsg::Query(query)));
                }
                ServerWork::Close(conn) => context.out.push(Effect::Close { conn }),
            }
        }
        while let Some(query) = self.nlb_servers.next_unanswered() {
            self.nlb_unanswered(context, query);
        }
    }

    /// Does anything wait for a server?
    fn nlb_waits(&self) -> bool {
        self.routing.waits() || self.sched.wanted_lists().next().is_some()
    }

    /// When a server needs something next, microseconds of the monotonic clock.
    pub(crate) fn nlb_servers_deadline(&self) -> Option<u64> {
        match self.nlb_servers.is_idle() {
            true => None,
            false => self.nlb_servers.deadline(self.nlb_waits()),
        }
    }

    /// No server has answered a query.
    fn nlb_unanswered(&mut self, context: &mut StepContext, query: Query) {
        let words = query.failures();
        match query.purpose {
            Purpose::Requests(group) => {
                self.routing.query_ended(group.queue);
                self.none_accepts(context, &group.requests, &words);
            }
            Purpose::Hosts(key) => self.hosts_unanswered(context, &key, &words),
        }
    }

    /// A message of a server.
    pub(crate) fn take_nlb_message(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        msg: NlbMsg,
    ) {
        match msg {
            NlbMsg::Ranked(mut ranking) => {
                let rows = std::mem::take(&mut ranking.rows);
                let Some((query, rows)) = self.nlb_servers.rows(conn, rows, ranking.more) else {
                    return;
                };
                let head: &NlbRanking = &ranking;
                match query.purpose {
                    Purpose::Requests(group) => {
                        let asked = (group, &*query.query.policy);
                        self.requests_answered(context, asked, head, rows);
                    }
                    Purpose::Hosts(key) => self.hosts_answered(context, &key, head, rows),
                }
            }
            NlbMsg::Watched { policies, attributes, .. } => {
                let now = context.now.mono_us;
                self.routing.note_policies(now);
                let attributes = attributes.iter().map(|a| a.to_ascii_uppercase()).collect();
                self.nlb_lists.note_policies(KnownWords { policies, attributes }, now);
            }
            _ => {}
        }
    }

    /// A connection to a server is there.
    pub(crate) fn nlb_opened(&mut self, context: &mut StepContext, conn: ConnId) {
        self.nlb_servers.opened(conn);
        self.routing.note_room(context.now.mono_us);
        context.send(conn, Msg::Nlb(NlbMsg::Watch));
    }

    /// A connection was closed or not made; true: it was one to a server.
    pub(crate) fn nlb_closed(&mut self, conn: ConnId, why: &str, now: u64) -> bool {
        let ours = self.nlb_servers.closed(conn, why, now);
        if ours && !self.nlb_servers.any_up() {
            self.nlb_lists.forget_policies();
        }
        ours
    }
}

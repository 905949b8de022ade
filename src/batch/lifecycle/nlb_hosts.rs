//! The hosts that policies of the load balancer choose for jobs (NLB_POLICY of lsb.queues(5)).
//! Lists are asked for here, and answers taken. The scheduler waits for none of it.

use crate::batch::cluster::nlb_lists::{ListWork, ListedHost, NO_ANSWER, NlbList, Standing};
use crate::batch::lifecycle::route_answers::value_text;
use crate::batch::site::nlb_request::{NlbKey, key_of};
use crate::batch::soft_state::nlb_servers::{Purpose, Query};
use crate::batch::state::names::HostId;
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::nqs::{NlbPlacement, attributes};
use crate::model::time::US;
use crate::proto::nlb::{MAX_QUERY_ATTRIBUTES, NlbQuery, NlbRanking, NlbRow};
use std::rc::Rc;
use std::sync::Arc;

/// Pause between two lines of the log that say that no server answers, microseconds.
const LOG_PAUSE: u64 = 60 * US;

impl Mbatchd {
    /// Asks for the lists that are due.
    pub(crate) fn nlb_hosts_due(&mut self, context: &mut StepContext) {
        // which jobs want a list is known when all were looked at
        if self.works.is_refilling() {
            return;
        }
        let now = context.now.mono_us;
        let due = self.nlb_lists.deadline().is_some_and(|at| at <= now);
        if !self.sched.take_nlb_news() && !due {
            return;
        }
        let mut given_up: Option<(Rc<NlbKey>, usize)> = None;
        for work in self.nlb_lists.look(now, self.sched.wanted_lists()) {
            match work {
                ListWork::Ask(key) => self.ask_for_list(key),
                ListWork::GivenUp(key) => {
                    self.sched.list_changed(&key);
                    given_up.get_or_insert((key, 0)).1 += 1;
                }
            }
        }
        if let Some((key, lists)) = given_up {
            let (policy, secs) = (&key.policy, NO_ANSWER / US);
            let words = format!("no NLB server has answered for {secs} s; lists given up: {lists}");
            context.say(log::Level::Warn, format!("NLB policy <{policy}>: {words}"));
        }
    }

    fn ask_for_list(&mut self, key: Rc<NlbKey>) {
        let all = attributes(&key.attributes).into_iter().take(MAX_QUERY_ATTRIBUTES);
        let attributes = all.map(|(name, value)| (name, value.into())).collect();
        let policy = key.policy.to_string();
        let query = NlbQuery { policy, attributes, ..NlbQuery::default() };
        let servers = &self.site.conf.batch.nlb_servers;
        self.nlb_servers.ask(Query::new(Purpose::Hosts(key), query, servers));
    }

    /// A server has told the hosts of a policy.
    pub(crate) fn hosts_answered(
        &mut self,
        context: &mut StepContext,
        key: &Rc<NlbKey>,
        head: &NlbRanking,
        rows: Vec<NlbRow>,
    ) {
        let of = rows.len() as u32;
        let listed = rows.into_iter().enumerate().filter_map(|(n, row)| {
            let host = self.site.host_id(self.site.canonical(&row.host)?)?;
            Some((host, ListedHost { choice: n as u32 + 1, value: row.value }))
        });
        let list = NlbList::new((&head.policy, head.unknown), listed, of);
        if list.unknown && self.nlb_lists.tells_unknown(&key.policy) {
            let (asked, applied) = (&key.policy, &head.policy);
            let words = format!("no policy <{asked}>: the default, <{applied}>, is applied");
            context.say(log::Level::Warn, format!("NLB: {words}"));
        }
        let age = self.site.params().nlb_rank_age * US;
        if self.nlb_lists.answered(key, list, context.now, age) {
            self.sched.list_changed(key);
        }
        self.nlb_lists.note_used(&key.policy, &head.used, context.now.mono_us);
    }

    /// The place of a host in the list by which an element is placed; `None`: there is no list.
    pub(crate) fn nlb_placement(&self, at: JobRef, host: HostId) -> Option<Arc<NlbPlacement>> {
        self.sched.wanted_lists().next()?;
        let job = self.state.job(at.job)?;
        let spec = job.spec_at(at.idx);
        let policy = self.site.nlb_policy(spec, self.site.queue(job.queue_at(at.idx)))?;
        let key = key_of(policy, spec, self.nlb_lists.used(policy));
        let Standing::Listed(list) = self.nlb_lists.standing(&key) else { return None };
        let listed = list.get(host)?;
        let (policy, value) = (list.policy.to_string(), value_text(listed.value));
        Some(Arc::new(NlbPlacement { policy, value, choice: listed.choice, of: list.of }))
    }

    /// No server has answered a query for a list.
    pub(crate) fn hosts_unanswered(
        &mut self,
        context: &mut StepContext,
        key: &NlbKey,
        words: &str,
    ) {
        let now = context.now.mono_us;
        self.nlb_lists.not_answered(key, now);
        if self.nlb_lists.tells_silence(now, LOG_PAUSE) {
            context.say(log::Level::Warn, format!("NLB policy <{}>: {words}", key.policy));
        }
    }
}

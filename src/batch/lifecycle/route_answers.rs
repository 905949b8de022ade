//! The answers of servers of the load balancer about requests of pipe queues.

use crate::batch::soft_state::routing::{Choice, Deciding, Group};
use crate::batch::{Mbatchd, StepContext};
use crate::model::time::US;
use crate::proto::nlb::{NlbRanking, NlbRow, SortValue};
use std::rc::Rc;

impl Mbatchd {
    /// A server has answered a query about requests of a pipe queue.
    pub(crate) fn requests_answered(
        &mut self,
        context: &mut StepContext,
        (group, asked): (Group, &str),
        head: &NlbRanking,
        rows: Vec<NlbRow>,
    ) {
        let queue = group.queue;
        self.routing.query_ended(queue);
        self.routing.note_looks_at(queue, &head.used);
        if head.unknown && self.routing.tells_unknown(queue, head.generation) {
            let name = self.state.names().queue(queue).to_string();
            let applied = &head.policy;
            let words = format!("no policy <{asked}>: the default, <{applied}>, is applied");
            context.say(log::Level::Warn, format!("Queue <{name}>: {words}"));
        }
        if !head.dropped.is_empty() {
            let (at, list) = (group.requests.first(), head.dropped.join(" "));
            let request = at.map_or(String::new(), |at| self.request_name(*at));
            let words = format!("the name map of the NLB lacks {list}; dropped");
            context.say(log::Level::Info, format!("Request <{request}>: {words}"));
        }
        if rows.is_empty() {
            let words = format!("no host meets the policy <{}>", head.policy);
            return self.none_accepts(context, &group.requests, &words);
        }
        let choice = |row: NlbRow| Choice {
            queue: row.queue.as_deref().unwrap_or_default().to_owned(),
            host: Some(row.host.to_string()),
            value: value_text(row.value),
        };
        let choices: Rc<[Choice]> = rows.into_iter().map(choice).collect();
        let (policy, generation) = (head.policy.clone(), head.generation);
        self.routing.decide(Deciding { policy, generation, ..Deciding::new(group, choices) });
    }

    /// A try of these requests has failed: the next one, and the words for their owners.
    pub(crate) fn none_accepts(
        &mut self,
        context: &mut StepContext,
        requests: &[crate::model::JobRef],
        words: &str,
    ) {
        let why: Rc<str> = Rc::from(words);
        let pause = u64::from(self.site.conf.batch.nqs.retry_minutes) * 60 * US;
        for at in requests {
            let Some(waiting) = self.routing.get(*at) else { continue };
            // the same words are logged once
            if *waiting.why != *why {
                let request = self.request_name(*at);
                context.say(log::Level::Info, format!("Request <{request}>: {words}"));
            }
            self.routing.put_off(*at, Some(&why), context.now.mono_us + pause);
        }
    }
}

/// The value of a sort as nlbpolicy prints it.
pub(crate) fn value_text(value: SortValue) -> String {
    match value {
        SortValue::Number(x) => format!("{x:.6}"),
        SortValue::Infinity => "inf".to_owned(),
        SortValue::MinusInfinity => "-inf".to_owned(),
        SortValue::Missing => "-".to_owned(),
    }
}

//! The connections of mbatchd to the servers of the load balancer, and their answers.

use crate::batch::soft_state::routing::{Choice, Deciding, Query};
use crate::batch::{Mbatchd, StepContext};
use crate::model::time::US;
use crate::proto::Msg;
use crate::proto::machine::ConnId;
use crate::proto::nlb::{NlbMsg, NlbRanking, NlbRow, SortValue};
use std::rc::Rc;

impl Mbatchd {
    /// A message of a server.
    pub(crate) fn take_nlb_message(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        msg: NlbMsg,
    ) {
        match msg {
            NlbMsg::Ranked(NlbRanking {
                policy,
                unknown,
                generation,
                used,
                dropped,
                rows,
                more,
                ..
            }) => {
                let Some((query, rows)) = self.routing.rows(conn, rows, more) else { return };
                let head = NlbRanking {
                    policy,
                    unknown,
                    generation,
                    used,
                    dropped,
                    ..NlbRanking::default()
                };
                self.answered(context, query, &head, rows);
            }
            NlbMsg::Watched { .. } => self.routing.note_policies(context.now.mono_us),
            _ => {}
        }
    }

    fn answered(
        &mut self,
        context: &mut StepContext,
        query: Query,
        head: &NlbRanking,
        rows: Vec<NlbRow>,
    ) {
        let queue = query.group.queue;
        self.routing.note_looks_at(queue, &head.used);
        if head.unknown && self.routing.tells_unknown(queue, head.generation) {
            let name = self.state.names().queue(queue).to_string();
            let (asked, applied) = (&query.query.policy, &head.policy);
            let words = format!("no policy <{asked}>: the default, <{applied}>, is applied");
            context.say(log::Level::Warn, format!("Queue <{name}>: {words}"));
        }
        if !head.dropped.is_empty() {
            let (at, list) = (query.group.requests.first(), head.dropped.join(" "));
            let request = at.map_or(String::new(), |at| self.request_name(*at));
            let words = format!("the name map of the NLB lacks {list}; dropped");
            context.say(log::Level::Info, format!("Request <{request}>: {words}"));
        }
        if rows.is_empty() {
            let words = format!("no host meets the policy <{}>", head.policy);
            return self.none_accepts(context, &query.group.requests, &words);
        }
        let choice = |row: NlbRow| Choice {
            queue: row.queue.unwrap_or_default(),
            host: Some(row.host),
            value: value_text(row.value),
        };
        let choices: Rc<[Choice]> = rows.into_iter().map(choice).collect();
        let policy = head.policy.clone();
        self.routing.decide(Deciding { group: query.group, policy, choices, tried: 0 });
    }

    /// No server has answered.
    pub(crate) fn not_answered(&mut self, context: &mut StepContext, query: Query) {
        let why: Vec<String> = query
            .failed
            .iter()
            .map(|(to, why)| format!("{}:{} ({why})", to.host, to.port))
            .collect();
        let words = match why.is_empty() {
            true => "no NLB server is known: NLB_SERVER is not set in nqeinfo".to_owned(),
            false => format!("no NLB server answers at {}", why.join(", ")),
        };
        self.none_accepts(context, &query.group.requests, &words);
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

    /// A connection to a server is there.
    pub(crate) fn nlb_opened(&mut self, context: &mut StepContext, conn: ConnId) {
        self.routing.opened(conn, context.now.mono_us);
        context.send(conn, Msg::Nlb(NlbMsg::Watch));
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

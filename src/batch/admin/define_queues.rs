//! Commands of qmgr that change what lsb.nqs defines: the runner changes the file, so that nothing
//! waits here for a disk.

use crate::batch::site::permissions::{Action, Caller};
use crate::batch::state::Job;
use crate::batch::state::names::QueueId;
use crate::batch::{Mbatchd, StepContext};
use crate::lang::qmgr::{Command, Definition, commands};
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::{AdminLine, ClientMsg};
use crate::proto::machine::{ConnId, Effect};

impl Mbatchd {
    /// Orders a change, if the caller may ask for it.
    pub(crate) fn define_queues(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        who: &Caller,
        (command, again): (String, bool),
    ) {
        if let Err(r) = self.check_definition(who, &command) {
            return context.refuse(conn, r);
        }
        context.say(log::Level::Info, format!("qmgr of {}: {command}", who.user));
        context.out.push(Effect::DefineQueues { conn, command, again });
    }

    fn check_definition(&self, who: &Caller, command: &str) -> Result<(), Refusal> {
        self.site.check(who, Action::Reconfig, "", "")?;
        let refused = |text: String| Refusal::text(err::BAD_ARG, text);
        let mut all = commands(command, 1);
        let definition = match (all.pop().map(|c| c.command), all.is_empty()) {
            (Some(Ok(Command::Define(definition))), true) => definition,
            (Some(Err(fault)), true) => return Err(refused(fault.text)),
            _ => return Err(refused("one command that defines something is wanted".to_owned())),
        };
        let Definition::Delete { queue } = definition else { return Ok(()) };
        let jobs = match self.state.names().find_queue(&queue) {
            Some(id) => self.requests_in(id),
            None => 0,
        };
        match jobs {
            0 => Ok(()),
            1 => Err(refused(format!("Queue <{queue}> still has 1 request"))),
            n => Err(refused(format!("Queue <{queue}> still has {n} requests"))),
        }
    }

    /// The unfinished requests of a queue; an array counts once for each part of it.
    fn requests_in(&self, queue: QueueId) -> usize {
        let of = |job: &Job| {
            let parts = 0..=job.parts().len() as u32;
            let there = parts.filter(|part| job.queue_of(*part) == queue);
            if job.tally().unfinished() == 0 { 0 } else { there.count() }
        };
        self.state.each_job().map(of).sum()
    }

    /// The change is in force, or nothing was changed.
    pub(crate) fn queues_defined(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        told: Result<String, Vec<String>>,
    ) {
        let line = |code, text| AdminLine { about: String::new(), code, text };
        let lines = match told {
            Ok(words) => vec![line(0, words)],
            Err(why) => why.into_iter().map(|text| line(err::BAD_ARG, text)).collect(),
        };
        context.reply(conn, ClientMsg::AdminDone { lines });
    }
}

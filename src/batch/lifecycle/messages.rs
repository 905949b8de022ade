//! bpost, bread and bstatus: external messages of a job, at indices below MAX_JOB_MSG_NUM. The
//! message at index 0 is the external status, which conditions ask for (`external()`).

use crate::batch::site::permissions::{Action, Caller};
use crate::batch::state::Job;
use crate::batch::state::messages::Message;
use crate::batch::step::Checked;
use crate::batch::{Mbatchd, StepContext};
use crate::model::JobRef;
use crate::model::bytes::log_text;
use crate::model::event::{Event, JobAttachment, JobMessage, attached};
use crate::model::job::SpoolRef;
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::{ClientMsg, Outcome};
use crate::proto::job_message::{
    LEVELS, MAX_ATTACHMENT, MAX_MESSAGE_TEXT, MessageInfo, MessageRequest, OneJob, PostMessage,
};
use crate::proto::machine::{ConnId, Effect};

/// Bytes that a message takes in memory and in the log beside its texts.
const MESSAGE_BYTES: u64 = 256;

impl Mbatchd {
    pub(crate) fn message_request(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        who: &Caller,
        request: MessageRequest,
    ) {
        let did = match request {
            MessageRequest::Post(post) => self.post_message(context, conn, who, post),
            MessageRequest::Read { job, index } => self.read_message(who, &job, index).map(|row| {
                context.reply(conn, ClientMsg::Messages(vec![row]));
            }),
            MessageRequest::Attachment { job, index } => self
                .attachment(who, &job, index)
                .map(|at| context.out.push(Effect::SendBlob { conn, at })),
        };
        if let Err(refusal) = did {
            context.refuse(conn, refusal);
        }
    }

    fn post_message(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        who: &Caller,
        post: PostMessage,
    ) -> Checked<()> {
        let at = self.unfinished_job(who, &post.job)?;
        let attaches = !post.file.is_empty() || !post.data.is_empty();
        let action = if attaches { Action::AttachData } else { Action::PostMessage };
        let Some(job) = self.state.job(at.job) else { return Err(Refusal::new(err::NO_JOB)) };
        self.check_job_action(who, action, job)?;
        self.check_message(&post)?;
        let (text, bytes) = (log_text(&post.text), post.data.len() as u64);
        self.check_space(job.user, bytes + text.len() as u64 + MESSAGE_BYTES, 0)?;
        let message = JobMessage {
            at,
            index: post.index,
            uid: who.uid,
            size: bytes,
            post_time: context.now.secs(),
            status: if attaches { attached::COMING } else { attached::NONE },
            text,
            user: who.user.clone(),
            level: post.level,
        };
        let crc = crc32fast::hash(post.data.as_bytes());
        let data = match bytes {
            0 => SpoolRef::default(),
            _ => self.spool(context, post.data),
        };
        self.emit(context, Event::JobMessage(Box::new(message)));
        if attaches {
            let (file, status) = (log_text(&post.file), attached::THERE);
            let (index, size) = (post.index, bytes);
            let attachment = JobAttachment { at, index, size, status, file, data, crc };
            self.emit(context, Event::JobAttachment(Box::new(attachment)));
        }
        let outcomes = vec![Outcome::new(at, 0)];
        context.reply_durable(conn, ClientMsg::Controlled { outcomes, more: false });
        Ok(())
    }

    /// The index and the lengths of a message.
    fn check_message(&self, post: &PostMessage) -> Checked<()> {
        self.check_index(post.index)?;
        let long = |what: &str, len: usize, most: u64, unit: &str| match len as u64 > most {
            true => {
                let text = format!("{what} has {len} {unit}; the limit is {most}");
                Err(Refusal::text(err::BAD_ARG, text))
            }
            false => Ok(()),
        };
        let characters = post.text.chars().count();
        long("the message", characters, MAX_MESSAGE_TEXT as u64, "characters")?;
        let kb = self.site.params().max_job_atta_kb.unwrap_or(u64::MAX);
        let most = kb.saturating_mul(1024).min(MAX_ATTACHMENT as u64);
        long("the data file", post.data.len(), most, "bytes")?;
        if !post.level.is_empty() && !LEVELS.contains(&post.level.as_str()) {
            return Err(Refusal::about(err::BAD_ARG, log_text(&post.level)));
        }
        Ok(())
    }

    fn check_index(&self, index: u32) -> Checked<()> {
        let most = self.site.params().max_job_msg_num;
        match index < most {
            true => Ok(()),
            false => {
                let text = format!(
                    "message index {index} is not below {most}, the value of MAX_JOB_MSG_NUM"
                );
                Err(Refusal::text(err::BAD_ARG, text))
            }
        }
    }

    fn read_message(&self, who: &Caller, of: &OneJob, index: u32) -> Checked<MessageInfo> {
        let (at, message) = self.find_message(who, of, index)?;
        let data = message.data.as_ref();
        Ok(MessageInfo {
            job: at.job,
            idx: at.idx,
            index,
            user: message.user.clone(),
            time: message.time,
            text: message.text.clone(),
            level: message.level.clone(),
            attached: data.is_some(),
            size: data.map_or(0, |data| data.size),
            crc: data.map_or(0, |data| data.crc),
        })
    }

    /// The place of a message's data.
    fn attachment(&self, who: &Caller, of: &OneJob, index: u32) -> Checked<SpoolRef> {
        let (at, message) = self.find_message(who, of, index)?;
        let job = self.state.job(at.job).ok_or_else(|| Refusal::new(err::NO_JOB))?;
        self.check_job_action(who, Action::AttachData, job)?;
        let words = |text: String| Refusal::text(err::BAD_ARG, text);
        match &message.data {
            None => Err(words(format!("No data file is attached to message {index}"))),
            Some(data) if data.place.len == 0 => {
                Err(words(format!("The data of message {index} are not kept here")))
            }
            Some(data) => Ok(data.place),
        }
    }

    fn find_message(&self, who: &Caller, of: &OneJob, index: u32) -> Checked<(JobRef, &Message)> {
        let at = self.unfinished_job(who, of)?;
        if self.state.job(at.job).is_some_and(|job| !self.sees_detail(who, job)) {
            return Err(Refusal::new(err::NO_JOB));
        }
        self.check_index(index)?;
        let message = self.state.messages().get(at, index).ok_or_else(|| {
            Refusal::text(err::NO_MESSAGE, format!("No message at index {index}"))
        })?;
        Ok((at, message))
    }

    fn check_job_action(&self, who: &Caller, action: Action, job: &Job) -> Checked<()> {
        let names = self.state.names();
        self.site.check(who, action, names.user(job.user), names.queue(job.queue))
    }

    /// The job or element that a request names, unless it has ended.
    fn unfinished_job(&self, who: &Caller, of: &OneJob) -> Checked<JobRef> {
        let none = || Refusal::new(err::NO_JOB);
        let at = match of.name.is_empty() {
            true => of.at,
            false => {
                let (name, prefix) = match of.name.strip_suffix('*') {
                    Some(start) => (start, true),
                    None => (of.name.as_str(), false),
                };
                let user = self.state.names().find_user(&who.user).ok_or_else(none)?;
                let job = self.state.last_named(user, name, prefix).ok_or_else(none)?;
                JobRef { job: job.id, idx: 0 }
            }
        };
        let job = self.state.job(at.job).ok_or_else(none)?;
        let over = match at.idx {
            0 => job.tally().unfinished() == 0,
            idx => job.view(idx).ok_or_else(none)?.stat().is_finished(),
        };
        if over { Err(Refusal::new(err::JOB_FINISH)) } else { Ok(at) }
    }
}

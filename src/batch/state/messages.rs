//! The external messages of jobs (bpost): by job or element, and by index. A message to an array as
//! a whole is that of each element without one of its own at that index.

use crate::model::JobRef;
use crate::model::event::{JobAttachment, JobMessage, attached};
use crate::model::job::SpoolRef;
use std::collections::BTreeMap;

/// A message as it was posted last at its index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    pub user: String,
    /// Seconds since the epoch.
    pub time: i64,
    pub text: String,
    /// INFO, WARNING, ERROR or CRITICAL; empty: not given.
    pub level: String,
    /// The data that came with it, where there is some.
    pub data: Option<Attachment>,
}

/// The data of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    pub file: String,
    /// Bytes.
    pub size: u64,
    /// The place of the data in the spool; len 0: another LSF has them.
    pub place: SpoolRef,
    pub crc: u32,
}

#[derive(Debug, Default)]
pub struct JobMessages {
    all: BTreeMap<(JobRef, u32), Message>,
}

impl JobMessages {
    /// A message was posted. A message to a whole array becomes that of its elements.
    pub(super) fn post(&mut self, m: &JobMessage) {
        if m.at.idx == 0 {
            let of_elements: Vec<_> = self.keys(m.at.job).filter(|key| key.1 == m.index).collect();
            of_elements.into_iter().for_each(|key| drop(self.all.remove(&key)));
        }
        let waiting = Attachment { size: m.size, ..Attachment::default() };
        let message = Message {
            user: m.user.clone(),
            time: m.post_time,
            text: m.text.clone(),
            level: m.level.clone(),
            data: (m.status != attached::NONE && m.size > 0).then_some(waiting),
        };
        self.all.insert((m.at, m.index), message);
    }

    /// The data of a message are there; false: no message is.
    pub(super) fn attach(&mut self, a: &JobAttachment) -> bool {
        let Some(message) = self.all.get_mut(&(a.at, a.index)) else { return false };
        let (file, size, place, crc) = (a.file.clone(), a.size, a.data, a.crc);
        message.data = Some(Attachment { file, size, place, crc });
        true
    }

    /// The message of a job or element at an index.
    pub fn get(&self, at: JobRef, index: u32) -> Option<&Message> {
        let whole = JobRef { job: at.job, idx: 0 };
        self.all.get(&(at, index)).or_else(|| self.all.get(&(whole, index)))
    }

    /// The messages of a job or element, by index.
    pub fn of(&self, at: JobRef) -> BTreeMap<u32, &Message> {
        let own = |at| self.all.range((at, 0)..=(at, u32::MAX)).map(|(key, m)| (key.1, m));
        let mut all: BTreeMap<u32, &Message> = own(JobRef { job: at.job, idx: 0 }).collect();
        all.extend(own(at));
        all
    }

    fn keys(&self, job: u32) -> impl Iterator<Item = (JobRef, u32)> + '_ {
        let all = JobRef::all_of(job);
        self.all.range((*all.start(), 0)..=(*all.end(), u32::MAX)).map(|(key, _)| *key)
    }

    /// All messages of a job and its elements.
    pub fn of_job(&self, job: u32) -> impl Iterator<Item = (JobRef, u32, &Message)> + '_ {
        let all = JobRef::all_of(job);
        let range = self.all.range((*all.start(), 0)..=(*all.end(), u32::MAX));
        range.map(|(key, message)| (key.0, key.1, message))
    }

    /// The text that every element has at an index, where it is one and the same: `elements` is
    /// their number.
    pub fn of_all(&self, job: u32, index: u32, elements: u32) -> Option<&str> {
        let whole = self.all.get(&(JobRef { job, idx: 0 }, index));
        let mut own = 0;
        let mut text = whole.map(|message| message.text.as_str());
        for (_, _, message) in
            self.of_job(job).filter(|(at, of_index, _)| at.idx != 0 && *of_index == index)
        {
            own += 1;
            if *text.get_or_insert(&message.text) != message.text {
                return None;
            }
        }
        text.filter(|_| whole.is_some() || own >= elements)
    }

    /// The job is gone; idx 0: with every element.
    pub(super) fn forget(&mut self, at: JobRef) {
        let gone = |key: &(JobRef, u32)| at.idx == 0 || key.0 == at;
        let keys: Vec<_> = self.keys(at.job).filter(gone).collect();
        keys.into_iter().for_each(|key| drop(self.all.remove(&key)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(all: &mut JobMessages, idx: u32, index: u32, text: &str) {
        let at = JobRef { job: 7, idx };
        let status = attached::NONE;
        all.post(&JobMessage { at, index, text: text.into(), status, ..JobMessage::default() });
    }

    #[test]
    fn message_to_an_array_is_that_of_elements_without_their_own() {
        let mut all = JobMessages::default();
        let text = |all: &JobMessages, idx, index| {
            all.get(JobRef { job: 7, idx }, index).map(|m| m.text.clone()).unwrap_or_default()
        };
        post(&mut all, 2, 0, "two");
        assert_eq!((text(&all, 2, 0), text(&all, 1, 0)), ("two".into(), String::new()));
        assert_eq!(all.of_all(7, 0, 3), None);
        post(&mut all, 0, 1, "other");
        post(&mut all, 0, 0, "all");
        assert_eq!((text(&all, 2, 0), text(&all, 1, 0)), ("all".into(), "all".into()));
        assert_eq!(all.of_all(7, 0, 3), Some("all"));
        post(&mut all, 3, 0, "three");
        assert_eq!(all.of_all(7, 0, 3), None);
        let own = all.of(JobRef { job: 7, idx: 3 });
        let texts: Vec<&str> = own.values().map(|m| m.text.as_str()).collect();
        assert_eq!(texts, ["three", "other"]);
        all.forget(JobRef { job: 7, idx: 3 });
        assert_eq!(all.of_all(7, 0, 3), Some("all"));
        all.forget(JobRef { job: 7, idx: 0 });
        assert_eq!(all.of_job(7).count(), 0);
    }

    #[test]
    fn elements_that_all_have_the_same_text_have_it_together() {
        let mut all = JobMessages::default();
        (1..=2).for_each(|idx| post(&mut all, idx, 0, "ready"));
        assert_eq!(all.of_all(7, 0, 3), None);
        post(&mut all, 3, 0, "ready");
        assert_eq!(all.of_all(7, 0, 3), Some("ready"));
    }
}

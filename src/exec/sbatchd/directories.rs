//! JOB_CWD_TTL (lsb.params(5), lsb.applications(5)): directories that were made for jobs are
//! removed when the time after their jobs is over.
//!
//! The launcher keeps the list as notes, so that it outlives sbatchd and a restart of the host. A
//! starter removes a directory under the account of its job. Invariant: a directory that an attempt
//! on this host works in is not removed.

use super::agent::*;
use super::directory_table::{DIRECTORIES_OF_USER, DirectoryEntry, KeptDirectory};
use super::directory_table::{is_directory, is_own};
use super::*;
use crate::proto::launch::JobDirectory;

/// Pause before a directory is looked at again that a job works in, or that could not be removed,
/// microseconds.
const DIRECTORY_AGAIN: u64 = 60 * US;
/// The pause where the job has ended and its post-execution commands run, microseconds.
const DIRECTORY_SOON: u64 = US;
/// How often it is tried to remove a directory.
pub const DIRECTORY_TRIES: u32 = 3;
/// How long that may take each time, microseconds.
const DIRECTORY_MOST: u64 = 3600 * US;

impl Sbatchd {
    /// An attempt is over: the directory made for it is due when its time is over. A job
    /// that goes back to its queue needs it again, there or on another host.
    pub(super) fn directory_over(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get(&key).filter(|job| !job.goes_back()) else { return };
        let o = &job.note.order;
        let (Some(directory), Some(ttl)) = (&job.ready.directory, o.cwd_ttl) else { return };
        let known = self.directories.entries.iter();
        let known = known.filter(|(_, e)| e.kept.directory.path == directory.path);
        let known = known.map(|(key, _)| *key).next();
        if !directory.new && known.is_none() && !(key.attempt > 1 && is_own(o)) {
            return;
        }
        let ended = job.outcome.as_ref().map_or(now.secs(), |(_, time)| *time);
        let kept = KeptDirectory {
            directory: JobDirectory { new: false, ..(**directory).clone() },
            uid: o.uid,
            gid: o.gid,
            user: o.user.to_string(),
            account: job.account(),
            due: ended.saturating_add_unsigned(ttl),
        };
        let at = now.mono_of_wall(kept.due);
        if known.is_none() && self.directories.is_full(kept.uid) {
            let path = kept.directory.path.lossy();
            let many = format!("{DIRECTORIES_OF_USER} of user <{}> wait", kept.user);
            let text = format!("directory <{path}> of a job is kept, for {many} to be removed");
            return say(out, log::Level::Warn, text);
        }
        let key = known.unwrap_or_else(|| self.directories.free_key(kept.uid));
        if let Ok(note) = serde_json::to_string(&kept) {
            ask(out, LaunchMsg::Note { key, note });
        }
        self.directories.entries.insert(key, DirectoryEntry { kept, at, tries: 0, runs: false });
    }

    /// An attempt is over: its temporary directory is removed, also where the job goes back to its
    /// queue.
    pub(super) fn temporary_over(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get(&key) else { return };
        let Some(directory) = &job.ready.temporary else { return };
        let o = &job.note.order;
        let kept = KeptDirectory {
            directory: (**directory).clone(),
            uid: o.uid,
            gid: o.gid,
            user: o.user.to_string(),
            account: job.account(),
            due: now.secs(),
        };
        self.remove_temporary(now, kept, out);
    }

    /// Has a temporary directory removed that nothing uses any more.
    pub(super) fn remove_temporary(
        &mut self,
        now: Now,
        kept: KeptDirectory,
        out: &mut Vec<Effect>,
    ) {
        if self.directories.has_no_room(kept.uid) {
            let path = kept.directory.path.lossy();
            let text = format!(
                "temporary directory <{path}> of a job is kept: too many of user <{}> \
                                wait to be removed",
                kept.user
            );
            return say(out, log::Level::Warn, text);
        }
        let key = self.directories.free_key(kept.uid);
        if let Ok(note) = serde_json::to_string(&kept) {
            ask(out, LaunchMsg::Note { key, note });
        }
        let entry = DirectoryEntry { kept, at: now.mono_us, tries: 0, runs: false };
        self.directories.entries.insert(key, entry);
    }

    pub(super) fn directories_deadline(&self) -> Option<u64> {
        self.directories.entries.values().map(|e| e.at).min().filter(|_| self.linked)
    }

    pub(super) fn directories_due(&mut self, now: Now, out: &mut Vec<Effect>) {
        if self.directories_deadline().is_none_or(|at| at > now.mono_us) {
            return;
        }
        let (jobs, entries) = (&self.jobs, &mut self.directories.entries);
        for (&key, entry) in entries.iter_mut().filter(|(_, e)| e.at <= now.mono_us) {
            let id = TaskId { key, step: TaskStep::Finish };
            if entry.runs {
                ask(out, LaunchMsg::Signal { id, signal: SIGKILL });
                entry.at = now.mono_us + DIRECTORY_AGAIN;
                continue;
            }
            let works = |j: &&Attempt| {
                let over = j.stage == AttemptStage::Over && j.post != Post::Running;
                !over && entry.kept.holds(&j.ready.cwd)
            };
            if let Some(job) = jobs.values().find(works) {
                let soon = job.stage == AttemptStage::Over;
                entry.at = now.mono_us + if soon { DIRECTORY_SOON } else { DIRECTORY_AGAIN };
                continue;
            }
            (entry.runs, entry.at) = (true, now.mono_us + DIRECTORY_MOST);
            entry.tries += 1;
            let KeptDirectory { directory, uid, gid, user, account, .. } = entry.kept.clone();
            let remove_directory = Some(Box::new(directory));
            let what = FinishPlan { account, remove_directory, ..FinishPlan::default() };
            let what = TaskPlan::Finish(Box::new(what));
            let plan = Box::new(Plan { uid, gid, user, what });
            ask(out, LaunchMsg::Start { id, plan, note: String::new() });
        }
    }

    /// The launcher tells of a directory, or of the task that removes one; whether it does.
    pub(super) fn directory_told(
        &mut self,
        now: Now,
        info: &TaskInfo,
        out: &mut Vec<Effect>,
    ) -> bool {
        let key = info.id.key;
        if !is_directory(key) {
            return false;
        }
        if info.id.step == TaskStep::Job {
            if let Ok(kept) = serde_json::from_str::<KeptDirectory>(&info.note) {
                let at = now.mono_of_wall(kept.due);
                let entry = DirectoryEntry { kept, at, tries: 0, runs: false };
                self.directories.entries.entry(key).or_insert(entry);
            }
        } else if info.ended.is_some() {
            let failed = match &info.setup {
                Some(Setup::Ready(ready)) if ready.note.is_empty() => None,
                Some(Setup::Ready(ready)) => Some(ready.note.clone()),
                Some(Setup::Failed { why, .. }) => Some(why.clone()),
                None => Some("its starter was killed".into()),
            };
            self.directory_removed(now, key, failed, out);
        } else if let Some(entry) = self.directories.entries.get_mut(&key) {
            (entry.runs, entry.at) = (true, now.mono_us + DIRECTORY_MOST);
        }
        true
    }

    /// A removal has ended, or was not begun. `failed`: the reason.
    pub(super) fn directory_removed(
        &mut self,
        now: Now,
        key: JobKey,
        failed: Option<String>,
        out: &mut Vec<Effect>,
    ) {
        let Some(entry) = self.directories.entries.get_mut(&key) else {
            return ask(out, LaunchMsg::Forget { key, over_at: 0 });
        };
        if let Some(why) = failed {
            let last = entry.tries >= DIRECTORY_TRIES;
            let path = entry.kept.directory.path.lossy();
            let then = if last { "; it is kept" } else { "" };
            let text = format!("directory <{path}> of a job is not removed: {why}{then}");
            say(out, log::Level::Warn, text);
            if !last {
                (entry.runs, entry.at) = (false, now.mono_us + DIRECTORY_AGAIN);
                // the task is forgotten with the note, which is kept again
                let note = serde_json::to_string(&entry.kept).unwrap_or_default();
                ask(out, LaunchMsg::Forget { key, over_at: 0 });
                return ask(out, LaunchMsg::Note { key, note });
            }
        }
        self.directories.entries.remove(&key);
        ask(out, LaunchMsg::Forget { key, over_at: 0 });
    }

    /// Directories whose removal a launcher which was replaced does not know of are due again; the
    /// launcher is told of directories that it does not know of.
    pub(super) fn directories_missed(
        &mut self,
        now: Now,
        known: &BTreeSet<TaskId>,
        out: &mut Vec<Effect>,
    ) {
        for (&key, entry) in &mut self.directories.entries {
            if entry.runs && !known.contains(&TaskId { key, step: TaskStep::Finish }) {
                (entry.runs, entry.at) = (false, now.mono_us + DIRECTORY_AGAIN);
            }
            if !known.contains(&TaskId { key, step: TaskStep::Job }) {
                let note = serde_json::to_string(&entry.kept).unwrap_or_default();
                ask(out, LaunchMsg::Note { key, note });
            }
        }
    }
}

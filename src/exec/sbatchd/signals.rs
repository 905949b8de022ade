//! Signals to running attempts, the state that follows from them, and the note with the launcher.

use super::agent::*;
use super::*;

impl Sbatchd {
    /// Sends the next signal of a kill.
    pub(super) fn send_next_signal(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        let Some(signal) = job.next_signal(now) else { return };
        let suspended = job.suspended();
        self.signal(now, key, signal, out);
        if suspended {
            self.send_stop_signal(now, key, SIGCONT, out);
            self.now_resumed(now, key, out);
        }
        self.keep_note(key, out);
    }

    /// The time that a suspended job had to save its state is over.
    pub(super) fn stop_due(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        (job.note.mark.stop_by, job.stop_at) = (0, None);
        self.send_stop_signal(now, key, SIGSTOP, out);
        self.keep_note(key, out);
    }

    pub(super) fn signal(&mut self, now: Now, key: JobKey, signal: i32, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get(&key) else { return };
        if job.sim_end.is_none() {
            if self.linked {
                ask(out, LaunchMsg::Signal { id: TaskId { key, step: TaskStep::Job }, signal });
                self.signal_tasks_of(key, &[signal], out);
            }
        } else if !matches!(signal, SIGCONT | SIGSTOP | SIGTSTP) {
            self.over(now, key, End::Status(signal), out);
        }
    }

    /// Stops or continues a job.
    pub(super) fn send_stop_signal(
        &mut self,
        now: Now,
        key: JobKey,
        signal: i32,
        out: &mut Vec<Effect>,
    ) {
        self.signal(now, key, signal, out);
        if self.jobs.get(&key).is_some_and(|job| job.sim_end.is_none()) {
            self.await_signal(key, signal, out);
        }
    }

    /// Repeats the signals that a launcher which is gone may not have taken to the next one.
    pub(super) fn signal_again(&mut self, now: Now, out: &mut Vec<Effect>) {
        for (key, signal) in self.members.take_unanswered() {
            if self.jobs.get(&key).is_some_and(Attempt::live) {
                self.send_stop_signal(now, key, signal, out);
            } else if self.members.order(key).is_some() {
                self.signal_tasks_of(key, &[signal], out);
                self.await_signal(key, signal, out);
            }
        }
    }

    pub(super) fn now_suspended(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        if !job.suspended() {
            job.note.mark.susp_since = now.secs();
            job.arm(now);
        }
        self.tell_state(key, out);
    }

    pub(super) fn now_resumed(&mut self, now: Now, key: JobKey, out: &mut Vec<Effect>) {
        self.count_suspension(now, key);
        self.tell_state(key, out);
    }

    /// A suspension is over: its time is counted.
    pub(super) fn count_suspension(&mut self, now: Now, key: JobKey) {
        let Some(job) = self.jobs.get_mut(&key) else { return };
        if job.suspended() {
            let m = &mut job.note.mark;
            m.susp_secs += (now.secs() - m.susp_since).max(0);
            (m.susp_since, m.stop_by) = (0, 0);
            job.arm(now);
        }
    }

    /// Leaves the note with the launcher as it is now.
    pub(super) fn keep_note(&self, key: JobKey, out: &mut Vec<Effect>) {
        if let Some(job) = self.jobs.get(&key).filter(|j| j.live() && j.sim_end.is_none())
            && self.linked
        {
            ask(out, LaunchMsg::Note { key, note: note_text(&job.note) });
        }
    }
}

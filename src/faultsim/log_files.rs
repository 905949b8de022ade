//! mbatchd and its log on the simulated disk: start, effects, end, damage; the state that is read
//! must be the one that was known.

use super::event::SimEvent;
use super::limits;
use super::log::{MbdLog, Open};
use super::suspension::suspended_anew;
use super::world::{DaemonMachine, World};
use crate::batch::Mbatchd;
use crate::batch::state::State;
use crate::log::commit_queue::CommitQueue;
use crate::log::record_walk::HEAD;
use crate::log::recover::found::RecoveryResult;
use crate::log::recover::{self, Params};
use crate::log::simdisk::Faults;
use crate::log::store::Store;
use crate::log::writer::{Due, Writer};
use crate::model::event::Record;
use crate::model::job::SpoolRef;
use crate::model::time::US;
use crate::proto::Daemon;
use crate::proto::machine::{ConnId, Effect, Input};
use crate::proto::sbd::SbdMsg;
use crate::proto::{Msg, launch::OsInput};
use std::iter::Empty;

/// How many operations on the disk a crash may come after the thread's turn began.
const CRASH_OPS: u64 = 12;
/// How many operations on the disk a crash may come after the start of the log began, which mends
/// the log and may complete a switch.
const START_OPS: u64 = 24;
/// Microseconds of a turn of the log's thread: the shortest, and what a seed may add.
const TURN: (u64, u64) = (100, 3000);

impl World {
    /// The process is at its start: the log is read and mended.
    fn find_log(&mut self) -> Result<RecoveryResult, String> {
        let at = &self.hosts[self.log.host];
        let (host, boot) = (at.name.clone(), at.os.boot_id());
        self.log.starts += 1;
        let params = Params {
            host,
            boot,
            now: self.now(self.log.host).secs(),
            run: format!("{:x}", self.log.starts),
            process: String::new(),
            ended: self.log.stopped.is_none(),
            least_epoch: 0,
            // every takeover copies it between commits
            max_acct_at_start: 0,
        };
        let mut disk = self.log.disk.clone();
        let found = recover::recover(&mut disk, &params).map_err(|e| e.to_string())?;
        for n in &found.notices {
            log::log!(n.level, "{:.6} the log: {}", self.now_us as f64 / 1e6, n.text);
        }
        for (at, why) in &found.recovered.damaged {
            if !self.log.damaged && !self.check.known_as_damaged(at.job) {
                self.fatal = Some(format!("job <{at}> is held without damage: {why}"));
            }
        }
        Ok(found)
    }

    /// Opens the log; the machine, or why the process ends instead.
    pub(super) fn open_log(&mut self, host: usize) -> Result<Mbatchd, String> {
        if self.log.open.is_some() {
            return Err("another mbatchd has the lock".into());
        }
        self.moves += usize::from(std::mem::replace(&mut self.log.host, host) != host);
        let mut found = self.find_log()?;
        let plan = std::mem::take(&mut found.plan);
        let disk = self.log.disk.clone();
        let mut store = Store::open(disk.clone(), plan).map_err(|e| e.to_string())?;
        store.set_slice(self.log.slice);
        if let Some((_, overtaken)) = &mut self.log.stopped {
            self.overtaken += usize::from(!std::mem::replace(overtaken, true));
        }
        let front = CommitQueue::new(disk, found.recovered.epoch);
        self.log.open = Some(Open { writer: Writer::new(store), front, ended: false });
        let name = self.hosts[host].name.clone();
        if !found.recovered.controls.is_empty() && !self.log.shut {
            self.log.shut = true;
            self.push(self.now_us + US, SimEvent::Reopen);
        }
        if self.log.damaged {
            self.log.shadow.begin_anew(&found.recovered.records);
        }
        let last = found.recovered.records.last().cloned();
        let held: Vec<u32> = found.recovered.damaged.iter().map(|(at, _)| at.job).collect();
        let mut mbd = Mbatchd::new(self.conf.clone(), &name, found.recovered);
        mbd.act_together_from(2);
        self.is_as_before(mbd.state(), last.as_ref());
        self.started.begin_anew(mbd.state());
        for (key, slots) in limits::on_first_hosts(mbd.state(), None::<Empty<&Record>>) {
            self.check.given(key, slots);
        }
        suspended_anew(&mut self.check, mbd.state(), &self.conf.batch);
        self.check.recounted(&mbd);
        self.balancer.iter_mut().for_each(|b| b.begin_anew(&mbd));
        if std::mem::take(&mut self.log.damaged) {
            for id in held {
                match mbd.state().job(id) {
                    Some(job) if job.tally().unfinished() == 0 => self.check.hurt_ended.insert(id),
                    _ => self.check.hurt.insert(id),
                };
            }
            // of one that was hurt after its end, this damage may have taken the end, too
            let ended_once = self.check.hurt_ended.iter();
            let open =
                |id: &&u32| mbd.state().job(**id).is_some_and(|j| j.tally().unfinished() > 0);
            let held: Vec<u32> = ended_once.filter(open).copied().collect();
            self.check.hurt.extend(held);
            // what had ended is not held, and not accounted for anew where its beginning is lost
            let gone = self.check.acked.values().filter(|id| mbd.state().job(**id).is_none());
            let gone: Vec<u32> = gone.copied().collect();
            self.check.hurt.extend(gone);
        }
        Ok(mbd)
    }

    /// Opens the log like [`World::open_log`], but the process may be killed at any step.
    pub(super) fn start_log(&mut self, host: usize) -> Result<Mbatchd, String> {
        // what kills this process must not close the files of one that was stopped
        let alone = self.log.open.is_none() && self.log.stopped.is_none();
        if self.faulty() && self.rng.chance(0.1) && alone {
            let die_at_op = Some(self.log.disk.ops() + 1 + self.rng.below(START_OPS));
            self.log.disk.set_faults(Faults { die_at_op, ..self.log.usual_faults() });
        }
        let done = self.open_log(host);
        if done.is_err() && self.log.open.is_none() {
            self.wake_master();
            self.log.drop_process();
        } else {
            self.log.disk.set_faults(self.log.usual_faults());
        }
        done
    }

    /// An effect that concerns the log; gives back what does not.
    pub(super) fn log_effect(&mut self, eff: Effect) -> Option<Effect> {
        if matches!(eff, Effect::Append(_) | Effect::Spool { .. }) {
            self.log.tickets.touch();
        }
        let MbdLog { open, tickets, shadow, .. } = &mut self.log;
        if let Effect::Append(record) = &eff {
            shadow.appended(record);
        }
        let Some(Open { writer, front, .. }) = open else { return Some(eff) };
        front.take(eff, tickets, &mut |command| {
            shadow.ordered(&command);
            writer.order(command)
        })
    }

    pub(super) fn send_blob(&mut self, p: usize, conn: ConnId, at: SpoolRef) {
        let Some(open) = &mut self.log.open else { return };
        match open.front.blob(at) {
            Ok(data) => self.send(p, conn, Msg::Sbd(SbdMsg::Blob { at, data })),
            Err(e) => self.fatal = Some(format!("spooled bytes at {at}: {e}")),
        }
    }

    /// Everything of mbatchd's turn was carried out.
    pub(super) fn log_end_of_turn(&mut self) {
        let MbdLog { open, tickets, shadow, .. } = &mut self.log;
        if let Some(Open { writer, front, .. }) = open {
            front.end_of_turn(tickets, &mut |command| {
                shadow.ordered(&command);
                writer.order(command)
            });
        }
        self.plan_log();
    }

    /// Plans the thread's next turn.
    pub(super) fn plan_log(&mut self) {
        let Some(open) = self.log.open.as_ref().filter(|o| !o.ended) else { return };
        let want = match open.writer.due() {
            Due::Ordered => None,
            Due::At(at) => Some(at),
            // under way already
            Due::Now if self.log.due.is_some_and(|at| at <= self.now_us + TURN.0 + TURN.1) => {
                return;
            }
            Due::Now => Some(self.now_us + TURN.0 + self.rng.below(TURN.1)),
        };
        if want == self.log.due {
            return;
        }
        self.log.due = want;
        self.log.gen_ += 1;
        if let Some(at) = want {
            self.push(at, SimEvent::LogTurn { gen_: self.log.gen_ });
        }
    }

    pub(super) fn say(&self, level: log::Level, text: &str) {
        log::log!(level, "{:.6} the log: {text}", self.now_us as f64 / 1e6);
    }

    /// The stopped master goes on.
    pub(super) fn wake_master(&mut self) {
        if let Some(why) = self.log.wake(self.now_us) {
            self.fatal = Some(why);
        }
    }

    /// mbatchd was killed; its thread may have been in the middle of a turn.
    pub(super) fn log_killed(&mut self) {
        if self.log.open.is_none() && self.log.stopped.is_some() {
            return self.log.drop_loop();
        }
        // the files of both would close
        self.wake_master();
        let busy = self.log.due.is_some();
        if busy && self.rng.chance(0.8) {
            let die_at_op = Some(self.log.disk.ops() + 1 + self.rng.below(CRASH_OPS));
            self.log.disk.set_faults(Faults { die_at_op, ..self.log.usual_faults() });
            if let Some(open) = self.log.open.as_mut().filter(|o| !o.ended) {
                open.writer.turn(self.now_us, &mut |_| {});
            }
        }
        self.log.drop_process();
    }

    /// There is space again. The log finds out by itself.
    pub(super) fn disk_back(&mut self) {
        self.log.full = false;
        self.log.disk.set_faults(Faults::default());
    }

    /// A bit of lsb.events flips while mbatchd is down.
    pub(super) fn damage_log(&mut self) {
        let (at, bit) = (self.rng.draw(), self.rng.below(8));
        let mut hit = false;
        self.log.disk.damage(crate::log::EVENTS, |bytes| {
            let records = HEAD as usize..bytes.len();
            if !records.is_empty() {
                bytes[records.start + at as usize % records.len()] ^= 1 << bit;
                hit = true;
            }
        });
        // The damage hits old records: their checksums have long been written back. (A record
        // without one survives damage or a loss of power, not both.)
        self.log.disk.damage(crate::log::EVENTS_SUM, |_| {});
        self.log.damaged |= hit;
        self.check.damaged |= hit;
    }

    /// mbatchd ended during its start: its launcher hears of it.
    pub(super) fn failed_start(&mut self, host: usize, pid: u32, why: &str) {
        self.say(log::Level::Error, &format!("mbatchd does not start: {why}"));
        if let Some(l) = self.find(host, Daemon::Launcher) {
            let input = OsInput::Exited { pid, status: 1 << 8, usage: Default::default() };
            self.later(l, 500, Input::Os(input));
        }
    }

    /// The state was read from the log at a start; `last`: the last record.
    fn is_as_before(&mut self, found: &State, last: Option<&Record>) {
        let told = self.log.shadow.found(found, last);
        self.differs("the log does not give what was known", &told);
    }

    /// The commit under way failed, and the mbatchd that runs has read the log again, which has
    /// nothing of that commit.
    pub(super) fn is_as_before_commit(&mut self, p: usize) {
        let MbdLog { shadow, .. } = &mut self.log;
        shadow.refuse();
        let Some(DaemonMachine::Mbd(mbd)) = &self.procs[p].mach else { return };
        let told = shadow.differences(mbd.state());
        self.started.begin_anew(mbd.state());
        for (key, slots) in limits::on_first_hosts(mbd.state(), None::<Empty<&Record>>) {
            self.check.given(key, slots);
        }
        suspended_anew(&mut self.check, mbd.state(), &self.conf.batch);
        self.check.recounted(mbd);
        self.balancer.iter_mut().for_each(|b| b.begin_anew(mbd));
        self.differs("a failed commit is not undone", &told);
    }

    /// mbatchd is about to die: its state must come of records alone.
    pub(super) fn is_as_logged(&mut self) {
        let MbdLog { shadow, .. } = &self.log;
        let Some(mbd) = self.mbd().filter(|_| shadow.is_durable()) else { return };
        let told = shadow.differences(mbd.state());
        self.differs("mbatchd knows what no record says", &told);
    }

    fn differs(&mut self, what: &str, told: &[String]) {
        if !told.is_empty() {
            self.fatal.get_or_insert(format!("{what}: {told:#?}"));
        }
    }

    /// Do faults still come?
    fn faulty(&self) -> bool {
        self.scale.fault_every > 0.0 && self.now_us < self.scale.fault_secs * US
    }
}

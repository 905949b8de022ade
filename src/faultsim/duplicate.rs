//! Duplicate logging under faults (`crate::log::duplicate`): the first master with its primary log,
//! the copy in a shared directory that goes away and comes back, and a second master. The code that
//! ships runs on disks in memory; masters die at any operation, lose power, are cut off while
//! another one takes over, end in order, return. `duplicate_model` says what each log must have.

use super::check::Failure;
use super::duplicate_master::{Master, OpenError, open_primary, open_shared};
use super::duplicate_model::DuplicateModel;
use super::rng::Rng;
use super::scale::Stats;
use crate::log::duplicate::attach::{attach, may_go_alone, settle};
use crate::log::duplicate::notes::{COPY_NOTE, CopyNote};
use crate::log::duplicate::replica::{CopyError, Replica, Round};
use crate::log::duplicate::resync::{forget_takeover, resync};
use crate::log::owner::Owner;
use crate::log::simdisk::{Crash, Faults, SimDisk};
use crate::log::{ACCT, EVENTS, EVENTS_SUM};
use std::io;

/// Steps of a run.
const STEPS: u64 = 150;
/// A crash comes within so many operations on a disk.
const CRASH_OPS: u64 = 60;
/// Rounds after which a copy must be current.
const ROUNDS: usize = 8;

/// The first master while it runs.
struct First {
    master: Master,
    copy: Option<Replica>,
    me: Owner,
    /// The host is cut off from all others: another one may take over.
    cut: bool,
}

/// One simulation.
struct Simulation {
    rng: Rng,
    primary: SimDisk,
    share: SimDisk,
    first: Option<First>,
    second: Option<Master>,
    model: DuplicateModel,
    stats: Stats,
    /// Boots of the first host and of the second.
    boot: u32,
    boot_of_second: u32,
    /// The second host may have something in its memory that is not on the disk of the share.
    second_wrote: bool,
    runs: u32,
    away: bool,
    /// Faults were ordered: errors are to be expected.
    hurt: bool,
}

type Done = Result<(), String>;

/// Runs one seed.
pub fn run_duplicate(seed: u64) -> Result<Stats, Failure> {
    let mut simulation = Simulation {
        rng: Rng::new(seed),
        primary: SimDisk::new(),
        share: SimDisk::new(),
        first: None,
        second: None,
        model: DuplicateModel::default(),
        stats: Stats::default(),
        boot: 1,
        boot_of_second: 1,
        second_wrote: false,
        runs: 0,
        away: false,
        hurt: false,
    };
    for step in 0..STEPS {
        let failed = |what| Failure { seed, at_secs: step as f64, what };
        simulation.step().map_err(failed)?;
    }
    let failed = |what| Failure { seed, at_secs: STEPS as f64, what };
    simulation.end().map_err(failed)?;
    Ok(simulation.stats)
}

impl Simulation {
    fn step(&mut self) -> Done {
        self.stats.events += 1;
        // with nobody there little happens
        if self.first.is_none() && self.second.is_none() && self.rng.chance(0.6) {
            let first = self.rng.chance(0.6);
            return if first { self.first_starts() } else { self.second_starts() };
        }
        match self.rng.below(100) {
            0..35 => self.commit(),
            35..60 => self.copy(),
            60..66 => self.switch(),
            66..71 => self.first_dies(),
            71..76 => self.second_ends(),
            76..80 => self.shared_directory(),
            80..83 => self.first_ends(),
            83..86 => {
                if let Some(first) = &mut self.first {
                    first.cut = true;
                }
                Ok(())
            }
            86..91 => self.second_starts(),
            _ => self.first_starts(),
        }
    }

    /// The run ends without faults: everything that was acknowledged is there.
    fn end(&mut self) -> Done {
        self.set_away(false);
        if self.first.as_ref().is_some_and(|first| first.cut) {
            self.first = None;
            self.primary.crash(Crash::Process);
        }
        if let Some(second) = self.second.take() {
            second.store.close();
        }
        if self.first.is_none() {
            self.start_first()?;
        }
        self.copy_whole(false)?;
        // a log that was found to be another master's is taken back by the next start
        if self.first.is_none() {
            self.start_first()?;
            self.copy_whole(false)?;
        }
        if self.first.is_none() {
            return Err("the first master does not start at the end".into());
        }
        for name in [EVENTS, EVENTS_SUM, ACCT] {
            if self.primary.get(name) != self.share.get(name) {
                return Err(format!("the copy of {name} differs at the end"));
            }
        }
        Ok(())
    }

    fn commit(&mut self) -> Done {
        let Simulation { first, second, rng, model, primary, share, .. } = self;
        let use_second = second.is_some() && (first.is_none() || rng.chance(0.5));
        let (master, disk) = match (first, second) {
            (_, Some(second)) if use_second => (second, &*share),
            (Some(first), _) => (&mut first.master, &*primary),
            _ => return Ok(()),
        };
        let dies = rng.chance(0.06);
        let at = disk.ops() + 1 + rng.below(12);
        if dies {
            let die_at_op = Some(at);
            disk.set_faults(Faults {
                die_at_op,
                away: self.away && use_second,
                ..Faults::default()
            });
        }
        let made = master.commit(rng, model);
        let log = if use_second { &mut model.shared } else { &mut model.primary };
        match made {
            (keys, true) => {
                self.stats.acknowledged += keys.len();
                log.acked.extend(keys);
                log.maybe.clear();
                // lsb.acct is written last, and its failure is not told
                let ops = if use_second { self.share.ops() } else { self.primary.ops() };
                match (dies && ops >= at, use_second) {
                    (true, true) => return self.second_dies(),
                    (true, false) => return self.first_dies(),
                    _ if dies => self.clear_faults(),
                    _ => {}
                }
                Ok(())
            }
            (keys, false) if dies || use_second && self.away => {
                log.maybe = keys;
                if use_second { self.second_dies() } else { self.first_dies() }
            }
            _ => Err("a commit failed without a fault".into()),
        }
    }

    fn switch(&mut self) -> Done {
        let Simulation { first, second, model, rng, .. } = self;
        let master = match (first, second) {
            (_, Some(second)) if !self.away => second,
            (Some(first), None) => &mut first.master,
            _ => return Ok(()),
        };
        self.stats.switches += 1;
        master.switch(model.next_time(rng))
    }

    fn clear_faults(&self) {
        self.primary.set_faults(Faults::default());
        self.share.set_faults(Faults { away: self.away, ..Faults::default() });
    }

    fn set_away(&mut self, away: bool) {
        self.away = away;
        self.clear_faults();
    }

    fn shared_directory(&mut self) -> Done {
        self.stats.faults += 1;
        self.set_away(!self.away);
        Ok(())
    }

    fn crash_of(&mut self) -> Crash {
        let seed = self.rng.draw();
        match self.rng.below(4) {
            0 => Crash::Power(seed),
            1 => Crash::PowerTorn(seed),
            _ => Crash::Process,
        }
    }

    /// The first host is gone while nobody works in the share. It takes along what the second host
    /// has not written to the disk only where that one loses power with it.
    fn share_without_first(&mut self, how: Crash) {
        if let Crash::Power(seed) | Crash::PowerTorn(seed) = how
            && std::mem::take(&mut self.second_wrote)
        {
            match seed % 2 {
                0 => self.share.write_back(),
                _ => self.boot_of_second += 1,
            }
        }
        self.share.crash(how);
    }

    fn first_dies(&mut self) -> Done {
        let how = self.crash_of();
        self.stats.faults += 1;
        self.boot += u32::from(how != Crash::Process);
        self.first = None;
        self.primary.crash(how);
        if self.second.is_none() {
            self.share_without_first(how);
        }
        self.clear_faults();
        Ok(())
    }

    fn second_dies(&mut self) -> Done {
        let how = self.crash_of();
        self.stats.faults += 1;
        self.second = None;
        self.boot_of_second += u32::from(how != Crash::Process);
        self.second_wrote &= how == Crash::Process;
        self.share.crash(how);
        // its files on that disk are closed
        if let Some(first) = &mut self.first {
            first.copy = None;
        }
        self.clear_faults();
        Ok(())
    }

    fn second_ends(&mut self) -> Done {
        match self.second.take() {
            Some(second) if !self.away && self.rng.chance(0.7) => second.store.close(),
            Some(_) => return self.second_dies(),
            None => {}
        }
        Ok(())
    }

    /// The first master ends in order, with a last round.
    fn first_ends(&mut self) -> Done {
        if self.away || self.first.as_ref().is_none_or(|first| first.cut) {
            return Ok(());
        }
        self.copy_whole(false)?;
        let Some(mut first) = self.first.take() else { return Ok(()) };
        first.master.store.close();
        match &mut first.copy {
            Some(copy) => copy.complete().map_err(|e| e.to_string()),
            None => Ok(()),
        }
    }

    fn copy(&mut self) -> Done {
        let dies = self.second.is_none() && !self.away && self.rng.chance(0.1);
        if dies {
            let die_at_op = Some(self.share.ops() + 1 + self.rng.below(CRASH_OPS));
            self.share.set_faults(Faults { die_at_op, ..Faults::default() });
        }
        self.copy_whole(dies)?;
        self.clear_faults();
        Ok(())
    }

    /// Rounds until the copy is current; it may fail only where it must.
    fn copy_whole(&mut self, dies: bool) -> Done {
        let taken = self.model.taken_at.is_some();
        let mut done = self.attach_again();
        for _ in 0..ROUNDS {
            let Some(First { master, copy: Some(copy), .. }) = &mut self.first else { break };
            if !matches!(done, Ok(Round::Again)) {
                break;
            }
            let extent = master.store.extent();
            done = copy.round(extent, &|| extent);
        }
        match done {
            Ok(Round::Again) if self.first.is_none() => Ok(()),
            Ok(Round::Current) if taken => Err("a copy that was taken over is written".into()),
            Ok(Round::Current) => {
                self.model.copied = self.model.primary.acked.len();
                Ok(())
            }
            Ok(Round::Again) => Err("the copy does not get on".into()),
            Err(CopyError::Taken(_)) if taken || self.second.is_some() => {
                self.stats.overtaken += 1;
                self.first = None;
                self.primary.crash(Crash::Process);
                Ok(())
            }
            Err(CopyError::Taken(why)) => Err(format!("nobody has taken the copy over: {why}")),
            Err(CopyError::Away(_)) if dies => self.first_dies(),
            Err(CopyError::Away(why)) => {
                if let Some(first) = &mut self.first {
                    first.copy = None;
                }
                let right = self.away || self.second.is_some();
                if right { Ok(()) } else { Err(format!("the copy is not written: {why}")) }
            }
        }
    }

    /// Claims the copy again after the shared directory was away.
    fn attach_again(&mut self) -> Result<Round, CopyError> {
        let Some(First { copy, me, .. }) = &mut self.first else { return Ok(Round::Again) };
        if copy.is_some() {
            return Ok(Round::Again);
        }
        if self.second.is_some() && !self.away {
            return Err(CopyError::Taken("the lock is held".into()));
        }
        let (mut here, mut there) = (self.primary.clone(), self.share.clone());
        let attached = attach(&mut here, &mut there, me)?;
        if !attached.ours {
            return Err(CopyError::Taken(attached.before));
        }
        forget_takeover(&mut there)?;
        settle(&mut here, &mut there, &attached.owner)?;
        *copy = Some(Replica::new(Box::new(here), Box::new(there), attached.owner));
        Ok(Round::Again)
    }

    fn first_starts(&mut self) -> Done {
        if self.first.is_some() || self.second.is_some() {
            return Ok(());
        }
        let (dies, of_share) = (self.rng.chance(0.25), self.rng.chance(0.4));
        let disk = if of_share { self.share.clone() } else { self.primary.clone() };
        let at = disk.ops() + 1 + self.rng.below(CRASH_OPS);
        if dies {
            let away = of_share && self.away;
            disk.set_faults(Faults { die_at_op: Some(at), away, ..Faults::default() });
        }
        self.hurt = dies;
        let done = self.start_first();
        self.hurt = false;
        if dies && disk.ops() >= at && self.first.is_some() {
            // lsb.acct is written last, and its failure is not told
            self.first_dies()?;
        }
        if dies && self.first.is_none() {
            self.first_dies()?;
            // one that has taken its log back and not worked does not go on alone: the model does
            // not follow two masters that both have the whole log
            self.boot += u32::from(self.model.taken_at.is_some());
        }
        self.clear_faults();
        done
    }

    fn me(&mut self) -> Owner {
        self.runs += 1;
        let (boot, run) = (format!("boot-{}", self.boot), format!("{:x}", self.runs));
        Owner { host: "host1".into(), boot, epoch: 0, run, process: String::new() }
    }

    fn start_first(&mut self) -> Done {
        let me = self.me();
        let (mut here, there) = (self.primary.clone(), self.share.clone());
        let mut copy = None;
        if self.away {
            if !may_go_alone(&mut here, &me.boot).map_err(|e| e.to_string())? {
                return Ok(());
            }
        } else {
            match self.claim(&me) {
                Ok(owner) => {
                    copy =
                        Some(Replica::new(Box::new(here.clone()), Box::new(there.clone()), owner));
                }
                Err(_) if self.hurt => return Ok(()),
                Err(e) => return Err(format!("the copy cannot be claimed: {e}")),
            }
        }
        let told = &mut self.model.told;
        let (found, master) = match open_primary(&mut here, &me, &mut |text| told.push(text.into()))
        {
            Ok(opened) => opened,
            Err(OpenError(_)) if self.hurt => return Ok(()),
            Err(OpenError(why)) => return Err(format!("the primary log is not opened: {why}")),
        };
        match self.model.taken_at.filter(|_| copy.is_some()) {
            None => self.model.reopened(&found)?,
            Some(_) => {
                self.stats.moves += 1;
                self.model.taken_back(&found)?;
            }
        }
        self.first = Some(First { master, copy, me, cut: false });
        Ok(())
    }

    /// Claims the copy; the shared log becomes the primary one where it is the last.
    fn claim(&mut self, me: &Owner) -> io::Result<Owner> {
        let (mut here, mut there) = (self.primary.clone(), self.share.clone());
        let attached = attach(&mut here, &mut there, me)?;
        if !attached.ours {
            resync(&mut here, &mut there, &attached.owner)?;
        }
        forget_takeover(&mut there)?;
        settle(&mut here, &mut there, &attached.owner)?;
        Ok(attached.owner)
    }

    fn second_starts(&mut self) -> Done {
        let free = self.first.as_ref().is_none_or(|first| first.cut);
        if self.away || self.second.is_some() || !free || self.share.get(EVENTS).is_none() {
            return Ok(());
        }
        let dies = self.rng.chance(0.25);
        let at = self.share.ops() + 1 + self.rng.below(CRASH_OPS);
        if dies {
            self.share.set_faults(Faults { die_at_op: Some(at), ..Faults::default() });
        }
        self.second_wrote = true;
        let boot = format!("boot-{}-of-2", self.boot_of_second);
        let me = Owner { host: "host2".into(), boot, ..self.me() };
        let note = CopyNote::read(&mut self.share.clone()).map_err(|e| e.to_string())?;
        let opened = open_shared(&mut self.share.clone(), &me);
        match opened {
            Ok((found, master, told)) => {
                self.clear_faults();
                match note {
                    // the first master had taken its log back and did not come to work
                    Some(_) if self.model.taken_at.is_some() => {
                        self.model.reopened_shared(&found)?;
                    }
                    Some(note) => self.model.taken_over(&found, &told, note.complete)?,
                    None => self.model.reopened_shared(&found)?,
                }
                self.second = Some(master);
                if dies && self.share.ops() >= at { self.second_dies() } else { Ok(()) }
            }
            Err(OpenError(_)) if dies => {
                self.second_dies()?;
                // the note goes last: without it the copy was taken over, and nothing logged since
                let first = self.model.taken_at.is_none();
                if first && note.is_some() && self.share.get(COPY_NOTE).is_none() {
                    return self.second_starts_again(note.is_some_and(|note| note.complete));
                }
                Ok(())
            }
            Err(OpenError(why)) => Err(format!("the shared log is not opened: {why}")),
        }
    }

    /// A takeover was interrupted when all was done.
    fn second_starts_again(&mut self, complete: bool) -> Done {
        let boot = format!("boot-{}-of-2", self.boot_of_second);
        let me = Owner { host: "host2".into(), boot, ..self.me() };
        let (found, master, _) = open_shared(&mut self.share.clone(), &me)
            .map_err(|OpenError(why)| format!("the shared log is not opened: {why}"))?;
        let told = "is a copy of the log of host host1";
        self.model.taken_over(&found, told, complete)?;
        self.second = Some(master);
        Ok(())
    }
}

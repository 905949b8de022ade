//! Recovery: takes over the log, reads all of it and reports the result. Recovery writes nothing
//! except the ownership of this run (`fence`) and the end of a switch that was interrupted;
//! [`RecoveryPlan`] lists the repairs that `Store::open` must make.
//!
//! - A torn tail is cut and reported: what a crash left of a commit that was never acknowledged.
//! - Damage elsewhere is found by the checksum entries: file and byte range are named, the rest is
//!   kept, and the jobs whose records are lost are returned, to be held until an administrator
//!   releases them. Once LSF_HOLD stands behind the damage in the log, they are not returned again.
//! - Where no entry covers the log (another LSF's, or a lost checksum file), lines that can be
//!   read are kept; one that cannot counts as damage to every job that was unfinished there.
//! - A record of ours that this version does not know ends the start with words.
//!
//! The tail that no entry covers and that holds a line that cannot be read, with readable ones
//! behind it, has two explanations. After a loss of power it is what was left of one unsynced
//! write (entries are synced often enough that a synced record without entry lies within
//! [`found::MAX_LAG`]): all from there on was never acknowledged and is cut, into a file beside.
//! Without a loss of power, or where a run had found the bytes durable, it is damage.
//!
//! A record that is whole but does not lie where it was written (a line was taken out, doubled or
//! put elsewhere, bytes were shifted) is found by its checksum (`record_walk`), and the log is put
//! in order again with the first commit (`mend`); until then nothing of it is touched.
//!
//! Here is the way in. The pass over the log is recover/scan.rs, lines that are there twice
//! recover/repeated.rs, lost control records recover/controls.rs, the spool recover/spooled.rs and
//! spool_check.rs, what follows from it all recover/plan.rs.

pub mod against;
mod controls;
pub mod found;
mod plan;
pub mod records;
mod repeated;
mod scan;
mod spool_check;
mod spooled;

use super::acct;
use super::acct_archive;
use super::disk::{Disk, PUBLIC, exists, len_of, read_small};
use super::fence;
use super::mend;
use super::owner::{self, Owner};
use super::record_walk::{HEAD, head_line};
use super::{EVENTS, switch_names};
use crate::batch::Recovered;
use found::{RecoverError, RecoveryNotice, RecoveryResult, failed};
use scan::LogScan;
use std::io;

/// The process that recovery runs in.
#[derive(Clone, Debug, Default)]
pub struct Params {
    pub host: String,
    pub boot: String,
    /// Seconds since the epoch.
    pub now: i64,
    /// A word that no other run has.
    pub run: String,
    /// This process, as [`Owner::process`] has it.
    pub process: String,
    /// The process that the owner file names ran on this boot of this system, and is known to have
    /// ended: nobody writes to its files any more.
    pub ended: bool,
    /// The epoch of this run is no lower: the log is a copy, and the host that has the primary may
    /// have begun runs since.
    pub least_epoch: u64,
    /// A takeover copies lsb.acct at once up to this length, bytes
    /// ([`super::acct_copy::MAX_AT_START`]).
    pub max_acct_at_start: u64,
}

/// Recovery at a start: claims the log, and takes it over from a process that may still write it.
pub fn recover(disk: &mut dyn Disk, params: &Params) -> Result<RecoveryResult, RecoverError> {
    let mut notices = Vec::new();
    let before = Owner::read(disk).map_err(failed(owner::OWNER))?;
    let first = is_first(disk, &before).map_err(failed("the log directory"))?;
    let owner = claim(disk, params, &before, first, &mut notices)?;
    let mended = mend::finish_interrupted(disk).map_err(failed("putting the log in order"))?;
    notices.extend(mended.map(|text| RecoveryNotice { level: log::Level::Warn, text }));
    let told = switch_names::finish_interrupted(disk, &owner);
    let told = told.map_err(failed("finishing a switch of the log"))?;
    notices.extend(told.map(|text| RecoveryNotice { level: log::Level::Warn, text }));
    acct_archive::one_name(disk).map_err(failed(super::ACCT))?;
    fence::discard_copies(disk).map_err(failed("the log directory"))?;
    let same_boot = match &before {
        owner::Read::Is(o) => o.host == params.host && o.boot == params.boot,
        _ => false,
    };
    let gone = match &before {
        owner::Read::Is(o) if o.boot == params.boot => params.ended,
        owner::Read::Is(o) => o.host == params.host,
        _ => first,
    };
    let renewed = |e| failed("copying the log for this run")(e);
    let acct_renewed =
        gone || fence::renew(disk, &owner, params.max_acct_at_start).map_err(renewed)?;
    // what was copied has been written and synced by this run
    let mut scan = LogScan::open(disk, u64::MAX, same_boot && gone)?;
    // a run that died before it had put the log in order left it as it had found it
    scan.no_torn_write &= checked_by(disk, &before).map_err(failed("the log directory"))?;
    let durable = against::durable_len(disk, scan.sums.head);
    scan.durable = durable.map_err(failed("the log directory"))?;
    scan.notices.splice(0..0, notices);
    scan.run(disk)?;
    let owned = before != owner::Read::Missing;
    let against = against::contradictions(disk, &scan, owned).map_err(failed(EVENTS))?;
    let accepted = !against.is_empty();
    if accepted && !against::is_accepted(disk, &against).map_err(failed(against::ACCEPT))? {
        return Err(RecoverError::NotTheLast(against));
    }
    scan.notices.extend(against::told(&against));
    let (open, head_len) = (if accepted { scan.open_jobs() } else { Vec::new() }, scan.head_len);
    let sum_head = scan.sums.head;
    let (mut found, finishes) = scan.finish(disk)?;
    let acct = acct::missing(disk, sum_head, &found.recovered.records, &finishes);
    let acct = acct.map_err(failed(super::ACCT))?;
    (found.plan.finishes, found.plan.acct_end) = (acct.finishes, acct.end);
    (found.plan.acct_synced, found.plan.copy_acct) = (acct.synced, !acct_renewed);
    found.plan.owner = beyond(disk, owner, found.recovered.epoch)?;
    found.recovered.epoch = found.plan.owner.epoch;
    if accepted {
        against::go_on(disk, &mut found, open, head_len, params.now)?;
    }
    Ok(found)
}

/// Is there no log, not even one that a switch has not given its name yet? A start that found no
/// room for the head line leaves an empty file and no owner, and one that lost power a part of the
/// line.
fn is_first(disk: &mut dyn Disk, before: &owner::Read) -> io::Result<bool> {
    let new = disk.list("")?.iter().any(|name| name.starts_with(switch_names::NEW));
    Ok(*before == owner::Read::Missing && !new && no_more_than_a_torn_head(disk)?)
}

/// Did the run that the owner file names check the log? Its mark tells that.
fn checked_by(disk: &mut dyn Disk, before: &owner::Read) -> io::Result<bool> {
    match before {
        owner::Read::Is(owner) => exists(disk, &against::RunMark::name(&owner.run)),
        _ => Ok(false),
    }
}

/// Has the log nothing but what may be left of the head line of a first start?
fn no_more_than_a_torn_head(disk: &mut dyn Disk) -> io::Result<bool> {
    let len = len_of(disk, EVENTS)?;
    if len == 0 || len > HEAD {
        return Ok(len == 0);
    }
    let (left, head) = (read_small(disk, EVENTS, HEAD as usize)?, head_line(HEAD as i64));
    let of_head = |left: &Vec<u8>| left.iter().zip(&head).all(|(b, head)| b == head || *b == 0);
    Ok(left.is_none_or(|left| of_head(&left)))
}

/// Becomes the owner.
fn claim(
    disk: &mut dyn Disk,
    params: &Params,
    before: &owner::Read,
    first: bool,
    notices: &mut Vec<RecoveryNotice>,
) -> Result<Owner, RecoverError> {
    if *before == owner::Read::Damaged {
        let text = format!("{} is damaged: the clock gives the next epoch", owner::OWNER);
        notices.push(RecoveryNotice { level: log::Level::Warn, text });
    }
    let beside = against::is_beside(disk).map_err(failed("the log directory"))?;
    if first {
        // where there is an owner file, there was a log
        let file = disk.open(EVENTS, Some(PUBLIC)).map_err(failed(EVENTS))?;
        let done = disk.write_at(file, 0, &head_line(HEAD as i64)).and_then(|()| disk.sync(file));
        disk.close(file);
        done.and_then(|()| disk.sync_dir("")).map_err(failed(EVENTS))?;
    }
    let epoch = match before {
        owner::Read::Is(o) => o.epoch + 1,
        owner::Read::Missing if first && !beside => 1,
        // the numbers given out are not known: a clock goes beyond them
        _ => params.now.max(1) as u64,
    };
    let epoch = epoch.max(params.least_epoch);
    let Params { host, boot, run, process, .. } = params.clone();
    let owner = Owner { host, boot, epoch, run, process };
    owner.claim(disk, before).map_err(failed(owner::OWNER))?;
    Ok(owner)
}

/// The owner with an epoch beyond that which the log names: an older owner file was put back.
fn beyond(disk: &mut dyn Disk, owner: Owner, seen: u64) -> Result<Owner, RecoverError> {
    if seen < owner.epoch || seen >= owner::NO_EPOCH {
        return Ok(owner);
    }
    let before = owner::Read::Is(owner.clone());
    let owner = Owner { epoch: seen + 1, ..owner };
    owner.claim(disk, &before).map_err(failed(owner::OWNER))?;
    Ok(owner)
}

/// Reads the log again after it could not be written: everything durable, up to `limit`.
pub fn again(disk: &mut dyn Disk, limit: u64, epoch: u64) -> Result<Recovered, RecoverError> {
    let mut scan = LogScan::open(disk, limit, true)?;
    scan.run(disk)?;
    let mut recovered = scan.finish(disk)?.0.recovered;
    recovered.epoch = epoch;
    Ok(recovered)
}

//! The first master claims the copy, and learns whether its own log is the last one (see the head
//! of [`super`]). The lock of the shared directory must be held.

use super::notes::{CopyNote, ShareMark};
use crate::log::disk::{Disk, len_of};
use crate::log::owner::{OWNER, Owner, Read};
use crate::log::recover::against::RunMark;
use crate::log::{EVENTS, fence, mend, switch_names};
use std::io;

/// A claimed copy.
#[derive(Clone, Debug)]
pub struct Attached {
    pub owner: Owner,
    /// The log in the primary directory is the last one.
    pub ours: bool,
    /// The last owner before, another host; empty where there was none.
    pub before: String,
}

/// May the first master go on from its own disk without the shared directory? `boot`: of this host.
pub fn may_go_alone(primary: &mut dyn Disk, boot: &str) -> io::Result<bool> {
    let mark = ShareMark::read(primary)?;
    let same_boot = matches!(Owner::read(primary)?, Read::Is(o) if o.boot == boot);
    Ok(same_boot && !mark.runs.is_empty() && !mark.complete)
}

/// Claims the copy for the run `me`, whose epoch is not used. A run that had the copy and finds it
/// to be another's claims nothing.
pub fn attach(primary: &mut dyn Disk, share: &mut dyn Disk, me: &Owner) -> io::Result<Attached> {
    let before = Owner::read(share)?;
    let mut mark = ShareMark::read(primary)?;
    let (here, there) = (len_of(primary, EVENTS)? > 0, len_of(share, EVENTS)? > 0);
    // as long as the note is there, a master that claimed the copy has not begun to work
    let noted = CopyNote::read(share)?.is_some_and(|note| note.host == me.host);
    let ours = match &before {
        _ if there && !here => false,
        Read::Is(owner) => !there || noted || mark.runs.contains(&owner.run),
        Read::Missing => !there || !mark.runs.is_empty(),
        Read::Damaged => {
            let why = "is damaged: remove it to continue with the log in LSB_LOCALDIR";
            return Err(io::Error::other(format!("{OWNER} {why}")));
        }
    };
    if let (false, true, Read::Is(owner)) = (ours, mark.runs.contains(&me.run), &before) {
        // this run cannot claim the copy again: its mark would say that it owned it all the time
        return Ok(Attached { owner: owner.clone(), ours, before: owner.host.clone() });
    }
    let mut owner = me.clone();
    owner.epoch = epoch_of(&before).max(epoch_of(&Owner::read(primary)?)) + 1;
    if ours && !mark.runs.contains(&me.run) {
        // a copy that is complete stays so until the note beside it says otherwise (`settle`)
        mark.runs.push(me.run.clone());
        mark.write(primary)?;
    }
    match &before {
        Read::Is(owned) if owned.run == me.run => owner = owned.clone(),
        _ => owner.claim(share, &before)?,
    }
    mend::finish_interrupted(share)?;
    switch_names::finish_interrupted(share, &owner)?;
    fence::discard_copies(share)?;
    let before = match before {
        Read::Is(owner) => owner.host,
        _ => String::new(),
    };
    let foreign = before != me.host;
    if foreign || !ours {
        fence::renew(share, &owner, u64::MAX)?;
    }
    let before = if foreign { before } else { String::new() };
    Ok(Attached { owner, ours, before })
}

fn epoch_of(read: &Read) -> u64 {
    match read {
        Read::Is(owner) => owner.epoch,
        _ => 0,
    }
}

/// The primary is equal to the shared log or newer: from here on the log there is its copy.
pub fn settle(primary: &mut dyn Disk, share: &mut dyn Disk, owner: &Owner) -> io::Result<()> {
    // a mark says how far a run's own log had come
    RunMark::discard_others(share, "")?;
    CopyNote { host: owner.host.clone(), complete: false }.write(share)?;
    ShareMark { runs: vec![owner.run.clone()], complete: false }.write(primary)
}

//! The first master returns after another one had the log: the shared log becomes the primary one.
//! The copy must be claimed.
//!
//! Interrupted at any place, it begins anew: the mark of the primary directory does not name the
//! claim before it is complete. The jobs that the copy lacked are put aside first (`lacking`).

use super::bytes::{Whole, replace};
use super::lacking;
use super::notes::{ShareMark, Taken};
use crate::log::disk::{Disk, INFO, PRIVATE, PUBLIC, len_of, remove, write_small};
use crate::log::fence::{COPY, copy_name};
use crate::log::owner::{OWNER, Owner};
use crate::log::switch_names::{NEW, make_room};
use crate::log::{ACCT, EVENTS, EVENTS_SUM};
use std::io;

/// Names of the primary directory that begin so belong to a change of names that is void now.
const VOID: [&str; 3] = [NEW, "lsb.events.mended", COPY];

/// The boot of an owner file that stands for another host's.
const OTHER_BOOT: &str = "of-another-host";

/// Copies the shared log over the primary one.
pub fn resync(primary: &mut dyn Disk, share: &mut dyn Disk, owner: &Owner) -> io::Result<()> {
    let taken = Taken::read(share)?.filter(|taken| taken.host == owner.host);
    lacking::keep(primary, share, taken.as_ref())?;
    // from here on the primary is no log to go on from alone
    ShareMark::default().write(primary)?;
    for name in primary.list("")? {
        if VOID.iter().any(|void| name.starts_with(void)) {
            remove(primary, &name)?;
        }
    }
    mirror_info(primary, share, owner)?;
    mirror_old_logs(primary, share, owner)?;
    for name in [EVENTS, EVENTS_SUM, ACCT] {
        let whole = Whole { from: name, to: name, mode: PUBLIC, end: None };
        replace(share, primary, &owner.run, &whole)?;
    }
    // of a boot that no host has: the shared log may end in what a loss of power has torn there
    let of_another = Owner { boot: OTHER_BOOT.into(), ..owner.clone() };
    let temp = copy_name(&owner.run, OWNER);
    write_small(primary, &temp, PUBLIC, &of_another.text())?;
    primary.rename(&temp, OWNER)?;
    primary.sync_dir("")
}

/// The first master has all that it needs of the takeover. Called before the primary is declared
/// the last log: a later takeover must not find the note of this one.
pub fn forget_takeover(share: &mut dyn Disk) -> io::Result<()> {
    Taken::discard(share)
}

/// The spool, and the marks of runs.
fn mirror_info(primary: &mut dyn Disk, share: &mut dyn Disk, owner: &Owner) -> io::Result<()> {
    let there = share.list(INFO)?;
    for name in there.iter().filter(|name| !name.starts_with(COPY)) {
        let name = format!("{INFO}/{name}");
        let whole = Whole { from: &name, to: &name, mode: PRIVATE, end: None };
        replace(share, primary, &owner.run, &whole)?;
    }
    for name in primary.list(INFO)? {
        let path = format!("{INFO}/{name}");
        if !there.contains(&name) && path != lacking::SPOOLED {
            remove(primary, &path)?;
        }
    }
    primary.sync_dir(INFO)
}

/// Old logs that were begun since move the others up.
fn mirror_old_logs(primary: &mut dyn Disk, share: &mut dyn Disk, owner: &Owner) -> io::Result<()> {
    let old = |number: u32| format!("{EVENTS}.{number}");
    let (names, there) = (primary.list("")?, share.list("")?);
    let count = (1..).take_while(|n| there.contains(&old(*n))).count() as u32;
    let mut new = count;
    if names.contains(&old(1)) {
        let first = len_of(primary, &old(1))?;
        for number in 1..=count {
            if len_of(share, &old(number))? == first {
                new = number - 1;
                break;
            }
        }
    }
    for _ in 0..new {
        make_room(primary)?;
    }
    for number in 1..=new {
        for name in [old(number), format!("{}.sum", old(number))] {
            let whole = Whole { from: &name, to: &name, mode: PUBLIC, end: None };
            replace(share, primary, &owner.run, &whole)?;
        }
    }
    Ok(())
}

//! A file that is replaced as a whole, with a fault or the end of the process at every step.

use super::threads::Dir;
use crate::log::disk::RealDisk;
use crate::log::replace::{replace, settle};
use crate::log::simdisk::{Crash, Faults, SimDisk};

const OLD: &[u8] = b"the old text\n";
const NEW: &[u8] = b"the new text, which is longer than the old one\n";
/// More than the steps of one replacement.
const STEPS: u64 = 16;

/// A disk with the file, which was replaced once before.
fn disk() -> SimDisk {
    let mut disk = SimDisk::new();
    disk.put("objects", b"the oldest text\n");
    replace(&mut disk, "objects", OLD, true).unwrap();
    disk
}

fn crashes() -> impl Iterator<Item = Crash> {
    let power = (0..40).flat_map(|seed| [Crash::Power(seed), Crash::PowerTorn(seed)]);
    [Crash::Process].into_iter().chain(power)
}

fn text(disk: &SimDisk) -> Vec<u8> {
    disk.get("objects").unwrap()
}

#[test]
fn file_that_was_replaced_stays_over_a_loss_of_power() {
    for crash in crashes() {
        let mut disk = disk();
        replace(&mut disk, "objects", NEW, true).unwrap();
        disk.crash(crash);
        assert_eq!(text(&disk), NEW, "{crash:?}");
        assert_eq!(disk.get("objects.prev").unwrap(), OLD, "{crash:?}");
    }
}

#[test]
fn file_is_old_or_new_whenever_the_process_or_the_host_dies() {
    for step in 1..=STEPS {
        for crash in crashes() {
            let mut disk = disk();
            let at = disk.ops() + step;
            disk.set_faults(Faults { die_at_op: Some(at), ..Faults::default() });
            let done = replace(&mut disk, "objects", NEW, true);
            disk.crash(crash);
            match done {
                Ok(()) => assert_eq!(text(&disk), NEW, "step {step}, {crash:?}"),
                Err(_) => assert!([OLD, NEW].contains(&&*text(&disk)), "step {step}, {crash:?}"),
            }
            // what is left over is in nobody's way
            replace(&mut disk, "objects", NEW, true).unwrap();
            assert_eq!(text(&disk), NEW, "step {step}, {crash:?}");
        }
    }
}

#[test]
fn old_file_is_in_its_place_after_any_step_that_failed() {
    let (mut failed, mut done) = (0, 0);
    let each = (1..=STEPS).flat_map(|step| [(step, true), (step, false)]);
    for (step, keeps) in each {
        for crash in crashes() {
            let mut disk = disk();
            let at = disk.ops() + step;
            disk.set_faults(Faults { fail_at_op: Some(at), ..Faults::default() });
            let result = replace(&mut disk, "objects", NEW, keeps);
            let want = if result.is_ok() { NEW } else { OLD };
            assert_eq!(text(&disk), want, "step {step}");
            assert!(disk.get(".objects.new").is_none(), "step {step}");
            (failed, done) = (failed + u32::from(result.is_err()), done + 1);
            disk.crash(crash);
            assert_eq!(text(&disk), want, "step {step}, {crash:?}");
        }
    }
    assert!(failed > 0 && failed < done, "{failed} of {done}");
}

/// A server that has told of the new text cannot tell of the old one after a loss of power.
#[test]
fn file_that_was_found_in_a_settled_directory_stays_over_a_loss_of_power() {
    let mut new = 0;
    for step in 1..=STEPS {
        for crash in crashes().skip(1) {
            let mut disk = disk();
            let at = disk.ops() + step;
            disk.set_faults(Faults { die_at_op: Some(at), ..Faults::default() });
            let _ = replace(&mut disk, "objects", NEW, true);
            disk.set_faults(Faults::default());
            disk.crash(Crash::Process);
            settle(&mut disk).unwrap();
            let found = text(&disk);
            disk.crash(crash);
            assert_eq!(text(&disk), found, "step {step}, {crash:?}");
            new += u32::from(found == NEW);
        }
    }
    assert!(new > 0);
}

#[test]
fn file_that_keeps_nothing_leaves_nothing_behind() {
    let mut disk = SimDisk::new();
    disk.put("objects", OLD);
    replace(&mut disk, "objects", NEW, false).unwrap();
    assert_eq!(text(&disk), NEW);
    let left = ["objects.prev", ".objects.old", ".objects.new"].map(|name| disk.get(name));
    assert_eq!(left, [None, None, None]);
}

#[test]
fn new_file_of_a_full_disk_is_not_there() {
    for step in 1..=STEPS {
        let mut disk = SimDisk::new();
        disk.set_faults(Faults { fail_at_op: Some(step), ..Faults::default() });
        let done = replace(&mut disk, "objects", NEW, true);
        assert_eq!(disk.get("objects").is_some(), done.is_ok(), "step {step}");
    }
    for room in 0..NEW.len() as u64 {
        let mut disk = disk();
        disk.set_faults(Faults { bytes_left: Some(room), ..Faults::default() });
        replace(&mut disk, "objects", NEW, true).unwrap_err();
        assert_eq!(text(&disk), OLD, "{room} bytes");
    }
    for sync in 0..2 {
        let mut disk = disk();
        let fail_at_sync = Some(disk.syncs() + sync);
        disk.set_faults(Faults { fail_at_sync, ..Faults::default() });
        let done = replace(&mut disk, "objects", NEW, true);
        let want = if done.is_ok() { NEW } else { OLD };
        disk.crash(Crash::Power(sync));
        assert_eq!(text(&disk), want, "sync {sync}");
    }
}

#[test]
fn file_that_somebody_left_in_the_place_of_the_new_one_is_not_written_into() {
    let dir = Dir::new("replace");
    std::fs::create_dir(&dir.0).unwrap();
    let (other, new) = (dir.0.join("other"), dir.0.join(".objects.new"));
    std::fs::write(&other, "of somebody else").unwrap();
    for symbolic in [false, true] {
        match symbolic {
            false => std::fs::hard_link(&other, &new).unwrap(),
            true => std::os::unix::fs::symlink(&other, &new).unwrap(),
        }
        replace(&mut RealDisk::existing_dir(&dir.0), "objects", NEW, true).unwrap();
        assert_eq!(std::fs::read(dir.0.join("objects")).unwrap(), NEW);
        assert_eq!(std::fs::read(&other).unwrap(), b"of somebody else");
    }
}

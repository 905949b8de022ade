//! JOB_CWD_TTL: which directories are removed, when, and that the list is not lost.

use super::*;
use crate::exec::sbatchd::directories::DIRECTORY_TRIES;
use crate::proto::launch::JobDirectory;

const HOUR: u64 = 3600;

fn directory(path: &str, new: bool) -> Option<Box<JobDirectory>> {
    Some(Box::new(JobDirectory { path: path.into(), device: 1, inode: 2, new }))
}

/// A host with a job in such a directory, whose time is so long.
fn works_in(path: &str, new: bool, ttl: Option<u64>) -> Rig {
    let mut r = Rig::new();
    r.copying = true;
    begins(&mut r, 1, path, new, ttl);
    r
}

fn begins(r: &mut Rig, job: u32, path: &str, new: bool, cwd_ttl: Option<u64>) {
    let (cwd, user) = (path.to_owned(), "u".to_owned());
    let ready = Ready { cwd, user, directory: directory(path, new), ..Ready::default() };
    r.setup = Some(Setup::Ready(Box::new(ready)));
    r.start(StartJob { cwd_ttl, ..order(job) });
    r.setup = None;
}

/// The directories whose removal was begun, and when.
fn removed(r: &Rig) -> Vec<String> {
    let of = |(_, plan): &(TaskId, Plan)| match &plan.what {
        TaskPlan::Finish(finish) => {
            finish.remove_directory.as_ref().map(|d| d.path.lossy().into_owned())
        }
        _ => None,
    };
    r.plans.iter().filter_map(of).collect()
}

/// The last removal ends, with these words where it failed.
fn removal_ends(r: &mut Rig, note: &str) {
    let is = |(_, plan): &(TaskId, Plan)| match &plan.what {
        TaskPlan::Finish(finish) => finish.remove_directory.is_some(),
        _ => false,
    };
    let at = r.plans.iter().rposition(is).unwrap();
    let id = r.plans[at].0;
    let setup = Setup::Ready(Box::new(Ready { note: note.into(), ..Ready::default() }));
    let told = r.feed_launcher(Input::Os(OsInput::Setup { id, setup, ended: false }));
    r.pass(told);
    r.exits(501 + u32::try_from(at).unwrap(), 0);
}

#[test]
fn directory_of_a_job_is_removed_when_its_time_is_over() {
    let mut r = works_in("/s/1", true, Some(2 * HOUR));
    r.exits(501, 0);
    r.wait(2 * HOUR - 5);
    assert_eq!(removed(&r), [""; 0]);
    r.wait(10);
    assert_eq!(removed(&r), ["/s/1"]);
    let plan = &r.plans.last().unwrap().1;
    assert_eq!((plan.uid, plan.user.as_str()), (9, "u"));
    removal_ends(&mut r, "");
    r.wait(5 * HOUR);
    assert_eq!(removed(&r), ["/s/1"], "once");
    // one that was there before, or that is kept for ever
    for mut r in [works_in("/s/1", false, Some(0)), works_in("/s/1", true, None)] {
        r.exits(501, 0);
        r.wait(HOUR);
        assert_eq!(removed(&r), [""; 0]);
    }
}

#[test]
fn directory_of_another_job_is_removed_when_that_has_left_it() {
    let mut r = works_in("/s/1", true, Some(0));
    begins(&mut r, 2, "/s/1/below", false, None);
    begins(&mut r, 3, "/s/10", false, None);
    r.exits(501, 0);
    r.wait(HOUR);
    assert_eq!(removed(&r), [""; 0]);
    r.exits(502, 0);
    r.wait(120);
    assert_eq!(removed(&r), ["/s/1"]);
}

#[test]
fn directory_is_removed_by_an_sbatchd_and_a_launcher_that_started_again() {
    for launcher_too in [false, true] {
        let mut r = works_in("/s/1", true, Some(HOUR));
        r.exits(501, 0);
        r.order(SbdMsg::Forget { key: key(1), mail: String::new() });
        r.crash();
        r.told.clear();
        if launcher_too {
            let journal = std::mem::take(&mut r.journal);
            r.lau = Launcher::new(launcher_conf(), journal);
            r.feed_launcher(Input::Start);
        }
        r.boot(true);
        r.greet(1);
        assert!(r.states().is_empty(), "it is no attempt");
        r.wait(HOUR + 10);
        assert_eq!(removed(&r), ["/s/1"], "{launcher_too}");
    }
}

#[test]
fn directory_that_cannot_be_removed_is_tried_three_times() {
    let mut r = works_in("/s/1", true, Some(0));
    r.exits(501, 0);
    for n in 1..=DIRECTORY_TRIES as usize + 1 {
        r.wait(61);
        assert_eq!(removed(&r).len(), n.min(DIRECTORY_TRIES as usize));
        if n <= DIRECTORY_TRIES as usize {
            removal_ends(&mut r, "no");
        }
    }
}

#[test]
fn temporary_directory_is_removed_at_the_end_of_each_attempt() {
    for code in [0, 3] {
        let mut r = Rig::new();
        r.copying = true;
        let ready = |path| Ready { temporary: directory(path, true), ..Ready::default() };
        r.setup = Some(Setup::Ready(Box::new(ready("/tmp/1.tmpdir"))));
        // with exit value 3 it goes back to its queue
        let mut o = order(1);
        std::sync::Arc::make_mut(&mut o.spec).further.requeue = "3".into();
        r.start(o);
        r.setup = None;
        assert_eq!(removed(&r), [""; 0]);
        r.exits(501, code << 8);
        r.wait(1);
        assert_eq!(removed(&r), ["/tmp/1.tmpdir"], "{code}");
        removal_ends(&mut r, "");
        r.wait(HOUR);
        assert_eq!(removed(&r).len(), 1, "once");
    }
}

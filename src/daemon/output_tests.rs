//! Output, reports and what jobs leave, in directories of the tests' own.

use super::*;
use crate::proto::launch::{Hook, HookOf};
use std::fs::FileTimes;

/// A home of its own, removed at the end.
struct Home(PathBuf);

impl Home {
    fn new() -> Home {
        let n = u32::from_ne_bytes(crate::sys::random::<4>().unwrap());
        let dir = std::env::temp_dir().join(format!("lsf-output-{n}"));
        std::fs::create_dir(&dir).unwrap();
        Home(dir)
    }
    fn user(&self) -> User {
        User {
            name: "u".into(),
            uid: crate::sys::euid(),
            gid: 0,
            home: self.0.to_string_lossy().into_owned(),
            shell: String::new(),
        }
    }
    fn store(&self) -> JobFiles {
        JobFiles::of(&self.user(), (7, 2, 99), "")
    }
    fn name(&self, rel: &str) -> ByteStr {
        self.0.join(rel).into_os_string().into_vec().into()
    }
    fn read(&self, rel: &str) -> String {
        std::fs::read_to_string(self.0.join(rel)).unwrap()
    }
    fn there(&self, rel: &str) -> bool {
        self.0.join(rel).exists()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn told(plan: &FinishPlan, home: &Home) -> String {
    match finished(plan, &home.user()) {
        Setup::Ready(ready) => ready.note,
        Setup::Failed { why, .. } => panic!("{why}"),
    }
}

/// A job whose output file is `out`, and its files once they are open.
fn opened(home: &Home, job: JobPlan) -> (Ready, File, File) {
    let job = JobPlan { job: 7, idx: 2, submit_time: 99, ..job };
    let mut ready = Ready::default();
    let got = open_all(&job, &home.0, &home.store(), &mut ready);
    let Ok((out, err)) = got else { panic!("refused") };
    (ready, File::from(out), File::from(err))
}

fn ends(ready: &Ready) -> FinishPlan {
    FinishPlan {
        append_to: ready.out.clone(),
        buffer: ready.buffer.clone(),
        err_buffer: ready.err_buffer.clone(),
        err: ready.err.clone(),
        text: "report\n".into(),
        tail: "tail\n".into(),
        kept_as: Some((7, 2, 99)),
        ..FinishPlan::default()
    }
}

#[test]
fn output_that_is_not_direct_follows_its_report() {
    let home = Home::new();
    std::fs::write(home.0.join("o"), "before\n").unwrap();
    let job = || JobPlan {
        buffered: true,
        out_file: "o".into(),
        err_file: "e".into(),
        ..JobPlan::default()
    };
    let (ready, mut out, mut err) = opened(&home, job());
    out.write_all(b"said\n").unwrap();
    err.write_all(b"bad\n").unwrap();
    assert_eq!((home.read("o"), home.there("e")), ("before\n".into(), false));
    assert_eq!(home.read(".lsbatch/99.7.2.out"), "said\n");
    assert_eq!(told(&ends(&ready), &home), "");
    assert_eq!(home.read("o"), "before\nreport\nsaid\ntail\n");
    assert_eq!(home.read("e"), "bad\n");
    assert!(!home.there(".lsbatch/99.7.2.out") && !home.there(".lsbatch/99.7.2.err"));
    // -oo
    let (ready, mut out, _) = opened(&home, JobPlan { out_over: true, ..job() });
    out.write_all(b"anew\n").unwrap();
    told(&FinishPlan { over: true, ..ends(&ready) }, &home);
    assert_eq!(home.read("o"), "report\nanew\ntail\n");
    // a device has no report, and waits for none
    let (ready, ..) = opened(&home, JobPlan { out_file: "/dev/null".into(), ..job() });
    assert!(ready.out.is_empty() && ready.buffer.is_empty());
}

#[test]
fn jobs_of_two_clusters_with_one_name_do_not_share_a_file() {
    let home = Home::new();
    let (one, mut out, _) = opened(&home, JobPlan::default());
    let (two, mut other, _) = opened(&home, JobPlan::default());
    assert_ne!(one.out, two.out);
    out.write_all(b"one").unwrap();
    other.write_all(b"two").unwrap();
    let read = |ready: &Ready| std::fs::read_to_string(ready.out.lossy().as_ref()).unwrap();
    assert_eq!((read(&one), read(&two)), ("one".into(), "two".into()));
    // the next attempt of a job that is gone goes on where it was
    drop((out, other));
    assert_eq!(opened(&home, JobPlan::default()).0.out, one.out);
}

#[test]
fn direct_output_stands_above_its_report() {
    let home = Home::new();
    let (ready, mut out, _) = opened(&home, JobPlan { out_file: "o".into(), ..JobPlan::default() });
    out.write_all(b"said\n").unwrap();
    assert_eq!(told(&ends(&ready), &home), "");
    assert_eq!(home.read("o"), "said\nreport\n");
}

#[test]
fn a_name_that_ends_in_a_slash_makes_its_directory() {
    for buffered in [false, true] {
        let home = Home::new();
        let job = JobPlan { buffered, out_file: "new/dir/".into(), ..JobPlan::default() };
        let (ready, mut out, _) = opened(&home, job);
        out.write_all(b"said\n").unwrap();
        assert_eq!(ready.note, "");
        told(&ends(&ready), &home);
        assert!(home.read("new/dir/7.2.out").contains("said\n"), "{buffered}");
    }
}

#[test]
fn a_report_that_cannot_be_written_is_kept_and_told() {
    let home = Home::new();
    let (ready, mut out, _) = opened(&home, JobPlan { out_file: "o".into(), ..JobPlan::default() });
    out.write_all(b"said\n").unwrap();
    // as where the disk is full: what is there now takes no more
    std::fs::remove_file(home.0.join("o")).unwrap();
    std::fs::create_dir(home.0.join("o")).unwrap();
    let (o, kept) = (home.0.join("o"), home.0.join(".lsbatch/99.7.2.report"));
    let words = told(&ends(&ready), &home);
    let want = format!("the report cannot be written to <{}>: ", o.display());
    let end = format!("; it is kept in <{}>", kept.display());
    assert!(words.starts_with(&want) && words.ends_with(&end), "{words}");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "report\n");
    // of output that comes at the end nothing is lost either
    let job = JobPlan { buffered: true, out_file: "p".into(), ..JobPlan::default() };
    let (ready, mut out, _) = opened(&home, job);
    out.write_all(b"later\n").unwrap();
    std::fs::create_dir(home.0.join("p")).unwrap();
    let words = told(&ends(&ready), &home);
    let end = format!("; output is kept in <{}>", ready.buffer.lossy());
    assert!(words.ends_with(&end), "{words}");
    assert_eq!(home.read(".lsbatch/99.7.2.out"), "later\n");
    // it is not made again where the job has removed it
    let gone = FinishPlan { append_to: home.name("none"), ..ends(&Ready::default()) };
    assert_eq!((told(&gone, &home), home.there("none")), (String::new(), false));
}

#[test]
fn transfers_back_are_done_before_it_is_told_and_name_what_failed() {
    let home = Home::new();
    let hook =
        |text: &str, shown: &str| Hook { shown: shown.into(), ..Hook::new(HookOf::Copy, text) };
    let copies = vec![
        hook("echo 'lsrcp: no such file' >&2; exit 1", "a < b"),
        hook("exit 3", "c < d"),
        hook("echo fine > done", "e < f"),
    ];
    let env = "PATH=/usr/bin:/bin\0".into();
    let plan = FinishPlan { copies, env, cwd: home.name(""), ..FinishPlan::default() };
    let want = "file transfer <a < b>: no such file; file transfer <c < d>: exit status: 3";
    assert_eq!(told(&plan, &home), want);
    assert_eq!(home.read("done"), "fine\n");
}

#[test]
fn files_that_jobs_left_are_removed_when_old_or_of_no_use() {
    let home = Home::new();
    let dir = home.0.join(".lsbatch");
    std::fs::create_dir(&dir).unwrap();
    let old = SystemTime::now() - Duration::from_secs(100);
    for (name, aged) in [
        (".hosts.h1.2", false),
        (".hosts.h12.2", false),
        ("99.7.out", true),
        ("99.7.2.err", true),
        ("99.8.report", true),
        ("99.7.2-0badcafe.out", true),
        ("99.7-0badcafe-0badcafe.out", true),
        ("99.9.out", false),
        ("notes.out", true),
        ("99.7", true),
        ("1.2.3.4.5.out", true),
    ] {
        let file = File::create(dir.join(name)).unwrap();
        if aged {
            file.set_times(FileTimes::new().set_modified(old)).unwrap();
        }
    }
    std::fs::write(home.0.join("target"), "").unwrap();
    std::os::unix::fs::symlink(home.0.join("target"), dir.join(".hosts.h1.3")).unwrap();
    let tidy = Some(Tidy { host: "h1".into(), keep_secs: 50 });
    let plan = FinishPlan { tidy, ..FinishPlan::default() };
    let Setup::Ready(ready) = finished(&plan, &home.user()) else { panic!() };
    assert!(ready.kept, "one is young");
    let mut left: Vec<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    let want = [
        ".hosts.h1.3",
        ".hosts.h12.2",
        "1.2.3.4.5.out",
        "99.7",
        "99.7-0badcafe-0badcafe.out",
        "99.9.out",
        "notes.out",
    ];
    assert_eq!(left, want);
}

/// A job on another host, or of another cluster, that has said nothing for a long time.
#[test]
fn old_output_that_a_job_still_has_open_is_not_removed() {
    let home = Home::new();
    let (ready, out, err) = opened(&home, JobPlan::default());
    assert!(ready.kept);
    let old = SystemTime::now() - Duration::from_secs(100);
    out.set_times(FileTimes::new().set_modified(old)).unwrap();
    let tidied = || {
        let tidy = Some(Tidy { host: "h1".into(), keep_secs: 50 });
        let Setup::Ready(ready) =
            finished(&FinishPlan { tidy, ..FinishPlan::default() }, &home.user())
        else {
            panic!()
        };
        (ready.kept, home.there(".lsbatch/99.7.2.out"))
    };
    assert_eq!(tidied(), (true, true));
    drop((out, err));
    assert_eq!(tidied(), (false, false));
}

#[test]
fn jobs_of_two_personal_clusters_with_one_number_and_second_have_files_of_their_own() {
    let home = Home::new();
    let opened = |tag: &str| {
        let store = JobFiles::of(&home.user(), (7, 2, 99), tag);
        let mut ready = Ready::default();
        let got = open_all(&JobPlan::default(), &home.0, &store, &mut ready);
        (ready.out, got.map_err(|_| ()).unwrap())
    };
    let (one, mut files) = opened("-00000001");
    files.0 = File::options().read(true).open("/dev/null").unwrap().into();
    drop(files);
    let (other, _) = opened("-00000002");
    assert_ne!(one, other);
}

#[test]
fn one_file_for_output_and_error_output_has_both() {
    for (over, name) in [(true, "o"), (true, "./o"), (false, "o")] {
        let home = Home::new();
        std::fs::write(home.0.join("o"), "before\n").unwrap();
        let job = JobPlan {
            buffered: true,
            out_file: "o".into(),
            err_file: name.into(),
            out_over: over,
            err_over: over,
            ..JobPlan::default()
        };
        let (ready, mut out, mut err) = opened(&home, job);
        out.write_all(b"out\n").unwrap();
        err.write_all(b"err\n").unwrap();
        drop((out, err));
        let plan = FinishPlan { over, err_over: over, ..ends(&ready) };
        assert_eq!(told(&plan, &home), "");
        let before = if over { "" } else { "before\n" };
        assert_eq!(home.read("o"), format!("{before}report\nout\ntail\nerr\n"));
    }
}

//! File systems without room: the log directory, its private directory, that of the launcher's
//! journal, and NLB_SERVER_DIR, each on a small file system of its own that is really full.

use super::nlb::{hosts, with_server};
use super::rig::{Rig, Said, alive, find, kill, skipped, wait_for};
use super::site::{ADMIN, MultiUserSite, uid};
use std::io::Write;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const LOGDIR: &str = "work/personal/logdir";

/// A site of one host whose `dir` is a file system of 2 MB.
fn site(name: &str, dir: &'static str, mode: &str) -> MultiUserSite {
    let mut site = MultiUserSite::new(name, 1);
    let (path, admin) = (site.path(dir), uid(ADMIN));
    std::fs::create_dir_all(&path).unwrap();
    chown(&path, Some(admin), Some(admin)).unwrap();
    let options = format!("size=2m,uid={admin},gid={admin},mode={mode}");
    site.mounts = vec![(dir, Box::leak(options.into_boxed_str()))];
    site.start();
    site
}

fn pid(site: &MultiUserSite, daemon: &str) -> Option<u32> {
    site.processes().into_iter().find(|p| p.0 == daemon).map(|p| p.1)
}

/// The directory as the launcher sees it.
fn inside(site: &MultiUserSite, dir: &str) -> PathBuf {
    let root = format!("/proc/{}/root", pid(site, "launcher").unwrap());
    Path::new(&root).join(site.path(dir).strip_prefix("/").unwrap())
}

/// Fills the file system to its last byte.
pub fn fill(dir: &Path) -> PathBuf {
    let path = dir.join("filler");
    let mut file = std::fs::File::create(&path).unwrap();
    for piece in [&[0; 64 << 10][..], &[0; 1]] {
        while file.write_all(piece).is_ok() {}
    }
    path
}

/// A submission whose environment does not fit behind what the last page of a file has.
const SUBMIT: &str = "PAD=$(head -c 9000 /dev/zero | tr '\\0' x)$(date +%N) LSB_NTRIES=1 bsub -o \
                      /dev/null true";

/// bsub is refused, and says that there is no room, or that the log is not written yet.
fn refused(site: &MultiUserSite) {
    let said: Said = site.run("ann", SUBMIT);
    assert_eq!(said.code, 255, "{}{}", said.out, said.err);
    let words = ["No space left on device", "The event log cannot be written"];
    assert!(words.iter().any(|words| said.err.contains(words)), "{}", said.err);
    assert!(said.err.contains("Job not submitted"), "{}", said.err);
}

/// The disk fills while jobs run, mbatchd starts on it, and there is room again.
fn fills_and_empties(site: &MultiUserSite, dir: &str) {
    let held = site.bsub("ann", "-H -o /dev/null true");
    let before = site.bsub("ann", "-o /dev/null true");
    assert_eq!(site.end_of(before), "DONE");
    let job = site.bsub("ann", "-o /dev/null 'while [ ! -e go ]; do sleep 0.1; done; exit 5'");
    wait_for("the job to run", || site.stat(job) == "RUN");
    let filler = fill(&inside(site, dir));
    wait_for("submissions to be refused", || {
        site.run("ann", SUBMIT).err.contains("No space left on device")
    });
    // its end is told now, and cannot be logged
    site.ok("ann", "touch go");
    let old = pid(site, "mbatchd").unwrap();
    kill(old, 9);
    wait_for("it to be dead", || !alive(old));
    wait_for("the next one to answer", || {
        pid(site, "mbatchd").is_some() && site.run("ann", "LSB_NTRIES=1 bqueues").code == 0
    });
    let serves = pid(site, "mbatchd").unwrap();
    assert_ne!(serves, old);
    assert_eq!((site.stat(held).as_str(), site.stat(before).as_str()), ("PSUSP", "DONE"));
    refused(site);
    let log = std::fs::read_to_string(site.path("log/mbatchd.log.host1")).unwrap();
    assert!(!log.contains("mbatchd does not start"), "{log}");
    std::fs::remove_file(filler).unwrap();
    wait_for("submissions to be taken again", || site.run("ann", SUBMIT).code == 0);
    assert_eq!(pid(site, "mbatchd"), Some(serves));
    assert_eq!(site.end_of(job), "EXIT");
    let code = site.ok("ann", &format!("bjobs -a -noheader -o exit_code {job}"));
    assert_eq!(code.trim(), "5");
    // all of it is in the log, and each end once in lsb.acct
    kill(serves, 9);
    wait_for("it to be dead", || !alive(serves));
    wait_for("the last one to answer", || site.stat(held) == "PSUSP");
    assert_eq!((site.stat(job).as_str(), site.stat(before).as_str()), ("EXIT", "DONE"));
    let acct = inside(site, LOGDIR).join("lsb.acct");
    for id in [before, job] {
        let ends = || {
            let text = String::from_utf8_lossy(&std::fs::read(&acct).unwrap()).into_owned();
            let of = |line: &&str| line.split(' ').nth(3) == Some(&id.to_string());
            text.lines().filter(of).count()
        };
        assert_eq!(ends(), 1, "{id}");
    }
}

#[test]
fn submissions_with_a_full_log_directory_are_refused_over_a_restart_without_loss() {
    if !MultiUserSite::possible("submissions_with_a_full_log_directory_are_refused") {
        return;
    }
    fills_and_empties(&site("fulllog", LOGDIR, "0755"), LOGDIR);
}

#[test]
fn submissions_with_a_full_private_directory_are_refused_over_a_restart_without_loss() {
    if !MultiUserSite::possible("submissions_with_a_full_private_directory_are_refused") {
        return;
    }
    const INFO: &str = "work/personal/logdir/info";
    fills_and_empties(&site("fullinfo", INFO, "0700"), INFO);
}

/// A file system of 1 MB below a path, for all.
pub struct Mounted(pub PathBuf);

impl Mounted {
    /// Mounts a small file system; `None` if that is impossible here: the test counts as skipped.
    pub fn over(name: &str, dir: PathBuf) -> Option<Mounted> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m,mode=0700", "none"]).arg(&dir);
        if mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
            return Some(Mounted(dir));
        }
        skipped(&format!("{name}: needs root and mounts of its own"));
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn launcher_with_a_full_journal_directory_starts_no_job_and_forgets_none() {
    let name = "launcher_with_a_full_journal_directory_starts_no_job_and_forgets_none";
    let rig = Rig::up("fulljournal", 1);
    let mut found = Vec::new();
    find(&rig.dir, "launcher.journal", &mut found);
    let dir = found[0].parent().unwrap().to_path_buf();
    assert_eq!(rig.down().code, 0);
    let Some(mounted) = Mounted::over(name, dir) else { return };
    rig.start();
    rig.ready();
    let runs = |n: u32| {
        let command = format!("while [ ! -e go{n} ]; do sleep 0.1; done; exit {n}");
        rig.bsub(&["-o", "/dev/null", &command])
    };
    let job = runs(5);
    wait_for("the job to run", || rig.stat(job) == "RUN");
    let filler = fill(&mounted.0);
    // the last page of the journal has room for some jobs
    rig.write("go6", "");
    let mut jobs = vec![job];
    let why = |late: u32| rig.run("bjobs", &["-l", &late.to_string()]).out;
    wait_for("a job that is not started", || {
        let late = runs(6);
        jobs.push(late);
        wait_for("its end or its reason", || {
            rig.stat(late) == "EXIT" || why(late).contains("No space left on device")
        });
        rig.stat(late) != "EXIT"
    });
    let late = *jobs.last().unwrap();
    // an end that cannot be entered is told even so
    rig.write("go5", "");
    assert_eq!(rig.end_of(job), "EXIT");
    assert_eq!(rig.stat(late), "PEND", "{}", why(late));
    std::fs::remove_file(filler).unwrap();
    assert_eq!(rig.end_of(late), "EXIT");
    for (id, code) in [(job, "5"), (late, "6")] {
        assert_eq!(rig.field(&id.to_string(), "exit_code"), code);
    }
    // told once, not with each try; and all that was told is in the journal
    let said = rig.read("log/launcher.log.host1");
    assert_eq!(said.matches("no task is started until it is written").count(), 1, "{said}");
    let text = std::fs::read_to_string(mounted.0.join("launcher.journal")).unwrap();
    for id in jobs {
        let forgotten = format!("{{\"Forget\":{{\"key\":{{\"job\":{id},");
        assert!(text.contains(&forgotten), "{text}");
    }
    rig.down();
}

/// The other host of the job has no room for the journal of its launcher.
#[test]
fn task_of_blaunch_on_a_host_with_a_full_disk_is_refused_with_the_reason() {
    let name = "task_of_blaunch_on_a_host_with_a_full_disk_is_refused_with_the_reason";
    let rig = Rig::up("fulltask", 2);
    let mut found = Vec::new();
    find(&rig.dir, "launcher.journal", &mut found);
    let dir = found.iter().find(|path| path.to_string_lossy().contains("host2")).unwrap();
    let dir = dir.parent().unwrap().to_path_buf();
    assert_eq!(rig.down().code, 0);
    let Some(mounted) = Mounted::over(name, dir) else { return };
    rig.start();
    rig.ready();
    // the last page of the journal has room for some tasks
    let script = "blaunch host2 echo before\nwhile ! test -e go; do sleep 0.1; done\n\
                  n=0; while blaunch host2 : 2> err; do test $((n += 1)) -lt 500 || break; done\n\
                  blaunch host2 touch x; echo code $?\n\
                  touch full; while ! test -e free; do sleep 0.1; done\n\
                  blaunch host2 echo behind; echo code $?";
    rig.write("job.sh", script);
    let hosts = ["-n", "2", "-R", "span[ptile=1]", "-m", "host1! host2", "-o", "/dev/null"];
    let job = rig.bsub(&[&hosts[..], &["sh job.sh > said 2>&1"]].concat());
    wait_for("the job to run", || rig.read("said") == "before\n");
    let filler = fill(&mounted.0);
    rig.write("go", "");
    wait_for("a refusal", || rig.path("full").exists());
    std::fs::remove_file(filler).unwrap();
    rig.write("free", "");
    assert_eq!(rig.end_of(job), "DONE");
    let why = "RES failed internally (launcher.journal: No space left on device)";
    let want = format!(
        "before\nblaunch: host2: {why}\nlsb_launch(): Failed while executing tasks.\ncode 255\n\
         behind\ncode 0\n"
    );
    assert_eq!(rig.read("said"), want);
    assert!(!rig.path("x").exists());
    rig.down();
}

const NLB_DIR: &str = "work/personal/nqe/nlbdir";
/// The policies that are in force before the disk is full, and those that are to be.
const POLICIES: &str = "policy: before sort: NLB_SITE_BEFORE\n";

/// The maps, the objects and the policies of the server.
fn nlb_in_force(rig: &Rig) -> [Vec<String>; 3] {
    let lines = |applet: &str, args: &[&str], kept: &dyn Fn(&str) -> bool| {
        let text = rig.ok(applet, args);
        text.lines().filter(|line| kept(line)).map(str::to_owned).collect::<Vec<_>>()
    };
    // values that are measured differ each time
    let own = ["NLB_SITE", "NLB_CLOCK", "object "];
    [
        lines("nlbconfig", &["-mdump"], &|line| !line.starts_with('#')),
        lines("nlbpolicy", &["-p", "before", "-d"], &|line| own.iter().any(|w| line.contains(w))),
        lines("nlbconfig", &["-status"], &|line| line.starts_with("POLICIES: ")),
    ]
}

/// Commands that change what the server has on its disk, each with the command that shows that it
/// is in force, and the words there.
const CHANGES: [(&[&str], &[&str], &str); 4] = [
    (&["-mput", "map2"], &["-mdump"], "NLB_SITE_MORE"),
    (&["-oupdat", "objects2"], &["-odump"], "NLB_SITE_BEFORE = 22;"),
    (&["-oput", "objects2"], &["-odump"], "NLB_SITE_BEFORE = 22;"),
    (&["-pol"], &["-status"], "POLICIES: before more\n"),
];

/// The changes that are answered while there is room, and the files of the changes that follow.
fn before_it_is_full(rig: &Rig) {
    let map = rig.ok("nlbconfig", &["-mdump"]);
    let with = |attributes: &str| {
        map.replace("map NLB = 1024 {", &format!("map NLB = 1024 {{\n{attributes}"))
    };
    let before = "\tNLB_SITE_BEFORE \"Site\" integer(8192);";
    rig.write("map", &with(before));
    rig.ok("nlbconfig", &["-mput", "map"]);
    rig.write("map2", &with(&format!("{before}\n\tNLB_SITE_MORE \"More\" integer(8200);")));
    rig.write("objects", "object NLB (host1) { NLB_SITE_BEFORE = 1; }\n");
    rig.ok("nlbconfig", &["-oupdat", "objects"]);
    rig.write("objects2", "object NLB (host2) { NLB_SITE_BEFORE = 22; NLB_CLOCK = 5; }\n");
    rig.write(&format!("{NLB_DIR}/policies"), POLICIES);
    rig.ok("nlbconfig", &["-pol"]);
}

#[test]
fn nlbserver_on_a_full_disk_refuses_changes_and_keeps_what_it_has_answered() {
    let name = "nlbserver_on_a_full_disk_refuses_changes_and_keeps_what_it_has_answered";
    let rig = Rig::up("fullnlb", 2);
    with_server(&rig);
    assert_eq!(rig.down().code, 0);
    let Some(mounted) = Mounted::over(name, rig.path(NLB_DIR)) else { return };
    rig.start();
    rig.ready();
    hosts(&rig, &[]);
    before_it_is_full(&rig);
    let generation = || {
        let all = rig.ok("nlbconfig", &["-status"]);
        all.lines().find(|line| line.starts_with("GENERATION: ")).map(str::to_owned).unwrap()
    };
    let (before, at) = (nlb_in_force(&rig), generation());
    let files = || {
        let names = std::fs::read_dir(&mounted.0).unwrap().map(|entry| entry.unwrap().file_name());
        let mut all: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        all.sort();
        let texts = ["name_map", "objects", "policies.last"];
        (all, texts.map(|name| std::fs::read(mounted.0.join(name)).unwrap()))
    };
    // longer than what the last page of a file may have room for
    let long = format!("{POLICIES}{}policy: more sort: NLB_NCPUS\n", "# more\n".repeat(900));
    rig.write(&format!("{NLB_DIR}/policies"), &long);
    let filler = fill(&mounted.0);
    let on_disk = files();
    for (args, ..) in CHANGES {
        let said = rig.run("nlbconfig", args);
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{args:?}: {}", said.err);
        assert!(said.err.contains("No space left on device"), "{args:?}: {}", said.err);
        assert_eq!(nlb_in_force(&rig), before, "{args:?}");
        assert!(files() == on_disk, "{args:?}: {:?}", files().0);
    }
    assert_eq!(generation(), at);
    // the next server starts on the full disk with what this one has answered
    rig.write(&format!("{NLB_DIR}/policies"), POLICIES);
    assert!(rig.kill9("nlbserver", "host1"));
    hosts(&rig, &[]);
    assert_eq!(nlb_in_force(&rig), before);
    std::fs::remove_file(filler).unwrap();
    rig.write(&format!("{NLB_DIR}/policies"), &long);
    for (args, show, words) in CHANGES {
        rig.ok("nlbconfig", args);
        assert!(rig.ok("nlbconfig", show).contains(words), "{args:?}");
    }
    let after = nlb_in_force(&rig);
    assert_ne!(after, before);
    assert!(rig.kill9("nlbserver", "host1"));
    hosts(&rig, &[]);
    assert_eq!(nlb_in_force(&rig), after);
    rig.down();
}

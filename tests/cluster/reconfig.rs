//! badmin reconfig: a broken file changes nothing and is pointed at; the mended one takes effect;
//! a crontab line swaps day and night, under cron itself where root has one.

use crate::rig::{Rig, binary, skipped, wait_for};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn policies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conf-examples/policies")
}

#[test]
fn reconfiguration_with_a_broken_file_keeps_the_old_policy() {
    let rig = Rig::up("reconfig", 1);
    let queues = rig.configdir().join("lsb.queues");
    let good = std::fs::read_to_string(&queues).unwrap();
    let held = rig.bsub(&["-H", "-o", "/dev/null", "true"]);
    let before = rig.ok("bqueues", &[]);
    let broken = format!("{good}\nBegin Queue\nQUEUE_NAME = extra\nPRIORITTY = 7\nEnd Queue\n");
    std::fs::write(&queues, &broken).unwrap();
    let line = broken.lines().position(|l| l.starts_with("PRIORITTY")).unwrap() + 1;
    let said = rig.run("badmin", &["reconfig"]);
    assert_eq!(said.code, 255, "{said:?}");
    let words = format!("{}{}", said.out, said.err);
    assert!(words.contains(&format!("lsb.queues:{line}:")), "{words}");
    assert!(words.contains("PRIORITY"), "the nearest word: {words}");
    assert_eq!(rig.ok("bqueues", &[]), before);
    assert_eq!(rig.run("badmin", &["ckconfig", "-v"]).code, 255);
    std::fs::write(&queues, broken.replace("PRIORITTY", "PRIORITY")).unwrap();
    rig.ok("badmin", &["reconfig"]);
    assert!(rig.ok("bqueues", &[]).contains("extra"));
    assert_eq!(rig.stat(held), "PSUSP");
    rig.ok("bresume", &[&held.to_string()]);
    assert_eq!(rig.end_of(held), "DONE");
}

#[test]
fn time_branches_of_the_files_follow_the_clock() {
    let rig = Rig::up("timed", 1);
    let queues = rig.configdir().join("lsb.queues");
    let good = std::fs::read_to_string(&queues).unwrap();
    let now = "time(0:00-12:00 UTC) || time(12:00-24:00 UTC)".replace("24:00", "0:00");
    let timed = |other: &str| {
        format!(
            "{good}\nBegin Queue\nQUEUE_NAME = swing\n#if {now}\nPRIORITY = 77\n#else\n{other}\n\
             #endif\nEnd Queue\n"
        )
    };
    std::fs::write(&queues, timed("PRIORITY = 11")).unwrap();
    rig.ok("badmin", &["reconfig"]);
    let shown = rig.ok("bqueues", &["swing"]);
    assert!(shown.contains("swing            77  Open:Active"), "{shown}");
    // what does not hold now is checked all the same
    let broken = timed("PRIORITTY = 11");
    std::fs::write(&queues, &broken).unwrap();
    let line = broken.lines().position(|l| l.starts_with("PRIORITTY")).unwrap() + 1;
    let said = rig.run("badmin", &["ckconfig", "-v"]);
    assert_eq!(said.code, 255);
    assert!(said.err.contains(&format!("lsb.queues:{line}:1: ")), "{}", said.err);
    let said = rig.run("badmin", &["reconfig", "-f"]);
    assert_eq!(said.code, 255, "{said:?}");
}

/// A user of /etc/passwd whose primary group has another name, with that name; and another user
/// who is not in it.
fn somebody() -> Option<(String, String, String)> {
    let read = |p| std::fs::read_to_string(p).unwrap_or_default();
    let (passwd, group) = (read("/etc/passwd"), read("/etc/group"));
    let column = |line: &str, n| line.split(':').nth(n).unwrap_or_default().to_string();
    let line = |gid: &str| group.lines().find(|l| column(l, 2) == gid).map(str::to_string);
    passwd.lines().find_map(|l| {
        let (user, of) = (column(l, 0), line(&column(l, 3))?);
        let name = column(&of, 0);
        let in_it = |o: &str| {
            column(o, 3) == column(l, 3)
                || column(&of, 3).split(',').any(|m| m == column(o, 0))
                || column(o, 0) == name
        };
        let other = passwd.lines().find(|o| !in_it(o) && column(o, 2) != "0")?;
        (user != name && column(l, 2) != "0").then(|| (user, name, column(other, 0)))
    })
}

#[test]
fn users_of_a_queue_may_be_a_group_of_the_operating_system() {
    let Some((member, group, other)) = somebody() else {
        return skipped(
            "users_of_a_queue_may_be_a_group_of_the_operating_system: no user has a second group",
        );
    };
    let rig = Rig::up("groups", 1);
    let queues = rig.configdir().join("lsb.queues");
    let mut text = std::fs::read_to_string(&queues).unwrap();
    text.push_str(&format!("\nBegin Queue\nQUEUE_NAME = few\nUSERS = {group}\nEnd Queue\n"));
    std::fs::write(&queues, text).unwrap();
    rig.ok("badmin", &["reconfig"]);
    assert!(rig.ok("bqueues", &["-u", &member]).contains("few"), "{member} is in {group}");
    assert!(!rig.ok("bqueues", &["-u", &other]).contains("few"), "{other} is not in {group}");
}

#[test]
fn real_job_is_suspended_when_its_run_window_closes() {
    let rig = Rig::up("windows", 1);
    let queues = rig.configdir().join("lsb.queues");
    let text = std::fs::read_to_string(&queues).unwrap();
    // The daemons' zone is this process's.
    let hour = Command::new("date").arg("+%-H").output().unwrap().stdout;
    let hour: u32 = String::from_utf8(hour).unwrap().trim().parse().unwrap();
    let set = |window: &str| {
        let queue = format!("\nBegin Queue\nQUEUE_NAME = shift\n{window}\nEnd Queue\n");
        std::fs::write(&queues, format!("{text}{queue}")).unwrap();
        rig.ok("badmin", &["reconfig"]);
    };
    set("");
    let job = rig.bsub(&["-q", "shift", "-o", "/dev/null", "exec sleep 1000"]);
    let id = job.to_string();
    wait_for("the job's process", || rig.field(&id, "pids").parse::<u32>().is_ok());
    let pid = rig.field(&id, "pids");
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(") ").next().unwrap().chars().next().unwrap()
    };
    set(&format!("RUN_WINDOW = {}:00-{}:00", (hour + 10) % 24, (hour + 11) % 24));
    wait_for("the job to be suspended", || rig.stat(job) == "SSUSP" && state() == 'T');
    let long = rig.ok("bjobs", &["-l", &id]);
    assert!(long.contains("The run windows of the queue are closed"), "{long}");
    assert!(rig.ok("bqueues", &["shift"]).contains("Open:Inact_Win"));
    assert!(rig.ok("bqueues", &["-l", "shift"]).contains("RUN_WINDOW: "));
    let waits = rig.bsub(&["-q", "shift", "-o", "/dev/null", "true"]).to_string();
    let why = rig.ok("bjobs", &["-p", &waits]);
    assert!(why.contains("The queue is inactivated by its time windows"), "{why}");
    // mbatchd may be killed over it.
    rig.kill9("mbatchd", "host1");
    rig.ready();
    assert_eq!((rig.stat(job).as_str(), state()), ("SSUSP", 'T'));
    set(&format!("RUN_WINDOW = {}:00-{}:00", (hour + 22) % 24, (hour + 3) % 24));
    wait_for("the job to go on", || rig.stat(job) == "RUN" && state() == 'S');
    let past = rig.ok("bhist", &["-l", &id]);
    assert!(past.contains("Suspended: The run windows of the queue are closed;"), "{past}");
    rig.ok("bkill", &[&id]);
    assert_eq!(rig.end_of(job), "EXIT");
}

/// A crontab's command that puts a policy in place, without LSF_ENVDIR.
fn crontab_command(rig: &Rig, policies: &Path, name: &str) -> String {
    let bin = rig.path("bin/badmin");
    let bin = bin.parent().unwrap().display();
    let (swap, configdir) = (policies.join("swap"), rig.configdir());
    format!("PATH={bin}:$PATH {} {name} {}", swap.display(), configdir.display())
}

/// Runs a script as cron does: a bare environment, no terminal.
fn as_cron(rig: &Rig, policies: &Path, name: &str) -> std::process::Output {
    Command::new("/bin/sh")
        .args(["-c", &crontab_command(rig, policies, name)])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("SHELL", "/bin/sh")
        .env("HOME", "/nonexistent")
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The cluster has the queues of a policy.
fn in_force(rig: &Rig, name: &str) {
    let text = std::fs::read_to_string(policies().join(name).join("lsb.queues")).unwrap();
    let wanted: Vec<String> = (text.lines())
        .filter_map(|l| l.trim().strip_prefix("QUEUE_NAME"))
        .map(|l| l.trim_start_matches([' ', '=']).split('#').next().unwrap().trim().to_string())
        .collect();
    let shown = rig.ok("bqueues", &[]);
    let names: Vec<&str> =
        shown.lines().skip(1).filter_map(|l| l.split_whitespace().next()).collect();
    // All policies have the same queues: their order tells them apart.
    assert!(wanted.len() > 1, "{text}");
    assert_eq!(names, wanted, "{name}: {shown}");
}

#[test]
fn crontab_line_swaps_the_policies_of_night_weekend_and_day() {
    assert!(binary().exists());
    let rig = Rig::up("crontab", 3);
    for (name, limit) in
        [("night", "short_by_night"), ("weekend", "idle_at_the_weekend"), ("day", "normal_by_day")]
    {
        let out = as_cron(&rig, &policies(), name);
        let err = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(0), "{name}: {err}");
        in_force(&rig, name);
        let limits = rig.ok("blimits", &["-c"]);
        assert!(limits.contains(limit), "{name}: {limits}");
    }
}

#[test]
fn policy_with_a_mistake_leaves_the_files_of_the_one_before() {
    let rig = Rig::up("mistaken", 1);
    let own = rig.path("policies");
    for dir in ["day", "broken"] {
        std::fs::create_dir_all(own.join(dir)).unwrap();
        for file in ["lsb.queues", "lsb.resources"] {
            std::fs::copy(policies().join("day").join(file), own.join(dir).join(file)).unwrap();
        }
    }
    std::fs::copy(policies().join("swap"), own.join("swap")).unwrap();
    let broken = own.join("broken/lsb.resources");
    std::fs::write(&broken, "Begin Limit\nSLOTTS = 4\nEnd Limit\n").unwrap();
    assert_eq!(as_cron(&rig, &own, "day").status.code(), Some(0));
    let files = || {
        ["lsb.queues", "lsb.resources"]
            .map(|file| std::fs::read_to_string(rig.configdir().join(file)).unwrap())
    };
    let before = (files(), rig.ok("blimits", &["-c"]));
    let out = as_cron(&rig, &own, "broken");
    assert_eq!(out.status.code(), Some(255));
    let said = [out.stdout, out.stderr].concat();
    assert!(String::from_utf8_lossy(&said).contains("lsb.resources:2:"));
    assert_eq!((files(), rig.ok("blimits", &["-c"])), before);
}

/// Longest a crontab line waits for its minute.
const MINUTE: Duration = Duration::from_secs(75);

/// A line of the system's crontabs, and the cron started for it if none ran; both go with it.
pub struct Crontab {
    file: PathBuf,
    cron: Option<Child>,
}

impl Crontab {
    /// Adds the line to cron; `None`: there is no cron, or it may not run here.
    pub fn new(line: &str) -> Option<Crontab> {
        let cron = ["/usr/sbin/cron", "/sbin/cron"].into_iter().find(|p| Path::new(p).exists())?;
        // cron takes names without a dot alone, and files of root that nobody else may write.
        let file = PathBuf::from(format!("/etc/cron.d/lsf-test-{}", std::process::id()));
        std::fs::write(&file, line).ok()?;
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).ok()?;
        let mut tab = Crontab { file, cron: None };
        if !is_running("cron") {
            let mut command = Command::new(cron);
            command.arg("-f").stdin(Stdio::null()).stdout(Stdio::null());
            tab.cron = Some(command.spawn().ok()?);
        }
        Some(tab)
    }

    /// Waits until the line has run, which writes a line to this file at its end.
    pub fn ran(&self, code: &Path) {
        let end = Instant::now() + MINUTE;
        while !std::fs::read_to_string(code).is_ok_and(|c| c.ends_with('\n')) {
            assert!(Instant::now() < end, "cron did not run its line within {MINUTE:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Crontab {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
        if let Some(cron) = &mut self.cron {
            let _ = cron.kill();
            let _ = cron.wait();
        }
    }
}

fn is_running(name: &str) -> bool {
    let comm = |e: std::fs::DirEntry| std::fs::read_to_string(e.path().join("comm"));
    std::fs::read_dir("/proc").unwrap().flatten().any(|e| comm(e).is_ok_and(|c| c.trim() == name))
}

#[test]
fn cron_swaps_the_policy() {
    const NAME: &str = "cron_swaps_the_policy";
    if !rustix::process::geteuid().is_root() {
        return skipped(&format!("{NAME}: only root has a line in /etc/cron.d"));
    }
    let rig = Rig::up("cron", 3);
    assert_eq!(as_cron(&rig, &policies(), "day").status.code(), Some(0));
    in_force(&rig, "day");
    let (said, code, env) = (rig.path("cron.said"), rig.path("cron.code"), rig.path("cron.env"));
    // Once is enough, should the test see the minute after it.
    let line = format!(
        "* * * * * root [ -e {code} ] || {{ env >{env}; {{ {}; }} >{said} 2>&1; echo $? >{code}; }}\n",
        crontab_command(&rig, &policies(), "night"),
        code = code.display(),
        env = env.display(),
        said = said.display()
    );
    let Some(tab) = Crontab::new(&line) else {
        return skipped(&format!("{NAME}: cron is not installed"));
    };
    tab.ran(&code);
    drop(tab);
    let read = |p: &Path| std::fs::read_to_string(p).unwrap();
    assert_eq!(read(&code), "0\n", "{}", read(&said));
    assert!(!read(&env).contains("LSF_ENVDIR"), "{}", read(&env));
    in_force(&rig, "night");
}

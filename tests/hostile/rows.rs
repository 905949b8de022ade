//! Attacks by users of a real cluster of several users: what the threat model's rows say of files,
//! names, environments, roles and texts. Root alone can run them (see `site`).

use crate::rig::{self, program, wait_for};
use crate::site::{ADMIN, MultiUserSite, uid};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A link is put where the cluster makes files of a user's, by another user who is allowed to
/// write there: it must lead nowhere.
#[test]
fn links_planted_in_the_way_are_not_followed() {
    if !MultiUserSite::possible("links_planted_in_the_way_are_not_followed") {
        return;
    }
    let site = MultiUserSite::new("planted", 1);
    // ann has no home to write to, so her job files go below /tmp
    let home = site.path("home/ann");
    chown(&home, Some(0), Some(0)).unwrap();
    let below = PathBuf::from(format!("/tmp/.lsbtmp{}", uid("ann")));
    let _ = std::fs::remove_file(&below);
    let _ = std::fs::remove_dir_all(&below);
    let trap = site.path("home/bob/trap");
    std::fs::create_dir(&trap).unwrap();
    std::fs::set_permissions(&trap, PermissionsExt::from_mode(0o777)).unwrap();
    chown(&trap, Some(uid("bob")), None).unwrap();
    let mut site = site;
    site.start();
    let run = |site: &MultiUserSite| {
        let job = site.bsub("ann", "-cwd /tmp 'echo said'");
        wait_for("the job to end or to be refused", || {
            let why = site.run("ann", &format!("bjobs -p {job}")).out;
            matches!(site.stat(job).as_str(), "DONE" | "EXIT") || why.contains("open")
        });
        let stat = site.stat(job);
        site.run("ann", &format!("bkill {job}"));
        stat
    };
    // bob's link, bob's directory, ann's own directory that others may enter
    symlink(&trap, &below).unwrap();
    assert_eq!(run(&site), "PEND");
    std::fs::remove_file(&below).unwrap();
    std::fs::create_dir(&below).unwrap();
    chown(&below, Some(uid("bob")), None).unwrap();
    assert_eq!(run(&site), "PEND");
    chown(&below, Some(uid("ann")), None).unwrap();
    std::fs::set_permissions(&below, PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(run(&site), "PEND");
    std::fs::set_permissions(&below, PermissionsExt::from_mode(0o700)).unwrap();
    assert_eq!(run(&site), "DONE");
    assert_eq!(std::fs::read_dir(&trap).unwrap().count(), 0);
    std::fs::remove_dir_all(&below).unwrap();
}

/// The name of an output file is exchanged for a link while jobs of its owner write to it.
#[test]
fn a_name_exchanged_while_it_is_opened_opens_nothing_of_anothers() {
    if !MultiUserSite::possible("a_name_exchanged_while_it_is_opened_opens_nothing_of_anothers") {
        return;
    }
    let site = MultiUserSite::up("swap", 1);
    site.write("rootonly", "before\n");
    std::fs::set_permissions(site.path("rootonly"), PermissionsExt::from_mode(0o600)).unwrap();
    let root = site.path("rootonly");
    // ann herself exchanges it as fast as she can
    let line = format!(
        "end=$(($(date +%s) + 6)); while [ $(date +%s) -lt $end ]; do ln -sf {} x; rm -f x; \
         : > x; rm -f x; done",
        root.display()
    );
    let mut swap = site.shell("ann", &line).spawn().unwrap();
    site.ok("ann", "bsub -J 'a[1-60]' -o x -oo x 'echo said'");
    swap.wait().unwrap();
    wait_for("the array to end", || !site.run("ann", "bjobs -r -p").out.contains("a["));
    assert_eq!(std::fs::read_to_string(&root).unwrap(), "before\n");
    assert_eq!(root.metadata().unwrap().uid(), 0);
}

/// strace over a running process, which changes what a system call does.
fn inject(pid: u32, what: &str) -> Option<Child> {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-o", "/dev/null", "-e", &format!("inject={what}")]);
    // the launcher, and the process of which it has starters made
    let mut all = lsf::sys::procs::children(pid);
    all.retain(|p| p.name() == "starter");
    let all: Vec<u32> = all.into_iter().map(|p| p.pid).chain([pid]).collect();
    for pid in &all {
        strace.args(["-p", &pid.to_string()]);
    }
    strace.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = strace.spawn().ok()?;
    let mut said = BufReader::new(child.stderr.take()?).lines().map_while(Result::ok);
    if all.iter().all(|_| said.any(|line| line.contains("attached"))) {
        // it ends where nobody reads what it says of each new process
        std::thread::spawn(move || said.for_each(drop));
        return Some(child);
    }
    let _ = child.wait();
    None
}

/// Each call that changes who a process is fails, and says that it did what it did not: the job
/// does not start.
#[test]
fn a_job_whose_identity_cannot_be_had_does_not_start() {
    let name = "a_job_whose_identity_cannot_be_had_does_not_start";
    if !MultiUserSite::possible(name) {
        return;
    }
    let site = MultiUserSite::up("setid", 1);
    let launcher = site.processes().into_iter().find(|p| p.0 == "launcher").unwrap().1;
    for call in ["setgroups", "setresgid", "setresuid"] {
        for how in ["error=EPERM", "retval=0"] {
            let Some(mut strace) = inject(launcher, &format!("{call}:{how}")) else {
                return rig::skipped(&format!("{name}: strace may not trace here"));
            };
            let job = site.bsub("ann", "-o /dev/null 'id > ran'");
            let why = || site.run("ann", &format!("bjobs -p {job}")).out;
            wait_for(&format!("{call} {how}"), || why().contains("There is no such user account"));
            rig::kill(strace.id(), 15);
            strace.wait().unwrap();
            site.ok("ann", &format!("bkill {job}"));
            assert!(!site.path("home/ann/ran").exists(), "{call} {how}");
        }
    }
    let job = site.bsub("ann", "-o /dev/null 'id > ran'");
    assert_eq!(site.end_of(job), "DONE");
}

/// A user's environment reaches the job and nothing else.
#[test]
fn environment_of_a_submission_reaches_the_job_alone() {
    if !MultiUserSite::possible("environment_of_a_submission_reaches_the_job_alone") {
        return;
    }
    let site = MultiUserSite::new("environ", 1);
    let mailer = "#!/bin/sh\ncd @DIR@; env > mail; echo $PPID > parent.new; mv parent.new parent\n\
                  until [ -e go ]; do sleep 0.05; done; cat > /dev/null\n";
    let home = site.path("home/ann");
    program(&site.path("mailer"), &mailer.replace("@DIR@", home.to_str().unwrap()));
    site.lsf_conf(&format!("LSB_MAILPROG={}", site.path("mailer").display()));
    let mut site = site;
    site.start();
    // programs of the user's with the names of those that daemons start
    let evil = "for p in getent sh env sendmail authd lim; do printf '#!/bin/sh\\ntouch %s/evil' \
                $HOME > $p; chmod 755 $p; done";
    site.ok("ann", evil);
    let vars = "BASH_ENV=$HOME/sh ENV=$HOME/sh IFS=x LD_PRELOAD=/none.so LD_LIBRARY_PATH=$HOME \
                SECRET=$(head -c 1000000 /dev/zero | tr '\\0' x | head -c 120000)";
    let bsub = site.path("bin/bsub");
    let line = format!("{vars} PATH=$HOME {} 'echo $SECRET > got'", bsub.display());
    let out = site.ok("ann", &line);
    let job = rig::job_id(&out).unwrap();
    let home = site.path("home/ann");
    wait_for("the mail", || home.join("parent").exists());
    // the starter, which asks for the mail, begins with nothing
    let parent = std::fs::read_to_string(home.join("parent")).unwrap();
    let own = std::fs::read(format!("/proc/{}/environ", parent.trim())).unwrap();
    assert_eq!(String::from_utf8_lossy(&own), "");
    site.ok("ann", "touch go");
    assert_eq!(site.end_of(job), "DONE");
    assert_eq!(std::fs::metadata(home.join("got")).unwrap().len(), 120_001);
    let env = std::fs::read_to_string(home.join("mail")).unwrap();
    for name in ["BASH_ENV", "IFS", "LD_", "SECRET", "LSF_ENVDIR", "ENV="] {
        assert!(!env.contains(name), "{name} in {env}");
    }
    assert!(!home.join("evil").exists());
    // the longest variable that a kernel takes arrives whole; more than mbatchd keeps is refused
    // with words, and nothing else suffers
    let big = "BIG=$(head -c 130000 /dev/zero | tr '\\0' x)";
    let job = site.ok("ann", &format!("{big} bsub -o /dev/null '[ ${{#BIG}} = 130000 ]'"));
    assert_eq!(site.end_of(rig::job_id(&job).unwrap()), "DONE");
    let more = format!("ulimit -s unlimited; export {big}; {COPIES} exec bsub true");
    let s = site.run("ann", &more);
    assert_eq!((s.code, s.out.as_str()), (255, ""), "{}", s.err);
    assert!(s.err.starts_with("the request is longer than 4194304 bytes."), "{}", s.err);
    site.ok("bob", "bsub -o /dev/null true");
}

/// A shell's loop that gives a variable more names, together more than is kept of a submission.
const COPIES: &str = "for n in $(seq 40); do export BIG$n=$BIG; done;";

/// Names lead nowhere: they are texts.
#[test]
fn names_with_slashes_and_dots_reach_no_other_file() {
    if !MultiUserSite::possible("names_with_slashes_and_dots_reach_no_other_file") {
        return;
    }
    let mut site = MultiUserSite::new("names", 1);
    // what cannot be mailed is kept
    site.lsf_conf("LSB_MAILPROG=/bin/false");
    site.start();
    let job = site.bsub("ann", "-o /dev/null true");
    site.end_of(job);
    let before = listing(&site);
    let mut last = 0;
    for args in [
        "-J ../../../../tmp/pwned -o /dev/null true",
        "-J ../../pwned true",
        "-J 'x/../y[1-2]' -o /dev/null true",
        "-P ../../etc -o /dev/null true",
        // no such directory: the output is kept in ~/.lsbatch
        "-J ../kept -o /nodir/../../x env",
        "-o %J/../%I%% true",
        "-o '%J%s%n%x' true",
    ] {
        // each of them is a text that a job may have
        last = rig::job_id(&site.ok("ann", &format!("bsub {args}"))).unwrap();
    }
    for args in [
        "-q ../../conf/lsf.conf true",
        "-m ../../etc/passwd true",
        "-J 'a[../1]' true",
        "-w 'done(../../x[)' true",
    ] {
        let s = site.run("ann", &format!("bsub {args}"));
        assert_eq!((s.code, s.out.as_str()), (255, ""), "{args}");
        assert!(s.err.ends_with("Job not submitted.\n"), "{args}: {}", s.err);
    }
    for line in ["bhosts ../../etc", "bqueues ..", "bjobs -q ../x"] {
        assert_eq!(site.run("ann", line).code, 255, "{line}");
    }
    wait_for("the jobs to end", || site.run("ann", "bjobs").err == "No unfinished job found\n");
    assert_eq!(listing(&site), before);
    // what the jobs left is called by numbers, but for what the user spelled
    let names = |dir: &str| -> Vec<String> {
        let found = std::fs::read_dir(site.path(dir)).into_iter().flatten().flatten();
        found.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
    };
    let mut own = names("home/ann");
    own.retain(|n| n != ".lsbatch");
    assert_eq!(own, [format!("{last}%s%n%x")]);
    let named = |kept: &String| !kept.starts_with(".hosts.host");
    let kept: Vec<String> = names("home/ann/.lsbatch").into_iter().filter(named).collect();
    assert!(!kept.is_empty(), "no output was kept");
    for kept in kept {
        let stem = kept.trim_end_matches(".out").trim_end_matches(".err");
        let of_us = |c: char| c.is_ascii_hexdigit() || c == '.' || c == '-';
        assert!(stem.chars().all(of_us), "{kept}");
    }
    assert!(!Path::new("/tmp/pwned").exists());
}

/// Every file outside the home directories, but logs and what daemons rewrite.
fn listing(site: &MultiUserSite) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dirs = vec![site.path("conf"), site.path("work"), site.path("run"), site.path("bin")];
    while let Some(dir) = dirs.pop() {
        for e in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = e.path();
            if path.is_dir() && !path.is_symlink() {
                dirs.push(path.clone());
            }
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A queue's administrator administers that queue.
#[test]
fn queue_administrator_controls_the_jobs_of_its_queue_alone() {
    if !MultiUserSite::possible("queue_administrator_controls_the_jobs_of_its_queue_alone") {
        return;
    }
    let site = MultiUserSite::new("roles", 1);
    let file = "conf/lsbatch/personal/configdir/lsb.queues";
    let text = std::fs::read_to_string(site.path(file)).unwrap();
    let named =
        text.replacen("QUEUE_NAME   = short", "QUEUE_NAME = short\nADMINISTRATORS = bob", 1);
    assert_ne!(text, named, "{text}");
    site.write(file, &named);
    let mut site = site;
    site.start();
    let denied = |user: &str, line: &str| {
        let s = site.run(user, line);
        let told = format!("{}{}", s.out, s.err);
        assert!(s.code != 0 && told.contains("denied"), "{user}: {line}: {told}");
    };
    let here = site.bsub("ann", "-q short -o /dev/null sleep 1000");
    let there = site.bsub("ann", "-q normal -o /dev/null sleep 1000");
    site.ok("bob", "badmin qclose short");
    site.ok("bob", "badmin qopen short");
    site.ok("bob", &format!("bstop {here}"));
    site.ok("bob", &format!("bkill {here}"));
    denied("bob", &format!("bkill {there}"));
    denied("bob", "badmin qclose normal");
    denied("bob", "badmin hclose host1");
    denied("bob", "badmin reconfig");
    denied("bob", "badmin mbdrestart");
    for line in ["badmin qclose short", "badmin qinact short"] {
        denied("ann", line);
    }
    // nor does one make oneself somebody by saying so
    let line = format!("USER={ADMIN} LOGNAME={ADMIN} LSFUSER={ADMIN} badmin reconfig");
    denied("bob", &line);
    site.ok(ADMIN, &format!("bkill {there}"));
}

/// Texts of users reach logs, listings and mail as one field or line.
#[test]
fn texts_of_users_inject_nothing_into_log_and_listings() {
    if !MultiUserSite::possible("texts_of_users_inject_nothing_into_log_and_listings") {
        return;
    }
    let site = MultiUserSite::up("texts", 1);
    let evil = [
        "x\\n\"JOB_FINISH\" \"10.1\" 1 1",
        "q\"uo\\\"te",
        "back\\\\slash",
        "esc\\033]0;owned\\007\\033[31m",
        "bytes\\377\\376",
        "tab\\tcr\\rback\\b",
    ];
    let mut jobs = Vec::new();
    for text in evil {
        let word = format!("\"$(printf '{text}')\"");
        let s = site.run("ann", &format!("bsub -o /dev/null true {word}"));
        assert_eq!(s.code, 0, "{text}: {}", s.err);
        jobs.push(rig::job_id(&s.out).unwrap());
        for option in ["-J", "-P", "-q", "-m", "-u", "-R", "-w", "-G", "-cwd", "-o", "-e", "-i"] {
            let s = site.run("ann", &format!("bsub {option} {word} true"));
            jobs.extend(rig::job_id(&s.out));
            plain(&s.err, option);
        }
    }
    for line in ["bjobs -a", "bjobs -w -a", "bjobs -l -a", "bjobs -a -o 'jobid job_name command'"] {
        plain(&site.ok("ann", line), line);
    }
    plain(&site.ok("ann", "bhist -a -l"), "bhist");
    let events = site.path("work/personal/logdir/lsb.events");
    let logs = std::fs::read_dir(site.path("log")).unwrap().flatten().map(|e| e.path());
    for file in logs.chain([events.clone()]) {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        plain(&text, &file.display().to_string());
    }
    // each record is still one line: one JOB_NEW for each job, no JOB_FINISH anybody made up
    let text = std::fs::read(&events).unwrap();
    let text = String::from_utf8_lossy(&text);
    let news = text.lines().filter(|l| l.starts_with("\"JOB_NEW\"")).count();
    assert_eq!(news, jobs.len());
    assert!(!text.lines().any(|l| l.starts_with("\"JOB_FINISH\" \"10.1\" 1 1")));
    // and all of it is read back
    site.ok(ADMIN, "badmin mbdrestart");
    wait_for("mbatchd to be back", || site.run("ann", "bqueues").code == 0);
    let last = site.ok("ann", "bjobs -a -noheader -o jobid");
    for job in jobs {
        assert!(last.lines().any(|l| l.trim() == job.to_string()), "{job} in {last}");
    }
}

/// No control character but newlines and tabulators.
fn plain(text: &str, what: &str) {
    let odd = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    assert!(odd.is_none(), "{what}: {odd:?} in {text:?}");
}

/// The cluster's key is in its file and nowhere else.
#[test]
fn key_bytes_are_in_no_file_and_no_view_of_a_process() {
    if !MultiUserSite::possible("key_bytes_are_in_no_file_and_no_view_of_a_process") {
        return;
    }
    let site = MultiUserSite::up("secret", 1);
    site.ok("ann", "bsub -o out env");
    for line in ["badmin reconfig", "bjobs -l -a", "badmin ckconfig -v", "lsadmin ckconfig -v"] {
        site.run(ADMIN, line);
    }
    let key = std::fs::read_to_string(site.path("conf/lsf.key")).unwrap();
    let longest = key.split_whitespace().max_by_key(|w| w.len()).unwrap().to_owned();
    assert!(longest.len() >= 32, "{}", longest.len());
    let bytes: Vec<u8> = (0..longest.len() / 2)
        .filter_map(|i| u8::from_str_radix(&longest[2 * i..2 * i + 2], 16).ok())
        .collect();
    assert_eq!(bytes.len(), 32);
    let has = |text: &[u8]| {
        let find = |what: &[u8]| text.windows(what.len()).any(|w| w == what);
        find(longest.as_bytes()) || find(&bytes)
    };
    let mut dirs = vec![site.dir.clone()];
    let mut holding = Vec::new();
    while let Some(dir) = dirs.pop() {
        for e in std::fs::read_dir(dir).unwrap().flatten() {
            let (path, kind) = (e.path(), e.file_type().unwrap());
            if kind.is_dir() {
                dirs.push(path);
            } else if kind.is_file() && has(&std::fs::read(&path).unwrap()) {
                holding.push(path);
            }
        }
    }
    assert_eq!(holding, [site.path("conf/lsf.key")]);
    let mut daemons = Vec::new();
    for (name, pid, _) in site.processes() {
        for view in ["environ", "cmdline", "comm", "status"] {
            let text = std::fs::read(format!("/proc/{pid}/{view}")).unwrap_or_default();
            assert!(!has(&text), "{view} of {name}");
        }
        if ["authd", "lim", "sbatchd", "mbatchd"].contains(&name.as_str()) {
            let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
            let core = limits.lines().find(|l| l.starts_with("Max core file size")).unwrap();
            assert_eq!(core.split_whitespace().nth(4), Some("0"), "{name}: {core}");
            // a user cannot look into it
            let look = format!("head -c 1 /proc/{pid}/mem > /dev/null");
            assert_ne!(site.run("ann", &look).code, 0);
            daemons.push(name);
        }
    }
    daemons.sort();
    assert_eq!(daemons, ["authd", "lim", "mbatchd", "sbatchd"]);
    assert_ne!(site.run("ann", "cat $LSF_ENVDIR/lsf.key").code, 0);
}

/// A log that is gone is not an order to end jobs.
#[test]
fn a_missing_log_ends_no_job() {
    if !MultiUserSite::possible("a_missing_log_ends_no_job") {
        return;
    }
    for what in ["missing", "empty"] {
        let site = MultiUserSite::up("lost", 1);
        let job = site.bsub("ann", "-o /dev/null 'sleep 4; touch ran'");
        wait_for("the job to run", || site.stat(job) == "RUN");
        let mbatchd = site.processes().into_iter().find(|p| p.0 == "mbatchd").unwrap().1;
        let sbatchd = site.processes().into_iter().find(|p| p.0 == "sbatchd").unwrap().1;
        rig::kill(sbatchd, 9);
        rig::kill(mbatchd, 9);
        let logdir = site.path("work/personal/logdir");
        for e in std::fs::read_dir(&logdir).unwrap().flatten().filter(|e| e.path().is_file()) {
            match what {
                "missing" => std::fs::remove_file(e.path()).unwrap(),
                _ => std::fs::write(e.path(), "").unwrap(),
            }
        }
        wait_for("the job to end by itself", || site.path("home/ann/ran").exists());
    }
}

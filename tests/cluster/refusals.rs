//! Refusals of bsub, bmod, bswitch, btop, bbot, brequeue, bkill, bstop and bresume that need
//! several users, closed queues or thresholds: standard error, exit code, nothing on standard
//! output, nothing logged.

use super::site::{ADMIN, MultiUserSite};

/// A command that no row gets into the log.
const MARK: &str = "refused-by-this-table";

const QUEUES: &str = "
Begin Queue
QUEUE_NAME = private
USERS      = bob
End Queue
Begin Queue
QUEUE_NAME = shut
End Queue
Begin Queue
QUEUE_NAME = few
TASKLIMIT  = 2 2 4
End Queue
Begin Queue
QUEUE_NAME = share
UJOB_LIMIT = 2
End Queue
Begin Queue
QUEUE_NAME = there
HOSTS      = host1
End Queue
Begin Queue
QUEUE_NAME  = talk
INTERACTIVE = ONLY
End Queue
Begin Queue
QUEUE_NAME  = silent
INTERACTIVE = NO
End Queue
Begin Queue
QUEUE_NAME = brief
RUNLIMIT   = 1
End Queue
";

fn refused(site: &MultiUserSite, user: &str, line: &str, words: &str) {
    let before = logs(site);
    let said = site.run(user, line);
    let want = (255, String::new(), format!("{words}\n"));
    assert_eq!((said.code, said.out, said.err), want, "{user}: {line}");
    for (before, after) in before.iter().zip(logs(site)) {
        let more = after.strip_prefix(&before[..]).map(String::from_utf8_lossy);
        assert_eq!(more.as_deref(), Some(""), "{user}: {line} was logged");
    }
}

/// The bytes of lsb.events and lsb.acct. The answer to badmin comes when all before it is written.
fn logs(site: &MultiUserSite) -> [Vec<u8>; 2] {
    site.ok(ADMIN, "badmin showstatus");
    let read = |name| std::fs::read(site.path(&format!("work/personal/logdir/{name}")));
    ["lsb.events", "lsb.acct"].map(|name| read(name).unwrap_or_default())
}

/// Waits until all that was asked for is done.
fn settle(site: &MultiUserSite) {
    let mut last = logs(site);
    super::rig::wait_for("the logs to come to rest", || {
        std::thread::sleep(std::time::Duration::from_millis(700));
        let before = std::mem::replace(&mut last, logs(site));
        before == last
    });
}

/// A site with these queues and small thresholds.
fn site() -> MultiUserSite {
    let mut site = MultiUserSite::new("refusals", 2);
    let config = |file: &str| format!("conf/lsbatch/personal/configdir/{file}");
    let add = |file: &str, text: &str| {
        let old = std::fs::read_to_string(site.path(&config(file))).unwrap();
        site.write(&config(file), &format!("{old}{text}"));
    };
    add("lsb.queues", QUEUES);
    let users = "Begin User\nUSER_NAME MAX_PEND_JOBS MAX_PEND_SLOTS\nbob 3 5\nEnd User\n";
    add("lsb.users", users);
    let params = std::fs::read_to_string(site.path(&config("lsb.params"))).unwrap();
    let more = "MAX_PEND_JOBS = 50\nMAX_PEND_SLOTS = 60\nEnd Parameters";
    site.write(&config("lsb.params"), &params.replace("End Parameters", more));
    site.start();
    site.ok(ADMIN, "badmin qclose shut");
    site
}

#[test]
fn requests_that_queue_user_or_threshold_forbid_are_refused_and_not_logged() {
    if !MultiUserSite::possible(
        "requests_that_queue_user_or_threshold_forbid_are_refused_and_not_logged",
    ) {
        return;
    }
    let site = site();
    let held = site.bsub("ann", "-H -o /dev/null sleep 1000");
    let runs = site.bsub("ann", "-o /dev/null sleep 1000");
    let done = site.bsub("ann", "-o /dev/null true");
    site.end_of(done);
    super::rig::wait_for("the job to run", || site.stat(runs) == "RUN");
    site.ok("ann", "bgadd -L 5 /anns/own");
    settle(&site);

    refused_submissions(&site);
    refused_to_others(&site, held, runs);
    refused_about_one_job(&site, runs);
    refused_by_queues(&site, held);

    // what an administrator suspended the owner does not resume
    site.ok(ADMIN, &format!("bstop {runs}"));
    super::rig::wait_for("the job to stop", || site.stat(runs) == "USUSP");
    settle(&site);
    let words = format!("Job <{runs}>: User permission denied");
    refused(&site, "ann", &format!("bresume {runs}"), &words);
    site.ok(ADMIN, &format!("bkill {runs} {held}"));
}

fn refused_submissions(site: &MultiUserSite) {
    let rows = [
        ("-q private", "private: User cannot use the queue"),
        ("-q shut", "shut: Queue has been closed"),
        ("-q few -n 1", "Too few processors requested"),
        ("-q few -n 5", "Too many processors requested"),
        ("-q share -n 3", "Queue does not have enough per-user job slots"),
        ("-q there -m host2", "Host or host group is not used by the queue"),
        ("-q talk", "Queue only accepts interactive jobs"),
        ("-I -q silent", "Queue does not accept interactive jobs"),
        ("-I -r", "Interactive job cannot be rerunnable"),
        ("-Is -J 'x[1-2]'", "Interactive job cannot be a job array"),
        ("-Ip -K", "Option -Ip cannot be combined with option -K"),
        ("-I -ISs", "Option -I cannot be combined with option -ISs"),
        ("-q brief -W 2", "RUNLIMIT: Cannot exceed queue's hard limit(s)"),
        ("-J 'x[1-50]'", "Pending job threshold reached"),
        ("-n 30 -J 'x[1-2]'", "Pending job threshold reached"),
    ];
    for (options, words) in rows {
        let line = format!("LSB_NTRIES=1 bsub {options} sleep {MARK}");
        refused(site, "ann", &line, &format!("{words}. Job not submitted."));
    }
    for options in ["-J 'x[1-4]'", "-H -n 6"] {
        let line = format!("LSB_NTRIES=1 bsub {options} sleep {MARK}");
        refused(site, "bob", &line, "Pending job threshold reached. Job not submitted.");
    }
    let root = "Root job submission is disabled. Job not submitted.";
    refused(site, "root", &format!("bsub sleep {MARK}"), root);
}

/// Requests of another user than the owner.
fn refused_to_others(site: &MultiUserSite, held: u32, runs: u32) {
    let denied = |job: u32| format!("Job <{job}>: User permission denied");
    for applet in ["bkill", "bkill -r", "bkill -s USR1", "bstop", "bresume", "brequeue"] {
        refused(site, "bob", &format!("{applet} {runs}"), &denied(runs));
    }
    refused(site, "bob", &format!("bswitch few {held}"), &denied(held));
    for applet in ["btop", "bbot"] {
        let words = format!("{held}: User permission denied");
        refused(site, "bob", &format!("{applet} {held}"), &words);
    }
    let denied = "User permission denied. Job not modified.";
    refused(site, "bob", &format!("bmod -J z {held}"), denied);
}

/// The commands about a single job and about job groups, by another user than the owner.
fn refused_about_one_job(site: &MultiUserSite, runs: u32) {
    let denied = format!("Job <{runs}>: User permission denied");
    for line in [
        "bmig",
        "bchkpnt",
        "bresize cancel",
        "bresize release all",
        "bpeek",
        "battach",
        "bpost -d x",
        "bstatus -d x",
    ] {
        refused(site, "bob", &format!("{line} {runs}"), &denied);
    }
    let words = "Failed to run the job: User permission denied";
    refused(site, "ann", &format!("brun -m host1 {runs}"), words);
    let denied = "Job group </anns/own>: User permission denied";
    for line in ["bgmod -L 1", "bgmod -Ln", "bgmod -u bob", "bgdel", "bgdel -c"] {
        refused(site, "bob", &format!("{line} /anns/own"), denied);
    }
    // an owner gives no group away
    refused(site, "ann", "bgmod -u bob /anns/own", denied);
    for line in ["bgdel -u all 0", "bgdel -u ann 0", "bgdel -u all -d 1"] {
        refused(site, "bob", line, "User permission denied");
    }
}

/// The owner's requests for a queue that does not take the job.
fn refused_by_queues(site: &MultiUserSite, held: u32) {
    let of = |words: &str| format!("Job <{held}>: {words}");
    let rows = [
        ("private", "User cannot use the queue"),
        ("shut", "Queue has been closed"),
        ("talk", "Queue only accepts interactive jobs"),
        ("few", "Too few processors requested"),
    ];
    for (queue, words) in rows {
        refused(site, "ann", &format!("bswitch {queue} {held}"), &of(words));
        let words = match queue {
            "few" | "talk" => format!("{words}. Job not modified."),
            _ => format!("{queue}: {words}. Job not modified."),
        };
        refused(site, "ann", &format!("bmod -q {queue} {held}"), &words);
    }
    let row = format!("bmod -q few -n 5 {held}");
    refused(site, "ann", &row, "Too many processors requested. Job not modified.");
}

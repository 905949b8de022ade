//! Listings of a cluster that several users have jobs in, as whole texts (documented layouts).

use super::rig::wait_for;
use super::site::{ADMIN, MultiUserSite};

/// The lines without what differs from run to run: the time of submission at their end.
fn lines(text: &str) -> Vec<String> {
    let cut = |l: &str| match l.len().checked_sub(12).and_then(|at| l.split_at_checked(at)) {
        Some((line, time)) if time.as_bytes()[9] == b':' => line.trim_end().to_string(),
        _ => l.trim_end().to_string(),
    };
    text.lines().map(cut).collect()
}

const HEAD: &str =
    "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME";
const ANN: [&str; 2] = [
    "1       ann     RUN   normal     host1       host1       *st_of_ann",
    "3       ann     PSUSP short      host1                   held",
];
const BOB: [&str; 3] = [
    "2       bob     RUN   normal     host1       host2       run_of_bob",
    "4       bob     PSUSP idle       host1                   arr[1]",
    "4       bob     PSUSP idle       host1                   arr[2]",
];
const ENDED: [&str; 2] = [
    "5       ann     DONE  normal     host1       host1       quick",
    "6       bob     EXIT  normal     host1       host2       fails",
];

#[test]
fn listings_show_the_jobs_of_several_users() {
    if !MultiUserSite::possible("listings_show_the_jobs_of_several_users") {
        return;
    }
    let mut site = MultiUserSite::new("several", 2);
    let users = "conf/lsbatch/personal/configdir/lsb.users";
    let old = std::fs::read_to_string(site.path(users)).unwrap();
    let group = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\nteam (ann bob)\nEnd UserGroup\n";
    site.write(users, &format!("{old}{group}"));
    site.start();
    nobody_has_jobs(&site);
    let null = "-o /dev/null";
    for (user, options) in [
        ("ann", "-m host1 -J longest_of_ann sleep 1000"),
        ("bob", "-m host2 -J run_of_bob sleep 1000"),
        ("ann", "-H -q short -J held true"),
        ("bob", "-H -q idle -J 'arr[1-2]' true"),
        ("ann", "-m host1 -J quick true"),
        ("bob", "-m host2 -J fails 'exit 3'"),
    ] {
        let id = site.bsub(user, &format!("{null} {options}"));
        if id > 4 {
            site.end_of(id);
        } else if id < 3 {
            wait_for("the job to run", || site.stat(id) == "RUN");
        }
    }
    let all = [ANN[0], BOB[0], ANN[1], BOB[1], BOB[2]];
    for (user, words, rows) in [
        ("ann", "", &ANN[..]),
        ("bob", "", &BOB),
        ("ann", "-u ann", &ANN),
        ("ann", "-u bob", &BOB),
        (ADMIN, "-u all", &all),
        ("bob", "-u all", &all),
        ("bob", "-u team", &all),
        ("ann", "-u all -r", &[ANN[0], BOB[0]]),
        ("ann", "-u all -m host2", &[BOB[0]]),
        ("ann", "-u all -q idle", &BOB[1..]),
        ("ann", "-u all -d", &ENDED),
        ("bob", "-d", &ENDED[1..]),
        ("ann", "-u all -a", &[&all[..], &ENDED].concat()),
        // jobs that are named are shown whoever owns them
        ("ann", "2 6", &[BOB[0], ENDED[1]]),
    ] {
        let want: Vec<&str> = [HEAD].iter().chain(rows).copied().collect();
        assert_eq!(lines(&site.ok(user, &format!("bjobs {words}"))), want, "{user}: {words}");
    }
    let none = site.run(ADMIN, "bjobs");
    assert_eq!((none.code, none.out.as_str(), none.err.as_str()), {
        (0, "", "No unfinished job found\n")
    });
    counts(&site);
    histories(&site);
    site.ok(ADMIN, "bkill 1 2 3 4");
}

/// An empty cluster.
fn nobody_has_jobs(site: &MultiUserSite) {
    for (words, code, why) in [
        ("bjobs", 0, "No unfinished job found"),
        ("bjobs -u all", 0, "No unfinished job found"),
        ("bjobs -u all -a", 0, "No job found"),
        ("bjobs -u all -l", 0, "No unfinished job found"),
        ("bjobs -u all -W", 0, "No unfinished job found"),
        ("bjobs -u all -sum", 0, "No unfinished job found"),
        ("bjobs -u all -psum", 0, "No pending job found"),
        ("bjobs -u all -A", 0, "Job array is not found"),
        ("bjobs -u all -o jobid", 0, "No unfinished job found"),
        ("bjobs 1", 255, "Job <1> is not found"),
        ("bkill 0", 255, "No unfinished job found"),
        ("bpeek", 255, "No unfinished job found"),
        ("bhist -u all", 255, "No matching job found"),
        ("bhist -l 1", 255, "No matching job found"),
    ] {
        let said = site.run("ann", words);
        let want = (code, "", format!("{why}\n"));
        assert_eq!((said.code, said.out.as_str(), said.err), want, "{words}");
    }
    let zeros = |words: &str, columns: std::ops::Range<usize>| {
        let text = site.ok("ann", words);
        for line in text.lines().skip(1) {
            let cells: Vec<&str> = line.split_whitespace().collect();
            assert!(cells[columns.clone()].iter().all(|c| *c == "0"), "{words}: {line}");
        }
        assert_eq!(
            text.lines().next().map(|head| head.split_whitespace().count()),
            Some(columns.end)
        );
        text.lines().count() - 1
    };
    assert_eq!(zeros("bqueues", 7..11), 3);
    assert_eq!(zeros("bhosts", 4..9), 2);
    assert_eq!(zeros("busers ann bob team", 3..9), 3);
    let text = site.ok("ann", "bacct -u all");
    let line = " Total number of done jobs:       0      Total number of exited jobs:     0\n";
    assert!(text.contains(line) && !text.contains("Beginning time"), "{text}");
    let json = site.ok("ann", "bjobs -json -u all");
    assert!(json.contains("\"JOBS\":0"), "{json}");
}

fn counts(site: &MultiUserSite) {
    let table = |words: &str, want: &[&str]| {
        assert_eq!(lines(&site.ok("ann", words)), want, "{words}");
    };
    table(
        "busers ann bob team",
        &[
            "USER/GROUP          JL/P    MAX  NJOBS   PEND    RUN  SSUSP  USUSP    RSV",
            "ann                    -      -      2      1      1      0      0      0",
            "bob                    -      -      3      2      1      0      0      0",
            "team                   -      -      5      3      2      0      0      0",
        ],
    );
    table(
        "bqueues short normal idle",
        &[
            "QUEUE_NAME      PRIO STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN  SUSP",
            "short            40  Open:Active       -    -    -    -     1     1     0     0",
            "normal           30  Open:Active       -    -    -    -     2     0     2     0",
            "idle             20  Open:Active       -    -    -    -     2     2     0     0",
        ],
    );
    table(
        "bjobs -sum -u all",
        &[
            "RUN        SSUSP       USUSP      UNKNOWN    PEND       FWD_PEND  PSUSP",
            "2          0           0          0          0          0         3",
        ],
    );
    table(
        "bjobs -A -u all",
        &[
            "JOBID      ARRAY_SPEC  OWNER   NJOBS PEND DONE  RUN EXIT SSUSP USUSP PSUSP",
            "4          arr[1-2]    bob         2    0    0    0    0     0     0     2",
        ],
    );
    let sum = site.ok("ann", "bjobs -psum -u all");
    assert!(sum.contains("\nSummarizing 3 pending jobs in cluster (personal):\n"), "{sum}");
    let own = site.ok("ann", "bjobs -psum");
    assert!(own.contains("\nSummarizing 1 pending jobs in cluster (personal):\n"), "{own}");
    let groups = site.ok("ann", "bugroup team");
    assert_eq!(lines(&groups), ["GROUP_NAME    USERS", "team         ann bob"]);
}

fn histories(site: &MultiUserSite) {
    // the first three columns
    let names = |text: &str| -> Vec<String> {
        let cut = |l: &str| l.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
        text.lines().skip(2).filter(|l| !l.is_empty()).map(cut).collect()
    };
    assert_eq!(names(&site.ok("ann", "bhist")), ["1 ann *_of_ann", "3 ann held"]);
    assert_eq!(names(&site.ok("ann", "bhist -u bob -d")), ["6 bob fails"]);
    let all =
        ["1 ann *_of_ann", "2 bob *_of_bob", "3 ann held", "4[1] bob arr[1]", "4[2] bob arr[2]"];
    assert_eq!(names(&site.ok("bob", "bhist -u all")), all);
    wait_for("the records", || {
        site.ok("ann", "bacct -u all")
            .contains("Total number of done jobs:       1      Total number of exited jobs:     1")
    });
    for (words, by, done, exited) in [
        ("", "users ann, ", 1, 0),
        ("-u bob", "users bob, ", 0, 1),
        ("-u 'ann bob'", "users ann, bob, ", 1, 1),
        ("-u all", "all users.", 1, 1),
        ("-u all -e", "all users.", 0, 1),
    ] {
        let text = site.ok("ann", &format!("bacct {words}"));
        assert!(text.contains(&format!("\n  - submitted by {by}\n")), "{words}: {text}");
        let sums = format!(
            " Total number of done jobs: {done:>7}      Total number of exited jobs: {exited:>5}\n"
        );
        assert!(text.contains(&sums), "{words}: {text}");
    }
}

//! NLB_POLICY and bsub -nlb in a cluster: the hosts of jobs follow the policy while it is swapped,
//! with the files of conf-examples/nlb as with others.

use super::nlb::{hosts, with_server};
use crate::rig::{Rig, Said, binary, wait_for};
use std::path::Path;
use std::process::{Command, Stdio};

/// The policies that are in force.
const POLICIES: &str = "work/personal/nqe/nlbdir/policies";
/// Two policies: the best host by rank, and for jobs with nastran only hosts that have it.
const DAY: &str = "policy: plain\nsort: NLB_SITE_RANK\n\
                   policy: cad\nconstraint: exists(job_nastran) => exists(host_nastran)\n\
                   sort: NLB_SITE_RANK\n";
/// Policies without host3 for the queue.
const NIGHT: &str = "policy: plain\nsort: NLB_SITE_RANK\n\
                     policy: cad\nconstraint: NLB_SITE_RANK < 3\nsort: NLB_SITE_RANK\n";

/// A cluster of three hosts with a queue that a policy chooses hosts for.
fn up(name: &str) -> Rig {
    let rig = Rig::up(name, 3);
    with_server(&rig);
    hosts(&rig, &[]);
    let map = rig.path("name_map");
    let map = map.to_str().unwrap();
    rig.ok("nlbconfig", &["-mdump", "-f", map]);
    let rank = "map NLB = 1024 {\n\tNLB_SITE_RANK \"Rank\" integer(8192);\n\
                \thost_nastran \"Host supports nastran\" integer(8193);";
    let job = "map NLB_JOB = 1025 {\n\tjob_nastran \"Job requires nastran\" integer(8192);";
    let text = rig.read("name_map");
    let text = text.replace("map NLB = 1024 {", rank).replace("map NLB_JOB = 1025 {", job);
    rig.write("name_map", &text);
    rig.ok("nlbconfig", &["-mput", "-f", map]);
    rig.write(
        "objects",
        "object NLB (host1) { NLB_SITE_RANK = 1; }\n\
         object NLB (host2) { NLB_SITE_RANK = 2; host_nastran = 1; }\n\
         object NLB (host3) { NLB_SITE_RANK = 3; }\n",
    );
    rig.ok("nlbconfig", &["-oupdat", "objects"]);
    policies(&rig, DAY);
    let queues = rig.configdir().join("lsb.queues");
    let text = std::fs::read_to_string(&queues).unwrap();
    let queue = "\nBegin Queue\nQUEUE_NAME = cad\nPRIORITY = 20\nNLB_POLICY = cad\nEnd Queue\n";
    std::fs::write(&queues, text + queue).unwrap();
    rig.ok("badmin", &["reconfig", "-f"]);
    rig
}

/// Has other policies taken.
fn policies(rig: &Rig, text: &str) {
    rig.write(POLICIES, text);
    assert_eq!(rig.ok("nlbconfig", &["-pol"]), "");
}

/// Submits a job; the host on which it runs.
fn runs_on(rig: &Rig, args: &[&str]) -> (u32, String) {
    let job = rig.bsub(&[&["-o", "/dev/null"], args, &["sleep 300"]].concat());
    wait_for("it to run", || rig.stat(job) == "RUN");
    (job, rig.field(&job.to_string(), "first_host"))
}

#[test]
fn hosts_of_jobs_follow_the_policy_of_the_queue_while_it_is_swapped() {
    let rig = up("nlbpol");
    let (job, host) = runs_on(&rig, &["-q", "cad"]);
    assert_eq!(host, "host3");
    let words = "placed by NLB policy <cad>, 3.000000, choice 1 of 3;";
    let long = rig.ok("bjobs", &["-l", &job.to_string()]);
    assert!(long.replace("\n                     ", "").contains(words), "{long}");
    let story = rig.ok("bhist", &["-l", &job.to_string()]);
    assert!(story.replace("\n                     ", "").contains(words), "{story}");
    let shown = rig.ok("bqueues", &["-l", "cad"]);
    let line = shown.lines().find(|l| l.starts_with("NLB_POLICY:  ")).unwrap_or_default();
    assert!(
        line.starts_with("NLB_POLICY:  cad (read ") && line.ends_with(", 3 of 3 hosts)"),
        "{line}"
    );
    // an attribute for the policy
    let (_, host) = runs_on(&rig, &["-q", "cad", "-nlb", "nastran"]);
    assert_eq!(host, "host2");
    // another queue knows of no policy, but for a job that names one
    let (_, host) = runs_on(&rig, &["-q", "normal", "-nlb", "plain"]);
    assert_eq!(host, "host3");
    // the night's policies: at once, and for jobs that start from now on
    policies(&rig, NIGHT);
    let (late, host) = runs_on(&rig, &["-q", "cad"]);
    assert_eq!(host, "host2");
    let text = rig.ok("bjobs", &["-l", &late.to_string()]).replace("\n                     ", "");
    assert!(text.contains("placed by NLB policy <cad>, 2.000000, choice 1 of 2;"), "{text}");
    assert_eq!(rig.field(&job.to_string(), "first_host"), "host3");
    // a file that is wrong changes nothing
    rig.write(POLICIES, "policy: cad\nsort: NLB_SITE_RNAK\n");
    assert_eq!(rig.run("nlbconfig", &["-pol"]).code, 255);
    // host2 is full
    let (_, host) = runs_on(&rig, &["-q", "cad"]);
    assert_eq!(host, "host1");
    // why a job that is bound to the third host waits
    let waits = rig.bsub(&["-q", "cad", "-m", "host3", "true"]);
    let reason = "Host is excluded by the NLB policy: 1 host;";
    wait_for("its reason", || rig.ok("bjobs", &["-p", &waits.to_string()]).contains(reason));
}

#[test]
fn words_of_nlb_are_checked_changed_and_reset() {
    let rig = up("nlbwords");
    // mbatchd hears the server as soon as it has asked it
    runs_on(&rig, &["-q", "cad"]);
    let refused = |args: &[&str], words: &str| {
        let said = rig.run("bsub", &[args, &["true"]].concat());
        let end = if words.ends_with('?') { "" } else { "." };
        assert_eq!(
            (said.code, said.err),
            (255, format!("{words}{end} Job not submitted.\n")),
            "{args:?}"
        );
    };
    refused(&["-nlb", "CPV"], "<CPV>: No such NLB policy");
    let near = "<nastram>: no such attribute; did you mean <nastran>?";
    refused(&["-nlb", "cad nastram"], near);
    let number = "-nlb <nastran=x>: a decimal number, or a text in quotes, is wanted";
    refused(&["-nlb", "cad nastran=x"], number);
    let job = rig.bsub(&["-H", "-q", "cad", "-o", "/dev/null", "sleep 300"]).to_string();
    let said = rig.run("bmod", &["-nlb", "nosuch", &job]);
    assert_eq!((said.code, &*said.err), (255, "<nosuch>: No such NLB policy. Job not modified.\n"));
    rig.ok("bmod", &["-nlb", "plain nastran=2", &job]);
    let long = || rig.ok("bjobs", &["-l", &job]).replace("\n                     ", "");
    assert!(long().contains(" NLB policy <plain>;"), "{}", long());
    rig.ok("bmod", &["-nlbn", &job]);
    assert!(!long().contains("NLB policy"), "{}", long());
    // in a script
    rig.write(
        "job.sh",
        "#!/bin/sh\n#BSUB -q normal\n#BSUB -nlb plain\n#BSUB -o /dev/null\nsleep 300\n",
    );
    let said = rig.feed("bsub", &[], &rig.read("job.sh"));
    let job = crate::rig::job_id(&said.out).unwrap();
    wait_for("it to run", || rig.stat(job) == "RUN");
    assert_eq!(rig.field(&job.to_string(), "first_host"), "host3");
}

/// A file of conf-examples/nlb.
fn example(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf-examples/nlb");
    std::fs::read_to_string(dir.join(name)).unwrap()
}

/// The command of a line of the example's crontab, with the directories of this cluster.
fn crontab_command(rig: &Rig, word: &str) -> String {
    let text = example("crontab");
    let line = text.lines().find(|l| !l.starts_with('#') && l.contains(word)).unwrap();
    let command = line.split_whitespace().skip(5).collect::<Vec<_>>().join(" ");
    let bin = rig.path("bin").display().to_string();
    let dir = rig.path("work/personal/nqe/nlbdir").display().to_string();
    command.replace("/usr/spool/nqe/nlbdir", &dir).replace("/opt/lsf/bin", &bin)
}

#[test]
fn example_of_a_site_swaps_its_policies_by_its_crontab() {
    let rig = Rig::up("nlbexample", 3);
    with_server(&rig);
    hosts(&rig, &[]);
    // the attributes of the site, merged into the maps
    let map = rig.path("name_map");
    let map = map.to_str().unwrap();
    rig.ok("nlbconfig", &["-mdump", "-f", map]);
    let mut text = rig.read("name_map");
    let mut head = String::new();
    for line in example("attributes").lines().filter(|l| !l.starts_with('#')) {
        match line.strip_suffix('{') {
            Some(_) => head = line.to_owned(),
            None if line.starts_with('}') => {}
            None => text = text.replacen(&head, &format!("{head}\n{line}"), 1),
        }
    }
    rig.write("name_map", &text);
    rig.ok("nlbconfig", &["-mput", "-f", map]);
    rig.write("objects", &example("objects"));
    rig.ok("nlbconfig", &["-oupdat", "objects"]);
    for name in ["policies.day", "policies.night"] {
        let path = format!("work/personal/nqe/nlbdir/{name}");
        rig.write(&path, &example(name));
        let said = rig.ok("nlbconfig", &["-check", &path]);
        assert_eq!(said, "2 policies, the default is <nqs>\n", "{name}");
    }
    let queues = rig.configdir().join("lsb.queues");
    let before = std::fs::read_to_string(&queues).unwrap();
    std::fs::write(&queues, before + &example("lsb.queues")).unwrap();
    rig.ok("badmin", &["reconfig", "-f"]);
    let swap = |word: &str| {
        let mut cron = Command::new("/bin/sh");
        cron.args(["-c", &crontab_command(&rig, word)]).env_clear();
        cron.env("PATH", "/usr/bin:/bin").env("HOME", "/nonexistent").current_dir("/");
        let out = cron.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
        assert_eq!((out.status.code(), &*said), (Some(0), ""), "{word}");
    };
    swap("policies.day");
    let (_, host) = runs_on(&rig, &["-q", "cad"]);
    assert_ne!(host, "host1", "the file server is kept free by day");
    let (_, host) = runs_on(&rig, &["-q", "cad", "-nlb", "nastran"]);
    assert_eq!(host, "host2");
    swap("policies.night");
    let (_, host) = runs_on(&rig, &["-q", "cad"]);
    assert_eq!(host, "host1");
}

/// Runs the demo on `count` pages, with the first of two texts in it replaced by the second.
fn demo(name: &str, count: usize, spoil: Option<(&str, &str)>) -> Said {
    let top = std::env::temp_dir().join(format!("lsf-{name}-{}", std::process::id()));
    let pages = top.join("pages");
    std::fs::create_dir_all(&pages).unwrap();
    for n in 0..count {
        std::fs::write(pages.join(format!("page{n}.1")), "text\n".repeat(100)).unwrap();
    }
    for file in ["demo", "inodes"] {
        let text = example(file);
        let (from, to) = spoil.unwrap_or_default();
        assert!(file != "demo" || text.contains(from));
        let text = if from.is_empty() { text } else { text.replacen(from, to, 1) };
        std::fs::write(top.join(file), text).unwrap();
    }
    let mut bash = Command::new("timeout");
    bash.args(["-k", "20", "180", "bash"]).arg(top.join("demo")).current_dir(&top);
    bash.env("LSF", binary()).env("LSF_DEMO_CRON", "no").env_remove("LSF_ENVDIR");
    bash.env("LSF_DEMO_DIR", top.join("cluster")).env("LSF_DEMO_PAGES", &pages);
    let said = Said::from(bash.stdin(Stdio::null()).output().unwrap());
    std::fs::remove_dir_all(&top).unwrap();
    said
}

#[test]
fn demo_of_the_load_balancer_counts_each_request_where_the_policies_want_it() {
    let said = demo("nlbdemo", 7, None);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let last = said.out.lines().last().unwrap();
    assert_eq!(last, "== 7 of 7 requests ran where the policies wanted them");
    assert!(said.out.contains("no attribute <NLB_A_IDLECPV>"), "{}", said.out);
}

#[test]
fn demo_whose_night_prefers_no_host_tells_that_something_went_wrong() {
    let night =
        ("sort: exists(host_fileserver) * 1000000", "sort: 0 - exists(host_fileserver) * 1000000");
    let said = demo("nlbspoiled", 4, Some(night));
    assert_eq!(said.code, 1, "{}{}", said.out, said.err);
    assert!(said.out.contains("WRONG: the first host of the night: "), "{}", said.out);
    assert!(!said.out.contains("requests ran where the policies"), "{}", said.out);
}

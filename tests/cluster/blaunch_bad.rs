//! blaunch with words of every kind, with more than it takes, and with hosts and daemons that are
//! away (blaunch(1)).

use super::blaunch::{output, running};
use super::host_death::kill_daemons;
use super::parallel_losses::{nothing_left, with_word, word};
use super::rig::{Rig, alive, kill, wait_for};

/// The words that follow each line `== name`.
fn parts(out: &str) -> Vec<(&str, &str)> {
    out.split("== ").skip(1).map(|part| part.split_once('\n').unwrap()).collect()
}

#[test]
fn words_of_every_kind_come_to_their_task_as_they_are() {
    let rig = Rig::up("blaunch-kinds", 3);
    let script = r#"set -- $LSB_HOSTS
hex() { od -An -v -tx1 | tr -d ' \n'; echo; }
echo "== plain"
blaunch -no-shell $3 printf '%s|' "a'b" 'c"d' 'e
f' "$(printf '\377\376')" 'g\' '' | hex
echo "== shell"
blaunch $3 'echo a\'
blaunch $3 "echo 'b  c' \"d  e\""
blaunch $3 'echo f
echo g'
blaunch $3 "printf %s $(printf '\377\376')" | hex
echo "== bad"
blaunch $3 "echo 'a" 2> /dev/null; echo $?
"#;
    let (out, _) = output(&rig, script);
    let want = [
        ("plain", "6127627c6322647c650a667cfffe7c675c7c7c\n"),
        ("shell", "a\\\nb  c d  e\nf\ng\nfffe\n"),
        ("bad", "2\n"),
    ];
    assert_eq!(parts(&out), want, "{out}");
}

#[test]
fn more_than_blaunch_takes_is_refused_with_words() {
    let rig = Rig::up("blaunch-much", 3);
    let script = r#"set -- $LSB_HOSTS
two=$3
t() { echo "== $1"; shift; "$@"; echo $?; }
yes $two | head -n 100000 > many
yes $two | head -n 4097 > more
t many blaunch -u many true
t more blaunch -u more true
x=$(head -c 100000 /dev/zero | tr '\0' x)
y="$x $x $x $x $x $x $x $x $x"
long() { blaunch -no-shell $two echo $y $y "$@" > long; r=$?; wc -c < long; return $r; }
t long long
longer() { (ulimit -s 65536; blaunch -no-shell $two echo $y $y $y); }
t longer longer
t word blaunch $two echo $x $x
t few sh -c "ulimit -n 64; blaunch -z '$(yes $two | head -n 60 | tr '\n' ' ')' true"
t full sh -c "blaunch $two 'head -c 200000 /dev/zero' > /dev/full"
t pipe sh -c 'blaunch $0 "echo x; kill -13 \$\$" > /dev/full' $two
t head sh -c "blaunch -no-shell $two cat /dev/zero | head -c 5 | wc -c"
t after blaunch $two echo well
"#;
    let (out, _) = output(&rig, script);
    for (name, words) in parts(&out) {
        let want = match name {
            "many" => "blaunch: too many tasks: 100000, 4096 allowed\n255\n".to_owned(),
            "more" => "blaunch: too many tasks: 4097, 4096 allowed\n255\n".to_owned(),
            "long" => "1800018\n0\n".to_owned(),
            "word" => "/bin/sh: Argument list too long\n126\n".to_owned(),
            "full" | "pipe" => {
                "blaunch: standard output: No space left on device\n255\n".to_owned()
            }
            "longer" => {
                let max = lsf::proto::res::RUN_MAX;
                format!(
                    "blaunch: the command with its environment is longer than {max} bytes\n255\n"
                )
            }
            "few" => "blaunch: 60 tasks need 76 descriptors, and the limit is 64\n255\n".to_owned(),
            "head" => "5\n0\n".to_owned(),
            "after" => "well\n0\n".to_owned(),
            _ => panic!("{name}"),
        };
        assert_eq!(words, want, "{name}: {out}");
    }
}

/// The words of an output that is closed are those of a write to it; one that nothing is written to
/// is not missed.
#[test]
fn closed_standard_descriptors_are_missed_by_what_uses_them_alone() {
    let rig = Rig::up("blaunch-closed", 3);
    let script = r#"set -- $LSB_HOSTS
two=$3 three=$5
t() { echo "== $1"; shift; "$@"; echo $?; }
t out sh -c "blaunch $two 'echo x' >&-"
t several sh -c "blaunch -z '$two $three' 'echo x' >&-"
t none sh -c "blaunch -n $two true >&-"
t all sh -c "blaunch $two true <&- >&- 2>&-"
t err sh -c "blaunch $two 'echo x; echo y >&2' 2>&-"
t quiet sh -c "blaunch $two 'echo x' 2>&-"
t in sh -c "blaunch $two 'cat; echo end' <&-"
t both sh -c "blaunch $two 'cat; echo x >&2' <&- >&-"
"#;
    let (out, _) = output(&rig, script);
    let unwritten = "blaunch: standard output: Bad file descriptor\n255\n";
    let want = [
        ("out", unwritten),
        ("several", unwritten),
        ("none", "0\n"),
        ("all", "0\n"),
        ("err", "x\n255\n"),
        ("quiet", "x\n0\n"),
        ("in", "end\n0\n"),
        ("both", "x\n0\n"),
    ];
    assert_eq!(parts(&out), want, "{out}");
}

/// A job on three hosts whose script waits until `go` is there: the job, once it runs.
fn waiting(rig: &Rig, script: &str) -> u32 {
    for file in ["go", "said"] {
        let _ = std::fs::remove_file(rig.path(file));
    }
    let line = format!("while ! test -e go; do sleep 0.1; done; {{ {script}; }} > said 2>&1");
    let args = ["-n", "6", "-R", "span[ptile=2]", "-m", "host1! host2 host3", "-o", "/dev/null"];
    let job = rig.bsub(&[&args[..], &[&line]].concat());
    wait_for("the job", || rig.stat(job) == "RUN");
    job
}

/// Ends a daemon of a host and keeps it away while `then` is done.
fn without(rig: &Rig, daemon: &str, host: &str, then: impl FnOnce()) {
    let launcher = rig.pid("launcher", host).unwrap();
    kill(launcher, 19);
    rig.kill9(daemon, host);
    then();
    kill(launcher, 18);
    wait_for("the daemon to be back", || rig.pid(daemon, host).is_some());
}

#[test]
fn host_whose_res_or_authd_is_away_before_the_start_is_told_and_the_others_have_no_task() {
    let rig = Rig::up("blaunch-away", 3);
    let word = format!("{}.75", 7000 + std::process::id() % 997);
    let run = |daemon: &str, host: &str| {
        let script = format!("blaunch -z 'host2 host3' sleep {word}; echo $?");
        let job = waiting(&rig, &script);
        without(&rig, daemon, host, || {
            rig.write("go", "");
            wait_for("the end of blaunch", || rig.read("said").ends_with("\n255\n"));
            wait_for("no task", || running(&word) == 0);
        });
        assert_eq!(rig.end_of(job), "DONE");
        rig.read("said")
    };
    let fails = "lsb_launch(): Failed while executing tasks.\n255\n";
    for (daemon, host, why) in [
        ("res", "host2", "blaunch: host2: Connection refused by server ("),
        ("authd", "host1", "blaunch: host2: "),
    ] {
        let said = run(daemon, host);
        eprintln!("{daemon}: {said}");
        assert!(said.starts_with(why) && said.ends_with(fails), "{daemon}: {said}");
    }
}

/// The output of a job on host1 and host2 that runs this script.
fn on_two_hosts(rig: &Rig, script: &str) -> String {
    rig.write("job.sh", script);
    let args = ["-n", "4", "-R", "span[ptile=2]", "-m", "host1! host2", "-o", "/dev/null"];
    let job = rig.bsub(&[&args[..], &["sh job.sh > out 2>&1"]].concat());
    assert_eq!(rig.end_of(job), "DONE", "{}", rig.read("out"));
    rig.read("out")
}

/// The address of a host, as the cluster has it.
fn address(rig: &Rig, host: &str) -> String {
    let hosts = rig.read("conf/hosts");
    let of = |line: &&str| line.split_whitespace().skip(1).any(|word| word == host);
    hosts.lines().find(of).and_then(|line| line.split_whitespace().next()).unwrap().to_owned()
}

/// host3 is in the cluster and not in the job; another job of the user runs there.
#[test]
fn host_that_is_none_of_the_job_is_refused_by_whatever_name_and_has_no_task() {
    let rig = Rig::up("blaunch-foreign", 3);
    let mark = word(600);
    let other = rig.bsub(&["-m", "host3", "-o", "/dev/null", "sleep 600"]);
    wait_for("the other job", || rig.stat(other) == "RUN");
    let script = r#"t() { echo "== $1"; shift; "$@"; echo $?; }
x="touch x"
t list blaunch -z 'host2 host3' $x
t operand blaunch host3 $x
t alone blaunch host3
t user blaunch $(id -un)@host3 $x
t address blaunch -z ADDRESS $x
t slots env LSB_MCPU_HOSTS='host1 2 host2 2 host3 2' blaunch -z 'host2 host3' sleep MARK
t job env LSB_JOBID=OTHER LSB_MCPU_HOSTS='host3 1' blaunch host3 $x
t there env LSB_JOBID=OTHER LSB_MCPU_HOSTS='host2 2' blaunch host2 $x
printf 'host2\n \t \nhost3\n' > list
t file blaunch -u list $x
printf ' \t \n\n  # host2\n' > blanks
t blanks blaunch -u blanks $x
t cluster blaunch -z host2@other $x
t beyond blaunch 192.0.2.7 $x
t name blaunch hosta.example.invalid $x
t own blaunch -z 'localhost OWN' 'echo $LSF_LOCAL_HOST'
"#;
    let script = script.replace("ADDRESS", &address(&rig, "host3")).replace("MARK", &mark);
    let script = script.replace("OTHER", &other.to_string());
    let out = on_two_hosts(&rig, &script.replace("OWN", &address(&rig, "host2")));
    let bad = "Validation failed: the host is not allocated to the job";
    let line = |host: &str| format!("blaunch: {host}: {bad}\n255\n");
    let at_res = |host: &str, why: &str| {
        let failed = "lsb_launch(): Failed while executing tasks.";
        format!("blaunch: {host}: {why}\n{failed}\n255\n")
    };
    let own = format!("{}@host3", rig.run("bjobs", &["-noheader", "-o", "user"]).out.trim());
    let no_job = "Validation failed: bad job ID";
    for (name, said) in parts(&out) {
        let want = match name {
            "user" => line(&own),
            "address" => line(&address(&rig, "host3")),
            "slots" => at_res("host3", no_job),
            "job" => at_res("host3", bad),
            "there" => at_res("host2", no_job),
            "blanks" => "blaunch: blanks: no host name in it\n255\n".to_owned(),
            "cluster" => line("host2@other"),
            "beyond" => line("192.0.2.7"),
            "name" => line("hosta.example.invalid"),
            "own" => "host1\nhost2\n0\n".to_owned(),
            _ => line("host3"),
        };
        let mut lines: Vec<&str> = said.lines().collect();
        if name == "own" {
            lines.sort_unstable_by_key(|line| (*line == "0", *line));
        }
        assert_eq!(lines, want.lines().collect::<Vec<_>>(), "{name}: {out}");
    }
    assert_eq!(parts(&out).len(), 14, "{out}");
    assert!(!rig.path("x").exists());
    nothing_left(&rig, &mark, "host2");
    assert_eq!(rig.stat(other), "RUN");
}

#[test]
fn words_that_are_no_command_for_hosts_are_refused_with_the_usage() {
    let rig = Rig::up("blaunch-usage", 2);
    let script = r#"t() { echo "== $1"; shift; "$@" > said 2> err; c=$?
head -n 1 err; grep -c Usage: err; cat said; echo $c; }
t empty blaunch -z '' touch x
t blank blaunch -z ' ' touch x
t both blaunch -z host2 -u list touch x
t twice blaunch -no-shell -use-login-shell host2 touch x
t behind blaunch host2 -z host2 touch x
t after blaunch host2 -u
t list blaunch -z host2
t file blaunch -u list -n
t host blaunch host2 -n
t none blaunch
t options blaunch -n -no-wait
t word blaunch -z
"#;
    rig.write("list", "host2\n");
    let out = on_two_hosts(&rig, script);
    for (name, said) in parts(&out) {
        let why = match name {
            "empty" | "blank" => "-z names no host",
            "both" => "-z and -u exclude each other",
            "twice" => "-no-shell and -use-login-shell exclude each other",
            "behind" => "a host beside -z or -u",
            "after" => "-u: a word is missing",
            "word" => "-z: a word is missing",
            _ => "no command",
        };
        assert_eq!(said, format!("{why}\n1\n255\n"), "{name}: {out}");
    }
    assert_eq!(parts(&out).len(), 12, "{out}");
    assert!(!rig.path("x").exists());
}

/// With all of its daemons dead the host neither starts a task nor is waited for.
#[test]
fn one_of_twelve_hosts_that_is_down_before_the_start_is_told_and_the_others_have_no_task() {
    let rig = Rig::up("twelve-before", 12);
    let all_up = || rig.run("bhosts", &["-w"]).out.matches(" ok ").count() == 12;
    wait_for("all hosts", all_up);
    let mark = word(600);
    let script = format!(
        "while ! test -e go; do sleep 0.1; done\n\
         blaunch -z \"$LSB_HOSTS\" sleep {mark}; echo code $?; touch over; sleep 600"
    );
    rig.write("job.sh", &script);
    let hosts = (2..=12).fold("host1!".to_owned(), |all, n| format!("{all} host{n}"));
    let args = ["-n", "12", "-R", "span[ptile=1]", "-m", &hosts, "-o", "/dev/null"];
    let job = rig.bsub(&[&args[..], &["sh job.sh > said 2>&1"]].concat());
    wait_for("the job", || rig.stat(job) == "RUN");
    kill_daemons(&rig, "host7");
    let began = std::time::Instant::now();
    rig.write("go", "");
    wait_for("the end of blaunch", || rig.read("said").contains("code"));
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    let said = rig.read("said");
    let fails = "lsb_launch(): Failed while executing tasks.\ncode 255\n";
    assert!(said.starts_with("blaunch: host7: ") && said.ends_with(fails), "{said}");
    assert_eq!(said.lines().count(), 3, "{said}");
    wait_for("no task", || with_word(&mark, None).is_empty());
    // what was never started has ended nothing
    assert_eq!(rig.stat(job), "RUN");
    rig.ok("bkill", &[&job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
}

#[test]
fn task_goes_on_while_authd_of_its_host_or_of_blaunch_is_away() {
    let rig = Rig::up("blaunch-authd", 3);
    let line = "blaunch -z 'host2 host3' \
                'echo $$ >> up; while ! test -e go; do sleep 0.1; done; exit 4' > said 2>&1; \
                echo code $? >> said";
    let args = ["-n", "6", "-R", "span[ptile=2]", "-m", "host1! host2 host3", "-o", "/dev/null"];
    let job = rig.bsub(&[&args[..], &[line]].concat());
    wait_for("the tasks", || rig.read("up").lines().count() == 2);
    for host in ["host1", "host2"] {
        without(&rig, "authd", host, || {
            std::thread::sleep(std::time::Duration::from_secs(1));
            let up = rig.read("up");
            assert!(up.lines().all(|pid| alive(pid.parse().unwrap())), "{}", rig.read("said"));
        });
    }
    assert_eq!(rig.stat(job), "RUN");
    rig.write("go", "");
    assert_eq!(rig.end_of(job), "DONE");
    assert_eq!(rig.read("said"), "code 4\n");
}

//! blaunch with words of every kind, with more than it takes, and with hosts and daemons that are
//! away (blaunch(1)).

use super::blaunch::{output, running};
use super::rig::{Rig, kill, wait_for};

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

//! bjdepinfo on a real cluster (bjdepinfo(1)).

use crate::common::*;

#[test]
fn parents_and_children_of_a_job_are_shown_as_documented() {
    let first = bsub(&["-H", "-J", "dep-first", "sleep", "300"]);
    let condition = format!("done({first})");
    let second = bsub(&["-J", "dep-second-job", "-w", &condition, "true"]);
    let words = |text: &str| -> Vec<String> {
        text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let head = "JOBID PARENT PARENT_STATUS PARENT_NAME LEVEL";
    let row = format!("{second} {first} PSUSP dep-first 1");
    assert_eq!(words(&ok("bjdepinfo", &[&second])), [head, &row]);
    let told = format!("The dependency condition of job <{second}> is not satisfied: {condition}");
    assert_eq!(words(&ok("bjdepinfo", &["-l", "-p", "-r", "3", &second])), [&told, head, &row]);
    let head = "JOBID CHILD CHILD_STATUS CHILD_NAME LEVEL";
    let row = format!("{first} {second} PEND *-second-job 1");
    assert_eq!(words(&ok("bjdepinfo", &["-c", &first])), [head, &row]);
    assert_eq!(ok("bjdepinfo", &[&first]), format!("Job <{first}> has no parent\n"));
    assert_eq!(ok("bjdepinfo", &["-c", &second]), format!("Job <{second}> has no child\n"));
    for (args, words) in [
        (&["99999"][..], "Job <99999> is not found\n"),
        (&["-r", "0", &first], "0: Bad argument for option -r.\n"),
        (&["abc"], "abc: Illegal job ID.\n"),
    ] {
        let want = Said { code: 255, out: String::new(), err: words.into() };
        assert_eq!(run("bjdepinfo", args), want, "{args:?}");
    }
    let said = run("bjdepinfo", &["-c", "-l", &first]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    assert!(said.err.contains("Option -c cannot be combined with -l and -p."), "{}", said.err);
    ok("bkill", &[&first, &second]);
}

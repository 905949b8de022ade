//! bacct on a real cluster.

use crate::common::*;

#[test]
fn finished_jobs_are_summed_up() {
    let good = bsub(&["-P", "bacct-test", "-o", "/dev/null", "true"]);
    let bad = bsub(&["-P", "bacct-test", "-J", "b[1-2]", "-o", "/dev/null", "exit 3"]);
    end_of(&good);
    let lines = |text: &str, part: &str| text.lines().filter(|l| l.contains(part)).count();
    let mut said = String::new();
    for _ in 0..100 {
        said = ok("bacct", &["-P", "bacct-test"]);
        if said.contains("exited jobs:     2") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let total = " Total number of done jobs:       1      Total number of exited jobs:     2\n";
    assert!(said.contains(total), "{said}");
    assert!(said.contains("  - accounted on projects bacct-test, \n"), "{said}");
    let long = ok("bacct", &["-l", &good]);
    assert!(long.contains(&format!("\nJob <{good}>, User <")), "{long}");
    assert!(long.contains(": Completed <done>.\n"), "{long}");
    let brief = ok("bacct", &["-b", "-e", "-P", "bacct-test"]);
    assert_eq!(lines(&brief, &format!("{bad}[")), 2, "{brief}");
    let element = ok("bacct", &["-b", &format!("{bad}[2]")]);
    assert_eq!(lines(&element, &format!("{bad}[")), 1, "{element}");
    // Nothing selected is an answer too.
    let none = ok("bacct", &["-P", "no-such-project"]);
    assert!(none.contains("done jobs:       0 "), "{none}");
    let said = run("bacct", &["-f", "/nonexistent/lsb.acct"]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    assert!(said.err.contains("/nonexistent/lsb.acct: No such file"), "{}", said.err);
}

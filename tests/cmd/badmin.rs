//! badmin: queues and hosts, checks, what it does without a terminal.

use crate::common::*;

#[test]
fn queues_open_and_close() {
    for (verb, word) in [
        ("qclose", "closed"),
        ("qopen", "opened"),
        ("qinact", "inactivated"),
        ("qact", "activated"),
    ] {
        assert_eq!(ok("badmin", &[verb, "idle"]), format!("Queue <idle> is {word}\n"));
        if verb == "qclose" {
            let said = run("bsub", &["-q", "idle", "true"]);
            assert_eq!(said.code, 255);
            assert!(said.err.contains("Queue has been closed. Job not submitted."));
        }
        if verb == "qinact" {
            assert!(ok("bqueues", &["idle"]).contains("Open:Inact"));
        }
    }
    let said = run("badmin", &["qclose", "nosuch"]);
    assert_eq!(said, Said { code: 255, out: String::new(), err: "nosuch: No such queue\n".into() });
    let said = run("badmin", &["qclose"]);
    assert_eq!((said.code, said.err.as_str()), (255, "Queue name must be specified\n"));
}

#[test]
fn hosts_open_and_close() {
    let said = run("badmin", &["hclose", "-C", "a test", "host2"]);
    assert_eq!((said.code, said.err.as_str()), (0, "Close <host2> ...... done\n"));
    let shown = ok("bhosts", &["host2"]);
    assert!(shown.contains("closed"), "{shown}");
    let said = run("badmin", &["hopen", "host2"]);
    assert_eq!((said.code, said.err.as_str()), (0, "Open <host2> ...... done\n"));
    let said = run("badmin", &["hclose", "nosuch"]);
    assert_eq!(said.code, 255);
    assert_eq!(said.err, "nosuch: Bad host name, host group name or cluster name\n");
}

#[test]
fn a_clean_configuration() {
    let said = run("badmin", &["ckconfig"]);
    assert_eq!((said.code, said.out.as_str()), (0, "No errors found.\n\n"), "{}", said.err);
    assert!(said.err.starts_with("\nChecking configuration files ...\n"), "{}", said.err);
    let said = run("badmin", &["reconfig"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out, "No errors found.\n\nReconfiguration initiated\n");
}

#[test]
fn what_is_no_command() {
    let said = run("badmin", &["nosuch"]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    assert!(said.err.starts_with("Invalid command <nosuch>\n\nUsage: badmin"), "{}", said.err);
    assert_eq!(run("badmin", &["hrestart", "all"]).err, "badmin: hrestart is not supported yet\n");
}

#[test]
fn commands_from_standard_input() {
    let said = feed(cmd("badmin"), b"help qopen\nqclose nosuch\nquit\n");
    assert_eq!(said.code, 255);
    assert!(said.err.contains("Usage: badmin qopen"), "{}", said.err);
    assert!(said.err.ends_with("nosuch: No such queue\n"), "{}", said.err);
}

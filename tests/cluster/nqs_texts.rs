//! The texts that the commands of NQS print, beside a file of expected text.

use crate::rig::{Rig, wait_for};

/// Defines queues of each kind, and has requests in each state that does not pass.
fn filled() -> Rig {
    let rig = Rig::up("nqstexts", 2);
    let commands = "create batch_queue plain priority=5\n\
                    create batch_queue full priority=63 run_limit=7 loadonly pipeonly\n\
                    create pipe_queue to priority=33 server=(pipeclient) \
                    destination=(full@host1,plain)\n\
                    create pipe_queue a_pipe_queue_of_a_long_name server=(pipeclient) \
                    destination=(plain)\n\
                    set default batch_request queue to\n\
                    set default destination_retry time 7\n\
                    disable queue plain\nstop queue full\nstop queue normal\n\
                    stop queue a_pipe_queue_of_a_long_name\n";
    let said = rig.feed("qmgr", &[], commands);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{}", said.out);
    rig.write("job.sh", "sleep 100\n");
    let submit = |args: &[&str]| rig.ok("cqsub", &[args, &["job.sh"]].concat());
    submit(&["-q", "normal", "-lM", "10mw", "-lT", "1:00"]);
    submit(&["-q", "normal", "-r", "a_long_name", "-a", "tomorrow noon"]);
    submit(&["-q", "normal", "-r", "held"]);
    rig.ok("qmgr", &["hold request 3"]);
    submit(&["-q", "a_pipe_queue_of_a_long_name", "-r", "piped"]);
    let held = || rig.ok("bjobs", &["-noheader", "-o", "stat", "3"]).trim() == "PSUSP";
    wait_for("the request to be held", held);
    rig
}

#[test]
fn commands_of_nqs_print_the_expected_text() {
    let rig = filled();
    let user = rig.field("1", "user");
    let mut text = String::new();
    for line in [
        "qmgr show queue",
        "qmgr show queue to",
        "qmgr show queue full",
        "qmgr show pipe_queue",
        "qmgr show batch_queue",
        "qmgr show parameters",
        "qmgr show limits_supported",
        "qmgr show managers",
        "qmgr show destinations",
        "cqstatl",
        "cqstatl -b",
        "cqstatl -p",
        "cqstatl -l plain",
        "cqstatl -f to",
        "cqstatl -a",
        "qlimit",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let said = rig.run(words[0], &words[1..]);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{line}");
        text.push_str(&format!("$ {line}\n{}", said.out));
    }
    let width = user.len().max(4);
    let text = text.replace(&format!("\n{user}:m\n"), "\nUSER:m\n");
    let text = text.replace(&format!(" {user:<width$} "), &format!(" {:<width$} ", "USER"));
    let want = include_str!("expected/nqs.txt");
    assert_eq!(text, want, "{text}");
}

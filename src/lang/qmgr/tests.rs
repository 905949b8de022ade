//! qmgr's language, by the examples of the manual and by bad input.

use super::*;

fn one(text: &str) -> Command {
    let mut all = commands(text, 1);
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0).command.unwrap()
}

/// The fault of a text as `LINE:COL: text`.
fn fault(text: &str) -> String {
    let all = commands(text, 1);
    let fault = all.into_iter().find_map(|c| c.command.err()).expect(text);
    format!("{}:{}: {}", fault.line, fault.col, fault.text)
}

fn created(text: &str) -> NqsQueue {
    match one(text) {
        Command::Define(Definition::Create(queue)) => queue,
        other => panic!("{other:?}"),
    }
}

#[test]
fn queues_of_the_manual_are_read() {
    let queue = created("create pipe_queue nlbqueue server=(pipeclient CRI_DS) priority=33");
    let selected = |policy: &str, server: &str| {
        Some(Destinations::Selected { policy: policy.into(), server: server.into() })
    };
    assert_eq!((queue.name.as_str(), queue.priority), ("nlbqueue", 33));
    assert_eq!(queue.pipe, selected("", ""));
    let text = "create pipe_queue standard server=(pipeclient) \\\n\
                destination=(a@cool,b) priority=30";
    let Some(Destinations::Listed(list)) = created(text).pipe else { panic!("no list") };
    let list: Vec<String> = list.iter().map(ToString::to_string).collect();
    assert_eq!(list, ["a@cool", "b"]);
    let text = "create pipe_queue nlbqueue \\\nserver=(pipeclient CRI_DS CPU cool:nlb) priority=30";
    assert_eq!(created(text).pipe, selected("CPU", "cool:nlb"));
    let text = "CReate PIpe_queue q server=(pipeclient cri_ds cool:6883)";
    assert_eq!(created(text).pipe, selected("", "cool:6883"));
    let queue = "nlbqueue".to_owned();
    let default = Command::Define(Definition::DefaultQueue(Some(queue.clone())));
    assert_eq!(one("set default batch_request queue nlbqueue"), default);
    assert_eq!(one("se def bat qu nlbqueue"), default);
    assert_eq!(one("quit"), Command::Quit);
    let abort = Command::Abort { queue, seconds: Some(5) };
    assert_eq!(one("ABort Queue nlbqueue 5 # at once"), abort);
}

#[test]
fn definition_printed_reads_back() {
    for text in [
        "create pipe_queue a priority=33 server=(pipeclient CRI_DS)",
        "create pipe_queue a priority=0 server=(pipeclient CRI_DS CPU cool:nlb) run_limit=3",
        "create pipe_queue a priority=1 server=(pipeclient CRI_DS nqs cool)",
        "create pipe_queue a priority=1 server=(pipeclient) destination=(b@cool,c)",
        "create pipe_queue a priority=1 server=(pipeclient)",
        "create batch_queue b priority=63 run_limit=5 loadonly pipeonly",
    ] {
        assert_eq!(create(&created(text)), text);
    }
}

#[test]
fn command_with_a_fault_names_its_place() {
    let first = fault("creat3 pipe_queue q");
    assert!(first.starts_with("1:1: <creat3> is unknown: create, delete, add, set"), "{first}");
    assert_eq!(fault("st q"), "1:1: <st> is ambiguous: start or stop");
    assert_eq!(
        fault("c pipe_queue q"),
        "1:1: <c> is too short: keywords have two letters at least"
    );
    assert_eq!(fault("show p"), "1:6: <p> is too short: keywords have two letters at least");
    assert_eq!(fault("enable"), "1:7: queue is wanted at the end");
    assert_eq!(
        fault("\ncreate batch_queue q priority=64"),
        "2:31: <64>: a priority from 0 to 63 is wanted"
    );
    assert_eq!(
        fault("create batch_queue q server=(pipeclient)"),
        "1:22: <server> is unknown: priority, run_limit, loadonly or pipeonly is wanted"
    );
    assert_eq!(
        fault("create pipe_queue q server=(pipeclient CRI_DS) destination=(a)"),
        "1:48: a queue with CRI_DS has no list of destinations"
    );
    assert_eq!(
        fault("create pipe_queue q server=(pipeclient CRI_DS a b c)"),
        "1:51: a policy and a server at most stand behind CRI_DS, not <c>"
    );
    assert_eq!(
        fault("create pipe_queue q server=(pipeclient"),
        "1:39: CRI_DS is wanted at the end"
    );
    assert_eq!(fault("set destination = (a,) q"), "1:22: a destination is wanted, not <)>");
    assert_eq!(
        fault("set destination = (a@) q"),
        "1:20: <a@> is no destination: QUEUE or QUEUE@HOST"
    );
    assert_eq!(fault("delete queue a b"), "1:16: nothing is wanted behind the command, not <b>");
    assert_eq!(
        fault("add managers = joe"),
        "1:1: managers are the administrators of LSF: lsf.cluster, lsb.queues"
    );
    assert_eq!(fault("set validation password"), "1:16: passwords are never sent");
    assert_eq!(fault("set validation no"), "1:16: <no> is unknown: file or password is wanted");
    assert_eq!(fault("set validation"), "1:15: file is wanted at the end");
    assert_eq!(one("SE VAL fi"), Command::Define(Definition::Validation(true)));
    assert_eq!(one("set no_validation"), Command::Define(Definition::Validation(false)));
    assert_eq!(
        fault("set default destination_retry time 0"),
        "1:36: <0>: a number of minutes from 1 to 10000 is wanted"
    );
}

#[test]
fn comments_and_joined_lines_are_read_as_one_command_each() {
    let all = commands("# snap\n\nenable queue a # now\n  stop \\\n queue a\r\nexit", 1);
    let places: Vec<_> = all.iter().map(|c| (c.line, c.col, c.text.as_str())).collect();
    assert_eq!(places, [(3, 1, "enable queue a"), (4, 3, "stop queue a"), (6, 1, "exit")]);
    assert!(all.iter().all(|c| c.command.is_ok()));
}

#[test]
fn nqs_queues_of_lsb_queues_are_read() {
    let read = |text: &str| nqs_queues(text).map(|to| to.to_string());
    assert_eq!(read("CRI_DS").unwrap(), "CRI_DS");
    assert_eq!(read("CRI_DS CPU cool:nlb").unwrap(), "CRI_DS CPU cool:nlb");
    assert_eq!(read("CRI_DS cool:nlb").unwrap(), "CRI_DS nqs cool:nlb");
    assert_eq!(read("a@cool b").unwrap(), "a@cool b");
    let refused = |text: &str| read(text).unwrap_err();
    let both = "a queue with CRI_DS has no list of destinations: <";
    assert_eq!(refused("CRI_DS a@b"), format!("{both}a@b>"));
    assert_eq!(refused("a CRI_DS"), format!("{both}CRI_DS>"));
    let most = "a policy and a server at most stand behind CRI_DS, not <c>";
    assert_eq!(refused("CRI_DS a b c"), most);
}

#[test]
fn phrases_that_act_have_a_usage() {
    let all: Vec<_> = phrases().collect();
    assert!(all.contains(&("delete queue", "QUEUE")));
    assert!(!all.iter().any(|(words, _)| *words == "create complex"));
}

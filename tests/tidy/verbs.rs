//! Every message by which a command does something, and every command, has a row in the table of
//! who may do what (src/batch/site/permissions.txt).

use std::collections::BTreeSet;

/// The answers of daemons; these messages ask for nothing.
const ANSWERS: &[&str] = &[
    "Submitted",
    "Controlled",
    "DependencyRows",
    "JobGroups",
    "Reservations",
    "ReservationPolicies",
    "Messages",
    "Peeked",
    "ApplicationRows",
    "PartitionRows",
    "LimitRows",
    "QueueRows",
    "UserRows",
    "SlotRows",
    "GroupRows",
    "HostRows",
    "Rows",
    "Waited",
    "AdminDone",
    "ParamRows",
    "Launch.Tasks",
    "Launch.Task",
    "Launch.Refused",
    "Launch.DaemonList",
    "Res.Done",
    "Res.Joined",
    "Res.Kept",
    "Res.Resumed",
    "Res.Started",
    "Res.Stopped",
    "Res.Ended",
    "Res.Adopted",
    "Pam.Welcome",
    "Pam.Ack",
    "Pam.Signal",
    "Nlb.Ranked",
    "Nlb.Text",
    "Nlb.Outcome",
    "Nlb.Watched",
    "Nlb.Reported",
];

fn read(rel: &str) -> String {
    std::fs::read_to_string(super::root().join(rel)).unwrap()
}

/// The variants of an enum, as they stand in the text.
fn variants(text: &str, name: &str) -> Vec<String> {
    let head = format!("pub enum {name} {{\n");
    let body = &text[text.find(&head).unwrap_or_else(|| panic!("no {head}")) + head.len()..];
    let lines = body.lines().take_while(|l| *l != "}");
    let own = lines.filter_map(|l| l.strip_prefix("    ")).filter(|l| !l.starts_with([' ', '/']));
    let word = |l: &str| l.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("").to_owned();
    own.map(word).filter(|w| w.starts_with(char::is_uppercase)).collect()
}

/// The messages that ask for something, each with what it asks for.
fn asked() -> BTreeSet<String> {
    let client = read("src/proto/client.rs") + &read("src/proto/admin_ops.rs");
    let mut found: Vec<String> = Vec::new();
    for message in variants(&client, "ClientMsg") {
        match message.as_str() {
            "Control" => {
                let verbs = variants(&client, "Verb");
                found.extend(verbs.iter().map(|v| format!("Control.{v}")));
            }
            "Admin" => {
                for op in variants(&client, "AdminOp") {
                    match op.as_str() {
                        "QueueCtrl" => {
                            let ops = variants(&client, "QueueOp");
                            found.extend(ops.iter().map(|v| format!("Admin.QueueCtrl.{v}")));
                        }
                        _ => found.push(format!("Admin.{op}")),
                    }
                }
            }
            "Message" => {
                let requests = variants(&read("src/proto/job_message.rs"), "MessageRequest");
                found.extend(requests.iter().map(|v| format!("Message.{v}")));
            }
            "JobGroup" => {
                let requests = variants(&read("src/proto/job_group.rs"), "JobGroupRequest");
                found.extend(requests.iter().map(|v| format!("JobGroup.{v}")));
            }
            "Reservation" => {
                let requests = variants(&read("src/proto/reservation.rs"), "ReservationRequest");
                found.extend(requests.iter().map(|v| format!("Reservation.{v}")));
            }
            _ => found.push(message),
        }
    }
    let launch = variants(&read("src/proto/launch.rs"), "LaunchMsg");
    found.extend(launch.iter().map(|v| format!("Launch.{v}")));
    let res = variants(&read("src/proto/res.rs"), "ResMsg");
    found.extend(res.iter().map(|v| format!("Res.{v}")));
    let pam = variants(&read("src/proto/pam.rs"), "PamMsg");
    found.extend(pam.iter().map(|v| format!("Pam.{v}")));
    let sbd = variants(&read("src/proto/sbd.rs"), "SbdMsg");
    found.extend(sbd.iter().map(|v| format!("Sbd.{v}")));
    let nlb = variants(&read("src/proto/nlb.rs"), "NlbMsg");
    found.extend(nlb.iter().map(|v| format!("Nlb.{v}")));
    assert!(found.len() > 30, "{found:?}");
    found.into_iter().filter(|m| !ANSWERS.contains(&m.as_str())).collect()
}

/// Every command, `COMMAND/WORD` where its words do different things.
fn commands() -> BTreeSet<String> {
    let shown = super::applets().into_iter().filter(|(_, hidden)| !hidden);
    let mut found: BTreeSet<String> = shown.map(|(name, _)| name).collect();
    let badmin = read("applets/badmin.rs");
    let names = badmin.lines().filter_map(|l| l.trim().strip_prefix("name: \""));
    let words = names.filter_map(|l| l.split('"').next());
    found.extend(words.map(|w| format!("badmin/{w}")));
    let lsadmin = read("applets/lsadmin.rs");
    let arms = lsadmin.lines().filter_map(|l| l.strip_prefix("    (\""));
    let words = arms.filter_map(|l| l.split('"').next());
    let words = words.filter(|w| !["help", "?", "quit"].contains(w));
    found.extend(words.map(|w| format!("lsadmin/{w}")));
    assert!(found.contains("badmin/qopen") && found.contains("lsadmin/limrestart"), "{found:?}");
    found.remove("badmin");
    found.remove("lsadmin");
    found
}

#[test]
fn every_verb_has_a_row_in_the_table_of_who_may() {
    let table = read("src/batch/site/permissions.txt");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(|l| l.split_whitespace().collect())
        .collect();
    let (mut found, asked, commands) = (Vec::new(), asked(), commands());
    let has = |name: &String| rows.iter().any(|r| r[0] == name);
    found.extend(asked.iter().filter(|a| !has(a)).map(|a| format!("message {a} has no row")));
    let sent = |name: &String| rows.iter().any(|r| r[6..].contains(&name.as_str()));
    found.extend(commands.iter().filter(|c| !sent(c)).map(|c| format!("{c} is in no row")));
    for row in &rows {
        // a message with a circumstance is still that message
        let name = row[0].split('/').next().unwrap_or("");
        if name != "none" && !asked.contains(name) {
            found.push(format!("row {name}: no such message"));
        }
        for word in &row[6..] {
            let command = word.split('/').next().unwrap_or("");
            let of = |c: &String| c == command || c.split('/').next() == Some(command);
            if !commands.iter().any(of) {
                found.push(format!("row {name}: no command {word}"));
            }
        }
    }
    super::report("verbs", found);
}

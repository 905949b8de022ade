//! Pins the JSON of what messages carry only at times: orders, verbs, and fields that are left out
//! where they are empty. The texts are written by hand: a peer of another version reads them.

use super::binding::Binding;
use super::client::*;
use super::launch::{Cleanup, FinishPlan, JobDirectory, JobPlan, Ready, Setup};
use super::member::TaskNote;
use super::sbd::*;
use crate::model::JobKey;
use crate::model::checkpoint::{CheckpointEnd, CheckpointOrder};
use crate::model::job::Usage;
use crate::model::job_control::{ControlAction, JobControls};
use crate::model::limits::{Limits, MemoryOf};
use crate::model::resize::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt::Debug;

/// The value is written as this text, and the text is read back as the value.
fn is<T: Serialize + DeserializeOwned + Debug>(value: &T, text: &str) {
    assert_eq!(serde_json::to_string(value).unwrap(), text);
    let read: T = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!(format!("{read:?}"), format!("{value:?}"));
}

/// The fields in which a value differs from the default, as text; what an older peer does not send
/// is read as the default.
fn fields<T: Serialize + DeserializeOwned + Debug + Default>(value: &T, text: &str) {
    let object = |value: &T| match serde_json::to_value(value).unwrap() {
        Value::Object(fields) => fields,
        other => panic!("{other}"),
    };
    let (mine, default) = (object(value), object(&T::default()));
    let other = |(name, of): &(&String, &Value)| default.get(*name) != Some(*of);
    let differs: Map<String, Value> =
        mine.iter().filter(other).map(|(name, of)| (name.clone(), of.clone())).collect();
    let want: Value = serde_json::from_str(text).unwrap();
    assert_eq!(Value::Object(differs), want);
    let read: T = serde_json::from_str(text).unwrap();
    assert_eq!(format!("{read:?}"), format!("{value:?}"));
}

#[test]
fn processor_units_of_a_host_are_a_text() {
    let facts =
        crate::proto::lim::HostFacts { topology: "N0=64 S0 0,1".into(), ..Default::default() };
    fields(&facts, r#"{"topology":"N0=64 S0 0,1"}"#);
    let units = HostUnits { cpus: "0-3".into(), taken: "1".into(), memory: vec![(0, 64)] };
    is(&units, r#"{"cpus":"0-3","taken":"1","memory":[[0,64]]}"#);
}

#[test]
fn binding_of_a_task_names_processors_and_nodes() {
    let cpus = Binding { cpus: "0,2-5".into(), ..Binding::default() };
    is(&cpus, r#"{"cpus":"0,2-5"}"#);
    let (nodes, host_file) = ("1".into(), "/tmp/units".into());
    let all = Binding { nodes, prefer: true, host_file, ..cpus };
    is(&all, r#"{"cpus":"0,2-5","nodes":"1","prefer":true,"host_file":"/tmp/units"}"#);
}

#[test]
fn directory_of_a_job_has_its_name_and_numbers() {
    let directory = JobDirectory { path: "/s/1".into(), device: 1, inode: 2, new: true };
    is(&directory, r#"{"path":"/s/1","device":1,"inode":2,"new":true}"#);
    let told = r#"{"Ready":{"directory":{"path":"/s/1"}}}"#;
    let Ok(Setup::Ready(ready)) = serde_json::from_str(told) else { panic!() };
    let path = "/s/1".into();
    assert_eq!(ready.directory, Some(Box::new(JobDirectory { path, ..JobDirectory::default() })));
    assert!(!serde_json::to_string(&Ready::default()).unwrap().contains("directory"));
    assert!(!serde_json::to_string(&FinishPlan::default()).unwrap().contains("directory"));
}

#[test]
fn script_of_an_application_profile_is_in_plans_of_jobs_that_have_one() {
    let cleanup = Cleanup { script: "/b/e.sh".into(), limit_secs: 300, env: "A=1\0".into() };
    is(&cleanup, r#"{"script":"/b/e.sh","limit_secs":300,"env":"A=1\u0000"}"#);
    let told = r#"{"Ready":{"env_script":"/b/e.sh"}}"#;
    let Ok(Setup::Ready(ready)) = serde_json::from_str(told) else { panic!() };
    assert_eq!(ready.env_script, "/b/e.sh".into());
    let plain = [
        serde_json::to_string(&Ready::default()),
        serde_json::to_string(&JobPlan::default()),
        serde_json::to_string(&FinishPlan::default()),
    ];
    for text in plain.map(Result::unwrap) {
        assert!(!text.contains("env_script") && !text.contains("cleanup"), "{text}");
    }
    let note = r#"{"key":{"job":1,"idx":0,"attempt":1},"usage_secs":9}"#;
    let note = TaskNote::of(note).unwrap();
    assert_eq!((note.usage_secs, TaskNote::of(&note.text())), (9, Some(note)));
    assert!(!TaskNote { usage_secs: 0, ..note }.text().contains("usage"));
    assert!(!note.text().contains("pam_ms"));
    let of_pam = TaskNote { pam_ms: Some(20), ..note };
    assert!(of_pam.text().ends_with(r#""usage_secs":9,"pam_ms":20}"#), "{}", of_pam.text());
    assert_eq!(TaskNote::of(&of_pam.text()), Some(of_pam));
}

#[test]
fn orders_to_hosts_are_these_texts() {
    let (kill, force) = (true, true);
    is(&Act::Terminate { exit_info: 14 }, r#"{"Terminate":{"exit_info":14}}"#);
    is(&Act::Signal { number: 10 }, r#"{"Signal":{"number":10}}"#);
    is(&Act::Suspend, r#""Suspend""#);
    is(&Act::Resume, r#""Resume""#);
    is(&Act::Checkpoint(CheckpointOrder::default()), r#"{"Checkpoint":{}}"#);
    let order = CheckpointOrder { kill, force, period: Some(5) };
    is(&Act::Checkpoint(order), r#"{"Checkpoint":{"kill":true,"force":true,"period":5}}"#);
    let limits = Act::Limits(Box::default());
    assert!(serde_json::to_string(&limits).unwrap().starts_with(r#"{"Limits":{"#));
    let (slots, all) = ([("h2".into(), 2)].into(), [("h1".into(), 1), ("h2".into(), 2)].into());
    let order = ResizeOrder {
        number: 3,
        grows: true,
        hosts: slots,
        allocation: all,
        command: String::new(),
    };
    is(
        &Act::Resize(Box::new(order.clone())),
        concat!(
            r#"{"Resize":{"number":3,"grows":true,"hosts":[["h2",2]],"#,
            r#""allocation":[["h1",1],["h2",2]]}}"#
        ),
    );
    let text = concat!(
        r#"{"number":3,"grows":true,"hosts":[["h2",2]],"#,
        r#""allocation":[["h1",1],["h2",2]],"command":"x"}"#
    );
    is(&ResizeOrder { command: "x".into(), ..order }, text);
}

#[test]
fn verbs_of_requests_are_these_texts() {
    is(&Verb::Kill, r#""Kill""#);
    is(&Verb::Remove, r#""Remove""#);
    is(&Verb::Switch { queue: "q".into() }, r#"{"Switch":{"queue":"q"}}"#);
    is(&Verb::Move { top: true, position: 2 }, r#"{"Move":{"top":true,"position":2}}"#);
    is(
        &Verb::Requeue(Requeue { exit: true, hold: true, ..Requeue::default() }),
        r#"{"Requeue":{"done":false,"exit":true,"run":false,"pend":false,"hold":true}}"#,
    );
    is(&Verb::Migrate { force: true }, r#"{"Migrate":{"force":true}}"#);
    let period = Some(0);
    let order = CheckpointOrder { period, ..CheckpointOrder::default() };
    is(&Verb::Checkpoint(order), r#"{"Checkpoint":{"period":0}}"#);
    is(&Verb::Resize(ResizeRequest::Cancel), r#"{"Resize":"Cancel"}"#);
    let notify = NotifyCommand::Given("x".into());
    let grow = ResizeRequest::Grow { least: 1, slots: 4, cancel: true, notify };
    let text = r#"{"Resize":{"Grow":{"least":1,"slots":4,"cancel":true,"notify":{"Given":"x"}}}}"#;
    is(&Verb::Resize(grow), text);
    let host = ReleasedHost { name: "h1".into(), slots: 2, kept: false };
    let hosts = ReleasedHosts { all: false, hosts: vec![host] };
    let release = ResizeRequest::Release { hosts, cancel: false, notify: NotifyCommand::None };
    let text = concat!(
        r#"{"Resize":{"Release":{"hosts":{"all":false,"hosts":[{"name":"h1","slots":2,"kept":"#,
        r#"false}]},"cancel":false,"notify":"None"}}}"#
    );
    is(&Verb::Resize(release), text);
}

#[test]
fn fields_of_a_start_order_that_older_hosts_lack_are_these_texts() {
    let controls = JobControls {
        suspend: Some(ControlAction::Signal(20)),
        resume: Some(ControlAction::Command("wake".into())),
        terminate: Some(ControlAction::Checkpoint),
    };
    let order = StartJob {
        ranks: vec![("h2".into(), 1), ("h1".into(), 1)],
        pre_exec: "a".into(),
        post_exec: "b".into(),
        host_pre_exec: "c".into(),
        host_post_exec: "d".into(),
        starter: "e".into(),
        account: "f".into(),
        restart: "7".into(),
        controls,
        success: "3 4".into(),
        include_post: true,
        post_timeout: 60,
        cwd_ttl: Some(0),
        pre_timeout: 30,
        env_vars: vec![("A".into(), "1".into())],
        last_requeue: true,
        resizable: true,
        affinity: "h1 0,1".into(),
        bind_job: "PACK".into(),
        bound: "0-1".into(),
        ..StartJob::default()
    };
    let text = r#"{
        "affinity": "h1 0,1", "bind_job": "PACK", "bound": "0-1",
        "ranks": [["h2", 1], ["h1", 1]],
        "pre_exec": "a", "post_exec": "b", "host_pre_exec": "c", "host_post_exec": "d",
        "starter": "e", "account": "f", "restart": "7",
        "controls": {
            "suspend": {"Signal": 20}, "resume": {"Command": "wake"}, "terminate": "Checkpoint"
        },
        "success": "3 4", "include_post": true, "post_timeout": 60, "cwd_ttl": 0, "pre_timeout": 30,
        "env_vars": [["A", "1"]], "last_requeue": true, "resizable": true
    }"#;
    fields(&order, text);
}

#[test]
fn fields_of_a_report_that_older_masters_lack_are_these_texts() {
    let usage = Usage { cpu_peak: 250, cpu_peak_secs: 9, ..Usage::default() };
    fields(&usage, r#"{"cpu_peak": 250, "cpu_peak_secs": 9}"#);
    let number = 2;
    let (succeeded, kill, asked, period) = (true, true, true, Some(5));
    let state = TaskState {
        pre_exit: 3,
        pre_host: "h2".into(),
        after: "no mail".into(),
        post: Post::Running,
        checkpoint: CheckpointEnd { number, succeeded, kill, asked, period },
        resize: ResizeTold { number: 4, pid: 77, status: Some(0) },
        ..TaskState::default()
    };
    let text = r#"{
        "pre_exit": 3, "pre_host": "h2", "after": "no mail", "post": "Running",
        "checkpoint": {"number": 2, "succeeded": true, "kill": true, "asked": true, "period": 5},
        "resize": {"number": 4, "pid": 77, "status": 0}
    }"#;
    fields(&state, text);
    fields(&CheckpointEnd::default(), "{}");
    fields(&Ready::default(), "{}");
    let params =
        SbdParams { rusage_update_rate: 4, rusage_update_percent: 20, ..SbdParams::default() };
    fields(&params, r#"{"rusage_update_rate": 4, "rusage_update_percent": 20}"#);
}

#[test]
fn groups_in_place_of_a_host_are_told_where_there_are_some() {
    let host = HostInfo { condensed: vec!["rack1".into()], ..HostInfo::default() };
    fields(&host, r#"{"condensed": ["rack1"]}"#);
    let none = serde_json::to_string(&HostInfo::default()).unwrap();
    assert!(!none.contains("condensed"), "{none}");
    is(&[Col::CondensedHosts, Col::AllPendReasons], r#"["CondensedHosts","AllPendReasons"]"#);
    is(&[Col::RunLimit], r#"["RunLimit"]"#);
}

#[test]
fn memory_limits_of_processes_and_tasks_are_told_where_they_are_set() {
    let memory_of = Some(MemoryOf { task: true, ..MemoryOf::default() });
    fields(&Limits { memory_of, ..Limits::default() }, r#"{"memory_of": {"task": true}}"#);
    let key = JobKey { job: 7, idx: 2, attempt: 1 };
    let (usage, pids, groups) = (Box::default(), vec![], vec![]);
    let over = SbdMsg::HostUsage { key, usage, pids, groups, over_memory: true };
    let text = serde_json::to_string(&over).unwrap();
    assert!(text.ends_with(r#""groups":[],"over_memory":true}}"#), "{text}");
    is(&over, &text);
}

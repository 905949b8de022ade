//! The whole matrix of message x role, each sent to the machine; the rows are those of
//! permissions.txt.

use super::*;
use crate::model::reason::err;
use crate::model::resize::ResizeRequest;
use crate::proto::dependency::DependencyRequest;
use crate::proto::force::Force;
use crate::proto::job_group::{DeleteGroups, JobGroupRequest, NewLimit};
use crate::proto::job_message::{MessageRequest, OneJob, PostMessage};

const QUEUE_ADMIN: ConnId = crate::proto::machine::INCOMING + 4;
const ROOT: ConnId = crate::proto::machine::INCOMING + 5;
/// The roles, in the order of the columns.
const ROLES: [(&str, ConnId); 5] = [
    ("anybody", OTHER),
    ("owner", USER),
    ("queue", QUEUE_ADMIN),
    ("cluster", ADMIN),
    ("root", ROOT),
];

/// A cluster with somebody in each role, and a job of ann's.
fn rig() -> (Rig, u32) {
    let mut conf = conf();
    conf.batch.queues[0].admins = vec!["quinn".into()];
    conf.base.lsf.set("LSF_ROOT_USER", "Y");
    let mut r = Rig::of(conf);
    r.mbd.root_jobs = true;
    for (conn, user, uid) in [(QUEUE_ADMIN, "quinn", 1003), (ROOT, "root", 0)] {
        let peer = Peer::User { uid, gid: uid, user: user.into(), host: "h1".into() };
        r.step(Input::Opened { conn, peer });
    }
    let job = r.submit(spec("x")).unwrap();
    (r, job)
}

fn message(row: &str, r: &mut Rig, job: u32) -> ClientMsg {
    let select = JobSelect { ids: vec![IdSel { job, elems: vec![] }], ..JobSelect::default() };
    let control = |verb| {
        let select = select.clone();
        ClientMsg::Control(Box::new(Control::of(verb, select)))
    };
    match row {
        "Submit" => ClientMsg::Submit(Box::new(Submit { spec: spec("y"), ..Submit::default() })),
        "Control.Kill" => control(Verb::Kill),
        "Control.Remove" => control(Verb::Remove),
        "Control.Signal" => control(Verb::Signal { number: 10, name: "USR1".into() }),
        "Control.Stop" => control(Verb::Stop),
        "Control.Resume" => control(Verb::Resume),
        "Control.Switch" => control(Verb::Switch { queue: "high".into() }),
        "Control.Move" => control(Verb::Move { top: true, position: 1 }),
        "Control.Requeue" => control(Verb::Requeue(Requeue::default())),
        "Control.Checkpoint" => control(Verb::Checkpoint(Default::default())),
        "Control.Resize" => control(Verb::Resize(ResizeRequest::Cancel)),
        "Control.Migrate" => control(Verb::Migrate { force: false }),
        "Control.Force" => control(Verb::Force(Force::default())),
        "Modify" => {
            use crate::model::job::opt2::HOLD;
            let job = r.submit(JobSpec { options2: HOLD, ..spec("z") }).unwrap();
            let (id, spec) = (IdSel { job, elems: vec![] }, spec("y"));
            let fields = vec![crate::model::specfield::SpecField::Command];
            ClientMsg::Modify(Box::new(Modify { id, spec, fields, ..Modify::default() }))
        }
        "Control.Resume/damaged" => {
            let (at, why) = (JobRef { job, idx: 0 }, "a record is lost".to_string());
            let event = crate::model::event::Event::Hold { at, why };
            r.mbd.state.apply(&Record { time: r.now.secs(), event });
            control(Verb::Resume)
        }
        "Peek" => {
            let (conn, key) = r.starts_of(job)[0];
            r.report(conn, key, AttemptPhase::Running);
            ClientMsg::Peek(Box::new(select))
        }
        "Stored" => ClientMsg::Stored { id: select.ids[0].clone(), script: false },
        "Jobs" => ClientMsg::Jobs(Box::new(JobQuery {
            select,
            cols: vec![Col::Command],
            ..JobQuery::default()
        })),
        _ if row.starts_with("Message.") => message_request(row, r, job),
        _ if row.starts_with("JobGroup.") => group_request(row, r),
        _ if row.starts_with("Reservation.") => reservation_request(row, r),
        "Dependencies" => {
            let (at, level) = (JobRef { job, idx: 0 }, 1);
            let request = DependencyRequest { at, level, ..DependencyRequest::default() };
            ClientMsg::Dependencies(Box::new(request))
        }
        "Queues" => {
            let names = vec![];
            ClientMsg::Queues { names, user: String::new(), host: String::new() }
        }
        "Partitions" => ClientMsg::Partitions { names: vec![] },
        "Applications" => ClientMsg::Applications { names: vec![] },
        "Limits" => ClientMsg::Limits(Box::default()),
        "Hosts" => ClientMsg::Hosts { names: vec![], res_req: String::new() },
        "Users" => ClientMsg::Users { names: vec![] },
        "Slots" => ClientMsg::Slots { res_req: String::new() },
        "Groups" => ClientMsg::Groups { hosts: false, names: vec![], expand: false, units: false },
        "Params" => ClientMsg::Params,
        "Wait" => ClientMsg::Wait(Wait { expr: format!("ended({job})"), ..Wait::default() }),
        other => ClientMsg::Admin(admin_request(other)),
    }
}

fn message_request(row: &str, r: &mut Rig, job: u32) -> ClientMsg {
    match row {
        "Message.Post" | "Message.Post/data" => {
            let file = if row == "Message.Post" { String::new() } else { "f".into() };
            let post = PostMessage { job: one_job(job), file, ..PostMessage::default() };
            ClientMsg::Message(Box::new(MessageRequest::Post(post)))
        }
        "Message.Read" | "Message.Attachment" => {
            let index = 0;
            let (file, data) = ("f".into(), "data".into());
            let post = PostMessage { job: one_job(job), file, data, ..PostMessage::default() };
            r.ask(USER, ClientMsg::Message(Box::new(MessageRequest::Post(post))));
            let job = one_job(job);
            ClientMsg::Message(Box::new(match row {
                "Message.Read" => MessageRequest::Read { job, index },
                _ => MessageRequest::Attachment { job, index },
            }))
        }
        other => panic!("no message {other} is sent here"),
    }
}

fn group_request(row: &str, r: &mut Rig) -> ClientMsg {
    match row {
        "JobGroup.Add" => {
            let (path, limit, sla) = ("/a".into(), None, String::new());
            ClientMsg::JobGroup(Box::new(JobGroupRequest::Add { path, limit, sla }))
        }
        "JobGroup.Modify" | "JobGroup.Delete" => {
            let (path, limit, sla) = ("/a".to_string(), None, String::new());
            let add = JobGroupRequest::Add { path: path.clone(), limit, sla };
            r.ask(USER, ClientMsg::JobGroup(Box::new(add)));
            ClientMsg::JobGroup(Box::new(match row {
                "JobGroup.Modify" => {
                    let (limit, owner) = (Some(NewLimit::Most(1)), String::new());
                    JobGroupRequest::Modify { path, limit, owner }
                }
                _ => JobGroupRequest::Delete(DeleteGroups { path, ..DeleteGroups::default() }),
            }))
        }
        "JobGroup.List" => {
            let (path, slots) = (String::new(), false);
            ClientMsg::JobGroup(Box::new(JobGroupRequest::List { path, slots }))
        }
        other => panic!("no message {other} is sent here"),
    }
}

fn reservation_request(row: &str, r: &mut Rig) -> ClientMsg {
    use crate::model::reservation::{Reservation, ReservationTime};
    use crate::proto::reservation::{NewReservation, ReservationChange, ReservationRequest};
    let (begin, users, hosts) =
        (r.now.secs() + 3600, vec!["ann".to_owned()], vec!["h1".to_owned()]);
    let time = ReservationTime::Once { begin, end: begin + 3600 };
    let (id, creator) = ("mine".to_owned(), "ann".to_owned());
    let known = Reservation { id: id.clone(), creator, time: time.clone(), ..<_>::default() };
    let known = Reservation { users: users.clone(), hosts: vec![("h1".into(), 1)], ..known };
    let event = crate::model::event::Event::Reservation(Box::new(known));
    r.mbd.state.apply(&Record { time: r.now.secs(), event });
    ClientMsg::Reservation(Box::new(match row {
        "Reservation.Add" => {
            let new = NewReservation { users, units: 1, hosts, time, ..<_>::default() };
            ReservationRequest::Add(Box::new(new))
        }
        "Reservation.Modify" => {
            let description = Some("x".into());
            let change = ReservationChange { description, ..ReservationChange::default() };
            ReservationRequest::Modify { id, change: Box::new(change) }
        }
        "Reservation.Delete" => ReservationRequest::Delete { ids: vec![id] },
        "Reservation.List" => ReservationRequest::List { ids: vec![] },
        "Reservation.Policies" => ReservationRequest::Policies { names: vec![] },
        other => panic!("no message {other} is sent here"),
    }))
}

fn one_job(job: u32) -> OneJob {
    OneJob { at: JobRef { job, idx: 0 }, name: String::new() }
}

fn admin_request(row: &str) -> AdminOp {
    let queues = |op| {
        let (queues, comment) = (vec!["normal".to_owned()], String::new());
        AdminOp::QueueCtrl { op, queues, comment }
    };
    let comment = String::new();
    match row {
        "Admin.HostCtrl" => {
            let (hosts, lock) = (vec!["h1".into()], String::new());
            AdminOp::HostCtrl { open: false, hosts, comment, lock }
        }
        "Admin.QueueCtrl.Open" => queues(QueueOp::Open),
        "Admin.QueueCtrl.Close" => queues(QueueOp::Close),
        "Admin.QueueCtrl.Activate" => queues(QueueOp::Activate),
        "Admin.QueueCtrl.Inactivate" => queues(QueueOp::Inactivate),
        "Admin.Reconfig" => AdminOp::Reconfig { comment },
        "Admin.Logging" => AdminOp::Logging {
            hosts: vec!["h1".into()],
            set: crate::proto::Logging { level: Some(1), ..Default::default() },
        },
        "Admin.GroupHosts" => {
            let (group, hosts) = ("nosuch".into(), vec!["h1".into()]);
            AdminOp::GroupHosts { add: true, group, hosts, comment }
        }
        "Admin.Perfmon" => AdminOp::Perfmon { what: "view".into(), secs: 0 },
        "Admin.Diagnose" => {
            let (what, on, file) = ("job".into(), false, String::new());
            AdminOp::Diagnose { what, on, file, minutes: 0 }
        }
        "Admin.DefineQueues" => {
            let command = "set default destination_retry time 5".into();
            AdminOp::DefineQueues { command, again: false }
        }
        "Admin.Show" => AdminOp::Show { what: "status".into() },
        "Admin.Shutdown" => AdminOp::Shutdown { comment },
        other => panic!("no message {other} is sent here"),
    }
}

/// Whether what was asked was let through.
fn let_through(answer: Option<Msg>) -> bool {
    match answer {
        Some(Msg::Refused(r)) => {
            assert_eq!(r.code, err::PERMISSION, "{}", r.words());
            false
        }
        Some(Msg::Client(ClientMsg::Controlled { outcomes, .. })) => {
            assert_eq!(outcomes.len(), 1);
            outcomes[0].code != err::PERMISSION
        }
        Some(Msg::Client(ClientMsg::AdminDone { lines })) => {
            lines.iter().all(|l| l.code != err::PERMISSION)
        }
        _ => true,
    }
}

/// Messages that another daemon receives, or sends.
fn of_others(name: &str) -> bool {
    ["Launch.", "Nlb.", "Pam.", "Res.", "Sbd."].iter().any(|of| name.starts_with(of))
}

#[test]
fn the_whole_matrix_of_message_and_role() {
    let rows = crate::batch::site::permissions::rows();
    let mine = rows.iter().filter(|(name, _)| *name != "none" && !of_others(name));
    assert!(mine.clone().count() > 15);
    for (name, want) in mine {
        for ((role, conn), want) in ROLES.into_iter().zip(want) {
            let (mut r, job) = rig();
            let ask = message(name, &mut r, job);
            let before = r.log.len();
            let answer = r.ask(conn, ask);
            assert_eq!(let_through(answer), *want, "{name} by {role}");
            assert!(*want || r.log.len() == before, "{name} by {role} is in the log");
        }
    }
}

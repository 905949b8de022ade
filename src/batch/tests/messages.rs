//! bpost, bread and bstatus: messages of jobs, who may post and read them, and what survives.

use super::cluster::{Cluster, cluster, element};
use super::*;
use crate::model::event::attached;
use crate::model::reason::err;
use crate::proto::job_message::{MessageInfo, MessageRequest, OneJob, PostMessage};

fn of(at: JobRef) -> OneJob {
    OneJob { at, name: String::new() }
}

fn request(c: &mut Cluster, user: &str, request: MessageRequest) -> Result<Msg, Refusal> {
    match c.ask(user, ClientMsg::Message(Box::new(request))).pop() {
        Some(Msg::Refused(refusal)) => Err(refusal),
        Some(answer) => Ok(answer),
        None => Ok(Msg::Ping { n: 0 }),
    }
}

fn post(c: &mut Cluster, user: &str, at: JobRef, index: u32, text: &str) -> i32 {
    let post = PostMessage { job: of(at), index, text: text.into(), ..PostMessage::default() };
    request(c, user, MessageRequest::Post(post)).err().map_or(0, |refusal| refusal.code)
}

fn read(c: &mut Cluster, at: JobRef, index: u32) -> Result<MessageInfo, Refusal> {
    match request(c, "bob", MessageRequest::Read { job: of(at), index })? {
        Msg::Client(ClientMsg::Messages(rows)) => Ok(rows[0].clone()),
        other => panic!("{other:?}"),
    }
}

fn text(c: &mut Cluster, at: JobRef, index: u32) -> String {
    read(c, at, index).map_or_else(|refusal| refusal.words(), |message| message.text)
}

#[test]
fn messages_of_a_job_survive_its_requeue_and_a_restart() {
    let mut c = cluster().hosts(1, 1).queue("normal", "RERUNNABLE = Y").up();
    let job = c.submit("ann", "");
    assert_eq!(post(&mut c, "ann", job, 0, "step 1"), 0);
    assert_eq!(post(&mut c, "admin", job, 3, "by the administrator"), 0);
    assert_eq!(post(&mut c, "ann", job, 0, "step 2\nand \u{1b}3"), 0);
    c.requeue("ann", job);
    let told = |c: &mut Cluster| (text(c, job, 0), text(c, job, 3), text(c, job, 1));
    let texts = ["step 2;and ?3", "by the administrator", "No message at index 1"];
    let want = texts.map(str::to_string).into();
    assert_eq!(told(&mut c), want);
    c.restart();
    assert_eq!(told(&mut c), want);
    let message = read(&mut c, job, 3).unwrap();
    assert_eq!((message.user.as_str(), message.attached, message.job), ("admin", false, job.job));
    let shown = c.column(job, Col::Messages);
    assert_eq!(shown.as_array().map(Vec::len), Some(2));
    assert_eq!(shown[1][3], "by the administrator");
}

#[test]
fn ended_jobs_take_and_show_no_messages() {
    let mut c = cluster().hosts(1, 1).up();
    let job = c.submit("ann", "");
    post(&mut c, "ann", job, 0, "x");
    c.end(job, 0);
    assert_eq!(post(&mut c, "ann", job, 0, "y"), err::JOB_FINISH);
    assert_eq!(read(&mut c, job, 0).unwrap_err().code, err::JOB_FINISH);
    assert_eq!(read(&mut c, JobRef { job: 99, idx: 0 }, 0).unwrap_err().code, err::NO_JOB);
}

#[test]
fn posts_beyond_the_limits_are_refused_and_not_logged() {
    let mut c =
        cluster().hosts(1, 1).param("MAX_JOB_MSG_NUM = 2").param("MAX_JOB_ATTA_SIZE = 1").up();
    let job = c.submit("ann", "");
    let logged = |c: &Cluster| c.logged(|event| matches!(event, Event::JobMessage(_)));
    let with = |data: usize, text: &str, level: &str| {
        let (file, level) = ("f".into(), level.into());
        let (text, data) = (text.into(), "x".repeat(data).as_str().into());
        let post = PostMessage { job: of(job), text, level, file, data, index: 1 };
        MessageRequest::Post(post)
    };
    let refused = |c: &mut Cluster, asked| request(c, "ann", asked).unwrap_err().words();
    assert_eq!(post(&mut c, "ann", job, 2, "x"), err::BAD_ARG);
    let words = refused(&mut c, with(1025, "x", ""));
    assert_eq!(words, "the data file has 1025 bytes; the limit is 1024");
    let words = refused(&mut c, with(1, &"ä".repeat(513), ""));
    assert_eq!(words, "the message has 513 characters; the limit is 512");
    assert_eq!(refused(&mut c, with(1, "x", "LOUD")), "LOUD: Bad argument");
    assert_eq!(logged(&c), 0);
    assert!(request(&mut c, "ann", with(1024, &"ä".repeat(512), "ERROR")).is_ok());
    assert_eq!(logged(&c), 1);
}

#[test]
fn data_of_a_message_are_spooled_and_named_in_the_log() {
    let mut c = cluster().hosts(1, 1).up();
    let job = c.submit("ann", "");
    let (file, data) = ("result.txt".into(), "the result".into());
    let asked = PostMessage { job: of(job), file, data, ..PostMessage::default() };
    request(&mut c, "ann", MessageRequest::Post(asked)).unwrap();
    let message = read(&mut c, job, 0).unwrap();
    assert!(message.attached && message.is_data(b"the result") && !message.is_data(b"another"));
    assert_eq!(message.size, 10);
    let named = |event: &Event| {
        matches!(event, Event::JobAttachment(a)
            if a.file == "result.txt" && a.data.len == 10 && a.status == attached::THERE)
    };
    assert_eq!(c.logged(named), 1);
    c.restart();
    assert!(read(&mut c, job, 0).unwrap().is_data(b"the result"));
    let asked = MessageRequest::Attachment { job: of(job), index: 1 };
    assert_eq!(request(&mut c, "ann", asked).unwrap_err().code, err::NO_MESSAGE);
    // a message without data takes the place of the one with them
    post(&mut c, "ann", job, 0, "no data any more");
    let asked = MessageRequest::Attachment { job: of(job), index: 0 };
    let words = request(&mut c, "ann", asked).unwrap_err().words();
    assert_eq!(words, "No data file is attached to message 0");
}

#[test]
fn job_is_found_by_the_name_that_its_owner_gave_it() {
    let mut c = cluster().hosts(1, 9).up();
    let older = c.submit("ann", "-J build");
    let newer = c.submit("ann", "-J build");
    let by_name = |name: &str| OneJob { name: name.into(), ..OneJob::default() };
    let named = |text: &str| {
        let (job, text) = (by_name("build"), text.into());
        MessageRequest::Post(PostMessage { job, text, ..PostMessage::default() })
    };
    request(&mut c, "ann", named("to the newest")).unwrap();
    assert_eq!(text(&mut c, newer, 0), "to the newest");
    assert_eq!(text(&mut c, older, 0), "No message at index 0");
    assert_eq!(request(&mut c, "admin", named("x")).unwrap_err().code, err::NO_JOB);
}

#[test]
fn job_that_waits_for_an_external_status_starts_with_it() {
    let mut c = cluster().hosts(1, 9).up();
    let first = c.submit("ann", "-J a");
    let array = c.submit("ann", "-J 'b[1-2]'");
    let waits = c.submit("ann", &format!("-w 'external({first},\"ready\")'"));
    let for_all = c.submit("ann", &format!("-w 'external({array},\"all done\")'"));
    let for_one = c.submit("ann", &format!("-w 'external({array}[2],\"half\")'"));
    c.started();
    post(&mut c, "ann", first, 1, "ready");
    post(&mut c, "ann", first, 0, "not ready");
    assert_eq!(c.started(), []);
    assert!(c.waits_for(waits, PendReason::Dependency), "{:?}", c.reasons(waits));
    // the first word of the status counts, too
    post(&mut c, "ann", first, 0, "ready to go");
    assert_eq!(c.started(), [waits]);
    post(&mut c, "ann", element(array, 2), 0, "half of it");
    assert_eq!(c.started(), [for_one]);
    post(&mut c, "ann", element(array, 1), 0, "all done");
    assert_eq!(c.started(), []);
    c.restart();
    post(&mut c, "ann", element(array, 2), 0, "all done");
    c.advance(10);
    assert_eq!(c.state(for_all), "RUN");
}

#[test]
fn external_status_that_can_never_come_is_told_as_the_reason() {
    let mut c = cluster().hosts(1, 1).up();
    let first = c.submit("ann", "");
    let waits = c.submit("ann", &format!("-w 'external({first},\"ready\")'"));
    post(&mut c, "ann", first, 0, "half");
    c.end(first, 0);
    assert!(c.waits_for(waits, PendReason::DependencyNever), "{:?}", c.reasons(waits));
}

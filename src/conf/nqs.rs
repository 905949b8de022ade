//! lsb.nqs: the queues that qmgr has defined, as commands of qmgr; and NQS_QUEUES of lsb.queues.
//!
//! Invariant: the text that [`snap`] writes reads back to the same definitions. See lsb.nqs(5).

use super::diag::{Diags, NOT_ACTED_ON, Pos, Severity};
use super::files::Files;
use super::names::nearest;
use super::nqeinfo;
use super::section::name_fault;
use super::types::{ClusterConf, NqsConf, NqsSettings, QueueConf, RawParam};
use crate::lang::qmgr::{
    self, Command, Definition, DestinationChange, MAX_QUEUES, MAX_TEXT, QueueVerb,
};
use crate::model::nlb::NlbAddress;
use crate::model::nqs::{Destinations, MAX_DESTINATIONS, NqsQueue};
use std::sync::Arc;

/// The head of the file.
const HEAD: &str = "# Queues of NQS, as commands of qmgr(8). Written by mbatchd; see lsb.nqs(5).\n";

/// Reads the file, where it is there, and puts its queues behind those of lsb.queues.
pub fn read(
    files: &dyn Files,
    path: &str,
    queues: &mut Vec<QueueConf>,
    diags: &mut Diags,
) -> NqsConf {
    let mut conf = NqsConf::default();
    if !files.exists(path) {
        return conf;
    }
    let file: Arc<str> = Arc::from(path);
    let text = match files.read(path) {
        Ok(bytes) if bytes.len() > MAX_TEXT => {
            diags.error(&Pos::whole(path), format!("larger than {} MB", MAX_TEXT >> 20));
            return conf;
        }
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(e) => {
                diags.error(&not_utf8(&file, &e), "not UTF-8");
                return conf;
            }
        },
        Err(why) => {
            diags.error(&Pos::whole(path), why);
            return conf;
        }
    };
    let listed: Vec<String> = queues.iter().map(|q| q.name.clone()).collect();
    let mut places: Vec<(String, Pos)> = Vec::new();
    for spelled in qmgr::commands(&text, 1) {
        let pos = Pos::new(&file, spelled.line, spelled.col);
        let definition = match spelled.command {
            Ok(Command::Define(definition)) => definition,
            Ok(Command::Queue { verb: QueueVerb::Disable | QueueVerb::Stop, .. }) => {
                diags.notice(&pos, format!("{}: {NOT_ACTED_ON}; qmgr < FILE acts", spelled.text));
                continue;
            }
            Ok(_) => {
                diags.error(&pos, format!("<{}> defines nothing", spelled.text));
                continue;
            }
            Err(fault) => {
                diags.error(&Pos::new(&file, fault.line, fault.col), fault.text);
                continue;
            }
        };
        if let Definition::Create(queue) = &definition {
            places.push((queue.name.clone(), pos.clone()));
        }
        if let Err(why) = apply(&mut conf, definition, &listed) {
            diags.error(&pos, why);
        }
    }
    for queue in &conf.queues {
        let place = places.iter().rfind(|(name, _)| *name == queue.name);
        let pos = place.map_or_else(|| Pos::whole(path), |(_, pos)| pos.clone());
        queues.push(queue_conf(queue, &pos));
    }
    conf
}

fn not_utf8(file: &Arc<str>, e: &std::string::FromUtf8Error) -> Pos {
    let good = e.as_bytes().get(..e.utf8_error().valid_up_to()).unwrap_or_default();
    let text = String::from_utf8_lossy(good);
    let line = text.matches('\n').count() as u32 + 1;
    let col = text.rsplit('\n').next().unwrap_or_default().chars().count() as u32 + 1;
    Pos::new(file, line, col)
}

/// The queue as lsb.queues would have it.
fn queue_conf(queue: &NqsQueue, pos: &Pos) -> QueueConf {
    let mut conf = QueueConf {
        name: queue.name.clone(),
        priority: queue.priority.max(1),
        nqs: NqsSettings {
            pipe: queue.pipe.clone().map(Box::new),
            pipe_queries: queue.run_limit.filter(|_| queue.pipe.is_some()),
            load_only: queue.load_only,
            pipe_only: queue.pipe_only,
            by_qmgr: true,
            ..NqsSettings::default()
        },
        pos: pos.clone(),
        ..QueueConf::default()
    };
    let mut raw = |name: &str, text: String| {
        let value = RawParam { text, pos: pos.clone(), ..RawParam::default() };
        conf.raw.insert(name.to_owned(), value);
    };
    raw("QUEUE_NAME", queue.name.clone());
    raw("PRIORITY", queue.priority.max(1).to_string());
    match (&queue.pipe, queue.run_limit) {
        (Some(to), _) => raw("NQS_QUEUES", to.to_string()),
        (None, Some(limit)) => {
            raw("QJOB_LIMIT", limit.to_string());
            conf.qjob_limit = Some(limit);
        }
        (None, None) => {}
    }
    conf
}

/// Does what a command says to the definitions. `listed` are the queues of lsb.queues.
///
/// # Errors
/// The words for the user; nothing is changed then.
pub fn apply(
    conf: &mut NqsConf,
    definition: Definition,
    listed: &[String],
) -> Result<String, String> {
    match definition {
        Definition::Create(queue) => create(conf, queue, listed),
        Definition::Delete { queue } => {
            let at = place(conf, &queue, listed)?;
            let users = conf.queues.iter().filter(|q| names(q, &queue)).map(|q| &q.name);
            if let Some(user) = users.into_iter().next() {
                return Err(format!("queue <{queue}> is a destination of queue <{user}>"));
            }
            if conf.default_queue.as_ref() == Some(&queue) {
                return Err(format!("queue <{queue}> is the default batch_request queue"));
            }
            conf.queues.remove(at);
            Ok(deleted(&queue))
        }
        Definition::DefaultQueue(None) => {
            conf.default_queue = None;
            Ok("There is no default batch_request queue.".to_owned())
        }
        Definition::DefaultQueue(Some(queue)) => {
            if !listed.contains(&queue) {
                place(conf, &queue, listed)?;
            }
            let words = format!("The default batch_request queue is <{queue}>.");
            conf.default_queue = Some(queue);
            Ok(words)
        }
        Definition::RetryTime(minutes) => {
            conf.retry_minutes = minutes;
            Ok(retry_words(conf))
        }
        Definition::RetryWait(hours) => {
            conf.wait_hours = hours;
            Ok(retry_words(conf))
        }
        Definition::Validation(on) => {
            conf.validation = on;
            let not = if on { "" } else { "not " };
            Ok(format!("Requests are {not}validated by files of their users."))
        }
        change => change_queue(conf, change, listed),
    }
}

fn created(queue: &str) -> String {
    format!("Queue <{queue}> is created.")
}

fn deleted(queue: &str) -> String {
    format!("Queue <{queue}> is deleted.")
}

fn changed(queue: &str) -> String {
    format!("Queue <{queue}> is changed.")
}

/// The words of a change that [`apply`] would refuse because it was made before; every other one
/// can be made twice.
pub fn done_before(conf: &NqsConf, definition: &Definition, listed: &[String]) -> Option<String> {
    let known = |name: &String| conf.queues.iter().find(|queue| queue.name == *name);
    match definition {
        Definition::Create(queue) => (known(&queue.name)? == queue).then(|| created(&queue.name)),
        Definition::Delete { queue } => {
            let there = known(queue).is_some() || listed.contains(queue);
            (!there).then(|| deleted(queue))
        }
        Definition::Destinations { queue, change, list } => {
            let Some(Destinations::Listed(all)) = &known(queue)?.pipe else { return None };
            let done = match change {
                DestinationChange::Set => false,
                DestinationChange::Add => list.iter().all(|one| all.contains(one)),
                DestinationChange::Delete => !list.iter().any(|one| all.contains(one)),
            };
            done.then(|| changed(queue))
        }
        _ => None,
    }
}

/// Is a queue a destination of another one?
fn names(queue: &NqsQueue, destination: &str) -> bool {
    match &queue.pipe {
        Some(Destinations::Listed(list)) => list.iter().any(|d| d.queue == destination),
        _ => false,
    }
}

fn create(conf: &mut NqsConf, queue: NqsQueue, listed: &[String]) -> Result<String, String> {
    let name = &queue.name;
    if let Some(why) = name_fault(name) {
        return Err(format!("<{name}>: {why}"));
    }
    if listed.contains(name) {
        return Err(format!("queue <{name}> is already defined in lsb.queues"));
    }
    if conf.queues.iter().any(|q| q.name == *name) {
        return Err(format!("queue <{name}> is already defined"));
    }
    if conf.queues.len() >= MAX_QUEUES {
        return Err(format!("there are {MAX_QUEUES} queues, which is the limit"));
    }
    let words = created(name);
    conf.queues.push(queue);
    Ok(words)
}

/// The place of a queue that qmgr has defined.
fn place(conf: &NqsConf, queue: &str, listed: &[String]) -> Result<usize, String> {
    if let Some(at) = conf.queues.iter().position(|q| q.name == queue) {
        return Ok(at);
    }
    if listed.iter().any(|q| q == queue) {
        return Err(format!("queue <{queue}> is defined in lsb.queues: change it there"));
    }
    let known = conf.queues.iter().map(|q| &q.name).chain(listed).map(String::as_str);
    let near = nearest(queue, known).map(|n| format!("; did you mean <{n}>?")).unwrap_or_default();
    Err(format!("no queue <{queue}>{near}"))
}

fn change_queue(
    conf: &mut NqsConf,
    change: Definition,
    listed: &[String],
) -> Result<String, String> {
    let (Definition::Destinations { queue: name, .. }
    | Definition::Client { queue: name, .. }
    | Definition::Priority { queue: name, .. }
    | Definition::RunLimit { queue: name, .. }
    | Definition::LoadOnly { queue: name, .. }
    | Definition::PipeOnly { queue: name, .. }) = &change
    else {
        return Err("no definition of a queue".to_owned());
    };
    let name = name.clone();
    let at = place(conf, &name, listed)?;
    let Some(queue) = conf.queues.get_mut(at) else { return Err(format!("no queue <{name}>")) };
    let batch = |queue: &NqsQueue| match queue.pipe {
        None => Ok(()),
        Some(_) => Err(format!("queue <{name}> is a pipe queue")),
    };
    match change {
        Definition::Destinations { change, list, .. } => {
            destinations(queue, change, list)?;
        }
        Definition::Client { to, .. } => match (&queue.pipe, to) {
            (None, _) => return Err(format!("queue <{name}> is a batch queue")),
            (Some(Destinations::Listed(_)), Destinations::Listed(_)) => {}
            (Some(_), to) => queue.pipe = Some(to),
        },
        Definition::Priority { priority, .. } => queue.priority = priority,
        Definition::RunLimit { limit, .. } => queue.run_limit = Some(limit),
        Definition::LoadOnly { on, .. } => {
            batch(queue)?;
            queue.load_only = on;
        }
        Definition::PipeOnly { on, .. } => {
            batch(queue)?;
            queue.pipe_only = on;
        }
        _ => {}
    }
    Ok(changed(&name))
}

fn destinations(
    queue: &mut NqsQueue,
    change: DestinationChange,
    list: Vec<crate::model::nqs::Destination>,
) -> Result<(), String> {
    let name = &queue.name;
    let all = match &mut queue.pipe {
        None => return Err(format!("queue <{name}> is a batch queue")),
        Some(Destinations::Selected { .. }) => {
            return Err(format!("queue <{name}> selects its destinations (CRI_DS)"));
        }
        Some(Destinations::Listed(all)) => all,
    };
    match change {
        DestinationChange::Set => *all = list,
        DestinationChange::Add => {
            for one in list {
                if all.contains(&one) {
                    return Err(format!("<{one}> is a destination of queue <{name}> already"));
                }
                all.push(one);
            }
            if all.len() > MAX_DESTINATIONS {
                return Err(format!("more than {MAX_DESTINATIONS} destinations"));
            }
        }
        DestinationChange::Delete => {
            for one in list {
                let before = all.len();
                all.retain(|other| *other != one);
                if all.len() == before {
                    return Err(format!("<{one}> is no destination of queue <{name}>"));
                }
            }
        }
    }
    Ok(())
}

/// `Requests are routed again every 5 minutes, and given up after 72 hours.`
pub fn retry_words(conf: &NqsConf) -> String {
    let (minutes, hours) = (conf.retry_minutes, conf.wait_hours);
    let count = |n: u32, word: &str| match n {
        1 => format!("1 {word}"),
        n => format!("{n} {word}s"),
    };
    let every = match minutes {
        1 => "every minute".to_owned(),
        n => format!("every {}", count(n, "minute")),
    };
    format!("Requests are routed again {every}, and given up after {}.", count(hours, "hour"))
}

/// The definitions as commands.
pub fn snap(conf: &NqsConf) -> String {
    let mut text = String::from(HEAD);
    // batch queues first: they are the destinations of the others
    let pipes = |pipe: bool| conf.queues.iter().filter(move |q| q.pipe.is_some() == pipe);
    for queue in pipes(false).chain(pipes(true)) {
        text.push_str(&qmgr::create(queue));
        text.push('\n');
    }
    if let Some(queue) = &conf.default_queue {
        text.push_str(&format!("set default batch_request queue {queue}\n"));
    }
    text.push_str(&format!("set default destination_retry time {}\n", conf.retry_minutes));
    text.push_str(&format!("set default destination_retry wait {}\n", conf.wait_hours));
    if conf.validation {
        text.push_str("set validation file\n");
    }
    text
}

/// Whether lsb.nqs of a directory has the files of users validated; `None`: it cannot be read.
pub fn validation(files: &dyn Files, dir: &str) -> Option<bool> {
    let path = format!("{dir}/lsb.nqs");
    if !files.exists(&path) {
        return files.exists(dir).then_some(false);
    }
    let mut diags = Diags::new();
    let conf = read(files, &path, &mut Vec::new(), &mut diags);
    let faulty = diags.list().iter().any(|d| d.severity == Severity::Error);
    (!faulty || conf.validation).then_some(conf.validation)
}

/// Checks what pipe queues name, once all queues are known.
pub(super) fn check(conf: &ClusterConf, diags: &mut Diags) {
    let names = || conf.batch.queues.iter().map(|q| q.name.as_str());
    for queue in &conf.batch.queues {
        let Some(Destinations::Listed(list)) = queue.nqs.pipe.as_deref() else { continue };
        let at = queue.raw.get("NQS_QUEUES").map_or(&queue.pos, |v| &v.pos);
        for to in list {
            if let Some(host) = &to.host
                && conf.base.hosts.canonical(host).is_none()
            {
                let text = format!("<{to}>: no host of this cluster; it never accepts");
                diags.warning(at, text);
                continue;
            }
            match conf.queue(&to.queue) {
                Some(other) if other.nqs.pipe.is_some() => {
                    diags.error(at, format!("<{to}> is a pipe queue, which is no destination"));
                }
                Some(_) => {}
                None => {
                    let text = format!("<{to}>: there is no queue <{}>", to.queue);
                    diags.add_near(Severity::Error, at, text, nearest(&to.queue, names()));
                }
            }
        }
    }
}

/// The servers that a queue's requests are asked about at: its own, then those of NLB_SERVER.
pub fn servers(files: &dyn Files, conf: &mut ClusterConf, known: &[NlbAddress], diags: &mut Diags) {
    for queue in &mut conf.batch.queues {
        let Some(Destinations::Selected { server, .. }) = queue.nqs.pipe.as_deref() else {
            continue;
        };
        let own = match server.as_str() {
            "" => None,
            word => match nqeinfo::address(files, word, &conf.base.lsf) {
                Ok(address) => Some(address),
                Err(why) => {
                    let at = queue.raw.get("NQS_QUEUES").map_or(&queue.pos, |v| &v.pos);
                    diags.error(at, why);
                    None
                }
            },
        };
        let others = known.iter().filter(|k| Some(*k) != own.as_ref()).cloned();
        queue.nqs.nlb_servers = own.iter().cloned().chain(others).collect();
    }
    for queue in conf.batch.queues.iter().filter(|_| known.is_empty()) {
        if let Some(value) = queue.raw.get("NLB_POLICY") {
            let text = "NLB_POLICY: NLB_SERVER is not set in nqeinfo: no server is asked";
            diags.warning(&value.pos, text.to_owned());
        }
    }
    conf.batch.nlb_servers = known.to_vec();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::testing::MapFiles;

    const PATH: &str = "/c/lsb.nqs";

    fn parsed(text: &str) -> (NqsConf, Vec<QueueConf>, Vec<String>) {
        let mut diags = Diags::new();
        let normal = QueueConf { name: "normal".into(), ..QueueConf::default() };
        let mut queues = vec![normal];
        let conf = read(&MapFiles::one(PATH, text), PATH, &mut queues, &mut diags);
        (conf, queues, diags.list().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn definitions_that_were_written_read_back() {
        let text = "create pipe_queue nlbqueue server=(pipeclient CRI_DS) priority=33\n\
                    create batch_queue b priority=2 run_limit=5 loadonly\n\
                    create pipe_queue s server=(pipeclient) destination=(b@cool,normal)\n\
                    set default batch_request queue nlbqueue\n\
                    set default destination_retry time 1\nset validation file\n";
        let (conf, queues, diags) = parsed(text);
        assert_eq!(diags, Vec::<String>::new());
        let names: Vec<_> = queues.iter().map(|q| (q.name.as_str(), q.priority)).collect();
        assert_eq!(names, [("normal", 1), ("nlbqueue", 33), ("b", 2), ("s", 1)]);
        assert_eq!(queues[2].qjob_limit, Some(5));
        assert_eq!(queues[1].raw["NQS_QUEUES"].text, "CRI_DS");
        let snapped = snap(&conf);
        let (again, _, diags) = parsed(&snapped);
        assert_eq!(diags, Vec::<String>::new());
        assert_eq!(snap(&again), snapped);
        assert_eq!((again.retry_minutes, again.wait_hours, again.validation), (1, 72, true));
        let words = "Requests are routed again every minute, and given up after 72 hours.";
        assert_eq!(retry_words(&again), words);
    }

    #[test]
    fn faults_of_the_file_have_their_places() {
        let (_, _, diags) = parsed(
            "create pipe_queue normal\ncreate batch_queue a\ncreate batch_queue a\n\
             set priority = 5 normal\nset priority = 5 nosuch\nshow queue\nstop queue a\n\
             create batch_queue default\nset destination = (a) a\n",
        );
        let told = [
            "/c/lsb.nqs:1:1: queue <normal> is already defined in lsb.queues",
            "/c/lsb.nqs:3:1: queue <a> is already defined",
            "/c/lsb.nqs:4:1: queue <normal> is defined in lsb.queues: change it there",
            "/c/lsb.nqs:5:1: no queue <nosuch>",
            "/c/lsb.nqs:6:1: <show queue> defines nothing",
        ];
        for (n, told) in told.iter().enumerate() {
            assert!(diags[n].contains(told), "{} is not {told}", diags[n]);
        }
        assert!(diags.last().unwrap().contains("queue <a> is a batch queue"), "{diags:?}");
    }

    #[test]
    fn change_that_is_refused_changes_nothing() {
        let (mut conf, ..) = parsed(
            "create batch_queue b\ncreate pipe_queue s server=(pipeclient) destination=(b)\n\
             set default batch_request queue s\n",
        );
        let before = snap(&conf);
        let mut refused = |text: &str| {
            let spelled = qmgr::commands(text, 1).remove(0);
            let Ok(Command::Define(definition)) = spelled.command else { panic!("{text}") };
            let mut tried = conf.clone();
            let why = apply(&mut tried, definition, &["normal".into()]).unwrap_err();
            conf = if snap(&tried) == before { tried } else { panic!("{text} changed something") };
            why
        };
        assert_eq!(refused("delete queue b"), "queue <b> is a destination of queue <s>");
        assert_eq!(refused("delete queue s"), "queue <s> is the default batch_request queue");
        assert_eq!(
            refused("delete queue normal"),
            "queue <normal> is defined in lsb.queues: change it there"
        );
        assert_eq!(refused("set loadonly s"), "queue <s> is a pipe queue");
        assert_eq!(refused("add destination = (b) s"), "<b> is a destination of queue <s> already");
        assert_eq!(refused("delete destination = (c) s"), "<c> is no destination of queue <s>");
    }
    /// mbatchd may have died between the change and its answer, after which qmgr asks again.
    #[test]
    fn change_that_was_made_before_is_known_as_such() {
        let (conf, ..) = parsed(
            "create batch_queue b priority=3\n\
             create pipe_queue s server=(pipeclient) destination=(b)\n",
        );
        let told = |text: &str| {
            let spelled = qmgr::commands(text, 1).remove(0);
            let Ok(Command::Define(definition)) = spelled.command else { panic!("{text}") };
            done_before(&conf, &definition, &["normal".into()])
        };
        for (text, words) in [
            ("create batch_queue b priority=3", "Queue <b> is created."),
            ("create pipe_queue s server=(pipeclient) destination=(b)", "Queue <s> is created."),
            ("delete queue gone", "Queue <gone> is deleted."),
            ("add destination = (b) s", "Queue <s> is changed."),
            ("delete destination = (c) s", "Queue <s> is changed."),
        ] {
            assert_eq!(told(text).as_deref(), Some(words), "{text}");
        }
        for text in [
            "create batch_queue b priority=4",
            "create batch_queue new",
            "delete queue b",
            "delete queue normal",
            "add destination = (b@h) s",
            "delete destination = (b) s",
            "set priority = 9 b",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
    }
}

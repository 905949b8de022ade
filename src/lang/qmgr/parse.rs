//! Reads qmgr's commands.

use super::phrases::{PHRASES, Verb, keyword, listed};
use super::tokens::{Joined, Token, split};
use super::{
    Command, Definition, DestinationChange, Fault, MAX_NAME, MAX_PRIORITY, MAX_RETRY,
    MAX_RUN_LIMIT, QueueVerb, RequestVerb, Show, Spelled,
};
use crate::model::nqs::{Destination, Destinations, MAX_DESTINATIONS, NqsQueue};

/// Most identifiers in one command.
const MAX_IDS: usize = 10_000;
/// Most seconds between TERM and KILL.
const MAX_GRACE: u32 = 86_400;

type Read<T> = Result<T, Fault>;

/// Every command of a text whose first line has this number.
pub fn commands(text: &str, first: u32) -> Vec<Spelled> {
    split(text, first).into_iter().map(spelled).collect()
}

fn spelled(joined: Joined) -> Spelled {
    let (line, col) = joined.tokens.first().map_or((1, 1), |t| (t.line, t.col));
    let command = Parser { rest: &joined.tokens, end: joined.end }.command();
    Spelled { line, col, text: joined.text, command }
}

struct Parser<'a> {
    rest: &'a [Token],
    end: (u32, u32),
}

impl<'a> Parser<'a> {
    fn command(mut self) -> Read<Command> {
        let (verb, at) = self.verb()?;
        let command = self.behind(verb, at)?;
        match self.rest.first() {
            None => Ok(command),
            Some(more) => {
                Err(more
                    .fault(format!("nothing is wanted behind the command, not <{}>", more.text)))
            }
        }
    }

    /// The keywords of a command.
    fn verb(&mut self) -> Read<(Verb, &'a Token)> {
        let (mut may, mut depth) = (PHRASES.iter().collect::<Vec<_>>(), 0);
        let first = self.rest.first();
        loop {
            let at_depth = |phrase: &'static str| phrase.split(' ').nth(depth);
            let mut next: Vec<&'static str> = Vec::new();
            for (phrase, verb) in &may {
                match at_depth(phrase) {
                    Some(word) if !next.contains(&word) => next.push(word),
                    Some(_) => {}
                    None => {
                        if let Some(first) = first {
                            return Ok((*verb, first));
                        }
                    }
                }
            }
            let Some(token) = self.rest.first() else {
                return Err(self.at_end(&format!("{} is wanted", listed(&next))));
            };
            let word = keyword(&token.text, &next).map_err(|text| token.fault(text))?;
            self.rest = self.rest.get(1..).unwrap_or_default();
            may.retain(|(phrase, _)| at_depth(phrase) == Some(word));
            depth += 1;
        }
    }

    fn at_end(&self, text: &str) -> Fault {
        let (line, col) = self.end;
        Fault { line, col, text: format!("{text} at the end") }
    }

    fn next(&mut self, what: &str) -> Read<&'a Token> {
        match self.rest.split_first() {
            Some((token, rest)) => {
                self.rest = rest;
                Ok(token)
            }
            None => Err(self.at_end(&format!("{what} is wanted"))),
        }
    }

    fn word(&mut self, what: &str) -> Read<&'a Token> {
        let token = self.next(what)?;
        match token.is_word() {
            true => Ok(token),
            false => Err(token.fault(format!("{what} is wanted, not <{}>", token.text))),
        }
    }

    fn mark(&mut self, mark: &str) -> Read<()> {
        let what = format!("<{mark}>");
        let token = self.next(&what)?;
        match token.is(mark) {
            true => Ok(()),
            false => Err(token.fault(format!("{what} is wanted, not <{}>", token.text))),
        }
    }

    /// Is the next token this mark? Then it is taken.
    fn takes(&mut self, mark: &str) -> bool {
        match self.rest.split_first() {
            Some((token, rest)) if token.is(mark) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn number(&mut self, what: &str, least: u32, most: u32) -> Read<u32> {
        let token = self.word(what)?;
        let number = token.text.parse().ok().filter(|n| (least..=most).contains(n));
        let words =
            || token.fault(format!("<{}>: {what} from {least} to {most} is wanted", token.text));
        number.ok_or_else(words)
    }

    fn queue(&mut self) -> Read<String> {
        let token = self.word("the name of a queue")?;
        queue_name(token).map(str::to_owned)
    }

    fn of_queue(&mut self, command: impl FnOnce(String) -> Definition) -> Read<Command> {
        Ok(Command::Define(command(self.queue()?)))
    }

    /// The words behind the keywords.
    fn behind(&mut self, verb: Verb, at: &Token) -> Read<Command> {
        match verb {
            Verb::CreatePipe | Verb::CreateBatch => self.create(verb == Verb::CreatePipe),
            Verb::DeleteQueue => self.of_queue(|queue| Definition::Delete { queue }),
            Verb::AddDestination => self.destinations(DestinationChange::Add),
            Verb::DeleteDestination => self.destinations(DestinationChange::Delete),
            Verb::SetDestination => self.destinations(DestinationChange::Set),
            Verb::SetClient => {
                self.mark("=")?;
                let to = self.client()?;
                self.of_queue(|queue| Definition::Client { to, queue })
            }
            Verb::SetPriority => {
                self.mark("=")?;
                let priority = self.number("a priority", 0, MAX_PRIORITY)?;
                self.of_queue(|queue| Definition::Priority { priority, queue })
            }
            Verb::SetRunLimit => {
                self.mark("=")?;
                let limit = self.number("a run limit", 1, MAX_RUN_LIMIT)?;
                self.of_queue(|queue| Definition::RunLimit { limit, queue })
            }
            Verb::LoadOnly | Verb::NoLoadOnly => {
                let on = verb == Verb::LoadOnly;
                self.of_queue(|queue| Definition::LoadOnly { on, queue })
            }
            Verb::PipeOnly | Verb::NoPipeOnly => {
                let on = verb == Verb::PipeOnly;
                self.of_queue(|queue| Definition::PipeOnly { on, queue })
            }
            Verb::DefaultQueue => self.of_queue(|queue| Definition::DefaultQueue(Some(queue))),
            Verb::NoDefaultQueue => Ok(Command::Define(Definition::DefaultQueue(None))),
            Verb::RetryTime => {
                let minutes = self.number("a number of minutes", 1, MAX_RETRY)?;
                Ok(Command::Define(Definition::RetryTime(minutes)))
            }
            Verb::RetryWait => {
                let hours = self.number("a number of hours", 1, MAX_RETRY)?;
                Ok(Command::Define(Definition::RetryWait(hours)))
            }
            Verb::Validation => self.validation(),
            Verb::NoValidation => Ok(Command::Define(Definition::Validation(false))),
            Verb::Refused(why) => Err(at.fault(why)),
            _ => self.action(verb),
        }
    }

    /// A command that changes no definition.
    fn action(&mut self, verb: Verb) -> Read<Command> {
        let queue = |verb, queue| Ok(Command::Queue { verb, queue });
        match verb {
            Verb::Enable => queue(QueueVerb::Enable, Some(self.queue()?)),
            Verb::Disable => queue(QueueVerb::Disable, Some(self.queue()?)),
            Verb::Start => queue(QueueVerb::Start, Some(self.queue()?)),
            Verb::Stop => queue(QueueVerb::Stop, Some(self.queue()?)),
            Verb::StartAll => queue(QueueVerb::Start, None),
            Verb::StopAll => queue(QueueVerb::Stop, None),
            Verb::Purge => Ok(Command::Purge { queue: self.queue()? }),
            Verb::Abort => {
                let queue = self.queue()?;
                let more = !self.rest.is_empty();
                let seconds = more.then(|| self.number("a number of seconds", 0, MAX_GRACE));
                Ok(Command::Abort { queue, seconds: seconds.transpose()? })
            }
            Verb::Hold => self.requests(RequestVerb::Hold),
            Verb::Release => self.requests(RequestVerb::Release),
            Verb::Delete => self.requests(RequestVerb::Delete),
            Verb::Suspend => self.requests(RequestVerb::Suspend),
            Verb::Resume => self.requests(RequestVerb::Resume),
            Verb::Rerun => self.requests(RequestVerb::Rerun),
            Verb::Move => {
                self.takes("=");
                let id = self.word("a request")?.text.clone();
                Ok(Command::Move { id, queue: self.queue()? })
            }
            Verb::Schedule => {
                let id = self.word("a request")?.text.clone();
                let place = self.word("first")?;
                keyword(&place.text, &["first"]).map_err(|text| place.fault(text))?;
                Ok(Command::First { id })
            }
            Verb::ShowQueue => {
                let queue = (!self.rest.is_empty()).then(|| self.queue()).transpose()?;
                Ok(Command::Show(Show::Queue(queue)))
            }
            Verb::ShowPipe => Ok(Command::Show(Show::PipeQueues)),
            Verb::ShowBatch => Ok(Command::Show(Show::BatchQueues)),
            Verb::ShowParameters => Ok(Command::Show(Show::Parameters)),
            Verb::ShowLimits => Ok(Command::Show(Show::Limits)),
            Verb::ShowManagers => Ok(Command::Show(Show::Managers)),
            Verb::ShowDestinations => Ok(Command::Show(Show::Destinations)),
            Verb::Snap => self.snap(),
            Verb::Help => {
                let words = self.rest.iter().map(|t| t.text.clone()).collect();
                self.rest = &[];
                Ok(Command::Help(words))
            }
            _ => Ok(Command::Quit),
        }
    }

    fn validation(&mut self) -> Read<Command> {
        let how = self.word("file")?;
        match keyword(&how.text, &["file", "password"]).map_err(|text| how.fault(text))? {
            "file" => Ok(Command::Define(Definition::Validation(true))),
            _ => Err(how.fault("passwords are never sent")),
        }
    }

    fn snap(&mut self) -> Read<Command> {
        let Some(token) = self.rest.first() else { return Ok(Command::Snap { file: None }) };
        keyword(&token.text, &["file"]).map_err(|text| token.fault(text))?;
        self.next("file")?;
        self.mark("=")?;
        Ok(Command::Snap { file: Some(self.word("the name of a file")?.text.clone()) })
    }

    fn requests(&mut self, verb: RequestVerb) -> Read<Command> {
        let mut ids = vec![self.word("a request")?.text.clone()];
        while !self.rest.is_empty() {
            let _ = self.takes(",");
            let token = self.word("a request")?;
            if ids.len() == MAX_IDS {
                return Err(token.fault(format!("more than {MAX_IDS} requests")));
            }
            ids.push(token.text.clone());
        }
        Ok(Command::Requests { verb, ids })
    }

    fn destinations(&mut self, change: DestinationChange) -> Read<Command> {
        self.mark("=")?;
        let list = self.destination_list()?;
        self.of_queue(|queue| Definition::Destinations { change, list, queue })
    }

    /// `(q[@h], ...)`, or one without parentheses.
    fn destination_list(&mut self) -> Read<Vec<Destination>> {
        if !self.takes("(") {
            return Ok(vec![destination(self.word("a destination")?)?]);
        }
        let mut list = Vec::new();
        loop {
            let token = self.word("a destination")?;
            if list.len() == MAX_DESTINATIONS {
                return Err(token.fault(format!("more than {MAX_DESTINATIONS} destinations")));
            }
            list.push(destination(token)?);
            let mark = self.next("<,> or <)>")?;
            match mark.text.as_str() {
                "," => {}
                ")" => return Ok(list),
                other => {
                    return Err(mark.fault(format!("<,> or <)> is wanted, not <{other}>")));
                }
            }
        }
    }

    /// `(pipeclient [CRI_DS [policy] [host:port]])`.
    fn client(&mut self) -> Read<Destinations> {
        self.mark("(")?;
        let client = self.word("pipeclient")?;
        if !client.text.rsplit('/').next().unwrap_or("").eq_ignore_ascii_case("pipeclient") {
            return Err(client.fault(format!("pipeclient is wanted, not <{}>", client.text)));
        }
        if self.takes(")") {
            return Ok(Destinations::Listed(Vec::new()));
        }
        let selects = self.word("CRI_DS")?;
        if !selects.text.eq_ignore_ascii_case("CRI_DS") {
            return Err(selects.fault(format!("CRI_DS is wanted, not <{}>", selects.text)));
        }
        let (mut policy, mut server) = (String::new(), String::new());
        loop {
            let token = self.next("<)>")?;
            let text = &token.text;
            if token.is(")") {
                return Ok(Destinations::Selected { policy, server });
            }
            match (policy.is_empty() && server.is_empty(), text.contains(':')) {
                _ if !token.is_word() => {
                    return Err(token.fault(format!("<)> is wanted, not <{text}>")));
                }
                (_, true) if server.is_empty() => server.clone_from(text),
                (true, false) if policy_name(text) => policy.clone_from(text),
                (true, false) => return Err(token.fault(format!("<{text}> names no policy"))),
                (false, false) if server.is_empty() => server.clone_from(text),
                _ => {
                    let words = "a policy and a server at most stand behind CRI_DS";
                    return Err(token.fault(format!("{words}, not <{text}>")));
                }
            }
        }
    }

    fn create(&mut self, pipe: bool) -> Read<Command> {
        let name = self.queue()?;
        let mut queue = NqsQueue {
            name,
            priority: 1,
            run_limit: None,
            load_only: false,
            pipe_only: false,
            pipe: pipe.then(|| Destinations::Listed(Vec::new())),
        };
        let may: &[&'static str] = match pipe {
            true => &["priority", "server", "destination", "run_limit"],
            false => &["priority", "run_limit", "loadonly", "pipeonly"],
        };
        let mut seen: Vec<&str> = Vec::new();
        while let Some((token, rest)) = self.rest.split_first() {
            let parameter = keyword(&token.text, may).map_err(|text| token.fault(text))?;
            if seen.contains(&parameter) {
                return Err(token.fault(format!("{parameter} stands here twice")));
            }
            seen.push(parameter);
            self.rest = rest;
            let flag = ["loadonly", "pipeonly"].contains(&parameter);
            if !flag {
                self.mark("=")?;
            }
            match parameter {
                "priority" => queue.priority = self.number("a priority", 0, MAX_PRIORITY)?,
                "run_limit" => {
                    queue.run_limit = Some(self.number("a run limit", 1, MAX_RUN_LIMIT)?);
                }
                "loadonly" => queue.load_only = true,
                "pipeonly" => queue.pipe_only = true,
                "server" => match (self.client()?, &queue.pipe) {
                    (Destinations::Listed(_), _) => {}
                    (_, Some(Destinations::Listed(list))) if !list.is_empty() => {
                        return Err(token.fault(BOTH));
                    }
                    (selected, _) => queue.pipe = Some(selected),
                },
                _ => {
                    let list = self.destination_list()?;
                    if let Some(Destinations::Selected { .. }) = queue.pipe {
                        return Err(token.fault(BOTH));
                    }
                    queue.pipe = Some(Destinations::Listed(list));
                }
            }
        }
        Ok(Command::Define(Definition::Create(queue)))
    }
}

/// The words where a queue would have both kinds of destinations.
pub(super) const BOTH: &str = "a queue with CRI_DS has no list of destinations";

fn queue_name(token: &Token) -> Read<&str> {
    let text = token.text.as_str();
    let plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    if !text.chars().all(plain) {
        return Err(token.fault(format!("<{text}> is no name of a queue: letters, digits, _ - .")));
    }
    match text.chars().count() > MAX_NAME {
        true => Err(token.fault(format!("names have at most {MAX_NAME} characters"))),
        false => Ok(text),
    }
}

fn destination(token: &Token) -> Read<Destination> {
    let (queue, host) = match token.text.split_once('@') {
        Some((queue, host)) => (queue, Some(host)),
        None => (token.text.as_str(), None),
    };
    queue_name(&Token { text: queue.to_owned(), ..*token })?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if queue.is_empty() || host.is_some_and(|h| h.is_empty() || !h.chars().all(plain)) {
        let words = format!("<{}> is no destination: QUEUE or QUEUE@HOST", token.text);
        return Err(token.fault(words));
    }
    Ok(Destination { queue: queue.to_owned(), host: host.map(str::to_owned) })
}

/// Does a text name a policy, as in the policies file?
pub fn policy_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.+".contains(c);
    !text.is_empty() && text.len() <= MAX_NAME && text.chars().all(plain)
}

/// Reads NQS_QUEUES of lsb.queues: `CRI_DS [policy] [host[:port]]`, or destinations.
///
/// # Errors
/// The words for the user.
pub fn nqs_queues(text: &str) -> Result<Destinations, String> {
    let list = match split(text, 1).into_iter().next() {
        Some(joined) => joined.tokens,
        None => Vec::new(),
    };
    let first = list.first().is_some_and(|t| t.text.eq_ignore_ascii_case("CRI_DS"));
    if list.iter().any(|t| !t.is_word()) {
        return Err("destinations are separated by blanks".to_owned());
    }
    if first {
        let word = |n: usize| list.get(n).map(|t| t.text.clone());
        if list.len() > 3 {
            let word = word(3).unwrap_or_default();
            let words = "a policy and a server at most stand behind CRI_DS";
            return Err(format!("{words}, not <{word}>"));
        }
        if let Some(at) = list.iter().find(|t| t.text.contains('@')) {
            return Err(format!("{BOTH}: <{}>", at.text));
        }
        let (policy, server) = match (word(1), word(2)) {
            (Some(one), None) if one.contains(':') => (String::new(), one),
            (one, two) => (one.unwrap_or_default(), two.unwrap_or_default()),
        };
        if !policy.is_empty() && !policy_name(&policy) {
            return Err(format!("<{policy}> names no policy"));
        }
        return Ok(Destinations::Selected { policy, server });
    }
    if let Some(late) = list.iter().find(|t| t.text.eq_ignore_ascii_case("CRI_DS")) {
        return Err(format!("{BOTH}: <{}>", late.text));
    }
    if list.len() > MAX_DESTINATIONS {
        return Err(format!("more than {MAX_DESTINATIONS} destinations"));
    }
    let all: Result<Vec<_>, _> = list.iter().map(destination).collect();
    all.map(Destinations::Listed).map_err(|fault| fault.text)
}

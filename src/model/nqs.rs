//! The nouns of NQS queues: pipe queues and their destinations, and where a request was routed to.
//! See qmgr(8).

use std::fmt;

/// Most destinations of a pipe queue.
pub const MAX_DESTINATIONS: usize = 1_000;
/// The policy that a destination-selection queue without one asks for.
pub const DEFAULT_POLICY: &str = "nqs";
/// Queries of a pipe queue under way at once, where `run_limit` does not say otherwise.
pub const DEFAULT_QUERIES: u32 = 64;

/// A batch queue, at a host or at any of its hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The batch queue.
    pub queue: String,
    /// The host; `None`: any host of the queue.
    pub host: Option<String>,
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Some(host) => write!(f, "{}@{host}", self.queue),
            None => f.write_str(&self.queue),
        }
    }
}

/// The places to which a pipe queue routes its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destinations {
    /// CRI_DS: to the hosts that a policy of the load balancer puts first.
    Selected {
        /// The policy as it is written; empty: [`DEFAULT_POLICY`].
        policy: String,
        /// `host[:port]`; empty: those of NLB_SERVER.
        server: String,
    },
    /// To these, in order.
    Listed(Vec<Destination>),
}

impl Destinations {
    /// The policy that is asked for; `None`: none is asked.
    pub fn policy(&self) -> Option<&str> {
        match self {
            Destinations::Selected { policy, .. } if policy.is_empty() => Some(DEFAULT_POLICY),
            Destinations::Selected { policy, .. } => Some(policy),
            Destinations::Listed(_) => None,
        }
    }
}

/// The text of NQS_QUEUES in lsb.queues and `bqueues -l`.
impl fmt::Display for Destinations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destinations::Selected { policy, server } => {
                f.write_str("CRI_DS")?;
                let policy =
                    if policy.is_empty() && !server.is_empty() { DEFAULT_POLICY } else { policy };
                [policy, server]
                    .iter()
                    .filter(|w| !w.is_empty())
                    .try_for_each(|w| write!(f, " {w}"))
            }
            Destinations::Listed(all) => {
                let all: Vec<String> = all.iter().map(Destination::to_string).collect();
                f.write_str(&all.join(" "))
            }
        }
    }
}

/// A queue that qmgr has defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NqsQueue {
    /// The name.
    pub name: String,
    /// 0 to 63.
    pub priority: u32,
    /// Slots of a batch queue; queries at once of a pipe queue. `None`: as by default.
    pub run_limit: Option<u32>,
    /// A request is accepted only when it could start at once.
    pub load_only: bool,
    /// Nobody submits to the queue but pipe queues.
    pub pipe_only: bool,
    /// The destinations of a pipe queue; `None`: a batch queue.
    pub pipe: Option<Destinations>,
}

/// The destination to which a request was routed, and the hosts that it had asked for before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// The host to which it is bound.
    pub host: String,
    /// The policy that was applied; empty: none, the destinations are listed.
    pub policy: String,
    /// The value of the policy's sort, as nlbpolicy prints it; empty without a policy.
    pub value: String,
    /// The place of the destination in the list, from 1.
    pub rank: u32,
    /// The length of the list.
    pub of: u32,
    /// The pipe queue that it came from.
    pub from: String,
    /// The hosts of its own -m.
    pub asked: Vec<String>,
    /// The generation of the policies that were applied; 0: not known, or no policy.
    pub generation: u64,
}

/// The generation in the text of a route. No host has such a name.
const GENERATION: &str = "generation=";

impl Route {
    /// `by policy <CPU> (5.000000, choice 1 of 3)`.
    pub fn words(&self) -> String {
        let (rank, of) = (self.rank, self.of);
        match self.policy.as_str() {
            "" => format!("(choice {rank} of {of})"),
            policy => format!("by policy <{policy}> ({}, choice {rank} of {of})", self.value),
        }
    }

    /// The facts as one text: host, policy, value, rank, of how many, pipe queue, own hosts; a word
    /// that is not there is `-`. A generation that is known follows.
    pub fn text(&self) -> String {
        let word = |w: &str| if w.is_empty() { "-".to_owned() } else { w.to_owned() };
        let mut words = vec![word(&self.host), word(&self.policy), word(&self.value)];
        words.extend([self.rank.to_string(), self.of.to_string(), word(&self.from)]);
        words.extend(self.asked.iter().cloned());
        if self.generation != 0 {
            words.push(format!("{GENERATION}{}", self.generation));
        }
        words.join(" ")
    }

    /// Reads what [`Route::text`] has written.
    pub fn parse(text: &str) -> Option<Route> {
        let mut words = text.split(' ');
        let word = |w: &str| if w == "-" { String::new() } else { w.to_owned() };
        let [host, policy, value] = [words.next()?, words.next()?, words.next()?];
        let (rank, of) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let from = word(words.next()?);
        // a value of `-` is one: the sort was missing
        let value = if word(policy).is_empty() { String::new() } else { value.to_owned() };
        let (mut asked, mut generation) = (Vec::new(), 0);
        for word in words {
            match word.strip_prefix(GENERATION) {
                Some(number) => generation = number.parse().ok()?,
                None => asked.push(word.to_owned()),
            }
        }
        let (host, policy) = (word(host), word(policy));
        Some(Route { host, policy, value, rank, of, from, asked, generation })
    }
}

/// The place of a started job's first host in the list of a policy of the load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NlbPlacement {
    /// The policy that was applied.
    pub policy: String,
    /// The value of the policy's sort, as nlbpolicy prints it.
    pub value: String,
    /// The place of the host in the list, from 1.
    pub choice: u32,
    /// The length of the list.
    pub of: u32,
}

impl NlbPlacement {
    /// `placed by NLB policy <CPU>, 5.000000, choice 1 of 3`.
    pub fn words(&self) -> String {
        let NlbPlacement { policy, value, choice, of } = self;
        format!("placed by NLB policy <{policy}>, {value}, choice {choice} of {of}")
    }

    /// Reads what is printed: policy, value, choice, length of the list.
    pub fn parse(text: &str) -> Option<NlbPlacement> {
        let mut words = text.split(' ').map(str::to_owned);
        let (policy, value) = (words.next().filter(|w| !w.is_empty())?, words.next()?);
        let (choice, of) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        words.next().is_none().then_some(NlbPlacement { policy, value, choice, of })
    }
}

impl fmt::Display for NlbPlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NlbPlacement { policy, value, choice, of } = self;
        write!(f, "{policy} {value} {choice} {of}")
    }
}

/// The value of an attribute of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestValue {
    Number(f64),
    Text(String),
}

/// Request attributes begin with this.
pub const PREFIX: &str = "JOB_";

impl RequestValue {
    /// A decimal number, or a text in quotes.
    pub fn read(value: &str) -> Option<RequestValue> {
        let quoted = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
        if let Some(text) = quoted {
            return Some(RequestValue::Text(text.to_owned()));
        }
        let digits = |c: char| c.is_ascii_digit() || ".eE+-".contains(c);
        let plain = value.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        let octal =
            value.len() > 1 && value.starts_with('0') && value.chars().all(|c| c.is_ascii_digit());
        let number = value.parse::<f64>().ok().filter(|n| n.is_finite());
        let number = number.filter(|_| plain && !octal && value.chars().all(digits));
        number.map(RequestValue::Number)
    }
}

/// Appends `name` or `name=value`, as a user writes it, to the attributes of a request; without a
/// value the attribute is the number 1. `Err`: what is wanted.
pub fn put_asked(all: &mut String, item: &str) -> Result<(), &'static str> {
    let (name, value) = match item.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim())),
        None => (item.trim(), None),
    };
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err("a name has letters, digits and _");
    }
    let value = match value {
        None => Some(RequestValue::Number(1.0)),
        Some(value) => RequestValue::read(value),
    };
    let value = value.ok_or("a decimal number, or a text in quotes, is wanted")?;
    put_attribute(all, &attribute_name(name), &value);
    Ok(())
}

/// The attribute that a word of a user stands for: `nastran` for JOB_NASTRAN.
pub fn attribute_name(word: &str) -> String {
    format!("{PREFIX}{}", word.to_ascii_uppercase())
}

/// A word of a user for an attribute: `nastran` for JOB_NASTRAN.
pub fn attribute_word(name: &str) -> String {
    let word = name.to_ascii_uppercase();
    word.strip_prefix(PREFIX).unwrap_or(&word).to_ascii_lowercase()
}

/// Reads `[policy] [attribute[=value]]...` of bsub -nlb: the policy, empty where none is named, and
/// the attributes. A first word without a value may be either: it is taken for the policy. `Err`:
/// the word, and what is wrong.
pub fn asked_of_balancer(text: &str) -> Result<(String, String), (String, &'static str)> {
    let (mut policy, mut all) = (String::new(), String::new());
    for (n, item) in quoted_words(text).into_iter().enumerate() {
        if n == 0 && !item.contains('=') {
            policy = item;
        } else if let Err(why) = put_asked(&mut all, &item) {
            return Err((item, why));
        }
    }
    Ok((policy, all))
}

/// Splits at blanks that stand in no quotes.
fn quoted_words(text: &str) -> Vec<String> {
    let (mut all, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        quoted ^= c == '"';
        match c.is_whitespace() && !quoted {
            true => all.push(std::mem::take(&mut word)),
            false => word.push(c),
        }
    }
    all.push(word);
    all.retain(|word| !word.is_empty());
    all
}

/// Appends `NAME=value` to the attributes of a request; texts stand in quotes.
pub fn put_attribute(all: &mut String, name: &str, value: &RequestValue) {
    if !all.is_empty() {
        all.push(' ');
    }
    all.push_str(name);
    all.push('=');
    match value {
        RequestValue::Number(n) => all.push_str(&n.to_string()),
        RequestValue::Text(text) => {
            all.push('"');
            for c in text.chars() {
                if c == '"' || c == '\\' {
                    all.push('\\');
                }
                all.push(c);
            }
            all.push('"');
        }
    }
}

/// Reads what [`put_attribute`] has written; what is no attribute is left out.
pub fn attributes(all: &str) -> Vec<(String, RequestValue)> {
    let mut found = Vec::new();
    let mut rest = all.trim_start();
    while let Some((name, behind)) = rest.split_once('=') {
        let (value, after) = match behind.strip_prefix('"') {
            Some(quoted) => {
                let (text, after) = unquoted(quoted);
                (Some(RequestValue::Text(text)), after)
            }
            None => {
                let (word, after) = behind.split_once(' ').unwrap_or((behind, ""));
                let number = word.parse::<f64>().ok().filter(|n| n.is_finite());
                (number.map(RequestValue::Number), after)
            }
        };
        found.extend(value.map(|value| (name.trim().to_owned(), value)));
        rest = after.trim_start();
    }
    found
}

/// The text up to the quote that ends it, and what is behind.
fn unquoted(text: &str) -> (String, &str) {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (out, text.get(at + 1..).unwrap_or_default()),
            '\\' => out.extend(chars.next().map(|(_, c)| c)),
            c => out.push(c),
        }
    }
    (out, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_nlb_are_a_policy_and_attributes() {
        let read = |text: &str| {
            let read = asked_of_balancer(text);
            read.map_or_else(|(w, why)| format!("{w}: {why}"), |(p, a)| format!("{p}|{a}"))
        };
        for (text, want) in [
            ("cad", "cad|"),
            ("cad nastran", "cad|JOB_NASTRAN=1"),
            ("  cad  nastran=2 name=\"a b\" ", "cad|JOB_NASTRAN=2 JOB_NAME=\"a b\""),
            ("nastran=1 cad", "|JOB_NASTRAN=1 JOB_CAD=1"),
            ("", "|"),
            ("cad a-b", "a-b: a name has letters, digits and _"),
            ("x=10kw", "x=10kw: a decimal number, or a text in quotes, is wanted"),
            ("x=010", "x=010: a decimal number, or a text in quotes, is wanted"),
        ] {
            assert_eq!(read(text), want, "{text}");
        }
    }

    #[test]
    fn placement_as_text_reads_back() {
        let (policy, value) = ("CPU".to_owned(), "5.000000".to_owned());
        let placed = NlbPlacement { policy, value, choice: 1, of: 3 };
        assert_eq!(placed.words(), "placed by NLB policy <CPU>, 5.000000, choice 1 of 3");
        assert_eq!(NlbPlacement::parse(&placed.to_string()), Some(placed));
        for bad in ["", "CPU", "CPU 1 x 2", "CPU 1 1 2 3", " 1 1 2"] {
            assert_eq!(NlbPlacement::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn route_as_text_reads_back() {
        let mut route = Route {
            host: "cool".into(),
            policy: "CPU".into(),
            value: "5.000000".into(),
            rank: 1,
            of: 3,
            from: "nlbqueue".into(),
            asked: vec!["cool+1".into(), "gust".into()],
            generation: 0,
        };
        assert_eq!(route.text(), "cool CPU 5.000000 1 3 nlbqueue cool+1 gust");
        assert_eq!(route.words(), "by policy <CPU> (5.000000, choice 1 of 3)");
        assert_eq!(Route::parse(&route.text()), Some(route.clone()));
        route.value = "-".into();
        assert_eq!(Route::parse(&route.text()), Some(route.clone()));
        route.generation = 1 << 50;
        let text = "cool CPU - 1 3 nlbqueue cool+1 gust generation=1125899906842624";
        assert_eq!(route.text(), text);
        assert_eq!(Route::parse(text), Some(route.clone()));
        route.generation = 0;
        (route.policy, route.value, route.asked) = (String::new(), String::new(), Vec::new());
        assert_eq!(route.text(), "cool - - 1 3 nlbqueue");
        assert_eq!(route.words(), "(choice 1 of 3)");
        assert_eq!(Route::parse(&route.text()), Some(route));
        assert_eq!(Route::parse("cool CPU"), None);
    }

    #[test]
    fn attributes_of_a_request_read_back() {
        let mut all = String::new();
        let text = |t: &str| RequestValue::Text(t.into());
        let given = [
            ("JOB_NASTRAN", RequestValue::Number(1.0)),
            ("JOB_APP", text("a \"b\" = \\c")),
            ("JOB_PRMEMSIZE", RequestValue::Number(83_886_080.0)),
            ("JOB_NONE", text("")),
        ];
        given.iter().for_each(|(name, value)| put_attribute(&mut all, name, value));
        let told = r#"JOB_NASTRAN=1 JOB_APP="a \"b\" = \\c" JOB_PRMEMSIZE=83886080 JOB_NONE="""#;
        assert_eq!(all, told);
        assert_eq!(attributes(&all), given.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(attributes("x y=z =1"), [(String::new(), RequestValue::Number(1.0))]);
    }

    #[test]
    fn destinations_are_written_as_lsb_queues_has_them() {
        let selected = |policy: &str, server: &str| {
            let all = Destinations::Selected { policy: policy.into(), server: server.into() };
            all.to_string()
        };
        assert_eq!(selected("", ""), "CRI_DS");
        assert_eq!(selected("CPU", "cool:nlb"), "CRI_DS CPU cool:nlb");
        assert_eq!(selected("", "cool"), "CRI_DS nqs cool");
        let at = |queue: &str, host: Option<&str>| Destination {
            queue: queue.into(),
            host: host.map(Into::into),
        };
        let listed = Destinations::Listed(vec![at("nqebatch", Some("cool")), at("b", None)]);
        assert_eq!(listed.to_string(), "nqebatch@cool b");
    }
}

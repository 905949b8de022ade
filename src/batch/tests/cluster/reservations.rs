//! brsvadd, brsvmod, brsvdel and brsvs in a test's cluster, by their options. The real ones are
//! read by the applets, which are not in this package. Times are `hour:minute` of the day on which
//! tests begin (UTC), hours beyond 23 those of the days after it.

use super::{ADMINISTRATOR, Cluster, START_SECS, options};
use crate::model::reservation::{ReservationKind, ReservationTime};
use crate::proto::client::ClientMsg;
use crate::proto::reservation::*;
use crate::proto::{Msg, Refusal};

const DAY: i64 = 24 * 3600;

/// `22:30`, `26:30`: seconds since the epoch.
fn instant(text: &str) -> i64 {
    let (hour, minute) = text.split_once(':').unwrap_or_else(|| panic!("{text}"));
    let number = |text: &str| text.parse::<i64>().unwrap_or_else(|_| panic!("{text}"));
    START_SECS - START_SECS % DAY + number(hour) * 3600 + number(minute) * 60
}

/// `+30`, `-5`, or an instant.
fn new_instant(text: &str) -> NewInstant {
    match text.starts_with(['+', '-']) {
        true => NewInstant::Shift(text.parse().unwrap_or_else(|_| panic!("{text}"))),
        false => NewInstant::At(instant(text)),
    }
}

fn list(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Words and their values; a flag has none.
fn pairs(text: &str, flags: &[&str]) -> Vec<(String, String)> {
    let mut words = options::words(text).into_iter();
    let mut all = Vec::new();
    while let Some(word) = words.next() {
        let flag = flags.contains(&word.as_str());
        let value = if flag { None } else { words.next() };
        all.push((word, value.unwrap_or_default()));
    }
    all
}

fn new_reservation(text: &str) -> NewReservation {
    let mut new = NewReservation::default();
    let (mut begin, mut end) = (0, 0);
    for (word, value) in pairs(text, &["-s", "-o", "-f", "-nosusp"]) {
        match word.as_str() {
            "-s" => new.kind = ReservationKind::System,
            "-o" => new.open = true,
            "-f" => new.idle_first = true,
            "-nosusp" => new.no_suspension = true,
            "-n" => new.units = value.parse().unwrap(),
            "-unit" => new.by_host = value == "host",
            "-m" => new.hosts = list(&value),
            "-R" => new.res_req = value,
            "-u" => new.users = list(&value),
            "-g" => (new.kind, new.users) = (ReservationKind::Group, list(&value)),
            "-N" => new.name = value,
            "-q" => new.queues = list(&value),
            "-d" => new.description = value,
            "-b" => begin = instant(&value),
            "-e" => end = instant(&value),
            "-t" => new.time = ReservationTime::Weekly(value),
            "-D" => new.minutes = value.parse().unwrap(),
            _ => panic!("unknown option {word}"),
        }
    }
    if begin != 0 || end != 0 {
        new.time = ReservationTime::Once { begin, end };
    }
    new
}

fn change(text: &str) -> ReservationChange {
    let mut change = ReservationChange::default();
    let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
    let (verb, rest) = if verb.starts_with('-') { ("", text) } else { (verb, rest) };
    let mut chosen = ChosenHosts::default();
    for (word, value) in pairs(rest, &["-o", "-on", "-nosusp", "-tn"]) {
        match word.as_str() {
            "-o" => change.open = Some(true),
            "-on" => change.open = Some(false),
            "-nosusp" => change.no_suspension = Some(true),
            "-b" => change.begin = Some(new_instant(&value)),
            "-e" => change.end = Some(new_instant(&value)),
            "-t" => change.window = Some(value),
            "-d" => change.description = Some(value),
            "-q" => change.queues = Some(list(&value)),
            "-u" if verb == "adduser" => change.add_users = list(&value),
            "-u" if verb == "rmuser" => change.remove_users = list(&value),
            "-u" => change.users = Some((ReservationKind::User, list(&value))),
            "-n" => chosen.units = value.parse().unwrap(),
            "-m" => chosen.hosts = list(&value),
            "-R" => chosen.res_req = value,
            "-td" => {
                let (from, to) = value.split_once('-').unwrap();
                change.disable.push((instant(from), instant(to)));
            }
            "-tn" => change.enable = true,
            _ => panic!("unknown option {word}"),
        }
    }
    match verb {
        "addhost" => change.add_hosts = Some(chosen),
        "rmhost" => change.remove_hosts = Some(chosen),
        _ => {}
    }
    change
}

impl Cluster {
    /// One request about reservations; what it has made or changed.
    pub fn reservation(
        &mut self,
        user: &str,
        request: ReservationRequest,
    ) -> Result<String, Refusal> {
        match self.ask(user, ClientMsg::Reservation(Box::new(request))).pop() {
            Some(Msg::Client(ClientMsg::AdminDone { lines })) => match &lines[..] {
                [line] => Ok(line.about.clone()),
                other => panic!("{other:?}"),
            },
            Some(Msg::Refused(refusal)) => Err(refusal),
            other => panic!("{other:?}"),
        }
    }

    /// brsvadd with these options; with `-D`, brsvsub.
    pub fn try_brsvadd(&mut self, user: &str, options: &str) -> Result<String, Refusal> {
        let new = Box::new(new_reservation(options));
        self.reservation(user, ReservationRequest::Add(new))
    }

    /// brsvadd of the administrator.
    pub fn brsvadd(&mut self, options: &str) -> String {
        let made = self.try_brsvadd(ADMINISTRATOR, options);
        made.unwrap_or_else(|why| panic!("{options}: {}", why.words()))
    }

    /// brsvmod: `addhost -m h2 -n 1`, `-e +30` and so on.
    pub fn try_brsvmod(&mut self, user: &str, id: &str, options: &str) -> Result<String, Refusal> {
        let change = Box::new(change(options));
        self.reservation(user, ReservationRequest::Modify { id: id.to_owned(), change })
    }

    pub fn brsvmod(&mut self, id: &str, options: &str) {
        let changed = self.try_brsvmod(ADMINISTRATOR, id, options);
        changed.unwrap_or_else(|why| panic!("{options}: {}", why.words()));
    }

    pub fn try_brsvdel(&mut self, user: &str, id: &str) -> Result<String, Refusal> {
        self.reservation(user, ReservationRequest::Delete { ids: vec![id.to_owned()] })
    }

    pub fn brsvdel(&mut self, id: &str) {
        self.try_brsvdel(ADMINISTRATOR, id).unwrap_or_else(|why| panic!("{id}: {}", why.words()));
    }

    /// brsvs.
    pub fn brsvs(&mut self) -> Vec<ReservationInfo> {
        let request = ReservationRequest::List { ids: Vec::new() };
        match self.ask("bob", ClientMsg::Reservation(Box::new(request))).pop() {
            Some(Msg::Client(ClientMsg::Reservations(rows))) => rows,
            other => panic!("{other:?}"),
        }
    }

    /// The hosts of a reservation: `h1:0/4 h2:1/2`, the slots in use and those reserved.
    pub fn reserved(&mut self, id: &str) -> String {
        let rows = self.brsvs();
        let Some(row) = rows.into_iter().find(|row| row.id == id) else { return String::new() };
        let hosts = row.hosts.iter().map(|(host, used, slots, _)| format!("{host}:{used}/{slots}"));
        hosts.collect::<Vec<_>>().join(" ")
    }
}

//! The rights of peers, by the file `config`: see nlbserver(8).
//!
//! A peer is whom its connection proves; nothing that it sends says who it is.

use super::server::NlbServer;
use crate::conf::nlb_config::{Right, Term};
use crate::conf::nlb_map::NameMap;
use crate::model::Now;
use crate::model::nlb::NLB;
use crate::model::reason::err;
use crate::model::time::US;
use crate::proto::machine::ConnId;
use crate::proto::nlb::NlbMsg;
use crate::proto::{Effect, Peer, Refusal};

/// The pause between two looks for objects that nobody reports, microseconds.
const EXPIRE_PAUSE: u64 = 10 * US;

impl NlbServer {
    /// Is a message let through? If it is not, the peer is told.
    pub(super) fn allowed(&self, conn: ConnId, msg: &NlbMsg, out: &mut Vec<Effect>) -> bool {
        let number = |name: &str| self.maps.named(name).map(NameMap::number);
        let read = |object_type| (object_type, Right::Read);
        let wanted = match msg {
            NlbMsg::Query(_) | NlbMsg::Status => Some(read(NLB)),
            NlbMsg::Map { object_type } => number(object_type).map(read),
            NlbMsg::List(which) | NlbMsg::Dump(which) => number(&which.object_type).map(read),
            NlbMsg::Reload | NlbMsg::Conf | NlbMsg::MapPut(_) => {
                return self.in_master_list(conn) || self.denied(conn, out);
            }
            // the types follow from the file
            NlbMsg::Put(_) => {
                let mut types = self.maps.list().iter().map(NameMap::number);
                let any = types.any(|number| self.may(conn, number, Right::Update));
                return any || self.denied(conn, out);
            }
            NlbMsg::Delete(which) => match number(&which.object_type) {
                Some(number) => Some((number, Right::Delete)),
                None => return self.in_master_list(conn) || self.denied(conn, out),
            },
            NlbMsg::Watch => {
                let daemon = matches!(self.peers.get(&conn), Some(Peer::Daemon { .. }));
                return daemon || self.denied(conn, out);
            }
            _ => None,
        };
        wanted.is_none_or(|(object_type, right)| self.has(conn, object_type, right, out))
    }

    /// Has the peer a right? If it has not, it is told.
    pub(super) fn has(
        &self,
        conn: ConnId,
        object_type: u16,
        right: Right,
        out: &mut Vec<Effect>,
    ) -> bool {
        self.may(conn, object_type, right) || self.denied_right(conn, object_type, right, out)
    }

    /// Has the peer a right? Daemons of the cluster read everything.
    pub(super) fn may(&self, conn: ConnId, object_type: u16, right: Right) -> bool {
        match self.peers.get(&conn) {
            Some(peer @ Peer::User { .. }) => {
                let (terms, _) = self.access.terms(object_type, right);
                terms.iter().any(|term| self.is(peer, term))
            }
            Some(Peer::Daemon { .. }) => right == Right::Read,
            _ => false,
        }
    }

    /// May collectors report objects of that type?
    pub(super) fn collectors_may(&self, object_type: u16) -> bool {
        let (terms, _) = self.access.terms(object_type, Right::Update);
        terms.iter().any(|term| matches!(term, Term::Collector | Term::Everybody))
    }

    /// May the peer change policies, maps and config?
    pub(super) fn in_master_list(&self, conn: ConnId) -> bool {
        self.peers.get(&conn).is_some_and(|peer| self.is(peer, &Term::Master))
    }

    fn is(&self, peer: &Peer, term: &Term) -> bool {
        let Peer::User { uid, user, host, .. } = peer else { return false };
        match term {
            Term::Everybody => true,
            Term::Collector => false,
            Term::Master => match self.access.master() {
                None => *uid == 0 || self.conf.admins.contains(user),
                // no list names the master list
                Some((terms, _)) => {
                    terms.iter().any(|t| !matches!(t, Term::Master) && self.is(peer, t))
                }
            },
            Term::User(name, at) => {
                // root is a uid, whatever the name
                let same = if name == "root" { *uid == 0 } else { *uid != 0 && user == name };
                let here = |at: &String| self.conf.hosts.canonical(at).unwrap_or(at) == host;
                same && at.as_ref().is_none_or(here)
            }
        }
    }

    /// The place of a line of `config`, or the default that it has in its stead.
    fn place(&self, line: u32, default: &str) -> String {
        match line {
            0 => default.to_owned(),
            line => format!("{}:{line}", self.path("config")),
        }
    }

    fn denied(&self, conn: ConnId, out: &mut Vec<Effect>) -> bool {
        let line = self.access.master().map_or(0, |(_, line)| line);
        let place = self.place(line, "root and the administrators of the cluster");
        self.deny(conn, "is not in the master list of", &place, out)
    }

    fn denied_right(
        &self,
        conn: ConnId,
        object_type: u16,
        right: Right,
        out: &mut Vec<Effect>,
    ) -> bool {
        let (_, line) = self.access.terms(object_type, right);
        if line == 0 && right != Right::Read {
            return self.denied(conn, out);
        }
        let name = self.maps.numbered(object_type).map_or("", NameMap::name);
        let what = format!("may not {} objects of type {name} on", right.word());
        self.deny(conn, &what, &self.place(line, "default"), out)
    }

    fn deny(&self, conn: ConnId, what: &str, place: &str, out: &mut Vec<Effect>) -> bool {
        let (user, host) = (self.user(conn), &self.conf.host);
        let words =
            format!("User permission denied: <{user}> {what} the NLB server on <{host}> ({place})");
        let who = self.peers.get(&conn).map(ToString::to_string).unwrap_or_default();
        let text = format!("{who} {what} this server ({place})");
        out.push(Effect::Say { level: log::Level::Warn, text });
        self.refuse(conn, Refusal::text(err::PERMISSION, words), out);
        false
    }

    /// Drops objects that nobody has reported for the time of `expire` and that administrators did
    /// not store.
    pub(super) fn expire(&mut self, now: Now) {
        if self.expire_at.is_some_and(|at| at <= now.mono_us) {
            let time = u64::from(self.access.expire) * US;
            self.store.expire(now.mono_us.saturating_sub(time));
            self.expire_at = (time > 0).then_some(now.mono_us + EXPIRE_PAUSE);
        }
    }
}

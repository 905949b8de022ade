//! The server: its parts, and what every file beside it needs to answer.

use super::changing::Changing;
use super::feed::Feed;
use super::peer_lines::PeerLines;
use super::pieces::{ObjectSource, Pieces};
use super::start::Started;
use super::store::Store;
use crate::conf::HostTable;
use crate::conf::nlb_config::Access;
use crate::conf::nlb_map::NameMaps;
use crate::lang::nlb::Policies;
use crate::model::Now;
use crate::model::time::US;
use crate::proto::machine::ConnId;
use crate::proto::nlb::{NlbEffect, NlbMsg, NlbQuery};
use crate::proto::{Effect, Msg, Peer, Refusal};
use jiff::tz::TimeZone;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// Time after the start in which queries wait for the first reports, microseconds.
const FIRST_REPORTS: u64 = 5 * US;

/// The surroundings of a server.
#[derive(Clone, Debug)]
pub struct NlbConf {
    /// This host's canonical name.
    pub host: String,
    /// NLB_SERVER_DIR.
    pub dir: String,
    /// The administrators of the cluster, who may change the database, as root may.
    pub admins: Vec<String>,
    /// The server hosts of the cluster.
    pub servers: Vec<String>,
    /// The cluster's hosts with their other names.
    pub hosts: HostTable,
    /// NLB_QUEUE; empty: hosts fed from LIM have no queue name.
    pub queue: String,
    /// The zone of times in texts.
    pub zone: TimeZone,
}

/// The server.
pub struct NlbServer {
    pub(super) conf: NlbConf,
    pub(super) maps: NameMaps,
    /// The last change of each map, seconds since 1970; 0: before the start.
    pub(super) map_changed: HashMap<u16, i64>,
    /// Number of the set of maps: the server's start and a count.
    pub(super) map_generation: u64,
    pub(super) store: Store,
    /// The settings of the file `config`.
    pub(super) access: Access,
    /// When they were read, seconds since 1970.
    pub(super) access_read: i64,
    /// When objects that nobody reports are looked for, microseconds.
    pub(super) expire_at: Option<u64>,
    pub(super) policies: Policies,
    pub(super) policies_text: String,
    /// When the policies were read, seconds since 1970.
    pub(super) policies_read: i64,
    /// Number of the set of policies: the server's start and a count.
    pub(super) generation: u64,
    pub(super) started: i64,
    pub(super) queries: u64,
    pub(super) changing: Option<Changing>,
    /// The number of the last order to the runner.
    pub(super) order: u64,
    /// Changes that wait for the one under way.
    pub(super) waiting: VecDeque<(ConnId, NlbMsg)>,
    /// Queries that wait for the first reports.
    pub(super) held: VecDeque<(ConnId, NlbQuery)>,
    /// When queries are answered whoever has not reported; `None`: they are already.
    pub(super) hold_until: Option<u64>,
    pub(super) peers: HashMap<ConnId, Peer>,
    pub(super) peer_lines: PeerLines,
    /// The connections that hear of other policies.
    pub(super) watchers: BTreeSet<ConnId>,
    /// The pieces of answers that have not been sent.
    pub(super) pieces: HashMap<ConnId, VecDeque<Pieces>>,
    pub(super) feed: Feed,
    /// The connection to this host's LIM, which knows the master.
    pub(super) lim: Option<ConnId>,
    /// The connection to the master LIM, which knows the loads.
    pub(super) loads: Option<ConnId>,
    /// The number of the last connection to a LIM.
    pub(super) last_link: ConnId,
    /// The host of `loads`.
    pub(super) master: String,
    pub(super) retry: Option<u64>,
}

/// The first generation of a server that starts: a server that starts again in the same second has
/// others than the one before, as changes are fewer than microseconds.
fn first_generation(now: Now) -> u64 {
    let micros = now.wall_us.rem_euclid(US as i64);
    (u64::try_from(now.secs()).unwrap_or(0) << 20) + u64::try_from(micros).unwrap_or(0)
}

impl NlbServer {
    /// A server that begins with these files, at `now`.
    pub fn new(conf: NlbConf, begins: Started, now: Now) -> NlbServer {
        let mut store = Store::default();
        store.change(begins.objects);
        NlbServer {
            conf,
            maps: begins.maps,
            map_changed: HashMap::new(),
            map_generation: first_generation(now),
            store,
            expire_at: (begins.access.expire > 0).then_some(now.mono_us),
            access: begins.access,
            access_read: now.secs(),
            policies: begins.policies,
            policies_text: begins.text,
            policies_read: now.secs(),
            generation: first_generation(now),
            started: now.secs(),
            queries: 0,
            changing: None,
            order: 0,
            waiting: VecDeque::new(),
            held: VecDeque::new(),
            hold_until: Some(now.mono_us + FIRST_REPORTS),
            peers: HashMap::new(),
            peer_lines: PeerLines::default(),
            watchers: BTreeSet::new(),
            pieces: HashMap::new(),
            feed: Feed::default(),
            lim: None,
            loads: None,
            last_link: 0,
            master: String::new(),
            retry: None,
        }
    }

    /// The generation of the policies in force, and their text.
    pub fn in_force(&self) -> (u64, &str) {
        (self.generation, &self.policies_text)
    }

    /// The path of a file of the server's directory.
    pub(super) fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.conf.dir)
    }

    /// The user of a connection, for texts.
    pub(super) fn user(&self, conn: ConnId) -> &str {
        match self.peers.get(&conn) {
            Some(Peer::User { user, .. }) => user,
            _ => "-",
        }
    }

    /// The number of the next order to the runner.
    pub(super) fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// Sends the first piece of an answer, and keeps the others until there is room for them.
    pub(super) fn send(&mut self, conn: ConnId, pieces: Vec<NlbMsg>, out: &mut Vec<Effect>) {
        self.answer(conn, Pieces::new(pieces), out);
    }

    /// Sends the first piece of an answer behind the others of the connection.
    pub(super) fn answer(&mut self, conn: ConnId, answer: Pieces, out: &mut Vec<Effect>) {
        self.pieces.entry(conn).or_default().push_back(answer);
        self.next_piece(conn, out);
    }

    pub(super) fn next_piece(&mut self, conn: ConnId, out: &mut Vec<Effect>) {
        let Some(left) = self.pieces.get_mut(&conn) else { return };
        // a piece that nothing follows asks for no room: the next answer may go at once
        while let Some(answer) = left.front_mut() {
            let (maps, store, zone) = (&self.maps, &self.store, &self.conf.zone);
            let Some(msg) = answer.take_next(&ObjectSource { maps, store, zone }) else {
                left.pop_front();
                continue;
            };
            let more = msg.goes_on();
            out.push(Effect::Send { conn, msg: Msg::Nlb(msg) });
            if more {
                return;
            }
        }
        self.pieces.remove(&conn);
    }

    pub(super) fn refuse(&self, conn: ConnId, refusal: Refusal, out: &mut Vec<Effect>) {
        out.push(Effect::Send { conn, msg: Msg::Refused(refusal) });
    }

    /// Orders the runner to do something with files.
    pub(super) fn files(effect: NlbEffect, out: &mut Vec<Effect>) {
        out.push(Effect::Nlb(effect));
    }
}

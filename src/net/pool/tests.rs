//! Listings to several clients beside each other, over sockets of this process: who is told, in
//! which order, that its output has room.

use super::*;
use crate::auth::Ways;
use crate::conf::HostTable;
use crate::model::Now;
use crate::net::sock;
use crate::proto::client::ClientMsg;
use crate::proto::frame::Session;
use crate::proto::{Daemon, Msg};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// Pieces of a listing behind the first.
const PIECES: u32 = 3;

struct Rig {
    poll: mio::Poll,
    pool: Pool,
    now: u64,
    path: PathBuf,
    opened: Vec<ConnId>,
    asked: Vec<ConnId>,
    drained: Vec<ConnId>,
    closed: Vec<ConnId>,
    /// Told of room after their end was told.
    late: Vec<ConnId>,
    left: HashMap<ConnId, u32>,
}

impl Rig {
    fn new(name: &str) -> Rig {
        let path = std::env::temp_dir().join(format!("lsf-pool-{name}-{}", std::process::id()));
        let poll = mio::Poll::new().unwrap();
        let ways = Ways::default();
        let ident = Identity {
            daemon: Daemon::Mbatchd,
            host: "h1".into(),
            addr: None,
            uid: crate::sys::euid(),
            ring: None,
            hosts: Arc::new(HostTable::default()),
            only_uid: None,
            ways: ways.clone(),
        };
        let unix = Some(sock::listen_unix(&path, 0o600).unwrap());
        let listen = Listeners { unix, ..Listeners::default() };
        let checker = Checker::new(ways, "mbatchd", Arc::new(|_, _| {}));
        let registry = poll.registry().try_clone().unwrap();
        let pool =
            Pool::new(registry, ident, listen, PathBuf::new(), Box::new(|_| 0), checker).unwrap();
        let now = crate::sys::now().mono_us;
        let (opened, asked, drained, closed, late) = Default::default();
        let left = HashMap::new();
        Rig { poll, pool, now, path, opened, asked, drained, closed, late, left }
    }

    /// One turn of the loop, as long after the last one that nobody counts as having spoken.
    fn turn(&mut self) {
        self.now += ROOM_QUIET_US + 1;
        let mut events = mio::Events::with_capacity(64);
        self.poll.poll(&mut events, Some(Duration::from_millis(1))).unwrap();
        events.iter().for_each(|e| self.pool.event(e.token(), e));
        let mut inputs = Vec::new();
        let now = Now { mono_us: self.now, wall_us: 0 };
        self.pool.work(now, &mut |input| inputs.push(input));
        for input in inputs {
            match input {
                Input::Opened { conn, .. } => self.opened.push(conn),
                Input::Closed { conn } => self.closed.push(conn),
                Input::Msg { conn, .. } => {
                    self.asked.push(conn);
                    self.left.insert(conn, PIECES);
                    self.piece(conn);
                }
                Input::Drained { conn } if self.closed.contains(&conn) => self.late.push(conn),
                Input::Drained { conn } => {
                    self.drained.push(conn);
                    *self.left.get_mut(&conn).unwrap() -= 1;
                    self.piece(conn);
                }
                _ => {}
            }
        }
        self.pool.flush(self.now);
    }

    fn piece(&mut self, conn: ConnId) {
        let rows = serde_json::value::RawValue::from_string("[]".into()).unwrap();
        let more = self.left[&conn] > 0;
        self.pool.send(conn, Msg::Client(ClientMsg::Rows { rows, more }));
    }

    fn until(&mut self, what: &str, done: impl Fn(&Rig) -> bool) {
        let end = std::time::Instant::now() + Duration::from_secs(60);
        while !done(self) {
            assert!(std::time::Instant::now() < end, "{what}");
            self.turn();
        }
    }

    /// A client and the number of its connection.
    fn client(&mut self) -> (TestClient, ConnId) {
        let n = self.opened.len();
        let sock = UnixStream::connect(&self.path).unwrap();
        self.until("a connection", |r| r.opened.len() > n);
        (TestClient { sock, session: Session::local() }, self.opened[n])
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

struct TestClient {
    sock: UnixStream,
    session: Session,
}

impl TestClient {
    fn ask(&mut self) {
        self.ask_often(1);
    }

    /// Sends one question so many times, in one piece.
    fn ask_often(&mut self, times: usize) {
        let mut out = Vec::new();
        let msg = Msg::Client(ClientMsg::Jobs(Box::default()));
        (0..times).for_each(|_| self.session.seal_msg(&msg, &mut out).unwrap());
        self.sock.write_all(&out).unwrap();
    }
}

#[test]
fn listings_are_served_in_the_order_in_which_they_were_asked_for() {
    let mut r = Rig::new("order");
    let mut clients: Vec<(TestClient, ConnId)> = (0..3).map(|_| r.client()).collect();
    // they ask together
    clients.iter_mut().for_each(|(c, _)| c.ask());
    r.until("the second to be served", |r| r.drained.len() == PIECES as usize + 1);
    let asked = r.asked.clone();
    assert_eq!(asked.len(), 3);
    // the first has all it asked for; what it asks now comes behind the others
    let again = clients.iter_mut().find(|c| c.1 == asked[0]).unwrap();
    again.0.ask();
    r.until("all to be served", |r| r.drained.len() == 4 * PIECES as usize);
    let order = [asked[0], asked[1], asked[2], asked[0]];
    let want: Vec<ConnId> = order.iter().flat_map(|c| [*c; PIECES as usize]).collect();
    assert_eq!(r.drained, want);
}

#[test]
fn connection_that_has_ended_gets_no_drained_input() {
    let mut r = Rig::new("gone");
    let (mut client, conn) = r.client();
    client.ask();
    r.until("its question", |r| !r.asked.is_empty());
    drop(client);
    r.until("its end", |r| !r.closed.is_empty());
    (0..5).for_each(|_| r.turn());
    assert_eq!((r.closed.as_slice(), r.late.as_slice()), (&[conn][..], &[][..]));
}

#[test]
fn messages_of_one_connection_that_take_long_are_handed_on_turn_by_turn() {
    const MESSAGES: usize = 24;
    let mut r = Rig::new("long");
    let (mut client, _) = r.client();
    client.ask_often(MESSAGES);
    let mut turns = Vec::new();
    let end = std::time::Instant::now() + Duration::from_secs(60);
    while turns.iter().sum::<usize>() < MESSAGES {
        assert!(std::time::Instant::now() < end, "heard by turn: {turns:?}");
        let mut events = mio::Events::with_capacity(64);
        r.poll.poll(&mut events, Some(Duration::ZERO)).unwrap();
        events.iter().for_each(|e| r.pool.event(e.token(), e));
        let (now, mut heard) = (crate::sys::now(), 0);
        r.pool.work(now, &mut |_| {
            heard += 1;
            // a third of what a turn may take
            let until = crate::sys::now().mono_us + READ_TURN_US / 3;
            while crate::sys::now().mono_us < until {}
        });
        assert!(heard <= 3, "{heard} messages in one turn");
        turns.push(heard);
        assert!(r.pool.busy() || turns.iter().sum::<usize>() == MESSAGES, "{turns:?}");
    }
    assert_eq!(turns.iter().sum::<usize>(), MESSAGES);
}

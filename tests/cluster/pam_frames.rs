//! A TaskStarter whose proof or messages are changed or sent twice on their way to pam (pam(1)).

use super::pam::up;
use super::pam_refusals::waiting_pam;
use super::rig::{Rig, wait_for};
use lsf::auth::shake::{self, Ask, Grant, UserServer};
use lsf::cli::prove::ask_authd;
use lsf::conf::load;
use lsf::proto::frame::{Decoder, MAX_FRAME_EARLY, Session, SessionKey};
use lsf::proto::pam::PamMsg;
use lsf::proto::{Daemon, Msg};
use lsf::sys::files::RealFiles;
use lsf::sys::site::LocalSite;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The port of a pam, and what a process of its host and user knows.
struct PamPort {
    site: LocalSite,
    host: String,
    at: (String, u16),
}

impl PamPort {
    fn new(rig: &Rig, host: String, at: (String, u16)) -> PamPort {
        let envdir = rig.path("conf").to_str().unwrap().to_string();
        let (base, diags) = load::load_base_lenient(&RealFiles, &envdir, Some(&host));
        let base = base.unwrap_or_else(|| panic!("{diags:?}"));
        let site = LocalSite { envdir, lsf: base.lsf, host: host.clone(), shared_machine: true };
        PamPort { site, host, at }
    }

    /// A connection on which pam has said hello, the proof for that, and the session behind it.
    fn dial(&self) -> (Starter, Vec<u8>) {
        let sock = TcpStream::connect((self.at.0.as_str(), self.at.1)).unwrap();
        sock.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut dec = Decoder::new(MAX_FRAME_EARLY);
        let mut chunk = [0; 4096];
        let (hello, version) = loop {
            if let Some(raw) = dec.take().unwrap() {
                break shake::read_hello(&raw, Daemon::Pam, &self.host).unwrap();
            }
            let n = (&sock).read(&mut chunk).unwrap();
            dec.push(&chunk[..n]);
        };
        let server = UserServer { uid: lsf::sys::euid(), port: self.at.1, caller: None };
        let user_server = Some(Box::new(server));
        let (target, keys, eauth) = (hello.target(), hello.keys.clone(), String::new());
        let grant = ask_authd(&self.site, &Ask { target, keys, eauth, user_server }).unwrap();
        let Grant::Yes { claims, session } = grant else { panic!("no grant") };
        let mut proof = Vec::new();
        let key = SessionKey::new(session.0);
        let session = shake::write_auth(version, claims, &key, &mut proof).unwrap();
        (Starter { sock, dec, session }, proof)
    }

    /// A TaskStarter that pam believes, which has said its hello; the number of its task.
    fn starter(&self, again: Option<u32>) -> (Starter, u32) {
        let (mut starter, proof) = self.dial();
        starter.sock.write_all(&proof).unwrap();
        let hello = PamMsg::Hello { job: None, pid: 1, again, command: "made up".into() };
        let hello = starter.sealed(hello);
        // the answer to the proof comes first
        starter.answer_to_proof();
        starter.sock.write_all(&hello).unwrap();
        match starter.heard() {
            Some(PamMsg::Welcome { tid, .. }) => (starter, tid),
            other => panic!("{other:?}"),
        }
    }
}

/// The caller's side of a connection to pam.
struct Starter {
    sock: TcpStream,
    dec: Decoder,
    session: Session,
}

impl Starter {
    fn sealed(&mut self, msg: PamMsg) -> Vec<u8> {
        let mut out = Vec::new();
        self.session.seal_msg(&Msg::Pam(msg), &mut out).unwrap();
        out
    }

    /// Whether there is more to read: pam has not closed the connection.
    fn fill(&mut self) -> bool {
        let mut chunk = [0; 4096];
        let n = match self.sock.read(&mut chunk) {
            Ok(n) => n,
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(e) => panic!("{e}"),
        };
        self.dec.push(&chunk[..n]);
        n > 0
    }

    /// Whether pam believes the proof.
    fn answer_to_proof(&mut self) -> bool {
        loop {
            if let Some(raw) = self.dec.take().unwrap() {
                return shake::read_ok(&mut self.session, &raw).is_ok();
            }
            if !self.fill() {
                return false;
            }
        }
    }

    /// The next message of pam; none when it has closed the connection.
    fn heard(&mut self) -> Option<PamMsg> {
        loop {
            if let Some(raw) = self.dec.take().unwrap() {
                match self.session.open_msg(&raw).unwrap() {
                    Msg::Pam(msg) => return Some(msg),
                    other => panic!("{other:?}"),
                }
            }
            if !self.fill() {
                return None;
            }
        }
    }
}

fn exited(status: i32) -> PamMsg {
    PamMsg::Exited { status, usage: Box::default(), time: 0 }
}

#[test]
fn changed_and_repeated_messages_of_a_starter_are_told_and_the_job_goes_on() {
    let rig = up("pam-frames");
    let (job, host, at) = waiting_pam(&rig);
    let pam = PamPort::new(&rig, host.clone(), at);
    let told = |words: &str| {
        wait_for(words, || rig.read("err").lines().any(|line| line.contains(words)));
    };
    // the proof of one connection on another, whose nonce is another
    let (mut first, proof) = pam.dial();
    first.sock.write_all(&proof).unwrap();
    assert!(first.answer_to_proof());
    let (mut second, _) = pam.dial();
    second.sock.write_all(&proof).unwrap();
    assert!(!second.answer_to_proof());
    told("is closed: ");
    // a proof that was changed on its way
    let (mut third, mut proof) = pam.dial();
    *proof.last_mut().unwrap() ^= 1;
    third.sock.write_all(&proof).unwrap();
    assert!(!third.answer_to_proof());
    // no task was made by any of these
    let (mut starter, tid) = pam.starter(None);
    assert_eq!(tid, 0);
    // a changed end is none, and the connection is over
    let mut end = starter.sealed(exited(9));
    let at = end.iter().rposition(|byte| *byte == b'9').unwrap();
    end[at] = b'0';
    starter.sock.write_all(&end).unwrap();
    assert_eq!(starter.heard(), None);
    let from_host = |what: &str| format!("pam: a connection from host {host} is closed: {what}");
    told(&from_host("frame is wrongly signed"));
    // the starter is back with its task; a message that is sent twice counts once
    let (mut starter, tid) = pam.starter(Some(0));
    assert_eq!(tid, 0);
    let begun = starter.sealed(PamMsg::Started { pid: 1, ticks: 1, outside: String::new() });
    starter.sock.write_all(&begun).unwrap();
    starter.sock.write_all(&begun).unwrap();
    assert_eq!(starter.heard(), None);
    told(&from_host("frame number 2 where 3 is due"));
    let (mut starter, tid) = pam.starter(Some(0));
    assert_eq!(tid, 0);
    let end = starter.sealed(exited(0));
    starter.sock.write_all(&end).unwrap();
    assert_eq!(starter.heard(), Some(PamMsg::Ack));
    // the tasks of the PJL are started and end as ever
    rig.write("go", "");
    assert_eq!(rig.end_of(job), "DONE", "{}", rig.read("err"));
    let out = rig.read("out");
    assert_eq!(out.matches(" Done ").count(), 4, "{out}");
    assert_eq!(out.matches("made up").count(), 1, "{out}");
    assert_eq!(rig.read("err").matches("pam: ").count(), 4, "{}", rig.read("err"));
}

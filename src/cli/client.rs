//! A command's connection to a daemon: blocking, without threads (design §4, §5, §7).
//!
//! One command costs one connection to authd and one to the daemon. A submission, which carries
//! the user's environment, leaves only after the server has proved itself; other requests
//! travel together with our proof, and nothing that comes back is believed before the server's.
//!
//! Where nobody answers, the user is told in LSF's words on stderr and the command tries again,
//! LSB_NTRIES times or for ever. Documents implemented: commands.md "Daemon-down texts",
//! config.md LSB_API_CONNTIMEOUT and LSB_API_RECVTIMEOUT.

use super::ctx::Ctx;
use super::site::Site;
use super::{privport, prove};
use crate::auth::HostLookup;
use crate::auth::Way;
use crate::auth::shake::{self, AuthError, Claims, Hello};
use crate::conf::{HostTable, load};
use crate::model::ByteStr;
use crate::model::reason::{err, err_text};
use crate::net::sock;
use crate::proto::client::{ClientMsg, Submit, env_hash};
use crate::proto::frame::{
    Decoder, FrameError, MAX_FRAME, MAX_FRAME_EARLY, MAX_FRAME_USER, Session,
};
use crate::proto::lim::LimMsg;
use crate::proto::res::ResMsg;
use crate::proto::{Daemon, Msg, Refusal};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Seconds to connect where LSB_API_CONNTIMEOUT says nothing.
const CONN_TIMEOUT: u64 = 10;
/// Seconds to wait for an answer where LSB_API_RECVTIMEOUT says nothing.
const RECV_TIMEOUT: u64 = 10;
/// Seconds for LIM and res where LSF_API_CONNTIMEOUT and LSF_API_RECVTIMEOUT say nothing.
const BASE_CONN_TIMEOUT: u64 = 5;
const BASE_RECV_TIMEOUT: u64 = 20;
/// Longest wait for the first candidate before the LIMs are asked who is master.
const FIRST_TRY: Duration = Duration::from_secs(2);
/// Bytes read at once, at first; most answers are short.
const CHUNK: usize = 8 << 10;
/// Bytes read at once where answers are long.
const LONG_CHUNK: usize = 128 << 10;
/// Pauses between tries: the first ones short, because a master that restarts is soon back.
const PAUSES_MS: [u64; 6] = if cfg!(test) { [1; 6] } else { [100, 200, 500, 1000, 2000, 5000] };
/// Connections in a row that are made and then lost: a master that restarts refuses some in
/// between. One that hangs up each time does not read what it is sent.
pub const LOST_IN_A_ROW: u32 = 12;

/// What LSF says where no daemon listens.
pub const DOWN: &str = "LSF is down. Please wait ...";
/// What LSF says where a daemon cannot be reached.
pub const UNREACHED: &str = "Cannot connect to LSF. Please wait ...";
/// What LSF says where an answer takes long.
pub const PROCESSING: &str = "LSF is processing your request. Please wait ...";

/// What is said while there is no answer; a site has words of its own for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notice {
    Down,
    Unreached,
    Processing,
}

impl Notice {
    /// As lsf.conf or the environment has it, else as LSF has it.
    fn words(self, site: &Site) -> String {
        let (name, usual) = match self {
            Notice::Down => ("LSB_MBD_DOWN_MSG", DOWN),
            Notice::Unreached => ("LSB_MBD_CONNECT_FAIL_MSG", UNREACHED),
            Notice::Processing => ("LSB_MBD_BUSY_MSG", PROCESSING),
        };
        super::site::param(Some(site), name).unwrap_or_else(|| usual.to_string())
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub enum ClientError {
    /// Nobody listens: the words of the last try.
    Down(String),
    /// Somebody may listen but does not answer in time.
    Timeout(String),
    /// The connection was lost after it was made.
    Lost(String),
    /// This side or the other does not believe the other.
    Auth(AuthError),
    /// The configuration names no server.
    Conf(String),
    /// The daemon refuses what was asked.
    Refused(Refusal),
    /// An answer that does not belong to the question.
    Unexpected,
}

impl ClientError {
    /// The lsberrno that goes with it; `None` where the configuration is at fault.
    pub fn code(&self) -> Option<i32> {
        Some(match self {
            ClientError::Down(_) => err::CONN_REFUSED,
            ClientError::Timeout(_) | ClientError::Lost(_) => err::TIMEOUT,
            ClientError::Auth(e) => e.code(),
            ClientError::Refused(r) => r.code,
            // Batch protocol error.
            ClientError::Unexpected => 57,
            ClientError::Conf(_) => return None,
        })
    }

    /// LSF's words, without a final full stop.
    pub fn words(&self) -> String {
        match self {
            ClientError::Refused(r) => r.words(),
            ClientError::Conf(why) => why.clone(),
            // What this side knows about it, and can be mended on this side.
            ClientError::Auth(
                e @ (AuthError::NoGrant { .. }
                | AuthError::NotEnabled { .. }
                | AuthError::Unproved { .. }),
            ) => format!("{}: {e}", err_text(e.code())),
            other => err_text(other.code().unwrap_or_default()).to_string(),
        }
    }

    /// What lies behind the words, for those who look closer.
    pub fn detail(&self) -> String {
        match self {
            ClientError::Down(w) | ClientError::Timeout(w) | ClientError::Lost(w) => w.clone(),
            ClientError::Auth(AuthError::NoGrant { .. }) => String::new(),
            ClientError::Auth(AuthError::NotEnabled { .. }) => String::new(),
            ClientError::Auth(AuthError::Unproved { .. }) => String::new(),
            ClientError::Auth(e) => e.to_string(),
            _ => String::new(),
        }
    }

    /// Whether another try may help.
    fn passing(&self) -> bool {
        match self {
            ClientError::Down(_) | ClientError::Timeout(_) | ClientError::Lost(_) => true,
            ClientError::Refused(r) => r.code == err::BUSY,
            ClientError::Auth(AuthError::Denied { code }) => *code == err::BUSY,
            _ => false,
        }
    }

    /// What the user is told before another try.
    fn notice(&self) -> Notice {
        match self {
            ClientError::Timeout(_) => Notice::Unreached,
            _ => Notice::Down,
        }
    }
}

impl std::fmt::Display for ClientError {
    /// LSF's words; with `{:#}` also what lies behind them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words())?;
        let detail = self.detail();
        if f.alternate() && !detail.is_empty() { write!(f, " ({detail})") } else { Ok(()) }
    }
}
impl std::error::Error for ClientError {}

impl From<AuthError> for ClientError {
    fn from(e: AuthError) -> Self {
        ClientError::Auth(e)
    }
}
impl From<FrameError> for ClientError {
    fn from(e: FrameError) -> Self {
        match e {
            FrameError::Short => ClientError::Lost(e.to_string()),
            e => ClientError::Auth(AuthError::Frame(e)),
        }
    }
}

/// How long to wait and how often to try.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    pub connect: Duration,
    pub answer: Duration,
    /// None: for ever.
    pub tries: Option<u32>,
}

impl Patience {
    /// From lsf.conf; LSB_NTRIES of the environment stands above it.
    pub fn of(site: &Site) -> Patience {
        let secs = |name, default| Duration::from_secs(site.lsf.int(name, default).max(1));
        let tries = std::env::var("LSB_NTRIES").ok();
        let tries = tries.as_deref().or(site.lsf.get("LSB_NTRIES"));
        let tries = tries.and_then(|v| v.trim().parse().ok());
        Patience {
            connect: secs("LSB_API_CONNTIMEOUT", CONN_TIMEOUT),
            answer: secs("LSB_API_RECVTIMEOUT", RECV_TIMEOUT),
            tries: tries.map(|n: u32| n.max(1)),
        }
    }

    /// The same towards LIM and res: LSF_API_CONNTIMEOUT, LSF_API_RECVTIMEOUT; one try.
    pub fn base(site: &Site) -> Patience {
        let secs = |name, default| Duration::from_secs(site.lsf.int(name, default).max(1));
        Patience {
            connect: secs("LSF_API_CONNTIMEOUT", BASE_CONN_TIMEOUT),
            answer: secs("LSF_API_RECVTIMEOUT", BASE_RECV_TIMEOUT),
            tries: Some(1),
        }
    }

    /// One try, and no more.
    pub fn once(self) -> Patience {
        Patience { tries: Some(1), ..self }
    }
}

/// An authenticated connection to one daemon.
pub struct Client {
    sock: TcpStream,
    session: Session,
    dec: Decoder,
    chunk: Vec<u8>,
    out: Vec<u8>,
    verified: bool,
    patience: Patience,
    claims: Claims,
    /// The daemon's host.
    server: String,
    /// What is said where an answer takes long.
    processing: String,
    /// The receive timeout that is set on the socket.
    waits: Option<Duration>,
    /// The environment that was submitted with last and its hash, if the daemon keeps it.
    kept_env: Option<(ByteStr, String)>,
}

/// A connection to mbatchd on whichever candidate answers; tries again as [`Patience`] says.
pub fn mbatchd(site: &Site, err: &mut dyn Write) -> Result<Client, ClientError> {
    mbatchd_with(site, Patience::of(site), err)
}

/// As [`mbatchd`], with another patience.
pub fn mbatchd_with(
    site: &Site,
    patience: Patience,
    err: &mut dyn Write,
) -> Result<Client, ClientError> {
    persist(patience, site, err, |_| Client::dial(site, Daemon::Mbatchd, patience))
}

/// Asks mbatchd of this process's cluster one thing, as [`ask_at`] does, and hangs up.
pub fn ask(ctx: &mut Ctx, msg: ClientMsg) -> Result<ClientMsg, ClientError> {
    let site = super::site::find().map_err(|e| ClientError::Conf(e.to_string()))?;
    match ask_at(&site, &Msg::Client(msg), ctx.err)? {
        (_, Msg::Client(answer)) => Ok(answer),
        _ => Err(ClientError::Unexpected),
    }
}

/// Asks mbatchd one thing that may be asked twice (a submission carries its own request id): a
/// lost connection is made again and the question repeated. The connection is returned for what
/// follows the answer.
pub fn ask_at(site: &Site, msg: &Msg, err: &mut dyn Write) -> Result<(Client, Msg), ClientError> {
    let patience = Patience::of(site);
    persist(patience, site, err, |err| {
        let mut client = Client::dial(site, Daemon::Mbatchd, patience)?;
        client.send(msg)?;
        let answer = client.answer(err)?;
        Ok((client, answer))
    })
}

/// A connection to a LIM: this host's, else one of LSF_SERVER_HOSTS, else a master candidate's.
/// LSF_LIM_API_NTRIES tries, one by default; the words for its failure: `LIM is down; try later`.
pub fn lim(site: &Site) -> Result<Client, ClientError> {
    let tries = std::env::var("LSF_LIM_API_NTRIES").ok();
    let tries = tries.as_deref().or(site.lsf.get("LSF_LIM_API_NTRIES"));
    let tries = tries.and_then(|v| v.trim().parse().ok()).unwrap_or(1);
    let (once, tries) = (Patience::base(site), Some(u32::max(tries, 1)));
    let patience = Patience { tries, ..once };
    persist(patience, site, &mut io::sink(), |_| Client::dial(site, Daemon::Lim, once))
}

/// A connection to the LIM of one host. One try.
pub fn lim_of(site: &Site, host: &str) -> Result<Client, ClientError> {
    at(site, Daemon::Lim, host)
}

/// A connection to the res of one host. One try.
pub fn res_of(site: &Site, host: &str) -> Result<Client, ClientError> {
    at(site, Daemon::Res, host)
}

fn at(site: &Site, daemon: Daemon, host: &str) -> Result<Client, ClientError> {
    let table = match site.lsf.master_list().is_empty() {
        true => candidates(site, daemon)?.1,
        false => site.addresses(&[host, &site.host]),
    };
    let mut patience = Patience::base(site);
    if daemon == Daemon::Res && site.lsf.get("LSF_RES_TIMEOUT").is_some() {
        let secs = site.lsf.int("LSF_RES_TIMEOUT", BASE_CONN_TIMEOUT);
        patience.connect = Duration::from_secs(secs.max(1));
    }
    let call = Call { site, daemon, patience, table: &table };
    let again = if daemon == Daemon::Res { site.lsf.int("LSF_RES_CONNECT_RETRY", 0) } else { 0 };
    let tries = u32::try_from(again).unwrap_or(u32::MAX).saturating_add(1);
    // its words are those of the last try
    let patience = Patience { tries: Some(tries), ..patience };
    persist(patience, site, &mut io::sink(), |_| call.to(host))
}

/// The master, as the nearest LIM tells it; `None` where none can.
fn master_of(site: &Site) -> Option<String> {
    let patience = Patience::base(site);
    let patience = Patience { connect: patience.connect.min(FIRST_TRY), ..patience };
    let mut lim = Client::dial(site, Daemon::Lim, patience).ok()?;
    match lim.call(&Msg::Lim(LimMsg::WhoIsMaster), &mut io::sink()) {
        Ok(Msg::Lim(LimMsg::Master { master, .. })) if !master.is_empty() => Some(master),
        _ => None,
    }
}

/// Tries until it works, cannot work, or was tried often enough.
fn persist<T>(
    patience: Patience,
    site: &Site,
    err: &mut dyn Write,
    mut f: impl FnMut(&mut dyn Write) -> Result<T, ClientError>,
) -> Result<T, ClientError> {
    let mut lost = 0;
    for n in 1u32.. {
        let error = match f(err) {
            Err(e) if e.passing() => e,
            done => return done,
        };
        lost = if matches!(error, ClientError::Lost(_)) { lost + 1 } else { 0 };
        // A connection lost in mid-answer is often a master that is back at once.
        if n > 1 || !matches!(error, ClientError::Lost(_)) {
            let _ = writeln!(err, "{}", error.notice().words(site));
        }
        if patience.tries.is_some_and(|max| n >= max) || lost >= LOST_IN_A_ROW {
            return Err(error);
        }
        let pause = PAUSES_MS[(n as usize - 1).min(PAUSES_MS.len() - 1)];
        std::thread::sleep(Duration::from_millis(pause));
    }
    Err(ClientError::Unexpected)
}

/// The hosts to try, in order, and the table of their addresses.
fn candidates(site: &Site, daemon: Daemon) -> Result<(Vec<String>, HostTable), ClientError> {
    let mut names: Vec<String> = Vec::new();
    let own = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect::<Vec<_>>();
    if daemon == Daemon::Lim {
        names.push(site.host.clone());
        names.extend(own(site.lsf.server_hosts()));
    }
    names.extend(own(site.lsf.master_list()));
    if site.lsf.master_list().is_empty() {
        let files = crate::sys::files::RealFiles;
        let (base, _) = load::load_base_lenient(&files, &site.envdir, Some(&site.host));
        let base = base.ok_or_else(|| ClientError::Conf("lsf.cluster cannot be read".into()))?;
        if let Some(own) = names.first_mut().and_then(|n| Some((base.hosts.canonical(n)?, n))) {
            *own.1 = own.0.to_owned();
        }
        let servers = base.cluster.hosts.iter().filter(|h| h.server);
        names.extend(servers.map(|h| h.name.clone()));
        dedup(&mut names);
        return Ok((names, base.hosts));
    }
    dedup(&mut names);
    let mut asked: Vec<&str> = names.iter().map(String::as_str).collect();
    asked.push(&site.host);
    let table = site.addresses(&asked);
    Ok((names, table))
}

fn dedup(names: &mut Vec<String>) {
    let mut seen = std::collections::HashSet::new();
    names.retain(|n| seen.insert(n.to_ascii_lowercase()));
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sock.as_fd()
    }
}

/// One candidate, ready to be called.
struct Call<'a> {
    site: &'a Site,
    daemon: Daemon,
    patience: Patience,
    table: &'a HostTable,
}

impl Client {
    /// Connects to the first candidate that answers and authenticates with it.
    pub fn dial(site: &Site, daemon: Daemon, patience: Patience) -> Result<Client, ClientError> {
        let (names, table) = candidates(site, daemon)?;
        let mut call = Call { site, daemon, patience, table: &table };
        let mut last = ClientError::Conf("no host to ask is configured".into());
        let mut rest = names.as_slice();
        let mut master = None;
        if let (Daemon::Mbatchd, [first, others @ ..]) = (daemon, rest)
            && !others.is_empty()
        {
            // Nearly always the first one is master; where not, the LIMs know who is.
            call.patience.connect = patience.connect.min(FIRST_TRY);
            match call.to(first) {
                Err(e) if e.passing() => last = e,
                done => return done,
            }
            let down = matches!(last, ClientError::Down(_));
            rest = if down { others } else { rest };
            master = master_of(site).filter(|m| !down || m != first);
            call.patience = patience;
        }
        for name in master.iter().chain(rest.iter().filter(|n| Some(*n) != master.as_ref())) {
            match call.to(name) {
                Err(e) if e.passing() => last = e,
                done => return done,
            }
        }
        Err(last)
    }

    /// This host as the cluster spells it, told by authd.
    pub fn local_host(&self) -> &str {
        &self.claims.host
    }

    /// The caller's name, told by authd.
    pub fn user(&self) -> &str {
        &self.claims.user
    }

    /// The host of the daemon.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Asks and waits for the answer. A refusal is an error.
    pub fn call(&mut self, msg: &Msg, err: &mut dyn Write) -> Result<Msg, ClientError> {
        self.send(msg)?;
        self.answer(err)
    }

    /// Submits a job: an environment that the daemon has from the submission before is named by
    /// its hash.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn submit(
        &mut self,
        mut submit: Submit,
        err: &mut dyn Write,
    ) -> Result<ClientMsg, ClientError> {
        let mut kept = self.kept_env.take().filter(|(env, _)| *env == submit.env);
        loop {
            let env = kept.as_mut().map(|(env, hash)| {
                if hash.is_empty() {
                    *hash = env_hash(env);
                }
                submit.env_hash.clone_from(hash);
                std::mem::take(&mut submit.env)
            });
            let msg = Msg::Client(ClientMsg::Submit(Box::new(submit)));
            let answer = self.call(&msg, err);
            let Msg::Client(ClientMsg::Submit(sent)) = msg else {
                return Err(ClientError::Unexpected);
            };
            submit = *sent;
            submit.env = env.unwrap_or(submit.env);
            match answer {
                Err(e) if kept.is_some() && e.code() == Some(err::ENV_GONE) => {
                    kept = None;
                    submit.env_hash.clear();
                }
                Ok(Msg::Client(answer)) => {
                    if matches!(answer, ClientMsg::Submitted { env_kept: true, .. }) {
                        self.kept_env = kept.or(Some((submit.env, String::new())));
                    }
                    return Ok(answer);
                }
                Ok(_) => return Err(ClientError::Unexpected),
                Err(e) => return Err(e),
            }
        }
    }

    /// Sends without waiting.
    pub fn send(&mut self, msg: &Msg) -> Result<(), ClientError> {
        // what carries the user's environment
        let private = matches!(msg, Msg::Client(ClientMsg::Submit(_)) | Msg::Res(ResMsg::Run(_)));
        if !self.verified && private {
            self.verify()?;
        }
        let before = self.out.len();
        self.session.seal_msg(msg, &mut self.out)?;
        let len = self.out.len() - before;
        if len > MAX_FRAME_USER {
            self.out.truncate(before);
            let text = format!("the request is longer than {MAX_FRAME_USER} bytes");
            return Err(ClientError::Refused(Refusal::text(err::BAD_ARG, text)));
        }
        self.push()
    }

    /// The answer to what was asked, telling the user from time to time that it takes long.
    pub fn answer(&mut self, err: &mut dyn Write) -> Result<Msg, ClientError> {
        for n in 1u32.. {
            match self.next(Some(self.patience.answer)) {
                Err(ClientError::Timeout(w)) => {
                    let _ = writeln!(err, "{}", self.processing);
                    if self.patience.tries.is_some_and(|max| n >= max) {
                        return Err(ClientError::Timeout(w));
                    }
                }
                done => return done,
            }
        }
        Err(ClientError::Unexpected)
    }

    /// The next message; `wait` None: for ever.
    pub fn next(&mut self, wait: Option<Duration>) -> Result<Msg, ClientError> {
        self.verify()?;
        if wait != self.waits {
            set_socket_timeout(&self.sock, Timeout::Recv, wait).map_err(|e| lost(&e.into()))?;
            self.waits = wait;
            if wait.is_none() {
                // Else a daemon whose machine is gone would be waited for until the end of time.
                sock::keep_alive(std::os::fd::AsFd::as_fd(&self.sock));
            }
        }
        loop {
            if let Some(raw) = self.dec.take()? {
                return match self.session.open_msg(&raw)? {
                    Msg::Refused(r) => Err(ClientError::Refused(r)),
                    msg => Ok(msg),
                };
            }
            self.fill()?;
        }
    }

    /// Sends raw bytes.
    pub fn send_data(&mut self, port: u8, bytes: &[u8]) -> Result<(), ClientError> {
        self.session.seal_data(port, bytes, &mut self.out)?;
        self.push()
    }

    /// The next message among what was read already; what comes before it of streams is handed
    /// to `data`, with its port.
    pub fn take(&mut self, data: &mut dyn FnMut(u8, &[u8])) -> Result<Option<Msg>, ClientError> {
        loop {
            let Some(raw) = self.dec.take()? else { return Ok(None) };
            if let Some((port, bytes)) = self.session.open_data(&raw)? {
                data(port, bytes);
                continue;
            }
            return match self.session.open_msg(&raw)? {
                Msg::Refused(r) => Err(ClientError::Refused(r)),
                msg => Ok(Some(msg)),
            };
        }
    }

    /// Reads the server's proof, if it is still due.
    fn verify(&mut self) -> Result<(), ClientError> {
        if self.verified {
            return Ok(());
        }
        self.push()?;
        loop {
            if let Some(raw) = self.dec.take()? {
                shake::read_ok(&mut self.session, &raw)?;
                self.verified = true;
                self.dec.set_cap(MAX_FRAME);
                return Ok(());
            }
            self.fill()?;
        }
    }

    fn push(&mut self) -> Result<(), ClientError> {
        let out = std::mem::take(&mut self.out);
        let done = self.sock.write_all(&out);
        self.out = out;
        self.out.clear();
        done.or_else(|e| match e.kind() {
            // The server's last words may explain why it hung up.
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset if !self.verified => Ok(()),
            _ => Err(lost(&e)),
        })
    }

    /// Reads once, for [`Client::take`].
    pub fn fill(&mut self) -> Result<(), ClientError> {
        let n = read_some(&mut self.sock, &mut self.chunk)?;
        self.dec.push(&self.chunk[..n]);
        if n == self.chunk.len() && n < LONG_CHUNK {
            self.chunk.resize(LONG_CHUNK, 0);
            self.dec.set_keep(4 * LONG_CHUNK);
        }
        Ok(())
    }
}

pub(super) fn lost(e: &io::Error) -> ClientError {
    let words = crate::sys::words(e);
    match e.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => ClientError::Timeout(words),
        _ => ClientError::Lost(words),
    }
}

pub(super) fn read_some(sock: &mut impl Read, chunk: &mut [u8]) -> Result<usize, ClientError> {
    loop {
        match sock.read(chunk) {
            Ok(0) => return Err(ClientError::Lost("closed by the daemon".into())),
            Ok(n) => return Ok(n),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(lost(&e)),
        }
    }
}

impl Call<'_> {
    fn to(&self, name: &str) -> Result<Client, ClientError> {
        let mut sock = self.connect(name)?;
        let (mut dec, mut hello, version) = self.greeted(&mut sock, name)?;
        let way = prove::way(self.site, &hello)?;
        let mut out = Vec::with_capacity(4096);
        let (claims, session) = if way == Way::Setuid {
            // A connection of its own, from a port that only the helper may have.
            sock = privport::call(self.site, self.to_addr(name)?, self.from_addr(), &hello)?;
            (dec, hello, _) = self.greeted(&mut sock, name)?;
            // The helper has said who we are; here it only counts as the first frame.
            prove::prove(self.site, &hello, version, way, &mut Vec::new())?
        } else {
            prove::prove(self.site, &hello, version, way, &mut out)?
        };
        let (patience, server, verified) = (self.patience, hello.host, false);
        let (chunk, waits) = (vec![0u8; CHUNK], Some(patience.connect));
        Ok(Client {
            sock,
            session,
            dec,
            chunk,
            out,
            verified,
            patience,
            claims,
            server,
            processing: Notice::Processing.words(self.site),
            waits,
            kept_env: None,
        })
    }

    /// Reads what the server says first.
    fn greeted(
        &self,
        sock: &mut TcpStream,
        name: &str,
    ) -> Result<(Decoder, Hello, u16), ClientError> {
        let mut dec = Decoder::new(MAX_FRAME_EARLY);
        let mut chunk = [0u8; 4096];
        let (hello, version) = loop {
            if let Some(raw) = dec.take()? {
                break match shake::read_hello(&raw, self.daemon, name) {
                    Err(AuthError::WrongServer { daemon, host })
                        if daemon == self.daemon && self.same(name, &host) =>
                    {
                        shake::read_hello(&raw, self.daemon, &host)?
                    }
                    done => done?,
                };
            }
            let n = read_some(sock, &mut chunk)?;
            dec.push(&chunk[..n]);
        };
        Ok((dec, hello, version))
    }

    /// Whether two spellings are one host of the cluster: reads lsf.cluster, so only where they
    /// differ.
    fn same(&self, name: &str, host: &str) -> bool {
        let files = crate::sys::files::RealFiles;
        let (base, _) = load::load_base_lenient(&files, &self.site.envdir, Some(&self.site.host));
        base.is_some_and(|b| b.hosts.canonical(name) == Some(host))
    }

    fn to_addr(&self, name: &str) -> Result<SocketAddr, ClientError> {
        let port = crate::daemon::shell::Ports::of(&self.site.lsf).port(self.daemon);
        let addr = match self.table.addr_of(name) {
            Some(addr) => Some(addr),
            None => crate::sys::site::resolve(name).first().copied(),
        };
        let addr = addr.ok_or_else(|| match self.daemon {
            // the one host that was named
            Daemon::Res => ClientError::Conf("Bad host name".to_owned()),
            _ => ClientError::Down(format!("{name}: unknown host")),
        })?;
        Ok(SocketAddr::new(addr, port))
    }

    /// The address to leave from, where it has to be this host's own.
    fn from_addr(&self) -> Option<std::net::IpAddr> {
        self.table.addr_of(&self.site.host).filter(|_| self.site.shared_machine)
    }

    fn connect(&self, name: &str) -> Result<TcpStream, ClientError> {
        let to = self.to_addr(name)?;
        let down = |e: io::Error| {
            let words = format!("{name} ({to}): {}", crate::sys::words(&e));
            match e.kind() {
                ErrorKind::TimedOut | ErrorKind::WouldBlock => ClientError::Timeout(words),
                _ => ClientError::Down(words),
            }
        };
        self.open(self.from_addr(), to).map_err(down)
    }

    fn open(&self, own: Option<std::net::IpAddr>, to: SocketAddr) -> io::Result<TcpStream> {
        let fd: OwnedFd = sock::tcp_from(own, to, false)?;
        // Linux holds connect(2) to the send timeout.
        set_socket_timeout(&fd, Timeout::Send, Some(self.patience.connect))?;
        set_socket_timeout(&fd, Timeout::Recv, Some(self.patience.connect))?;
        match rustix::net::connect(&fd, &to) {
            Ok(()) => Ok(TcpStream::from(fd)),
            Err(rustix::io::Errno::INPROGRESS) => Err(ErrorKind::TimedOut.into()),
            Err(e) => Err(e.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Site {
        let lsf = crate::conf::LsfConf::default();
        Site { envdir: "/conf".into(), lsf, host: "hosta".into(), shared_machine: false }
    }

    #[test]
    fn a_site_has_its_own_words() {
        let mut site = site();
        let said = |site: &Site, error: fn(String) -> ClientError| {
            let (once, mut out) = (Patience::of(site).once(), Vec::new());
            let fail = |_: &mut dyn Write| -> Result<(), ClientError> { Err(error(String::new())) };
            persist(once, site, &mut out, fail).unwrap_err();
            String::from_utf8(out).unwrap()
        };
        let both = |site: &Site| (said(site, ClientError::Down), said(site, ClientError::Timeout));
        assert_eq!(both(&site), (format!("{DOWN}\n"), format!("{UNREACHED}\n")));
        site.lsf.set("LSB_MBD_DOWN_MSG", "Back at noon.");
        site.lsf.set("LSB_MBD_CONNECT_FAIL_MSG", "Is the network up?");
        site.lsf.set("LSB_MBD_BUSY_MSG", "Patience.");
        assert_eq!(both(&site), ("Back at noon.\n".into(), "Is the network up?\n".into()));
        assert_eq!(Notice::Processing.words(&site), "Patience.");
    }

    /// How often it is tried with these errors, one after the other and then again.
    fn tries(patience: u32, errors: &[fn() -> ClientError]) -> (u32, ClientError) {
        let times = Duration::from_secs(1);
        let patience = Patience { connect: times, answer: times, tries: Some(patience) };
        let mut n = 0;
        let got = persist(patience, &site(), &mut io::sink(), |_| -> Result<(), ClientError> {
            n += 1;
            Err(errors[(n as usize - 1) % errors.len()]())
        });
        (n, got.unwrap_err())
    }

    #[test]
    fn who_hangs_up_each_time_is_not_asked_for_ever() {
        let lost: fn() -> ClientError = || ClientError::Lost(String::new());
        let down: fn() -> ClientError = || ClientError::Down(String::new());
        let (n, error) = tries(1000, &[lost]);
        assert_eq!((n, matches!(error, ClientError::Lost(_))), (LOST_IN_A_ROW, true));
        // one that restarts again and again is another matter
        assert_eq!(tries(100, &[lost, lost, down]).0, 100);
        assert_eq!(tries(3, &[lost]).0, 3);
    }
}

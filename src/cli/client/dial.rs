//! Making a connection: which hosts are tried in which order, from which address, and the proofs
//! of both sides. One try each; who tries again is patience.rs.

use super::error::{ClientError, WaitNotice};
use super::patience::Patience;
use super::talk::{CHUNK, Client, read_some};
use crate::auth::shake::{self, AuthError, Hello};
use crate::auth::{HostLookup, Way};
use crate::cli::site::LocalSite;
use crate::cli::{privport, prove};
use crate::conf::{HostTable, load};
use crate::net::sock;
use crate::proto::frame::{Decoder, MAX_FRAME_EARLY};
use crate::proto::lim::LimMsg;
use crate::proto::{Daemon, Msg};
use rustix::io::retry_on_intr;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Longest wait for the first candidate before the LIMs are asked who is master.
const FIRST_TRY: Duration = Duration::from_secs(2);

impl Client {
    /// Connects to the first candidate that answers and authenticates with it.
    pub fn dial(
        site: &LocalSite,
        daemon: Daemon,
        patience: Patience,
    ) -> Result<Client, ClientError> {
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
}

/// The master, as the nearest LIM tells it; `None` where none can.
fn master_of(site: &LocalSite) -> Option<String> {
    let patience = Patience::base(site);
    let patience = Patience { connect: patience.connect.min(FIRST_TRY), ..patience };
    let mut lim = Client::dial(site, Daemon::Lim, patience).ok()?;
    match lim.call(&Msg::Lim(LimMsg::WhoIsMaster), &mut io::sink()) {
        Ok(Msg::Lim(LimMsg::Master { master, .. })) if !master.is_empty() => Some(master),
        _ => None,
    }
}

/// The hosts to try, in order, and the table of their addresses.
pub(super) fn candidates(
    site: &LocalSite,
    daemon: Daemon,
) -> Result<(Vec<String>, HostTable), ClientError> {
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

/// One candidate, ready to be called.
pub(super) struct Call<'a> {
    pub(super) site: &'a LocalSite,
    pub(super) daemon: Daemon,
    pub(super) patience: Patience,
    pub(super) table: &'a HostTable,
}

impl Call<'_> {
    /// Calls the host. Where that fails because this host is none of the cluster's, it says so:
    /// nothing that is waited for would help.
    pub(super) fn to(&self, name: &str) -> Result<Client, ClientError> {
        self.proved(name).map_err(|e| match &e {
            ClientError::Down(_) | ClientError::Auth(AuthError::Denied { .. }) => {
                self.outside().unwrap_or(e)
            }
            _ => e,
        })
    }

    /// The words where lsf.cluster does not name this host, and none may join by itself.
    fn outside(&self) -> Option<ClientError> {
        let files = crate::sys::files::RealFiles;
        let host = &self.site.host;
        let (base, _) = load::load_base_lenient(&files, &self.site.envdir, Some(host));
        let base = base.filter(|b| b.hosts.canonical(host).is_none() && b.hostcache().is_none())?;
        let (host, cluster) = (host.escape_debug(), base.name.escape_debug());
        let text = format!("host <{host}> is not in cluster <{cluster}> (lsf.cluster.{cluster})");
        Some(ClientError::Conf(text))
    }

    /// Calls by the first of the ways open to both sides that can be had: with the last one the
    /// server's word comes with its first answer, of the others it is waited for.
    fn proved(&self, name: &str) -> Result<Client, ClientError> {
        let mut sock = self.connect(name)?;
        let mut greeting = self.greeted(&mut sock, name)?;
        let ways = prove::ways(self.site, &greeting.1)?;
        let last = ways.len() - 1;
        for (n, way) in ways.into_iter().enumerate() {
            let called = self.by(way, name, sock, greeting).and_then(|mut client| {
                if n < last {
                    client.verify()?;
                }
                Ok(client)
            });
            match called {
                Err(e) if n < last && e.unproved() => {}
                done => return done,
            }
            sock = self.connect(name)?;
            greeting = self.greeted(&mut sock, name)?;
        }
        Err(ClientError::Unexpected)
    }

    /// Proves in one way who is calling, over a connection on which the server has said its first
    /// words.
    fn by(
        &self,
        way: Way,
        name: &str,
        mut sock: TcpStream,
        (mut dec, mut hello, version): (Decoder, Hello, u16),
    ) -> Result<Client, ClientError> {
        let mut out = Vec::with_capacity(4096);
        let (claims, session) = if way == Way::Setuid {
            // A connection of its own, from a port that only the helper may have.
            sock = privport::call(self.site, self.to_addr(name)?, self.source_addr(), &hello)?;
            (dec, hello, _) = self.greeted(&mut sock, name).map_err(|e| match e {
                ClientError::Lost(why) => ClientError::Auth(AuthError::Unproved { way, why }),
                e => e,
            })?;
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
            processing: WaitNotice::Processing.words(self.site),
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
    fn source_addr(&self) -> Option<std::net::IpAddr> {
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
        self.open(self.source_addr(), to).map_err(down)
    }

    fn open(&self, own: Option<std::net::IpAddr>, to: SocketAddr) -> io::Result<TcpStream> {
        let fd: OwnedFd = sock::tcp_from(own, to, false)?;
        // Linux holds connect(2) to the send timeout.
        set_socket_timeout(&fd, Timeout::Send, Some(self.patience.connect))?;
        set_socket_timeout(&fd, Timeout::Recv, Some(self.patience.connect))?;
        match retry_on_intr(|| rustix::net::connect(&fd, &to)) {
            Ok(()) => Ok(TcpStream::from(fd)),
            Err(rustix::io::Errno::INPROGRESS) => Err(ErrorKind::TimedOut.into()),
            Err(e) => Err(e.into()),
        }
    }
}

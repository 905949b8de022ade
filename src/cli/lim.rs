//! Asking LIM: which cluster, which master, which hosts with which load.
//!
//! A command asks the LIM it reaches first (this host's where there is one) who is master, and the
//! master for the rest. Failures are told in LSF's words.

use super::client::{self, Client, ClientError};
use super::personal::stopped;
use super::site::{self, LocalSite};
use crate::conf::{BaseConf, Shared, load};
use crate::model::reason::err;
use crate::proto::Msg;
use crate::proto::lim::{HostLoad, LimMsg, SharedRow};
use crate::sys::files::RealFiles;
use std::io;

/// The LIM asked first does not answer.
pub const LIM_DOWN: &str = "LIM is down; try later";
/// The master's LIM does not answer.
pub const MASTER_LIM_DOWN: &str = "Master LIM is down; try later";
/// No LIM knows the master.
pub const NO_MASTER: &str = "Cannot locate master LIM now, try later";
/// The master does not know a host.
pub const BAD_HOST: &str = "Bad host name";

/// The name is neither a host nor a host model.
pub const BAD_SPEC: &str = "Bad host specification";

/// The cluster as its LIM tells it.
pub struct Cluster {
    site: LocalSite,
    lim: Client,
    name: String,
    master: String,
}

impl Cluster {
    /// Asks the nearest LIM of this process's cluster.
    pub fn open() -> Result<Cluster, String> {
        Cluster::of(site::find().map_err(|e| e.to_string())?)
    }

    /// Asks the nearest LIM of this cluster.
    pub fn of(site: LocalSite) -> Result<Cluster, String> {
        let down = |e: ClientError| stopped(&site).unwrap_or_else(|| words(&e, LIM_DOWN));
        let mut lim = client::lim(&site).map_err(down)?;
        match ask(&mut lim, LimMsg::WhoIsMaster, LIM_DOWN)? {
            LimMsg::Master { cluster, master } => Ok(Cluster { site, lim, name: cluster, master }),
            _ => Err(ClientError::Unexpected.words()),
        }
    }

    /// The cluster's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A parameter of commands, see [`site::param`].
    pub fn param(&self, name: &str) -> Option<String> {
        site::param(Some(&self.site), name)
    }

    /// This host.
    pub fn local_host(&self) -> &str {
        self.lim.local_host()
    }

    /// The master host.
    pub fn master(&self) -> Result<&str, String> {
        if self.master.is_empty() { Err(NO_MASTER.to_owned()) } else { Ok(&self.master) }
    }

    /// Asks for these hosts, or for all; an unknown one is an error that names it.
    pub fn hosts(&mut self, names: &[String]) -> Result<Vec<HostLoad>, String> {
        match self.ask_master(LimMsg::Hosts { hosts: names.to_vec() })? {
            LimMsg::Loads { hosts } => Ok(hosts),
            _ => Err(MASTER_LIM_DOWN.to_owned()),
        }
    }

    /// Asks for hosts like [`Cluster::hosts`]; the cluster's own name stands for all of them.
    pub fn named(&mut self, names: &[String]) -> Result<Vec<HostLoad>, String> {
        let all = names == [self.name.clone()];
        self.hosts(if all { &[] } else { names })
    }

    /// The shared resources.
    pub fn shared_rows(&mut self) -> Result<Vec<SharedRow>, String> {
        match self.ask_master(LimMsg::Shared)? {
            LimMsg::SharedRows { rows } => Ok(rows),
            _ => Err(MASTER_LIM_DOWN.to_owned()),
        }
    }

    /// Reports to the master that tasks are on their way to these hosts.
    pub fn adjust(&mut self, hosts: Vec<(String, u32)>) -> Result<(), String> {
        self.ask_master(LimMsg::Adjust { hosts }).map(|_| ())
    }

    /// Has the master lock a host, or end that.
    pub fn lock(&mut self, host: &str, on: bool) -> Result<(), String> {
        self.ask_master(LimMsg::Lock { host: host.to_owned(), on, secs: 0 }).map(|_| ())
    }

    /// lsf.shared, for the names of resources.
    pub fn shared(&self) -> Shared {
        self.base().shared
    }

    /// The lsf.* files as they are here.
    pub fn base(&self) -> BaseConf {
        let host = Some(self.site.host.as_str());
        load::load_base_lenient(&RealFiles, &self.site.envdir, host).0.unwrap_or_default()
    }

    fn ask_master(&mut self, msg: LimMsg) -> Result<LimMsg, String> {
        let master = self.master()?.to_owned();
        if self.lim.server() != master {
            let found = client::lim_of(&self.site, &master);
            self.lim = found.map_err(|e| words(&e, MASTER_LIM_DOWN))?;
        }
        ask(&mut self.lim, msg, MASTER_LIM_DOWN)
    }
}

/// The CPU factor that -N names: a number, or that of a host or of a host model.
pub fn cpu_factor(spec: &str) -> Result<f64, String> {
    let good = |f: &f64| *f > 0.0 && f.is_finite();
    if let Ok(factor) = spec.parse() {
        return Some(factor).filter(good).ok_or(format!("{spec}: {BAD_SPEC}"));
    }
    let mut cluster = Cluster::open()?;
    let models = cluster.shared().models;
    if let Some(model) = models.iter().find(|m| m.name == spec) {
        return Ok(model.cpu_factor);
    }
    let host = cluster.hosts(&[spec.to_owned()]).ok().and_then(|mut h| h.pop());
    let factor = host.and_then(|h| h.facts).map(|f| f.cpu_factor);
    factor.filter(good).ok_or(format!("{spec}: {BAD_SPEC}"))
}

fn ask(lim: &mut Client, msg: LimMsg, down: &str) -> Result<LimMsg, String> {
    match lim.call(&Msg::Lim(msg), &mut io::sink()) {
        Ok(Msg::Lim(answer)) => Ok(answer),
        Ok(_) => Err(ClientError::Unexpected.words()),
        Err(e) => Err(words(&e, down)),
    }
}

fn words(e: &ClientError, down: &str) -> String {
    match e {
        ClientError::Down(_) | ClientError::Timeout(_) | ClientError::Lost(_) => down.to_owned(),
        ClientError::Refused(r) if r.code == err::BAD_HOST => format!("{}: {BAD_HOST}", r.about),
        other => other.words(),
    }
}

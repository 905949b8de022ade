//! A command's side of the load balancer: which servers there are, and what they are asked.

use super::client::{self, Client, ClientError};
use super::site::{self, LocalSite};
use crate::conf::diag::Diags;
use crate::conf::load;
use crate::conf::nlb_map::NameMaps;
use crate::conf::nqeinfo;
use crate::model::nlb::NlbAddress;
use crate::proto::Msg;
use crate::proto::nlb::{MAX_TEXT, NlbMsg, NlbOutcome, NlbQuery, NlbRanking};
use crate::sys::files::RealFiles;
use std::io;
use std::sync::Arc;

/// The words where no server is configured.
const NO_SERVER: &str =
    "no NLB server is known: NLB_SERVER is neither in nqeinfo nor in the environment";

/// The servers of a site, in the order in which they are asked.
pub struct NlbServers {
    site: LocalSite,
    list: Vec<NlbAddress>,
}

/// A connection to a server.
pub struct NlbLink {
    client: Client,
}

impl NlbServers {
    /// The servers of `-s`, else of the environment, else of nqeinfo.
    ///
    /// # Errors
    /// The words for the user.
    pub fn find(option: Option<&str>) -> Result<NlbServers, String> {
        let site = site::find().map_err(|e| e.to_string())?;
        let own = std::env::var("NLB_SERVER").ok().filter(|v| !v.trim().is_empty());
        let list = match option.map(str::to_owned).or(own) {
            Some(words) => words
                .split_whitespace()
                .map(|word| nqeinfo::address(&RealFiles, word, &site.lsf))
                .collect::<Result<Vec<_>, _>>()?,
            None => of_file(&site)?,
        };
        if list.is_empty() {
            return Err(NO_SERVER.to_owned());
        }
        Ok(NlbServers { site, list })
    }

    /// All servers.
    pub fn list(&self) -> &[NlbAddress] {
        &self.list
    }

    /// A connection to one server; one try.
    ///
    /// # Errors
    /// As [`client::nlb_of`].
    pub fn connect(&self, to: &NlbAddress) -> Result<NlbLink, ClientError> {
        let mut site = self.site.clone();
        site.lsf.set("LSF_NLB_PORT", &to.port.to_string());
        client::nlb_of(&site, &to.host).map(|client| NlbLink { client })
    }

    /// A connection to the first server that answers.
    ///
    /// # Errors
    /// The words for the user, which name each server and why it does not answer.
    pub fn first(&self) -> Result<NlbLink, String> {
        let mut why = Vec::new();
        for to in &self.list {
            match self.connect(to) {
                Ok(link) => return Ok(link),
                Err(
                    e @ (ClientError::Down(_) | ClientError::Timeout(_) | ClientError::Lost(_)),
                ) => {
                    why.push(format!("{}:{} ({})", to.host, to.port, cause(&e)));
                }
                Err(e) => return Err(e.words()),
            }
        }
        Err(format!("no NLB server answers at {}", why.join(", ")))
    }
}

/// The cause of a failure without the address, which the caller names.
pub fn cause(e: &ClientError) -> String {
    match e {
        ClientError::Down(why) | ClientError::Timeout(why) => {
            why.rsplit(": ").next().unwrap_or(why).to_owned()
        }
        e => e.words(),
    }
}

/// The servers of nqeinfo.
fn of_file(site: &LocalSite) -> Result<Vec<NlbAddress>, String> {
    let own = std::env::var("NQEINFOFILE").ok().filter(|v| !v.is_empty());
    let places: Vec<String> = own.into_iter().chain(nqeinfo::places(&site.lsf)).collect();
    let (base, _) = load::load_base_lenient(&RealFiles, &site.envdir, Some(&site.host));
    let cluster = base.map(|b| b.name).unwrap_or_default();
    let mut diags = Diags::new();
    let info = nqeinfo::read(&RealFiles, &places, &site.lsf, &cluster, &site.host, &mut diags);
    let faults = diags.list().iter().filter(|d| d.severity == crate::conf::Severity::Error);
    match info {
        Some(info) if !info.servers.is_empty() => Ok(info.servers),
        _ => match faults.map(ToString::to_string).next() {
            Some(fault) => Err(fault),
            None => Ok(Vec::new()),
        },
    }
}

impl NlbLink {
    /// The host of the server.
    pub fn server(&self) -> &str {
        self.client.server()
    }

    fn ask(&mut self, msg: NlbMsg) -> Result<NlbMsg, ClientError> {
        self.client.send(&Msg::Nlb(msg))?;
        self.next()
    }

    fn next(&mut self) -> Result<NlbMsg, ClientError> {
        match self.client.answer(&mut io::sink())? {
            Msg::Nlb(msg) => Ok(msg),
            _ => Err(ClientError::Unexpected),
        }
    }

    /// Asks for a text.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn text(&mut self, msg: NlbMsg) -> Result<String, ClientError> {
        let first = self.ask(msg)?;
        self.rest_of_text(first)
    }

    fn rest_of_text(&mut self, mut msg: NlbMsg) -> Result<String, ClientError> {
        let mut all = String::new();
        loop {
            let NlbMsg::Text { text, more } = msg else { return Err(ClientError::Unexpected) };
            all.push_str(&text);
            if !more {
                return Ok(all);
            }
            msg = self.next()?;
        }
    }

    /// Asks for a change or a check.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn outcome(&mut self, msg: NlbMsg) -> Result<NlbOutcome, ClientError> {
        match self.ask(msg)? {
            NlbMsg::Outcome(outcome) => Ok(outcome),
            _ => Err(ClientError::Unexpected),
        }
    }

    /// Asks which hosts are best: the answer as a whole, and the text of the objects where these
    /// were asked for.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn query(&mut self, query: NlbQuery) -> Result<(NlbRanking, String), ClientError> {
        let objects = query.objects;
        let mut msg = self.ask(NlbMsg::Query(query))?;
        let mut all: Option<NlbRanking> = None;
        loop {
            let NlbMsg::Ranked(piece) = msg else {
                let Some(ranking) = all.filter(|_| objects) else {
                    return Err(ClientError::Unexpected);
                };
                return Ok((ranking, self.rest_of_text(msg)?));
            };
            let more = piece.more;
            match &mut all {
                Some(all) => all.rows.extend(piece.rows),
                None => all = Some(piece),
            }
            if !more {
                let ranking = all.ok_or(ClientError::Unexpected)?;
                return Ok((ranking, String::new()));
            }
            msg = self.next()?;
        }
    }

    /// The name map of a type.
    ///
    /// # Errors
    /// The words for the user.
    pub fn maps(&mut self, object_type: &str) -> Result<NameMaps, String> {
        let asked = NlbMsg::Map { object_type: object_type.to_owned() };
        let text = self.text(asked).map_err(|e| e.words())?;
        let mut diags = Diags::new();
        let maps = NameMaps::default().put(&Arc::from("name_map"), text.as_bytes(), &mut diags);
        maps.ok_or_else(|| ClientError::Unexpected.words())
    }
}

/// The text of a file that is sent to a server; `-` is standard input.
///
/// # Errors
/// The words for the user.
pub fn file_text(path: &str) -> Result<String, String> {
    use std::io::Read;
    let told = |e: &io::Error| format!("{path}: {}", crate::sys::words(e));
    let mut bytes = Vec::new();
    let most = MAX_TEXT as u64 + 1;
    let read = match path {
        "-" => io::stdin().lock().take(most).read_to_end(&mut bytes),
        path => std::fs::File::open(path).and_then(|f| f.take(most).read_to_end(&mut bytes)),
    };
    read.map_err(|e| told(&e))?;
    if bytes.len() > MAX_TEXT {
        return Err(format!("{path}: larger than {} MB", MAX_TEXT >> 20));
    }
    String::from_utf8(bytes).map_err(|e| {
        let good = e.as_bytes().get(..e.utf8_error().valid_up_to()).unwrap_or_default();
        let text = String::from_utf8_lossy(good);
        let line = text.matches('\n').count() + 1;
        let col = text.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("{path}:{line}:{col}: not UTF-8")
    })
}

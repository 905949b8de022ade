//! nqeinfo, the site's configuration of NQE: where the load balancer's servers run and keep their
//! files. See nqeinfo(5).

use super::diag::Diags;
use super::files::Files;
use super::lexer::{read_flat, shown};
use super::names::tables::NQEINFO;
use super::section::param;
use super::types::{LsfConf, RawParam};
use crate::model::nlb::NlbAddress;
use std::collections::BTreeMap;

/// Most servers that NLB_SERVER names.
pub const MAX_SERVERS: usize = 16;
/// Most custom collectors.
pub const MAX_COLLECTORS: usize = 32;
/// Most words of a custom collector, its name included.
const MAX_WORDS: usize = 64;
/// The name of the service whose port is LSF_NLB_PORT where /etc/services lacks it.
const SERVICE: &str = "nlb";
/// Longest value once its variables are replaced, bytes.
const MAX_VALUE: usize = 8_192;

/// The parameters that act.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NqeInfo {
    /// NLB_SERVER, in order.
    pub servers: Vec<NlbAddress>,
    /// NLB_SERVER_DIR.
    pub server_dir: String,
    /// NQE_ETC.
    pub etc: String,
    /// NQE_SPOOL.
    pub spool: String,
    /// NLB_QUEUE; empty: none.
    pub queue: String,
    /// NQE_DEFAULT_COMPLIST has NLB.
    pub runs_nlb: bool,
    /// NQE_DEFAULT_COMPLIST has COLLECTOR.
    pub runs_collector: bool,
    /// NLB_CCOLLECT_OPTIONS.
    pub collector_options: Vec<String>,
    /// NQE_BIN, where relative names of custom collectors start.
    pub bin: String,
    /// NQE_CUSTOM_COLLECTOR_LIST: programs with their words.
    pub collectors: Vec<Vec<String>>,
}

/// The files where nqeinfo is looked for by daemons, in order.
pub fn places(lsf: &LsfConf) -> [String; 2] {
    [format!("{}/nqeinfo", lsf.envdir), "/etc/nqeinfo".to_owned()]
}

/// Reads the first of `paths` that is there, for host `host` of cluster `cluster`. `None`: there is
/// none of them.
pub fn read(
    files: &dyn Files,
    paths: &[String],
    lsf: &LsfConf,
    cluster: &str,
    host: &str,
    diags: &mut Diags,
) -> Option<NqeInfo> {
    let path = paths.iter().find(|p| files.exists(p))?;
    let values = values(files, path, diags)?;
    let get = |name: &str| values.get(name).map(|v| v.text.as_str()).filter(|v| !v.is_empty());
    let shared = lsf.sharedir().unwrap_or("/var/lsf");
    let spool = get("NQE_SPOOL").map_or(format!("{shared}/{cluster}/nqe"), str::to_owned);
    let dir = get("NLB_SERVER_DIR").map_or(format!("{spool}/nlbdir"), str::to_owned);
    let components = get("NQE_DEFAULT_COMPLIST").unwrap_or("NQS,NLB");
    let words = components.split(|c: char| c == ',' || c.is_whitespace());
    let components: Vec<&str> = words.collect();
    let runs = |upper, lower| components.iter().any(|w| *w == upper || *w == lower);
    let servers = values.get("NLB_SERVER").map(|v| addresses(files, v, lsf, diags));
    let list = values.get("NQE_CUSTOM_COLLECTOR_LIST");
    let collectors = list.and_then(|v| match collectors(&v.text) {
        Ok(list) => Some(list),
        Err(words) => {
            diags.error(&v.pos, format!("NQE_CUSTOM_COLLECTOR_LIST: {words}"));
            None
        }
    });
    let options = get("NLB_CCOLLECT_OPTIONS").unwrap_or_default().split_whitespace();
    Some(NqeInfo {
        servers: servers.unwrap_or_default(),
        server_dir: dir.replace("%H", host),
        etc: get("NQE_ETC").map_or(format!("{}/nqe", lsf.confdir()), str::to_owned),
        queue: get("NLB_QUEUE").unwrap_or_default().to_owned(),
        runs_nlb: runs("NLB", "nlb"),
        runs_collector: runs("COLLECTOR", "collector"),
        collector_options: options.map(str::to_owned).collect(),
        bin: get("NQE_BIN").or(lsf.bindir()).unwrap_or("/").to_owned(),
        collectors: collectors.unwrap_or_default(),
        spool,
    })
}

/// The values by name, each with the variables above it replaced.
fn values(files: &dyn Files, path: &str, diags: &mut Diags) -> Option<BTreeMap<String, RawParam>> {
    let mut values: BTreeMap<String, RawParam> = BTreeMap::new();
    for line in read_flat(files, path, diags)? {
        let Some((name, mut value)) = param(&line, diags) else { continue };
        for quote in ['"', '\''] {
            let inner = value.text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote));
            if let Some(inner) = inner {
                value.text = inner.trim().to_owned();
                break;
            }
        }
        value.text = expand(&value.text, &values);
        if value.text.len() > MAX_VALUE {
            let words = format!("the value of {} is longer than {MAX_VALUE} bytes", name.text);
            diags.error(&value.pos, words);
            continue;
        }
        match NQEINFO.find(&name.text) {
            Some(known) if known.acted => {}
            Some(_) => diags.not_acted_on(&name.pos, &name.text),
            None => diags.notice(&name.pos, format!("<{}> means nothing here", shown(&name.text))),
        }
        values.insert(name.text, value);
    }
    Some(values)
}

/// `$NAME` and `${NAME}` of names that are defined are replaced; others stay.
fn expand(text: &str, values: &BTreeMap<String, RawParam>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('$') {
        out.push_str(before);
        let inner = behind.strip_prefix('{').and_then(|b| b.split_once('}'));
        let plain = behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (name, after) = inner.unwrap_or_else(|| behind.split_at(plain.unwrap_or(behind.len())));
        match values.get(name) {
            Some(value) => {
                out.push_str(&value.text);
                rest = after;
            }
            None => {
                out.push('$');
                rest = behind;
            }
        }
        if out.len() > MAX_VALUE {
            return out;
        }
    }
    out.push_str(rest);
    out
}

/// The servers of a value `host[:port] ...`.
fn addresses(
    files: &dyn Files,
    value: &RawParam,
    lsf: &LsfConf,
    diags: &mut Diags,
) -> Vec<NlbAddress> {
    let mut all = Vec::new();
    for word in value.text.split_whitespace() {
        match address(files, word, lsf) {
            Ok(address) if all.len() < MAX_SERVERS => all.push(address),
            Ok(_) => {
                let words = format!("NLB_SERVER names more than {MAX_SERVERS} servers");
                diags.error(&value.pos, words);
                break;
            }
            Err(words) => diags.error(&value.pos, format!("NLB_SERVER: {words}")),
        }
    }
    all
}

/// The programs of a value `prog1, arg1, arg2: prog2: prog3, arg1`.
///
/// # Errors
/// Words for more than [`MAX_COLLECTORS`] programs or [`MAX_WORDS`] words of one.
pub fn collectors(text: &str) -> Result<Vec<Vec<String>>, String> {
    let words = |entry: &str| entry.split(',').map(|w| w.trim().to_owned()).collect();
    let entries = text.split(':').map(str::trim).filter(|e| !e.is_empty());
    let all: Vec<Vec<String>> = entries.map(words).collect();
    if all.len() > MAX_COLLECTORS {
        return Err(format!("more than {MAX_COLLECTORS} programs"));
    }
    for words in &all {
        let name = words.first().filter(|name| !name.is_empty());
        let name = name.ok_or("a comma stands where a program is wanted")?;
        if words.len() > MAX_WORDS {
            return Err(format!("<{}> has more than {MAX_WORDS} words", shown(name)));
        }
    }
    Ok(all)
}

/// One server `host[:port]`; the port is a number or a name of /etc/services.
///
/// # Errors
/// The word with the fault.
pub fn address(files: &dyn Files, word: &str, lsf: &LsfConf) -> Result<NlbAddress, String> {
    let (host, port) = word.split_once(':').unwrap_or((word, SERVICE));
    if host.is_empty() {
        return Err(format!("<{}> names no host", shown(word)));
    }
    let number = port.parse::<u16>().ok().filter(|n| *n != 0);
    let port = number.or_else(|| service(files, port));
    let port = port.or((word == host || word.ends_with(":nlb")).then(|| lsf.nlb_port()));
    match port {
        Some(port) => Ok(NlbAddress { host: host.to_owned(), port }),
        None => Err(format!("<{}> names no port", shown(word))),
    }
}

/// The TCP port of a service by /etc/services.
fn service(files: &dyn Files, name: &str) -> Option<u16> {
    let bytes = files.read("/etc/services").ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().find_map(|line| {
        let mut words = line.split('#').next()?.split_whitespace();
        let (first, port) = (words.next()?, words.next()?);
        let named = first == name || words.any(|alias| alias == name);
        port.strip_suffix("/tcp").filter(|_| named)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::lsf_conf;
    use crate::conf::testing::MapFiles;

    fn info(text: &str) -> (NqeInfo, Vec<String>) {
        let mut files = MapFiles::one("/e/lsf.conf", "LSB_SHAREDIR=/w\nLSF_CONFDIR=/c\n");
        files.put("/e/nqeinfo", text);
        files.put("/etc/services", "ssh 22/tcp\nnlb 604/udp\nnlbx  1604/tcp  other # nlb\n");
        let lsf = lsf_conf::parse(&files, "/e", &mut Diags::new()).unwrap();
        let mut diags = Diags::new();
        let found = read(&files, &places(&lsf), &lsf, "c1", "hosta", &mut diags).unwrap();
        (found, diags.list().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn names_that_are_not_set_have_their_defaults() {
        let (found, said) = info("");
        assert_eq!(said, Vec::<String>::new());
        let defaults = NqeInfo {
            servers: Vec::new(),
            server_dir: "/w/c1/nqe/nlbdir".into(),
            etc: "/c/nqe".into(),
            spool: "/w/c1/nqe".into(),
            queue: String::new(),
            runs_nlb: true,
            runs_collector: false,
            collector_options: Vec::new(),
            bin: "/".into(),
            collectors: Vec::new(),
        };
        assert_eq!(found, defaults);
    }

    #[test]
    fn variables_above_are_replaced_and_servers_have_ports() {
        let (found, said) = info(
            "NQE_SPOOL=/var/spool/nqe\n# c\nNLB_SERVER_DIR=\"${NQE_SPOOL}/nlb.%H\"\n\
             NQE_ETC=$NQE_SPOOL/$ETC\nNLB_SERVER=\"cool cool2:nlb hot:7000 gust:other\"\n\
             NLB_QUEUE = normal\nNQE_DEFAULT_COMPLIST=nqs,collector\nNQE_GUI_X=1\n\
             NQS_SERVER=cool\n",
        );
        assert_eq!(found.server_dir, "/var/spool/nqe/nlb.hosta");
        assert_eq!(found.etc, "/var/spool/nqe/$ETC");
        let servers: Vec<_> = found.servers.iter().map(|s| (s.host.as_str(), s.port)).collect();
        assert_eq!(servers, [("cool", 6883), ("cool2", 6883), ("hot", 7000), ("gust", 1604)]);
        assert_eq!((found.queue.as_str(), found.runs_nlb), ("normal", false));
        assert_eq!(
            said,
            [
                "/e/nqeinfo:8:1: <NQE_GUI_X> means nothing here",
                "/e/nqeinfo:9:1: NQS_SERVER is known and not acted on",
            ]
        );
    }

    #[test]
    fn collectors_are_programs_by_colons_with_words_by_commas() {
        let (found, said) = info(
            "NQE_BIN=/opt/bin\n\
             NQE_CUSTOM_COLLECTOR_LIST=\"prog1, arg1, arg2: prog2: /p/prog3,arg1\"\n\
             NLB_CCOLLECT_OPTIONS=\"-r 600 -d /scratch\"\nNQE_DEFAULT_COMPLIST=NLB,COLLECTOR\n",
        );
        assert_eq!(said, Vec::<String>::new());
        let programs: Vec<String> = found.collectors.iter().map(|p| p.join("|")).collect();
        assert_eq!(programs, ["prog1|arg1|arg2", "prog2", "/p/prog3|arg1"]);
        assert_eq!(found.collector_options.join(" "), "-r 600 -d /scratch");
        assert_eq!(
            (found.bin.as_str(), found.runs_collector, found.runs_nlb),
            ("/opt/bin", true, true)
        );
        let list = |value: &str| info(&format!("NQE_CUSTOM_COLLECTOR_LIST={value}")).1.join("");
        let place = "/e/nqeinfo:1:27: NQE_CUSTOM_COLLECTOR_LIST: ";
        assert_eq!(list(", a"), format!("{place}a comma stands where a program is wanted"));
        assert_eq!(list(&"a:".repeat(33)), format!("{place}more than 32 programs"));
        let long = format!("p{}", ",x".repeat(64));
        assert_eq!(list(&long), format!("{place}<p> has more than 64 words"));
    }

    #[test]
    fn servers_without_a_host_or_port_are_told_with_their_place() {
        let (found, said) = info("NLB_SERVER=:7 cool:nosuch hot:70000 gust");
        assert_eq!(found.servers.len(), 1);
        assert_eq!(
            said,
            [
                "/e/nqeinfo:1:12: NLB_SERVER: <:7> names no host",
                "/e/nqeinfo:1:12: NLB_SERVER: <cool:nosuch> names no port",
                "/e/nqeinfo:1:12: NLB_SERVER: <hot:70000> names no port",
            ]
        );
        let many = "h ".repeat(17);
        let (found, said) = info(&format!("NLB_SERVER={many}"));
        assert_eq!(found.servers.len(), 16);
        assert_eq!(said, ["/e/nqeinfo:1:12: NLB_SERVER names more than 16 servers"]);
    }
}

//! ccollect: the collector of the NQE load balancer on this host. See ccollect(8).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::nlb::NlbServers;
use lsf::cli::site::{self, LocalSite};
use lsf::conf::load::load_base_lenient;
use lsf::conf::nlb_map::NameMaps;
use lsf::conf::nqeinfo::{self, NqeInfo};
use lsf::conf::{BaseConf, LsfConf, nqs};
use lsf::daemon::boot::Boot;
use lsf::daemon::ccollect::{self, CollectSettings};
use lsf::errln;
use lsf::model::nlb::NlbAddress;
use lsf::nlb::{MAX_FILES, MAX_READINGS, Surroundings, object_text};
use lsf::proto::Daemon;
use lsf::proto::collect::Counters;
use lsf::proto::nlb::MAX_INTERVAL;
use lsf::sys::collect::counters;
use lsf::sys::files::RealFiles;
use std::ffi::OsString;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Seconds between two reports.
const INTERVAL: u32 = 30;
/// The least time between two reports, seconds.
const MIN_INTERVAL: u32 = 5;
/// The window of means, seconds.
const WINDOW: u32 = 300;
/// The directory of NLB_FREETMP.
const TMP: &str = "/tmp";
/// The time between the two readings of `-n`.
const PAUSE: Duration = Duration::from_secs(1);
/// How long `-n` waits for the batch agent of the host.
const BATCH_WAIT: Duration = Duration::from_secs(1);

/// Measure this host and report it to the load balancer's servers.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// the queue of this host for requests that the load balancer places
    #[argh(option, short = 'Q', arg_name = "queue")]
    queue: Option<String>,
    /// a directory in the file system for temporary files; /tmp
    #[argh(option, short = 'd', arg_name = "path")]
    tmp: Option<String>,
    /// the window of averages; 300
    #[argh(option, short = 'r', arg_name = "seconds")]
    window: Option<String>,
    /// a file of custom objects; may be given several times
    #[argh(option, short = 'C', arg_name = "file")]
    files: Vec<String>,
    /// the time between two reports, 5 to 3600; 30
    #[argh(option, short = 'i', arg_name = "seconds")]
    interval: Option<String>,
    /// a server to report to, in place of those of NLB_SERVER; may be given several times
    #[argh(option, short = 's', arg_name = "server[:port]")]
    servers: Vec<String>,
    /// print one report as object data, and end
    #[argh(switch, short = 'n')]
    once: bool,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    ctx.readings = Some(front::readings::<Options>);
    let options = match front::parse_of::<Options>(ctx) {
        Ok(parsed) => parsed.options,
        Err(exit) => return exit.show(ctx),
    };
    let done = if options.once { once(ctx) } else { daemon(ctx) };
    done.unwrap_or_else(|failed| match failed {
        Failed::Usage(exit) => exit.show(ctx),
        Failed::Words(words) => {
            log::error!("{words}");
            errln!(ctx, "{}: {words}", ctx.name);
            FAIL
        }
    })
}

/// Why there is no collector.
enum Failed {
    Usage(Exit),
    Words(String),
}

impl From<String> for Failed {
    fn from(words: String) -> Self {
        Failed::Words(words)
    }
}

fn daemon(ctx: &mut Ctx) -> Result<i32, Failed> {
    let boot = Boot::from_dir(Daemon::Ccollect, None).map_err(|e| e.to_string())?;
    let (info, faults) = ccollect::info(&boot.conf.lsf, &boot.conf.name, &boot.host);
    for fault in faults {
        log::warn!("{fault}");
    }
    let settings = settings(ctx, info, &boot.conf.lsf)?;
    if settings.servers.is_empty() {
        return Err("no NLB server is known: NLB_SERVER is not set".to_owned().into());
    }
    Ok(ccollect::run(boot, settings).map_err(|e| e.to_string())?)
}

/// The settings by the command line, below it NLB_CCOLLECT_OPTIONS, and nqeinfo. A daemon of the
/// launcher has neither words nor variables of its own: nqeinfo alone counts.
fn settings(ctx: &Ctx, info: Option<NqeInfo>, lsf: &LsfConf) -> Result<CollectSettings, Failed> {
    let info = info.unwrap_or_default();
    let layer: Vec<OsString> = info.collector_options.iter().map(OsString::from).collect();
    let parsed = front::parse_over::<Options>(ctx.name, &[&[layer]], &ctx.args);
    let o = parsed.map_err(Failed::Usage)?.options;
    let interval = seconds("-i", o.interval.as_deref(), INTERVAL)?;
    if !(MIN_INTERVAL..=MAX_INTERVAL).contains(&interval) {
        let words = format!("-i <{interval}>: {MIN_INTERVAL} to {MAX_INTERVAL} seconds are wanted");
        return Err(words.into());
    }
    let window = seconds("-r", o.window.as_deref(), WINDOW.max(interval))?;
    if window < interval {
        let words = format!("-r <{window}>: shorter than the interval of {interval} s");
        return Err(words.into());
    }
    if window as usize / interval as usize > MAX_READINGS {
        let words = format!("-r <{window}>: longer than {MAX_READINGS} intervals of {interval} s");
        return Err(words.into());
    }
    if o.files.len() > MAX_FILES {
        return Err(format!("-C: more than {MAX_FILES} files").into());
    }
    let own = |name: &str| std::env::var(name).ok().filter(|v| !v.trim().is_empty());
    let collectors = match own("NQE_CUSTOM_COLLECTOR_LIST") {
        Some(list) => {
            let read = nqeinfo::collectors(&list);
            read.map_err(|words| format!("NQE_CUSTOM_COLLECTOR_LIST: {words}"))?
        }
        None => info.collectors,
    };
    let named = || own("NLB_SERVER").map(|v| v.split_whitespace().map(str::to_owned).collect());
    let words: Option<Vec<String>> = Some(o.servers).filter(|s| !s.is_empty()).or_else(named);
    let servers = match words {
        Some(words) => addresses(&words, lsf)?,
        None => info.servers,
    };
    Ok(CollectSettings {
        queue: o.queue.unwrap_or(info.queue),
        tmp: o.tmp.unwrap_or_else(|| TMP.to_owned()),
        interval,
        window,
        files: o.files.iter().map(|f| absolute(f)).collect(),
        servers,
        collectors,
        bin: info.bin,
        spool: if info.spool.is_empty() { "/".to_owned() } else { info.spool },
    })
}

fn seconds(option: &str, text: Option<&str>, default: u32) -> Result<u32, String> {
    let Some(text) = text else { return Ok(default) };
    let number = text.parse::<u32>();
    number.map_err(|_| format!("{option} <{text}>: a number of seconds is wanted"))
}

fn addresses(words: &[String], lsf: &LsfConf) -> Result<Vec<NlbAddress>, String> {
    words.iter().map(|word| nqeinfo::address(&RealFiles, word, lsf)).collect()
}

fn absolute(file: &str) -> String {
    let path = std::path::absolute(file);
    path.map_or_else(|_| file.to_owned(), |path| path.to_string_lossy().into_owned())
}

/// Prints what a collector would report now.
fn once(ctx: &mut Ctx) -> Result<i32, Failed> {
    let site = site::find().map_err(|e| e.to_string())?;
    let (conf, _) = load_base_lenient(&RealFiles, &site.envdir, Some(&site.host));
    let conf = conf.ok_or("the configuration cannot be read".to_owned())?;
    let host = conf.hosts.canonical(&site.host).unwrap_or(&site.host).to_owned();
    let (info, faults) = ccollect::info(&conf.lsf, &conf.name, &host);
    for fault in faults {
        errln!(ctx, "{}: {fault}", ctx.name);
    }
    let s = settings(ctx, info, &conf.lsf)?;
    let before = counters(&s.tmp);
    let maps = maps(&s.servers);
    let batch = batch_answers(&site, &conf, &host);
    std::thread::sleep(PAUSE);
    let validates = nqs::validation(&RealFiles, &conf.lsf.batch_confdir(&conf.name));
    let now = Counters { validates, ..counters(&s.tmp) };
    let around = Surroundings { queue: s.queue, tmp: s.tmp, batch, crowded: None };
    let files = s.files.into_iter().map(ccollect::read).collect();
    let own = |name: &str| conf.hosts.canonical(name) == Some(&host) || name == host;
    let (text, faults) = object_text(&host, [&before, &now], &around, files, &maps, own);
    for fault in faults {
        errln!(ctx, "{fault}");
    }
    let _ = ctx.out.write_all(text.as_bytes());
    Ok(0)
}

/// The maps of the first server that answers, else those that a server begins with.
fn maps(servers: &[NlbAddress]) -> NameMaps {
    let words: Vec<String> = servers.iter().map(|s| format!("{}:{}", s.host, s.port)).collect();
    let link = || NlbServers::find(Some(&words.join(" "))).ok()?.first().ok();
    let asked = (!words.is_empty()).then(link).flatten();
    asked.and_then(|mut link| link.maps("").ok()).unwrap_or_else(NameMaps::shipped)
}

fn batch_answers(site: &LocalSite, conf: &BaseConf, host: &str) -> bool {
    let addr = conf.hosts.addrs(host).first();
    let at = addr.map(|addr| SocketAddr::new(*addr, site.lsf.sbd_port()));
    at.is_some_and(|at| TcpStream::connect_timeout(&at, BATCH_WAIT).is_ok())
}

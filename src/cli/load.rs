//! Hosts and loads as the base commands show them: cells of load indices, the view that resource
//! requirements are evaluated on, names of resources. See lshosts(1) and lsload(1).

use crate::conf::{BaseConf, ResourceKind, Shared};
use crate::lang::resreq::{
    Builtins, HostOrder, HostView, ResKind, ResNames, ResReq, SelectContext, Syntax,
};
use crate::model::sort;
use crate::proto::lim::{HostLoad, INDEX_NAMES, Queue, SharedRow, status};

/// MB in a GB, GB in a TB.
const STEP: f64 = 1024.0;
/// A GB value is shown without decimals from this number on.
const WHOLE_FROM: f64 = 99.95;
/// tmp is shown in GB from this number of MB on.
const TMP_IN_GB: f64 = 10.0 * STEP;
/// Position of tmp in a load vector; it has a rule of its own.
const TMP: usize = 8;

/// The resources of a cluster: built in and of lsf.shared.
#[derive(Clone, Copy)]
struct ClusterNames<'a>(&'a Shared);

impl ResNames for ClusterNames<'_> {
    fn kind(&self, name: &str) -> Option<ResKind> {
        Builtins.kind(name).or_else(|| {
            let def = self.0.resources.iter().find(|r| r.name == name)?;
            Some(match def.kind {
                ResourceKind::Boolean => ResKind::Boolean,
                ResourceKind::String => ResKind::String,
                ResourceKind::Numeric => {
                    ResKind::Numeric { increasing: def.increasing.unwrap_or(false) }
                }
            })
        })
    }
}

/// Status as lsload shows it.
pub fn status_word(bits: u32) -> &'static str {
    const LOCKED: [(u32, &str, &str); 3] = [
        (status::LOCK_U | status::LOCK_X, "lockU", "-lockU"),
        (status::LOCK_W, "lockW", "-lockW"),
        (status::LOCK_M, "lockM", "-lockM"),
    ];
    if bits & status::UNAVAIL != 0 {
        return "unavail";
    }
    let res_down = bits & status::RES_DOWN != 0;
    for (bit, plain, dashed) in LOCKED {
        if bits & bit != 0 {
            return if res_down { dashed } else { plain };
        }
    }
    match (bits & status::BUSY != 0, res_down) {
        (false, false) => "ok",
        (false, true) => "-ok",
        (true, false) => "busy",
        (true, true) => "-busy",
    }
}

/// A number with one decimal, short where it is huge.
fn tenth(v: f64) -> String {
    if v < 9999.95 { format!("{v:.1}") } else { power(v) }
}

/// A whole number, short where it is huge.
fn whole(v: f64) -> String {
    if v < 99_999.5 { format!("{v:.0}") } else { power(v) }
}

/// `1e+05`, as C prints it.
fn power(v: f64) -> String {
    let text = format!("{v:.0e}");
    match text.split_once('e') {
        Some((m, e)) => format!("{m}e+{e:0>2}"),
        None => text,
    }
}

/// MB as memory and swap are shown: `603M`, `1.2G`, `8G`, `22.1G`, `904G`, `2.9T`.
pub fn size(mb: f64) -> String {
    if mb < STEP {
        return format!("{mb:.0}M");
    }
    let (mut v, mut unit) = (mb / STEP, 'G');
    if v >= STEP {
        (v, unit) = (v / STEP, 'T');
    }
    let text = if v >= WHOLE_FROM { format!("{v:.0}") } else { format!("{v:.1}") };
    format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// MB as lshosts shows maxmem and maxswp: the decimal stays.
pub fn size_fixed(mb: u64) -> String {
    let v = mb as f64;
    if v < STEP {
        format!("{mb}M")
    } else if v < STEP * STEP {
        format!("{:.1}G", v / STEP)
    } else {
        format!("{:.1}T", v / STEP / STEP)
    }
}

/// The text of a built-in index, without `*`.
pub fn cell(index: usize, v: f64) -> String {
    match INDEX_NAMES.get(index) {
        Some(&"ut") => format!("{:.0}%", v * 100.0),
        Some(&"io") | Some(&"ls") | Some(&"it") => whole(v),
        Some(&"tmp") if v < TMP_IN_GB => format!("{v:.0}M"),
        Some(&"tmp") => format!("{:.0}G", v / STEP),
        Some(&"swp") | Some(&"mem") => size(v),
        _ => tenth(v),
    }
}

/// Width of a built-in index's column.
pub fn width(index: usize) -> usize {
    match INDEX_NAMES.get(index) {
        Some(&"ut") => 5,
        Some(&"ls") => 4,
        _ => 6,
    }
}

/// The text in the column of a built-in index of a host.
pub fn host_cell(load: &HostLoad, index: usize, how: Queue) -> String {
    let text = cell(index, load.value(index, how));
    if load.over & (1 << index) != 0 { format!("*{text}") } else { text }
}

/// The threshold of a built-in index as lshosts -l shows it.
pub fn threshold_cell(index: usize, limit: Option<f64>) -> String {
    match limit {
        None => "-".to_owned(),
        Some(v) if index >= TMP => format!("{v:.0}M"),
        Some(v) => cell(index, v),
    }
}

/// The text in the column of an external index of a host; `-` where it has none.
pub fn external_cell(load: &HostLoad, name: &str) -> String {
    match load.external.iter().position(|(n, _)| n == name) {
        Some(at) => {
            let over = load.over.checked_shr((INDEX_NAMES.len() + at) as u32).unwrap_or(0) & 1 == 1;
            format!("{}{}", if over { "*" } else { "" }, load.external[at].1)
        }
        None => "-".to_owned(),
    }
}

/// Shared resources, all of these or those named.
pub fn shared_table(rows: &[SharedRow], names: &[String]) -> Result<String, String> {
    if let Some(name) = names.iter().find(|n| !rows.iter().any(|r| r.name == **n)) {
        return Err(format!("{name}: Resource name not found"));
    }
    let mut text = format!("{:<30} {:>14}       LOCATION\n", "RESOURCE", "VALUE");
    for r in rows.iter().filter(|r| names.is_empty() || names.contains(&r.name)) {
        text.push_str(&format!("{:<30} {:>14}       ", r.name, r.value));
        for host in &r.hosts {
            text.push_str(host);
            text.push(' ');
        }
        text.push('\n');
    }
    Ok(text)
}

/// A host as select and order see it.
pub struct LoadView<'a> {
    pub load: &'a HostLoad,
    /// How run queues are counted.
    pub how: Queue,
}

impl LoadView<'_> {
    fn static_value(&self, name: &str) -> Option<&str> {
        let facts = self.load.facts.as_ref()?;
        let own = facts.resources.iter().find(|(n, _)| n == name).and_then(|(_, v)| v.as_deref());
        own.or_else(|| facts.shared.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str()))
    }

    fn external(&self, name: &str) -> Option<&str> {
        let row = self.load.external.iter().find(|(n, _)| n == name);
        row.map(|(_, v)| v.as_str()).or_else(|| self.static_value(name))
    }
}

impl HostView for LoadView<'_> {
    fn num(&self, name: &str) -> Option<f64> {
        if let Some(i) = INDEX_NAMES.iter().position(|n| *n == name) {
            return (!self.load.unavailable()).then(|| self.load.value(i, self.how));
        }
        let f = self.load.facts.as_ref()?;
        let count = |n: u32| Some(f64::from(n));
        match name {
            "ncpus" => count(f.ncpus),
            "nprocs" => count(f.nprocs),
            "ncores" => count(f.ncores),
            "nthreads" => count(f.nthreads),
            "ndisks" => count(f.ndisks),
            "maxmem" => Some(f.max_mem as f64),
            "maxswp" => Some(f.max_swp as f64),
            "maxtmp" => Some(f.max_tmp as f64),
            "cpuf" => Some(f.cpu_factor),
            "rexpri" => Some(f64::from(f.rexpri)),
            _ => self.external(name)?.parse().ok(),
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        let facts = self.load.facts.as_ref();
        match name {
            "hname" => Some(&self.load.host),
            "type" => facts.map(|f| f.host_type.as_str()),
            "model" => facts.map(|f| f.model.as_str()),
            "status" => Some(status_word(self.load.status)),
            _ => self.external(name),
        }
    }

    fn boolean(&self, name: &str) -> Option<bool> {
        let f = self.load.facts.as_ref()?;
        match name {
            "server" => Some(f.server),
            _ => Some(f.resources.iter().any(|(n, _)| n == name)),
        }
    }
}

/// Reads a requirement by the names and the unit of sizes of this cluster.
pub fn requirement(text: &str, base: &BaseConf) -> Result<ResReq, String> {
    let names = ClusterNames(&base.shared);
    let syntax = Syntax { names: &names, size_unit_mb: base.lsf.requirement_unit_mb() };
    ResReq::parse(text, &syntax).map_err(|e| format!("{e}: {}", e.place(text)))
}

/// Keeps the hosts that a requirement selects and sorts the rest as it orders; without one,
/// nothing is left out. `sort`: lsload sorts, lshosts does not.
pub fn choose(
    hosts: &mut Vec<HostLoad>,
    res_req: Option<&str>,
    base: &BaseConf,
    sort: bool,
) -> Result<(), String> {
    let req = res_req.map(|text| requirement(text, base)).transpose()?.unwrap_or_default();
    let cx = SelectContext::default();
    choose_by(hosts, &req, res_req.map(|_| &cx), sort);
    Ok(())
}

/// Chooses like [`choose`]; without a context no host is left out.
pub fn choose_by(
    hosts: &mut Vec<HostLoad>,
    req: &ResReq,
    cx: Option<&SelectContext<'_>>,
    sort: bool,
) {
    let simple = req.first();
    if let (Some(cx), Some(simple)) = (cx, simple) {
        hosts.retain(|h| simple.selects(&LoadView { load: h, how: Queue::Normalised }, cx));
    }
    if sort {
        let order = simple.and_then(|s| s.order.clone()).unwrap_or_default();
        sort_by(hosts, &order);
    }
}

/// Best first; hosts without news last.
fn sort_by(hosts: &mut Vec<HostLoad>, order: &HostOrder) {
    let rank = |h: &HostLoad| order.rank(&LoadView { load: h, how: Queue::Normalised });
    let mut keyed: Vec<(bool, Vec<f64>, HostLoad)> =
        hosts.drain(..).map(|h| (h.unavailable(), rank(&h), h)).collect();
    sort::sort_by(&mut keyed, |a, b| {
        a.0.cmp(&b.0).then_with(|| HostOrder::compare_ranks(&a.1, &b.1))
    });
    hosts.extend(keyed.into_iter().map(|(_, _, h)| h));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_is_shown_in_the_unit_that_suits_it() {
        let shown = [0.0, 603.0, 1024.0, 1229.0, 8192.0, 22630.0, 925_900.0, 3_040_870.4].map(size);
        assert_eq!(shown, ["0M", "603M", "1G", "1.2G", "8G", "22.1G", "904G", "2.9T"]);
        assert_eq!([0, 910, 8192, 65741].map(size_fixed), ["0M", "910M", "8.0G", "64.2G"]);
        assert_eq!(cell(8, 3321.0), "3321M");
        assert_eq!(cell(8, 20480.0), "20G");
        assert_eq!(cell(8, 115_000.0), "112G");
    }

    #[test]
    fn load_value_is_shown_in_few_digits() {
        assert_eq!((cell(0, 0.04), cell(3, 0.983)), ("0.0".into(), "98%".into()));
        assert_eq!((cell(5, 99_999.0), cell(5, 123_456.0)), ("99999".into(), "1e+05".into()));
        assert_eq!((cell(7, 12818.2), cell(4, 12345.6)), ("12818".into(), "1e+04".into()));
    }

    #[test]
    fn status_of_a_host_is_shown_in_the_words_of_lsf() {
        use status::*;
        for (bits, word) in [
            (0, "ok"),
            (RES_DOWN, "-ok"),
            (BUSY | RES_DOWN, "-busy"),
            (BUSY, "busy"),
            (LOCK_U | BUSY, "lockU"),
            (LOCK_W, "lockW"),
            (UNAVAIL | BUSY | RES_DOWN, "unavail"),
        ] {
            assert_eq!(status_word(bits), word);
        }
    }

    #[test]
    fn best_first_by_the_order_of_the_requirement_and_hosts_without_news_last() {
        let facts =
            Some(crate::proto::lim::HostFacts { ncpus: 1, cpu_factor: 1.0, ..Default::default() });
        let host = |name: &str, r15s: f32, mem: f32, bits: u32| {
            let (host, facts) = (name.into(), facts.clone());
            let mut h = HostLoad { host, facts, status: bits, ..HostLoad::default() };
            (h.index[0], h.index[10]) = (r15s, mem);
            h
        };
        let all = [
            host("gone", 0.0, 9000.0, status::UNAVAIL),
            host("loaded", 3.0, 8000.0, 0),
            host("idle", 0.1, 1000.0, 0),
            host("middle", 1.0, 4000.0, 0),
        ];
        let mut base = BaseConf::default();
        let names = |req: Option<&str>, sort: bool| {
            let mut hosts = all.to_vec();
            choose(&mut hosts, req, &base, sort).unwrap();
            hosts.iter().map(|h| h.host.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(None, true), "idle middle loaded gone");
        assert_eq!(names(Some("order[mem]"), true), "loaded middle idle gone");
        assert_eq!(names(Some("order[-mem]"), true), "idle middle loaded gone");
        assert_eq!(names(Some("order[ncpus]"), true), "loaded idle middle gone");
        assert_eq!(names(Some("select[mem>2000] order[r15s]"), true), "middle loaded");
        assert_eq!(names(None, false), "gone loaded idle middle");
        let wrong = choose(&mut all.to_vec(), Some("select[foo]"), &base, true).unwrap_err();
        let place = "foo: unknown resource at column 8 of <select[foo]>";
        assert_eq!(wrong, format!("Bad resource requirement syntax: {place}"));
        base.lsf.set("LSF_UNIT_FOR_LIMITS", "GB");
        let mut hosts = all.to_vec();
        choose(&mut hosts, Some("select[mem>5]"), &base, false).unwrap();
        assert_eq!(hosts.iter().map(|h| h.host.as_str()).collect::<Vec<_>>(), ["loaded"]);
    }
}

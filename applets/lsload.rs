//! lsload: the load of hosts, best first. See lsload(1).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::hostfields::HostFields;
use lsf::cli::load::{self, choose, host_cell, status_word};
use lsf::cli::{front, lim, topology};
use lsf::errln;
use lsf::proto::lim::{HostLoad, INDEX_NAMES, Queue};

/// Show the load of hosts, the best first.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// effective run queue lengths: processes that wait when every processor is busy
    #[argh(switch, short = 'E')]
    effective: bool,
    /// normalised run queue lengths: effective ones divided by the CPU factor
    #[argh(switch, short = 'N')]
    normalised: bool,
    /// long format: all load indices, also external ones
    #[argh(switch, short = 'l')]
    long: bool,
    /// full host names
    #[argh(switch, short = 'w')]
    wide: bool,
    /// hosts that meet this requirement, in its order
    #[argh(option, short = 'R', arg_name = "res_req")]
    res_req: Option<String>,
    /// at most this many hosts
    #[argh(option, short = 'n', arg_name = "num_hosts")]
    number: Option<usize>,
    /// only the named load indices
    #[argh(option, short = 'I', arg_name = "index[:index...]")]
    indices: Option<String>,
    /// shared resources that elims report, all or the named ones, instead of hosts
    #[argh(switch, short = 's')]
    shared: bool,
    /// accepted; hosts without current load information are always shown
    #[argh(switch, short = 'a')]
    _all: bool,
    /// a summary of the GPUs of the hosts
    #[argh(switch)]
    gpu: bool,
    /// each GPU of the hosts
    #[argh(switch)]
    gpuload: bool,
    /// host names include the name of the cluster
    #[argh(switch)]
    cname: bool,
    /// the fields to show: "name[:[-]width[:unit]] ... [delimiter='c']"
    #[argh(option, short = 'o', arg_name = "format")]
    output: Option<String>,
    /// output of -o as JSON
    #[argh(switch)]
    json: bool,
    /// hosts to show, or the cluster; default: all hosts
    #[argh(positional, greedy, arg_name = "host_name")]
    hosts: Vec<String>,
}

/// A column: a built-in index, or an external one by name.
#[derive(Clone, Debug, PartialEq)]
enum Column {
    Built(usize),
    External(String),
}

/// How the table looks.
struct Layout {
    name_width: usize,
    /// Cut names that are longer.
    cut: bool,
    columns: Vec<Column>,
    how: Queue,
}

/// Width of host names, plain and wide.
const NAME: usize = 15;
const WIDE_NAME: usize = 23;
/// Least width of an external index's column.
const EXTERNAL: usize = 6;
/// Position of io in a load vector: shown by -l only.
const IO: usize = 5;

pub fn run(ctx: &mut Ctx) -> i32 {
    let parsed = match front::parse_of::<Options>(ctx) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.show(ctx),
    };
    let o = parsed.options;
    if o.effective && o.normalised {
        return front::usage_error::<Options>(ctx.name, "-E and -N exclude each other").show(ctx);
    }
    let wanted = LoadListing {
        effective: o.effective,
        normalised: o.normalised,
        long: o.long,
        wide: o.wide,
        shared: o.shared,
        number: o.number,
        res_req: o.res_req,
        indices: o.indices,
        output: o.output,
        json: o.json,
        gpu: o.gpu,
        gpuload: o.gpuload,
        cname: o.cname,
    };
    match listing(&wanted, &o.hosts) {
        Ok(text) => {
            let _ = ctx.out.write_all(text.as_bytes());
            0
        }
        Err(why) => {
            errln!(ctx, "{why}");
            FAIL
        }
    }
}

/// The form of the output.
#[derive(Default)]
pub struct LoadListing {
    pub effective: bool,
    pub normalised: bool,
    pub long: bool,
    pub wide: bool,
    pub shared: bool,
    pub number: Option<usize>,
    pub res_req: Option<String>,
    pub indices: Option<String>,
    pub output: Option<String>,
    pub json: bool,
    pub gpu: bool,
    pub gpuload: bool,
    pub cname: bool,
}

/// The table of these hosts, or why there is none.
pub fn listing(o: &LoadListing, names: &[String]) -> Result<String, String> {
    let mut cluster = lim::Cluster::open()?;
    if o.shared {
        let mut rows = cluster.shared_rows()?;
        rows.retain(|r| r.dynamic);
        return load::shared_table(&rows, names);
    }
    let mut hosts = cluster.named(names)?;
    hosts.retain(|h| h.facts.as_ref().is_some_and(|f| f.server));
    let base = cluster.base();
    choose(&mut hosts, o.res_req.as_deref(), &base, true)?;
    if let Some(n) = o.number.filter(|n| *n > 0) {
        hosts.truncate(n);
    }
    if hosts.is_empty() {
        return Err("No host is eligible".to_owned());
    }
    if o.cname {
        let cluster = cluster.name();
        hosts.iter_mut().for_each(|h| h.host = format!("{}@{cluster}", h.host));
    }
    match (o.gpuload, o.gpu) {
        (true, _) => return Ok(topology::gpu_loads(&hosts)),
        (_, true) => return Ok(topology::gpu_summary(&hosts)),
        _ => {}
    }
    let how = match (o.effective, o.normalised) {
        (true, _) => Queue::Effective,
        (_, true) => Queue::Normalised,
        _ => Queue::Raw,
    };
    let external = external_names(&hosts);
    let format = cluster.param("LSF_LSLOAD_FORMAT");
    let plain = !o.long && !o.wide && o.indices.is_none();
    let text = o.output.clone().or(format.filter(|_| plain && !o.json));
    if o.json || text.is_some() {
        let dynamic = base.shared.resources.iter().filter(|r| r.interval.is_some());
        let fields = HostFields::of_lsload(dynamic.map(|r| r.name.clone()).collect(), how);
        let text = text.unwrap_or_else(|| fields.every());
        return fields.show(&text, o.json.then_some("lsload"), &hosts);
    }
    let columns = match &o.indices {
        Some(list) => {
            let dynamic = base.shared.resources.iter().filter(|r| r.interval.is_some());
            let known: Vec<String> = dynamic.map(|r| r.name.clone()).collect();
            named_columns(list, &known)?
        }
        None => {
            // what hosts share is -s's to show
            let own = |n: &String| {
                let maps = base.cluster.resource_map.iter().filter(|m| m.resource == *n);
                maps.flat_map(|m| &m.instances).all(|i| i.hosts.iter().any(|h| h == "default"))
            };
            usual_columns(o.long, external.into_iter().filter(own).collect())
        }
    };
    let wide = o.long || o.wide;
    let name_width = if wide { WIDE_NAME } else { NAME };
    Ok(table(&hosts, &Layout { name_width, cut: !wide, columns, how }))
}

fn external_names(hosts: &[HostLoad]) -> Vec<String> {
    let mut names = Vec::new();
    for (name, _) in hosts.iter().flat_map(|h| &h.external) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

fn usual_columns(long: bool, external: Vec<String>) -> Vec<Column> {
    let mut columns: Vec<Column> =
        (0..INDEX_NAMES.len()).filter(|i| long || *i != IO).map(Column::Built).collect();
    if long {
        columns.extend(external.into_iter().map(Column::External));
    }
    columns
}

fn named_columns(list: &str, external: &[String]) -> Result<Vec<Column>, String> {
    let column = |word: &str| {
        let real = lsf::lang::resreq::alias(word).unwrap_or(word);
        match INDEX_NAMES.iter().position(|n| *n == real) {
            Some(i) => Ok(Column::Built(i)),
            None if external.iter().any(|n| n == word) => Ok(Column::External(word.to_owned())),
            None => Err(format!("{word}: Unknown resource name")),
        }
    };
    list.split(':').filter(|w| !w.is_empty()).map(column).collect()
}

fn table(hosts: &[HostLoad], layout: &Layout) -> String {
    let name = layout.name_width;
    let mut text = format!("{:<name$} status", "HOST_NAME");
    for column in &layout.columns {
        match column {
            Column::Built(i) => {
                text.push_str(&format!("{:>w$}", INDEX_NAMES[*i], w = load::width(*i)));
            }
            Column::External(n) => text.push_str(&format!(" {n:>EXTERNAL$}")),
        }
    }
    text.push('\n');
    for host in hosts {
        row(&mut text, host, layout);
    }
    text
}

fn row(text: &mut String, host: &HostLoad, layout: &Layout) {
    let width = layout.name_width;
    let cut = if layout.cut { width } else { usize::MAX };
    let name: String = host.host.chars().take(cut).collect();
    // The status column is 6 wide after a blank that `unavail` takes, where the name leaves one.
    let status = status_word(host.status);
    let gap = if name.chars().count() >= width && status.len() > 6 { " " } else { "" };
    text.push_str(&format!("{name:<width$}{gap}{status:>7}"));
    if host.unavailable() {
        text.push('\n');
        return;
    }
    for column in &layout.columns {
        match column {
            Column::Built(i) => {
                let cell = host_cell(host, *i, layout.how);
                text.push_str(&format!("{cell:>w$}", w = load::width(*i)));
            }
            Column::External(n) => {
                let value = load::external_cell(host, n);
                text.push_str(&format!(" {value:>w$}", w = n.len().max(EXTERNAL)));
            }
        }
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsf::proto::lim::{HostFacts, status};

    fn hosts() -> Vec<HostLoad> {
        let facts = HostFacts { ncpus: 4, cpu_factor: 2.0, ..HostFacts::default() };
        let host = |name: &str, index: [f32; 11]| HostLoad {
            host: name.into(),
            index,
            facts: Some(facts.clone()),
            ..HostLoad::default()
        };
        let a = [0.0, 0.1, 0.0, 0.01, 0.0, 7.0, 2.0, 3.0, 3321.0, 8192.0, 61440.0];
        let b = [9.1, 5.0, 4.2, 0.98, 0.0, 1e5, 1.0, 12.0, 20480.0, 8192.0, 2150.0];
        let mut b = host("hostb", b);
        b.status = status::BUSY;
        b.over = 1;
        let mut c = host("hostc", [0.0; 11]);
        c.status = status::UNAVAIL;
        vec![host("hosta", a), b, c]
    }

    fn shown(long: bool, wide: bool, how: Queue) -> String {
        let (name_width, cut) = if wide { (WIDE_NAME, false) } else { (NAME, true) };
        table(&hosts(), &Layout { name_width, cut, columns: usual_columns(long, vec![]), how })
    }

    #[test]
    fn lsload_has_the_layout_of_the_manual() {
        assert_eq!(shown(false, false, Queue::Raw), include_str!("../tests/expected/lsload.txt"));
        let wide = include_str!("../tests/expected/lsload-w.txt");
        assert_eq!(shown(false, true, Queue::Raw), wide);
        assert_eq!(shown(true, true, Queue::Raw), include_str!("../tests/expected/lsload-l.txt"));
    }

    #[test]
    fn run_queues_by_processors_and_speed() {
        let cells = |how| {
            let text = shown(false, false, how);
            let line = text.lines().nth(2).unwrap().to_owned();
            line.split_whitespace().skip(2).take(3).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(cells(Queue::Raw), ["*9.1", "5.0", "4.2"]);
        assert_eq!(cells(Queue::Effective), ["*1.5", "0.5", "0.3"]);
        assert_eq!(cells(Queue::Normalised), ["*0.8", "0.2", "0.1"]);
    }

    #[test]
    fn external_indices_have_their_own_columns() {
        let mut hosts = hosts();
        hosts[0].external = vec![("scratch".into(), "12.5".into()), ("gb".into(), "x".into())];
        let names = external_names(&hosts);
        let columns = named_columns("cpu:scratch:gb", &names).unwrap();
        let layout = Layout { name_width: NAME, cut: true, columns, how: Queue::Raw };
        assert_eq!(
            table(&hosts[..2], &layout),
            "HOST_NAME       status   r1m scratch     gb\n\
             hosta               ok   0.1    12.5      x\n\
             hostb             busy   5.0       -      -\n"
        );
        assert_eq!(
            named_columns("r1m:nosuch", &names).unwrap_err(),
            "nosuch: Unknown resource name"
        );
    }

    #[test]
    fn names_are_cut_in_the_narrow_table_only() {
        let mut hosts = hosts();
        hosts.truncate(1);
        hosts[0].host = "a-name-of-eighteen".into();
        let cells = |name_width, cut| {
            let columns = vec![Column::Built(0)];
            table(&hosts, &Layout { name_width, cut, columns, how: Queue::Raw })
        };
        assert!(cells(NAME, true).ends_with("\na-name-of-eight     ok   0.0\n"));
        assert!(cells(WIDE_NAME, false).ends_with("\na-name-of-eighteen          ok   0.0\n"));
        let (name, up) = (format!("node-{}", "e".repeat(59)), hosts[0].clone());
        let down = HostLoad { host: name.clone(), status: status::UNAVAIL, ..HostLoad::default() };
        let hosts = [HostLoad { host: name, ..up }, down];
        let shown = |name_width, cut| {
            let columns = usual_columns(false, vec![]);
            table(&hosts, &Layout { name_width, cut, columns, how: Queue::Raw })
        };
        assert_eq!(shown(NAME, true), include_str!("../tests/cmd/expected/lsload-64.txt"));
        assert_eq!(shown(WIDE_NAME, false), include_str!("../tests/cmd/expected/lsload-64-w.txt"));
    }
}

//! lshosts: the static facts of hosts (lshosts(1)).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::hostfields::{HostFields, resources};
use lsf::cli::load::{choose, shared_table, size_fixed, threshold_cell};
use lsf::cli::{front, lim, topology};
use lsf::errln;
use lsf::proto::lim::{HostFacts, HostLoad, INDEX_NAMES};

/// Show what the hosts of the cluster are.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// full names
    #[argh(switch, short = 'w')]
    wide: bool,
    /// long format: all properties of each host
    #[argh(switch, short = 'l')]
    long: bool,
    /// hosts that meet this requirement
    #[argh(option, short = 'R', arg_name = "res_req")]
    res_req: Option<String>,
    /// shared resources, the static or the named ones, instead of hosts
    #[argh(switch, short = 's')]
    shared: bool,
    /// accepted; hosts without current load information are always shown
    #[argh(switch, short = 'a')]
    _all: bool,
    /// the topology of the hosts: sockets, cores, threads
    #[argh(switch, short = 'T')]
    tree: bool,
    /// the GPUs of the hosts
    #[argh(switch)]
    gpu: bool,
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
    names: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let parsed = match front::parse_of::<Options>(ctx) {
        Ok(parsed) => parsed,
        Err(exit) => return exit.show(ctx),
    };
    match listing(&parsed.options, &parsed.options.names) {
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

fn listing(o: &Options, names: &[String]) -> Result<String, String> {
    let mut cluster = lim::Cluster::open()?;
    if o.shared {
        let mut rows = cluster.shared_rows()?;
        // what elims report is shown where it is named
        rows.retain(|r| !r.dynamic || names.contains(&r.name));
        return shared_table(&rows, names);
    }
    let mut hosts = cluster.named(names)?;
    choose(&mut hosts, o.res_req.as_deref(), &cluster.base(), false)?;
    if hosts.is_empty() {
        return Err("No host is eligible".to_owned());
    }
    if o.cname {
        let cluster = cluster.name();
        hosts.iter_mut().for_each(|h| h.host = format!("{}@{cluster}", h.host));
    }
    match (o.tree, o.gpu) {
        (true, _) => return Ok(hosts.iter().map(topology::tree).collect()),
        (_, true) => return Ok(topology::gpu_inventory(&hosts)),
        _ => {}
    }
    let format = cluster.param("LSF_LSHOSTS_FORMAT");
    let plain = !o.long && !o.wide;
    let text = o.output.clone().or(format.filter(|_| plain && !o.json));
    if o.json || text.is_some() {
        let fields = HostFields::of_lshosts();
        let text = text.unwrap_or_else(|| fields.every());
        return fields.show(&text, o.json.then_some("lshosts"), &hosts);
    }
    Ok(match (o.long, o.wide) {
        (true, _) => hosts.iter().map(long).collect(),
        (_, true) => table(&hosts, &WIDE),
        _ => table(&hosts, &NARROW),
    })
}

/// Widths of name, type and model.
struct Widths {
    name: usize,
    host_type: usize,
    model: usize,
    cut: bool,
}

const NARROW: Widths = Widths { name: 11, host_type: 7, model: 8, cut: true };
const WIDE: Widths = Widths { name: 25, host_type: 10, model: 11, cut: false };

fn table(hosts: &[HostLoad], w: &Widths) -> String {
    let (n, t, m) = (w.name, w.host_type, w.model);
    let mut text = format!(
        "{:<n$} {:>t$} {:>m$}  cpuf ncpus maxmem maxswp server RESOURCES\n",
        "HOST_NAME", "type", "model"
    );
    for h in hosts {
        let f = h.facts.clone().unwrap_or_default();
        let [name, host_type, model] = [(&h.host, n), (&f.host_type, t), (&f.model, m)]
            .map(|(s, width)| s.chars().take(if w.cut { width } else { usize::MAX }).collect());
        let [name, host_type, model]: [String; 3] = [name, host_type, model];
        let known = |v: u64, shown: String| if v == 0 { "-".to_owned() } else { shown };
        text.push_str(&format!(
            "{name:<n$} {host_type:>t$} {model:>m$} {:>5.1} {:>5} {:>6} {:>6} {:>6} {}\n",
            f.cpu_factor,
            known(f.ncpus.into(), f.ncpus.to_string()),
            known(f.max_mem, size_fixed(f.max_mem)),
            known(f.max_swp, size_fixed(f.max_swp)),
            server(&f),
            resources(&f),
        ));
    }
    text
}

fn server(f: &HostFacts) -> &'static str {
    if f.server { "Yes" } else { "No" }
}

fn long(h: &HostLoad) -> String {
    let f = h.facts.clone().unwrap_or_default();
    let mut text = format!(
        "\nHOST_NAME:  {}\ntype             model  cpuf ncpus ndisks maxmem maxswp maxtmp rexpri \
         server nprocs ncores nthreads\n",
        h.host
    );
    let measured = f.max_mem > 0;
    let known = |shown: String| if measured { shown } else { "-".to_owned() };
    text.push_str(&format!(
        "{:<10} {:>11} {:>5.1} {:>5} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>8}\n",
        f.host_type,
        f.model,
        f.cpu_factor,
        known(f.ncpus.to_string()),
        known(f.ndisks.to_string()),
        known(size_fixed(f.max_mem)),
        known(size_fixed(f.max_swp)),
        known(format!("{}M", f.max_tmp)),
        f.rexpri,
        server(&f),
        known(f.nprocs.to_string()),
        known(f.ncores.to_string()),
        known(f.nthreads.to_string()),
    ));
    if !f.shared.is_empty() {
        let (mut head, mut values) = (String::new(), String::new());
        for (name, value) in &f.shared {
            let w = name.len().max(value.len()).max(4) + 1;
            head.push_str(&format!("{name:>w$}"));
            values.push_str(&format!("{value:>w$}"));
        }
        text.push_str(&format!("{head}\n{values}\n"));
    }
    let window = if f.run_window.is_empty() { "(always open)" } else { &f.run_window };
    text.push_str(&format!("\nRESOURCES: {}\nRUN_WINDOWS:  {window}\n", resources(&f)));
    text.push_str(&thresholds(&f));
    text
}

fn thresholds(f: &HostFacts) -> String {
    let (mut head, mut values) = (String::new(), String::new());
    for (i, name) in INDEX_NAMES.iter().enumerate() {
        let w = if matches!(*name, "ut" | "ls" | "it") { 5 } else { 6 };
        let limit = f.thresholds.get(i).copied().flatten();
        head.push_str(&format!("{name:>w$}"));
        values.push_str(&format!("{:>w$}", threshold_cell(i, limit)));
    }
    format!("\nLOAD_THRESHOLDS:\n{head}\n{values}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsf::proto::lim::SharedRow;

    fn hosts() -> Vec<HostLoad> {
        let mut thresholds = vec![None; 11];
        thresholds[1] = Some(3.5);
        let facts = HostFacts {
            host_type: "X86_64".into(),
            model: "Intel_E5".into(),
            cpu_factor: 12.5,
            ncpus: 16,
            nprocs: 2,
            ncores: 8,
            nthreads: 1,
            ndisks: 1,
            max_mem: 65741,
            max_swp: 8192,
            max_tmp: 99999,
            resources: vec![
                ("mg".into(), None),
                ("cs".into(), None),
                ("s".into(), Some("x".into())),
            ],
            server: true,
            thresholds,
            ..HostFacts::default()
        };
        let client = HostFacts {
            host_type: "X86_64".into(),
            model: "DEFAULT".into(),
            cpu_factor: 1.0,
            ..HostFacts::default()
        };
        let host =
            |name: &str, f| HostLoad { host: name.into(), facts: Some(f), ..HostLoad::default() };
        vec![host("hosta", facts), host("client1", client)]
    }

    #[test]
    fn lshosts_has_the_layout_of_the_manual() {
        assert_eq!(table(&hosts(), &NARROW), include_str!("../tests/expected/lshosts.txt"));
        assert_eq!(table(&hosts(), &WIDE), include_str!("../tests/expected/lshosts-w.txt"));
        assert_eq!(long(&hosts()[0]), include_str!("../tests/expected/lshosts-l.txt"));
    }

    #[test]
    fn lshosts_s_shows_shared_resources() {
        let row = |name: &str| SharedRow {
            name: name.into(),
            value: "10".into(),
            hosts: vec!["vm".into(), "vm2".into()],
            dynamic: false,
        };
        let rows = [row("lic"), row("other")];
        let expected = include_str!("../tests/expected/lshosts-s.txt");
        assert_eq!(shared_table(&rows, &["lic".into()]).unwrap(), expected);
        let why = shared_table(&rows, &["xyz".into()]).unwrap_err();
        assert_eq!(why, "xyz: Resource name not found");
        let mut h = hosts().remove(0);
        if let Some(f) = &mut h.facts {
            f.shared = vec![("lic".into(), "10".into())];
        }
        assert!(
            long(&h).contains("        1\n  lic\n   10\n\nRESOURCES: (mg cs)\n"),
            "{}",
            long(&h)
        );
    }

    #[test]
    fn names_of_64_characters() {
        let mut hosts = hosts();
        hosts[0].host = format!("node-{}", "e".repeat(59));
        if let Some(f) = &mut hosts[0].facts {
            (f.host_type, f.model) = ("a_long_host_type".into(), "a_long_host_model".into());
        }
        assert_eq!(table(&hosts, &NARROW), include_str!("../tests/cmd/expected/lshosts-64.txt"));
        assert_eq!(table(&hosts, &WIDE), include_str!("../tests/cmd/expected/lshosts-64-w.txt"));
    }

    #[test]
    fn no_column_is_ever_blank() {
        let mut hosts = hosts();
        hosts[1].facts = None;
        for text in [table(&hosts, &WIDE), table(&hosts, &NARROW)] {
            for line in text.lines().take(2) {
                assert!(line.split_whitespace().count() >= 9, "{line}");
            }
        }
    }
}

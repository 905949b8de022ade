//! lsinfo: resources, host types, host models. See lsinfo(1).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::{front, lim};
use lsf::conf::{HostModel, ResourceDef, ResourceKind, Shared};
use lsf::errln;
use std::fmt::Write;

/// Show the resources, host types and host models of the cluster.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// long format: all properties of each resource
    #[argh(switch, short = 'l')]
    long: bool,
    /// resources only
    #[argh(switch, short = 'r')]
    resources: bool,
    /// only host models that hosts of the cluster have
    #[argh(switch, short = 'm')]
    models: bool,
    /// all host models
    #[argh(switch, short = 'M')]
    all_models: bool,
    /// host types only
    #[argh(switch, short = 't')]
    types: bool,
    /// accepted; names are never cut
    #[argh(switch, short = 'w')]
    _wide: bool,
    /// resources to show
    #[argh(positional, greedy, arg_name = "resource_name")]
    names: Vec<String>,
}

/// A resource as it is shown.
struct ResourceRow<'a> {
    name: &'a str,
    kind: &'static str,
    order: &'static str,
    interval: u64,
    built_in: bool,
    release: bool,
    description: &'a str,
}

/// Built-in resources: name, kind and order, interval, description.
const BUILT_IN: [(&str, &str, u64, &str); 26] = [
    ("r15s", "NI", 15, "15-second CPU run queue length"),
    ("r1m", "NI", 15, "1-minute CPU run queue length (alias: cpu)"),
    ("r15m", "NI", 15, "15-minute CPU run queue length"),
    ("ut", "NI", 15, "1-minute CPU utilization (0.0 to 1.0)"),
    ("pg", "NI", 15, "Paging rate (pages/second)"),
    ("io", "NI", 15, "Disk IO rate (Kbytes/second)"),
    ("ls", "NI", 30, "Number of login sessions (alias: login)"),
    ("it", "ND", 30, "Idle time (minutes) (alias: idle)"),
    ("tmp", "ND", 120, "Disk space in /tmp (Mbytes)"),
    ("swp", "ND", 15, "Available swap space (Mbytes) (alias: swap)"),
    ("mem", "ND", 15, "Available memory (Mbytes)"),
    ("ncpus", "ND", 0, "Number of CPUs"),
    ("nprocs", "ND", 0, "Number of physical processors"),
    ("ncores", "ND", 0, "Number of cores per physical processor"),
    ("nthreads", "ND", 0, "Number of threads per processor core"),
    ("ndisks", "ND", 0, "Number of local disks"),
    ("maxmem", "ND", 0, "Maximum memory (Mbytes)"),
    ("maxswp", "ND", 0, "Maximum swap space (Mbytes)"),
    ("maxtmp", "ND", 0, "Maximum /tmp space (Mbytes)"),
    ("cpuf", "ND", 0, "CPU factor"),
    ("rexpri", "N-", 0, "Remote execution priority"),
    ("server", "B-", 0, "LSF server host"),
    ("type", "S-", 0, "Host type"),
    ("model", "S-", 0, "Host model"),
    ("status", "S-", 0, "Host status"),
    ("hname", "S-", 0, "Host name"),
];

pub fn run(ctx: &mut Ctx) -> i32 {
    let o = match front::parse_of::<Options>(ctx) {
        Ok(parsed) => parsed.options,
        Err(exit) => return exit.show(ctx),
    };
    match text(&o) {
        Ok((text, unknown)) => {
            let _ = ctx.out.write_all(text.as_bytes());
            for name in &unknown {
                errln!(ctx, "{name}: Resource name not found");
            }
            if unknown.is_empty() { 0 } else { FAIL }
        }
        Err(why) => {
            errln!(ctx, "lsinfo: {why}");
            FAIL
        }
    }
}

fn text(o: &Options) -> Result<(String, Vec<String>), String> {
    let mut cluster = lim::Cluster::open()?;
    let shared = cluster.shared();
    let rows = rows(&shared);
    let unknown = o.names.iter().filter(|n| !rows.iter().any(|r| r.name == **n)).cloned();
    let unknown: Vec<String> = unknown.collect();
    let all = !(o.resources || o.models || o.all_models || o.types || !o.names.is_empty());
    let mut out = String::new();
    if all || o.resources || !o.names.is_empty() {
        let wanted = |r: &&ResourceRow| o.names.is_empty() || o.names.iter().any(|n| n == r.name);
        let rows: Vec<&ResourceRow> = rows.iter().filter(wanted).collect();
        if !rows.is_empty() {
            resources(&mut out, &rows, o.long);
        }
    }
    if all || o.types {
        gap(&mut out);
        out.push_str("TYPE_NAME\n");
        shared.types.iter().for_each(|t| line(&mut out, t));
    }
    if all || o.models || o.all_models {
        gap(&mut out);
        let used = if o.all_models {
            None
        } else {
            let hosts = cluster.hosts(&[])?;
            Some(hosts.into_iter().filter_map(|h| h.facts).map(|f| f.model).collect::<Vec<_>>())
        };
        let shown = |m: &&HostModel| used.as_ref().is_none_or(|u| u.contains(&m.name));
        out.push_str("MODEL_NAME      CPU_FACTOR      ARCHITECTURE\n");
        for m in shared.models.iter().filter(shown) {
            let row =
                format!("{:<16}{:>10.2}      {}", m.name, m.cpu_factor, m.architectures.join(" "));
            line(&mut out, &row);
        }
    }
    Ok((out, unknown))
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn gap(out: &mut String) {
    if !out.is_empty() && !out.ends_with("\n\n") {
        out.push('\n');
    }
}

fn rows(shared: &Shared) -> Vec<ResourceRow<'_>> {
    let built = BUILT_IN.iter().map(|&(name, kind, interval, description)| ResourceRow {
        name,
        kind: match &kind[..1] {
            "N" => "Numeric",
            "B" => "Boolean",
            _ => "String",
        },
        order: match &kind[1..] {
            "I" => "Inc",
            "D" => "Dec",
            _ => "N/A",
        },
        interval,
        built_in: true,
        release: false,
        description,
    });
    let own = |r: &'_ ResourceDef| (r.kind, r.increasing);
    let configured = shared.resources.iter().map(|r| ResourceRow {
        name: &r.name,
        kind: match own(r).0 {
            ResourceKind::Numeric => "Numeric",
            ResourceKind::Boolean => "Boolean",
            ResourceKind::String => "String",
        },
        order: match own(r) {
            (ResourceKind::Numeric, Some(true)) => "Inc",
            (ResourceKind::Numeric, _) => "Dec",
            _ => "N/A",
        },
        interval: r.interval.unwrap_or(0),
        built_in: false,
        release: r.release && r.kind == ResourceKind::Numeric,
        description: &r.description,
    });
    built.chain(configured).collect()
}

fn resources(out: &mut String, rows: &[&ResourceRow], long: bool) {
    if !long {
        out.push_str("RESOURCE_NAME   TYPE   ORDER  DESCRIPTION\n");
    }
    let yes = |b: bool| if b { "Yes" } else { "No" };
    for r in rows {
        // Writing to a String cannot fail.
        let _ = if long {
            writeln!(
                out,
                "RESOURCE_NAME:  {}\nDESCRIPTION: {}\nTYPE    ORDER   INTERVAL  BUILTIN  DYNAMIC  \
                 RELEASE\n{:<7}{:>6}{:>11}{:>9}{:>9}{:>9}\n",
                r.name,
                r.description,
                r.kind,
                r.order,
                r.interval,
                yes(r.built_in),
                yes(r.interval > 0),
                yes(r.release)
            )
        } else {
            writeln!(out, "{:<12}{:>9}{:>6}   {}", r.name, r.kind, r.order, r.description)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lsinfo_has_the_layout_of_a_running_system() {
        let shared = Shared {
            resources: vec![ResourceDef {
                name: "lic".into(),
                kind: ResourceKind::Numeric,
                increasing: Some(false),
                release: true,
                description: "Floating licences".into(),
                ..ResourceDef::default()
            }],
            ..Shared::default()
        };
        let rows = rows(&shared);
        let pick = |names: [&str; 3], long| {
            let mut out = String::new();
            let rows: Vec<&ResourceRow> = rows.iter().filter(|r| names.contains(&r.name)).collect();
            resources(&mut out, &rows, long);
            out
        };
        assert_eq!(
            pick(["r1m", "server", "type"], false),
            "RESOURCE_NAME   TYPE   ORDER  DESCRIPTION\n\
             r1m           Numeric   Inc   1-minute CPU run queue length (alias: cpu)\n\
             server        Boolean   N/A   LSF server host\n\
             type           String   N/A   Host type\n"
        );
        assert_eq!(
            pick(["lic", "tmp", ""], true),
            "RESOURCE_NAME:  tmp\nDESCRIPTION: Disk space in /tmp (Mbytes)\n\
             TYPE    ORDER   INTERVAL  BUILTIN  DYNAMIC  RELEASE\n\
             Numeric   Dec        120      Yes      Yes       No\n\n\
             RESOURCE_NAME:  lic\nDESCRIPTION: Floating licences\n\
             TYPE    ORDER   INTERVAL  BUILTIN  DYNAMIC  RELEASE\n\
             Numeric   Dec          0       No       No      Yes\n\n"
        );
    }
}

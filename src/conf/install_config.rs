//! install.config: what `lsfinstall` makes a site from, `NAME=VALUE` lines.
//!
//! See install.config(5).

use super::diag::{Diags, Pos};
use super::files::Files;
use super::generate::SitePlan;
use super::lexer::shown;
use super::lsf_conf::assignments;
use super::names::tables::INSTALL;
use super::types::RawParams;

/// The required parameters.
const NEEDED: [&str; 4] = ["LSF_TOP", "LSF_ADMINS", "LSF_CLUSTER_NAME", "LSF_MASTER_LIST"];

/// Reads install.config. The plan is right only where no diagnostic is an error; None: the file
/// cannot be read.
pub fn parse(files: &dyn Files, path: &str, diags: &mut Diags) -> Option<SitePlan> {
    let values = assignments(files, path, &INSTALL, diags)?;
    let get = |name: &str| values.get(name).map_or("", |v| v.text.as_str());
    for name in NEEDED.into_iter().filter(|n| get(n).is_empty()) {
        diags.error(&Pos::whole(path), format!("{name} is missing"));
    }
    let top = get("LSF_TOP");
    let mut plan = SitePlan::site(if top.len() > 1 { top.trim_end_matches('/') } else { top });
    plan.cluster = get("LSF_CLUSTER_NAME").to_owned();
    plan.admins = words(get("LSF_ADMINS"));
    plan.masters = words(get("LSF_MASTER_LIST"));
    for (name, server) in
        [("LSF_MASTER_LIST", true), ("LSF_ADD_SERVERS", true), ("LSF_ADD_CLIENTS", false)]
    {
        for host in words(get(name)) {
            match plan.hosts.iter().find(|(h, _)| *h == host) {
                Some((_, known)) if *known != server => {
                    let text = format!("host <{}> is a server already", shown(&host));
                    diags.error(&place(&values, name, &host), text);
                }
                Some(_) => {}
                None => plan.hosts.push((host, server)),
            }
        }
    }
    let dirs = [("LSF_RUNDIR", &mut plan.rundir), ("LSF_KEY_FILE", &mut plan.key_file)];
    for (name, dir) in dirs {
        if !get(name).is_empty() {
            *dir = get(name).to_owned();
        }
    }
    let ports = [
        ("LSF_LIM_PORT", &mut plan.lim_port),
        ("LSF_RES_PORT", &mut plan.res_port),
        ("LSB_MBD_PORT", &mut plan.mbd_port),
        ("LSB_SBD_PORT", &mut plan.sbd_port),
    ];
    for (name, port) in ports {
        match get(name).parse() {
            _ if get(name).is_empty() => {}
            Ok(n) if n > 0 => *port = n,
            _ => {
                let text = format!("bad value <{}> of {name}: a port is wanted", shown(get(name)));
                diags.error(&place(&values, name, ""), text);
            }
        }
    }
    check(&plan, &values, path, diags);
    Some(plan)
}

fn words(list: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in list.split_whitespace().filter(|w| !w.is_empty()) {
        if !found.iter().any(|f| f == word) {
            found.push(word.to_owned());
        }
    }
    found
}

/// The position of a word of a value, or of the value.
fn place(values: &RawParams, name: &str, word: &str) -> Pos {
    let value = values.get(name);
    value.map_or_else(Pos::default, |v| {
        let at = v.text.split_whitespace().find(|w| *w == word);
        at.map_or_else(|| v.pos.clone(), |w| v.pos_of(w))
    })
}

/// Tells what the plan itself finds wrong, where the value stands that holds it.
fn check(plan: &SitePlan, values: &RawParams, path: &str, diags: &mut Diags) {
    if NEEDED.iter().any(|n| values.get(*n).is_none_or(|v| v.text.is_empty())) {
        return;
    }
    let below = |file: &str, top: &str| {
        file.strip_prefix(top).is_some_and(|rest| rest.starts_with('/') || top.ends_with('/'))
    };
    for (name, file) in [("LSF_KEY_FILE", &plan.key_file), ("LSF_RUNDIR", &plan.rundir)] {
        if below(file, &plan.top) {
            let text = format!("<{}> must be on local disk, never below LSF_TOP", shown(file));
            diags.error(&place(values, name, ""), text);
        }
    }
    if let Some(why) = plan.fault() {
        let quoted = why.split(['<', '>']).nth(1).unwrap_or_default();
        let holds = |text: &str| {
            text.trim_end_matches('/') == quoted || text.split_whitespace().any(|w| w == quoted)
        };
        let whose = values.iter().find(|(_, v)| holds(&v.text));
        let at = whose.map_or_else(|| Pos::whole(path), |(name, _)| place(values, name, quoted));
        diags.error(&at, why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::testing::MapFiles;

    const GOOD: &str = "# the site\nLSF_TOP=/share/lsf/\nLSF_ADMINS=\"lsfadm ann\"\n\
        LSF_CLUSTER_NAME=c1\nLSF_MASTER_LIST=\"a b\"\nLSF_ADD_SERVERS=\"b c\"\n\
        LSF_ADD_CLIENTS=d\n";

    fn read(text: &str) -> (Option<SitePlan>, Vec<String>) {
        let mut files = MapFiles::default();
        files.put("/i", text);
        let mut diags = Diags::new();
        let plan = parse(&files, "/i", &mut diags);
        let told = |d: &crate::conf::Diag| format!("{} {d}", d.severity.word());
        (plan, diags.list().iter().map(told).collect())
    }

    #[test]
    fn classic_keywords_of_install_config_are_read() {
        let (plan, told) = read(GOOD);
        assert_eq!(told, Vec::<String>::new());
        let plan = plan.unwrap();
        assert_eq!((plan.top.as_str(), plan.cluster.as_str()), ("/share/lsf", "c1"));
        assert_eq!(
            (plan.admins.join(" "), plan.masters.join(" ")),
            ("lsfadm ann".into(), "a b".into())
        );
        let hosts: Vec<(&str, bool)> = plan.hosts.iter().map(|(h, s)| (h.as_str(), *s)).collect();
        assert_eq!(hosts, [("a", true), ("b", true), ("c", true), ("d", false)]);
        assert_eq!((plan.lim_port, plan.sbd_port), (7869, 6882));
        assert_eq!((plan.rundir.as_str(), plan.key_file.as_str()), ("/run/lsf", "/etc/lsf.key"));
        let (plan, told) =
            read(&format!("{GOOD}LSF_LIM_PORT=7000\nSILENT_INSTALL=Y\nLSF_RUNDIR=/r\n"));
        assert_eq!(told, ["notice /i:9:1: SILENT_INSTALL is known and not acted on"]);
        let plan = plan.unwrap();
        assert_eq!((plan.lim_port, plan.rundir.as_str()), (7000, "/r"));
    }

    #[test]
    fn a_site_reads_back_without_a_word() {
        let plan = read(GOOD).0.unwrap();
        let mut files = MapFiles::default();
        for (path, text, _) in crate::conf::generate(&plan) {
            files.put(&format!("{}/{path}", plan.top), &text);
        }
        let (conf, diags) = crate::conf::load(&files, "/share/lsf/conf");
        assert_eq!(diags.iter().map(|d| d.to_string()).collect::<Vec<_>>(), Vec::<String>::new());
        let conf = conf.unwrap();
        assert!(!conf.base.lsf.personal() && !conf.base.lsf.allow_local_host());
        assert_eq!(conf.base.cluster.admins, ["lsfadm", "ann"]);
        assert_eq!(conf.server_hosts().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(conf.base.lsf.master_list(), ["a", "b"]);
        assert_eq!(conf.base.lsf.key_file(), "/etc/lsf.key");
    }

    #[test]
    fn mistakes_have_their_place() {
        let (_, told) = read("LSF_TOP=/t\nLSF_ADMINZ=x\n");
        assert_eq!(
            told,
            [
                "error /i:2:1: unknown parameter <LSF_ADMINZ>; did you mean <LSF_ADMINS>?",
                "error /i: LSF_ADMINS is missing",
                "error /i: LSF_CLUSTER_NAME is missing",
                "error /i: LSF_MASTER_LIST is missing",
            ]
        );
        let wrong = |from: &str, to: &str, want: &str| {
            let (_, told) = read(&GOOD.replace(from, to));
            assert_eq!(told, [format!("error {want}")]);
        };
        wrong("=/share", "=share", "/i:2:9: <share/lsf> cannot be written into lsf.conf");
        wrong(
            "=c1",
            "=\"c 1\"",
            "/i:4:19: <c 1> cannot name a cluster: a name without blanks and special characters is \
             wanted",
        );
        wrong("\"b c\"", "\"b c;rm\"", "/i:6:20: <c;rm> cannot name a host");
        wrong("CLIENTS=d", "CLIENTS=\"d b\"", "/i:7:20: host <b> is a server already");
        wrong(
            "CLIENTS=d",
            "CLIENTS=d\nLSF_LIM_PORT=x",
            "/i:8:14: bad value <x> of LSF_LIM_PORT: a port is wanted",
        );
        wrong(
            "CLIENTS=d",
            "CLIENTS=d\nLSF_KEY_FILE=/share/lsf/key",
            "/i:8:14: </share/lsf/key> must be on local disk, never below LSF_TOP",
        );
    }
}

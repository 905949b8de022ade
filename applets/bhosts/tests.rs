//! Rendering against the texts of tests/cmd/expected, written by hand from the documentation.

use lsf::proto::client::{ClientMsg, HostInfo};
use lsf::proto::lim::HostLoad;

fn host(name: &str, status: &str) -> HostInfo {
    HostInfo {
        name: name.into(),
        status: status.into(),
        cpu_factor: 12.5,
        max: Some(16),
        reserved: vec![0.0; 11],
        thresholds: vec![(None, None); 11],
        ..HostInfo::default()
    }
}

fn zoo() -> Vec<HostInfo> {
    vec![
        HostInfo { njobs: 4, run: 4, ..host("hosta", "ok") },
        HostInfo { jl_u: Some(3), njobs: 16, run: 15, ususp: 1, ..host("hostb", "closed_Full") },
        HostInfo { max: None, ..host("hostc", "unavail") },
        HostInfo { ssusp: 2, rsv: 1, ..host("a_host.with.a.long.name", "closed_Adm") },
        host("esc\u{1b}[1m", "unreach"),
    ]
}

fn show(words: &[&str]) -> String {
    let args: Vec<std::ffi::OsString> = words.iter().map(std::ffi::OsString::from).collect();
    let call = super::plan(&args, None).unwrap_or_else(|e| panic!("{words:?}: {}", e.err));
    call.show(&zoo())
}

#[test]
fn bhosts_shows_the_default_table() {
    assert_eq!(show(&[]), include_str!("../../tests/cmd/expected/bhosts.txt"));
}

#[test]
fn bhosts_w_shows_the_wide_table() {
    assert_eq!(show(&["-w"]), include_str!("../../tests/cmd/expected/bhosts-w.txt"));
}

/// Five hosts, three of them in condensed groups: one in two.
fn grouped() -> Vec<HostInfo> {
    let of = |groups: &[&str], row: HostInfo| HostInfo {
        condensed: groups.iter().map(|g| g.to_string()).collect(),
        ..row
    };
    vec![
        HostInfo { njobs: 1, run: 1, ..host("hosta", "ok") },
        of(
            &["rack1"],
            HostInfo { jl_u: Some(3), njobs: 16, run: 15, ususp: 1, ..host("hostb", "ok") },
        ),
        of(
            &["rack1", "rack2"],
            HostInfo { jl_u: Some(2), ssusp: 2, njobs: 2, ..host("hostc", "unavail") },
        ),
        of(&["rack2"], HostInfo { max: None, rsv: 4, njobs: 4, ..host("hostd", "closed_Busy") }),
        of(&["rack3"], host("hoste", "unavail")),
    ]
}

fn shown_of(words: &[&str], rows: &[HostInfo]) -> Vec<String> {
    let args: Vec<std::ffi::OsString> = words.iter().map(std::ffi::OsString::from).collect();
    let call = super::plan(&args, None).unwrap_or_else(|e| panic!("{words:?}: {}", e.err));
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    call.show(rows).lines().skip(1).map(words).collect()
}

#[test]
fn condensed_groups_stand_in_place_of_their_hosts() {
    let rows = grouped();
    let want = [
        "hosta ok - 16 1 1 0 0 0",
        "rack1 ok 5 32 18 15 2 1 0",
        "rack2 closed - - 6 0 2 0 4",
        "rack3 unavail - 16 0 0 0 0 0",
    ];
    assert_eq!(shown_of(&[], &rows), want);
    let wide = shown_of(&["-w"], &rows);
    assert_eq!(wide[1], "rack1 ok 1/1/0/0 5 32 18 15 2 1 0");
    assert_eq!(wide[2], "rack2 closed - - 6 0 2 0 4");
    assert_eq!(wide[3], "rack3 unavail 0/1/0/0 - 16 0 0 0 0 0");
    // a host that is named stands for itself, and is not counted in its group
    let named = shown_of(&["hostb", "rack1"], &rows[1..3]);
    assert_eq!(
        named,
        [
            "hostb ok 3 16 16 15 0 1 0",
            "rack1 unavail 2 16 2 0 2 0 0",
            "rack2 unavail 2 16 2 0 2 0 0"
        ]
    );
    let mut busy = [rows[1].clone(), rows[2].clone()];
    busy[1].status = "closed_Busy".into();
    assert_eq!(shown_of(&["-w"], &busy)[0].split(" 5").next(), Some("rack1 ok 1/0/0/1"));
    busy[0].status = "unreach".into();
    busy[1].status = "unavail".into();
    assert_eq!(shown_of(&["-w"], &busy)[0].split(" 5").next(), Some("rack1 unreach 0/1/1/0"));
}

#[test]
fn other_forms_of_bhosts_show_the_hosts_of_condensed_groups() {
    let rows = grouped();
    let names = |words: &[&str]| -> Vec<String> {
        let shown = shown_of(words, &rows);
        shown.iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    let all = ["hosta", "hostb", "hostc", "hostd", "hoste"];
    for words in [&["-X"][..], &["-w", "-X"], &["-x"], &["-o", "hname stat"], &["-rc"]] {
        assert_eq!(names(words), all, "{words:?}");
    }
}

#[test]
fn a_host_at_length() {
    let load = HostLoad {
        host: "hosta".into(),
        index: [0.0, 0.04, 0.0, 0.01, 0.0, 0.0, 1.0, 12.0, 20_480.0, 8192.0, 61_542.0],
        ..HostLoad::default()
    };
    let mut h = HostInfo { njobs: 4, run: 4, load: Some(load), ..host("hosta", "ok") };
    let mut out = String::new();
    super::long::host(&mut out, &h);
    h.status = "closed_Full".into();
    h.dispatch_window = "19:00-7:00".into();
    h.admin_comment = "disk swap".into();
    h.thresholds[1] = (Some(3.5), None);
    h.thresholds[10] = (Some(70_000.0), None);
    h.reserved[10] = 43.0;
    if let Some(load) = &mut h.load {
        load.index[1] = 9.1;
        load.external = vec![("lic".into(), "10".into()), ("a_long_name".into(), "1.5".into())];
    }
    super::long::host(&mut out, &h);
    let not_acted_on = vec![("CHKPNT".into(), "C".into())];
    let last = HostInfo {
        not_acted_on,
        migration: Some(30),
        exit_rate: Some((20, 3)),
        ..host("hostc", "unavail")
    };
    super::long::host(&mut out, &last);
    assert_eq!(out, include_str!("../../tests/cmd/expected/bhosts-l.txt"));
}

#[test]
fn bhosts_o_shows_integers_for_scripts() {
    let got = show(&["-noheader", "-o", "hname max ng"]);
    assert_eq!(got.lines().next(), Some("hosta 16 0"));
    assert_eq!(got.lines().nth(2), Some("hostc - 0"));
}

#[test]
fn json_says_why_a_host_is_closed() {
    let v: serde_json::Value =
        serde_json::from_str(&show(&["-json", "-o", "hname stat max"])).unwrap();
    assert_eq!((&v["COMMAND"], &v["HOSTS"]), (&"bhosts".into(), &5.into()));
    let second = serde_json::json!({"HOST_NAME": "hostb", "STATUS": "closed_Full", "MAX": "16"});
    assert_eq!(v["RECORDS"][1], second);
}

#[test]
fn options_of_bhosts_go_into_the_request() {
    let args: Vec<std::ffi::OsString> =
        ["-R", "select[fs]", "hg1", "vm"].iter().map(std::ffi::OsString::from).collect();
    let call = super::plan(&args, None).unwrap_or_else(|e| panic!("{}", e.err));
    let ClientMsg::Hosts { names, res_req } = call.request() else { panic!() };
    assert_eq!((names.join(" ").as_str(), res_req.as_str()), ("hg1 vm", "select[fs]"));
    for (words, said) in [
        (&["-e", "-l"][..], "No host is exported to another cluster"),
        (&["-e", "-s"], "No resource is exported to another cluster"),
        (&["-rconly"], "No host comes from the resource connector"),
    ] {
        let args: Vec<std::ffi::OsString> = words.iter().map(std::ffi::OsString::from).collect();
        let call = super::plan(&args, None).unwrap_or_else(|e| panic!("{}", e.err));
        assert_eq!(call.nothing, Some(said), "{words:?}");
    }
    // whether a host is exceptional is for mbatchd to say
    let call = super::plan(&["-x".into()], None).unwrap_or_else(|e| panic!("{}", e.err));
    assert_eq!((call.exceptions, call.nothing), (true, None));
}

#[test]
fn values_that_a_host_lacks_are_dashes() {
    assert_eq!(show(&["-rc"]), include_str!("../../tests/cmd/expected/bhosts-rc.txt"));
    assert_eq!(show(&["-gpu"]), include_str!("../../tests/cmd/expected/bhosts-gpu.txt"));
    assert_eq!(show(&["-attr"]), include_str!("../../tests/cmd/expected/bhosts-attr.txt"));
    assert_eq!(show(&["-noheader", "-rc"]).lines().count(), zoo().len());
}

#[test]
fn bhosts_aff_shows_the_topology_of_hosts() {
    use lsf::proto::lim::HostFacts;
    let facts =
        HostFacts { max_mem: 16_000, nprocs: 1, ncores: 2, nthreads: 1, ..HostFacts::default() };
    let load = HostLoad { host: "hosta".into(), facts: Some(facts), ..HostLoad::default() };
    let rows = [HostInfo { load: Some(load), ..host("hosta", "ok") }, host("hostb", "unavail")];
    let shown = |words: &[&str]| {
        let args: Vec<std::ffi::OsString> = words.iter().map(std::ffi::OsString::from).collect();
        super::plan(&args, None).unwrap_or_else(|e| panic!("{}", e.err)).show(&rows)
    };
    let want = include_str!("../../tests/cmd/expected/bhosts-aff.txt");
    assert_eq!(shown(&["-aff"]), want);
    let long = shown(&["-l", "-aff"]);
    let end = "\n AFFINITY: Disabled\n Host[-]\n\n";
    assert!(long.starts_with("HOST  hosta\nSTATUS ") && long.ends_with(end), "{long}");
}

#[test]
fn bhosts_aff_marks_the_cpus_and_the_memory_that_jobs_have() {
    use lsf::proto::client::HostUnits;
    use lsf::proto::lim::HostFacts;
    let topology = "N0=8000 S0 0,4 1,5 N1=8000 S1 2,6 3,7".to_owned();
    let facts = HostFacts { max_mem: 16_000, topology, ..HostFacts::default() };
    let load = HostLoad { host: "hosta".into(), facts: Some(facts), ..HostLoad::default() };
    let units = HostUnits { cpus: String::new(), taken: "0,3-4".into(), memory: vec![(1, 100)] };
    let affinity = Some(Box::new(units));
    let rows = [HostInfo { load: Some(load), affinity, ..host("hosta", "ok") }];
    let shown = |words: &[&str]| {
        let args: Vec<std::ffi::OsString> = words.iter().map(std::ffi::OsString::from).collect();
        super::plan(&args, None).unwrap_or_else(|e| panic!("{}", e.err)).show(&rows)
    };
    let want = include_str!("../../tests/cmd/expected/bhosts-aff-units.txt");
    assert_eq!(shown(&["-aff"]), want);
    let below = format!(
        " CONFIGURED AFFINITY CPU LIST: all\n\n AFFINITY: Enabled\n Host[15.6G]\n{}\n",
        want.lines().skip(1).map(|line| format!(" {line}\n")).collect::<String>()
    );
    let long = shown(&["-l", "-aff"]);
    assert!(long.ends_with(&below), "{long}");
}

#[test]
fn names_of_64_characters() {
    let name = format!("node-{}", "e".repeat(59));
    let rows = [HostInfo { njobs: 4, run: 4, ..host(&name, "closed_Full") }];
    let show = |words: &[&str]| {
        let args: Vec<std::ffi::OsString> = words.iter().map(std::ffi::OsString::from).collect();
        super::plan(&args, None).unwrap_or_else(|e| panic!("{words:?}: {}", e.err)).show(&rows)
    };
    assert_eq!(show(&[]), include_str!("../../tests/cmd/expected/bhosts-64.txt"));
    assert_eq!(show(&["-alloc"]), show(&["-X", "-a"]));
    assert_eq!(show(&["-w"]), include_str!("../../tests/cmd/expected/bhosts-64-w.txt"));
    let rows = [HostInfo { njobs: 4, run: 4, ..host("hosta", "ok") }];
    let words = ["-json", "-o", "hname stat jlu max slots dispwin"].map(std::ffi::OsString::from);
    let got = super::plan(&words, None).unwrap_or_else(|e| panic!("{}", e.err)).show(&rows);
    assert_eq!(got, include_str!("../../tests/cmd/expected/bhosts-json.txt"));
}

#[test]
fn bhosts_s_shows_shared_resources() {
    use lsf::proto::lim::SharedRow;
    let row = |name: &str, value: &str, hosts: &[&str]| SharedRow {
        name: name.into(),
        value: value.into(),
        hosts: hosts.iter().map(|h| h.to_string()).collect(),
        dynamic: false,
    };
    let rows =
        [row("lic", "10", &["vm", "vm2"]), row("site", "east", &["vm"]), row("news", "-", &["vm"])];
    let show = |words: &[&str], rows: &[SharedRow]| {
        let args: Vec<std::ffi::OsString> = words.iter().map(std::ffi::OsString::from).collect();
        let call = super::plan(&args, None).unwrap_or_else(|e| panic!("{words:?}: {}", e.err));
        let super::HostListingForm::Shared { strings } = call.form else { panic!("{words:?}") };
        let reserved_external = vec![("held".to_owned(), "2.0".to_owned())];
        let vm = HostInfo { reserved_external, ..host("vm2", "ok") };
        super::shared_table(rows, &[vm], &call, strings)
    };
    let want = include_str!("../../tests/cmd/expected/bhosts-s.txt");
    assert_eq!(show(&["-s"], &rows).unwrap(), want);
    assert_eq!(show(&["-s", "lic"], &rows).unwrap().lines().count(), 2);
    assert_eq!(show(&["-s", "site"], &rows).unwrap_err(), "site: Bad resource name");
    assert!(show(&["-noheader", "-sl", "site"], &rows).unwrap().ends_with("    -       vm \n"));
    let held = show(&["-s"], &[row("held", "3", &["vm", "vm2"])]).unwrap();
    assert!(held.ends_with(" 3            2.0       vm vm2 \n"), "{held}");
    assert_eq!(show(&["-s"], &[]).unwrap_err(), "No resource defined");
}

/// One line a field: its name, width and other names, then its value for a host that is busy and
/// one that is not there.
#[test]
fn every_field_and_its_value() {
    use lsf::cli::columns::Fields;
    use lsf::proto::lim::HostFacts;
    let facts = HostFacts { max_mem: 16_000, ..HostFacts::default() };
    let mut load = HostLoad { host: "hosta".into(), facts: Some(facts), ..HostLoad::default() };
    load.index[10] = 1536.0;
    let mut busy = HostInfo {
        jl_u: Some(3),
        njobs: 12,
        run: 7,
        ssusp: 2,
        ususp: 1,
        rsv: 2,
        dispatch_window: "19:00-7:00".into(),
        admin_comment: "disk swap".into(),
        load: Some(load),
        ..host("hosta", "closed_Adm")
    };
    busy.reserved[10] = 512.0;
    let rows = [busy, HostInfo { max: None, ..host("hostb", "unavail") }];
    let shown = |words: &[&str], unit| {
        let args: Vec<std::ffi::OsString> = words.iter().map(std::ffi::OsString::from).collect();
        let call = super::plan(&args, None).unwrap_or_else(|e| panic!("{}", e.err));
        super::Call { unit, ..call }.show(&rows)
    };
    let fields = super::fields::FIELDS;
    let lines: Vec<&str> =
        include_str!("../../tests/cmd/expected/bhosts-values.txt").lines().collect();
    assert_eq!(lines.len(), fields.count());
    for (i, line) in lines.iter().enumerate() {
        let words: Vec<&str> = line.split(" | ").collect();
        let [name, width, alias, a, b] = words[..] else { panic!("{line}") };
        assert_eq!((fields.name(i), fields.width(i).to_string().as_str()), (name, width));
        assert_eq!(fields.aliases(i).join(" "), alias.trim());
        let want = format!("{}\n{a}\n{b}\n", name.to_uppercase());
        assert_eq!(shown(&["-o", name], None), want);
        let names = [vec![name], fields.aliases(i).to_vec()].concat();
        for name in names {
            let v: serde_json::Value =
                serde_json::from_str(&shown(&["-json", "-o", &name.to_uppercase()], None)).unwrap();
            let key = fields.name(i).to_uppercase();
            // no limit is a value
            let limit = matches!(fields.name(i), "jl_u" | "max" | "slots");
            for (record, value) in v["RECORDS"].as_array().unwrap().iter().zip([a, b]) {
                assert_eq!(record[&key], if value == "-" && !limit { "" } else { value }, "{name}");
            }
        }
        let padded = shown(&["-noheader", "-o", &format!("{name}:-60")], None);
        assert_eq!(padded, format!("{a:>60}\n{b:>60}\n"));
    }
    let sizes = "total_mem::G reserved_mem available_mem:6 delimiter=,";
    assert_eq!(
        shown(&["-noheader", "-o", sizes], Some('M')),
        "15.63G    ,512M,1536M \n-         ,0M,-     \n"
    );
}

/// The documented names, in their order.
#[test]
fn every_field_of_the_manual() {
    use lsf::cli::columns::Fields;
    let all: Vec<&str> =
        (0..super::fields::FIELDS.count()).map(|f| super::fields::FIELDS.name(f)).collect();
    let want = include_str!("../../tests/cmd/expected/bhosts-fields.txt");
    assert_eq!(all, want.split_whitespace().collect::<Vec<_>>());
}

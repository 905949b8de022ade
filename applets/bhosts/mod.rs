//! bhosts: the hosts as the batch system sees them (bhosts(1)).

mod condensed;
mod fields;
mod long;
mod table;

#[cfg(test)]
mod tests;

use argh::{ArgsInfo, FromArgs};
use lsf::cli::client::{self, ClientError};
use lsf::cli::columns::{self, Column, Format, Json};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::{clean, push_clean};
use lsf::cli::{lim, site, topology};
use lsf::errln;
use lsf::model::reason::{err, err_text};
use lsf::proto::client::{ClientMsg, HostInfo};
use lsf::proto::lim::{HostLoad, SharedRow};
use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Write;

/// The fields of `-json` without `-o`: the columns of the default table.
const JSON_FORMAT: &str = "host_name status jl_u max njobs run ssusp ususp rsv";

/// The fields of `-attr`.
const ATTR_FORMAT: &str = "host_name: attribute";

/// Shows the batch server hosts.
// Some fields are there for the option front and the help alone.
#[allow(dead_code)]
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// wide format: names are not cut, the status of closed hosts has its reason
    #[argh(switch, short = 'w')]
    wide: bool,
    /// long format: loads and thresholds
    #[argh(switch, short = 'l')]
    long: bool,
    /// hosts that meet this resource requirement
    #[argh(option, short = 'R', arg_name = "res_req")]
    res_req: Option<String>,
    /// the fields to show: "field[:[-][width][:unit]] ... [delimiter='c']"
    #[argh(option, short = 'o', arg_name = "format")]
    output: Option<String>,
    /// output as JSON
    #[argh(switch, long = "json")]
    json: bool,
    /// no heading
    #[argh(switch, long = "noheader")]
    noheader: bool,
    /// hosts, even of host groups and compute units that are shown in place of their hosts
    #[argh(switch, short = 'X')]
    expand: bool,
    /// accepted
    #[argh(switch, short = 'a', hidden_help)]
    all: bool,
    /// numeric shared resources, all or the named ones, instead of hosts
    #[argh(switch, short = 's')]
    shared: bool,
    /// shared resources instead of hosts, also string resources
    #[argh(switch, long = "sl")]
    shared_all: bool,
    /// accepted for compatibility; slots are always counted
    #[argh(switch)]
    alloc: bool,
    /// accepted; there is one cluster
    #[argh(switch, hidden_help)]
    cname: bool,
    /// hosts on which more jobs have exited lately than EXIT_RATE says
    #[argh(switch, short = 'x')]
    exceptions: bool,
    /// hosts exported to other clusters, of which there are none
    #[argh(switch, short = 'e')]
    exported: bool,
    /// the topology of the hosts: NUMA nodes, sockets, cores, threads
    #[argh(switch)]
    aff: bool,
    /// the GPUs of the hosts
    #[argh(switch)]
    gpu: bool,
    /// the attributes of the hosts
    #[argh(switch)]
    attr: bool,
    /// wide format with the columns of the resource connector
    #[argh(switch)]
    rc: bool,
    /// only hosts of the resource connector, of which there are none
    #[argh(switch)]
    rconly: bool,
    /// accepted; -s always shows the location
    #[argh(switch, hidden_help)]
    loc: bool,
    /// hosts or host groups
    #[argh(positional, greedy, arg_name = "host_name | host_group")]
    hosts: Vec<String>,
}

impl Opts {
    /// The message about a property that no host has.
    fn nothing(&self) -> Option<&'static str> {
        [
            (self.exported && self.shared, "No resource is exported to another cluster"),
            (self.exported, "No host is exported to another cluster"),
            (self.rconly, "No host comes from the resource connector"),
        ]
        .into_iter()
        .find_map(|(given, words)| given.then_some(words))
    }
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let found = site::find();
    let param = |name| site::param(found.as_ref().ok(), name);
    let unit = param("LSB_UNIT_FOR_JOBS_DISPLAY").and_then(|u| columns::read_unit(u.trim()));
    ctx.readings = Some(front::readings::<Opts>);
    let planned = plan(&ctx.args, param("LSB_BHOSTS_FORMAT").as_deref());
    let call = match planned.map(|call| Call { unit, ..call }) {
        Ok(call) => call,
        Err(exit) => return exit.show(ctx),
    };
    if let (HostListingForm::Shared { strings }, None) = (&call.form, call.nothing) {
        let strings = *strings;
        return shared(ctx, &call, strings);
    }
    let mut rows = match client::ask(ctx, call.request()) {
        Ok(ClientMsg::HostRows { rows }) => rows,
        other => {
            let e = other.err().unwrap_or(ClientError::Unexpected);
            errln!(ctx, "{}", clean(&e.words()));
            return FAIL;
        }
    };
    if rows.is_empty() && !call.res_req.is_empty() && !matches!(call.form, HostListingForm::Json(_))
    {
        errln!(ctx, "{}", err_text(err::NO_HOST));
        return FAIL;
    }
    rows.retain(|row| !call.exceptions || row.is_exceptional());
    let none = (call.exceptions && rows.is_empty()).then_some("There is no exceptional host found");
    if let Some(words) = call.nothing.or(none) {
        errln!(ctx, "{words}");
        return 0;
    }
    let _ = ctx.out.write_all(call.show(&rows).as_bytes());
    0
}

/// -s and -sl: what LIM knows of the resources that hosts share, and what jobs reserve of them.
fn shared(ctx: &mut Ctx, call: &Call, strings: bool) -> i32 {
    let rows = lim::Cluster::open().and_then(|mut c| c.shared_rows());
    let ask = ClientMsg::Hosts { names: Vec::new(), res_req: String::new() };
    let hosts = match client::ask(ctx, ask) {
        Ok(ClientMsg::HostRows { rows }) => Ok(rows),
        other => Err(other.err().unwrap_or(ClientError::Unexpected).words()),
    };
    let both = rows.and_then(|rows| Ok((rows, hosts?)));
    match both.and_then(|(rows, hosts)| shared_table(&rows, &hosts, call, strings)) {
        Ok(text) => {
            let _ = ctx.out.write_all(text.as_bytes());
            0
        }
        Err(why) => {
            errln!(ctx, "{}", clean(&why));
            FAIL
        }
    }
}

/// The reserved amount is the same on all hosts that share the resource.
fn shared_table(
    rows: &[SharedRow],
    hosts: &[HostInfo],
    call: &Call,
    strings: bool,
) -> Result<String, String> {
    let shown = |r: &&SharedRow| strings || r.value == "-" || r.value.parse::<f64>().is_ok();
    let rows: Vec<&SharedRow> = rows.iter().filter(shown).collect();
    if let Some(bad) = call.names.iter().find(|n| rows.iter().all(|r| r.name != **n)) {
        return Err(format!("{bad}: {}", err_text(err::BAD_RESOURCE)));
    }
    if rows.is_empty() {
        return Err(err_text(err::NO_RESOURCE).to_string());
    }
    let mut out = String::new();
    if call.head {
        out.push_str("RESOURCE                 TOTAL       RESERVED       LOCATION\n");
    }
    for r in rows.iter().filter(|r| call.names.is_empty() || call.names.contains(&r.name)) {
        let first = hosts.iter().find(|h| r.hosts.contains(&h.name));
        let found = first.and_then(|h| h.reserved_external.iter().find(|(n, _)| *n == r.name));
        let none = if r.value.parse::<f64>().is_ok() { "0.0" } else { "-" };
        let reserved = found.map_or(none, |(_, v)| v);
        let _ = write!(out, "{:<20}{:>10}{reserved:>15}       ", clean(&r.name), clean(&r.value));
        for host in &r.hosts {
            push_clean(&mut out, host);
            out.push(' ');
        }
        out.push('\n');
    }
    Ok(out)
}

enum HostListingForm {
    /// -w; with `expand` -X.
    Table {
        wide: bool,
        expand: bool,
    },
    Long,
    /// -s; with `strings` -sl.
    Shared {
        strings: bool,
    },
    /// -aff; with `long` -l -aff.
    Topology {
        long: bool,
    },
    /// -gpu.
    Gpus,
    /// -rc.
    Connector,
    Custom(Format),
    Json(Format),
}

/// A call: what to ask, how to show the answer.
struct Call {
    names: Vec<String>,
    res_req: String,
    form: HostListingForm,
    head: bool,
    /// LSB_UNIT_FOR_JOBS_DISPLAY.
    unit: Option<char>,
    /// Exceptional hosts alone.
    exceptions: bool,
    /// Said instead of the hosts.
    nothing: Option<&'static str>,
}

/// `format`: LSB_BHOSTS_FORMAT.
fn plan(args: &[OsString], format: Option<&str>) -> Result<Call, Exit> {
    let parsed = front::parse::<Opts>("bhosts", args)?;
    let o = parsed.options;
    let parse = |text: &str| Format::parse(text, &fields::FIELDS).map_err(Exit::fail);
    let text = o.output.as_deref().or(format);
    let form = match (o.json, &o.output) {
        _ if o.shared || o.shared_all => HostListingForm::Shared { strings: o.shared_all },
        (true, _) => HostListingForm::Json(parse(text.unwrap_or(JSON_FORMAT))?),
        (false, Some(text)) => HostListingForm::Custom(parse(text)?),
        _ if o.aff => HostListingForm::Topology { long: o.long },
        _ if o.gpu => HostListingForm::Gpus,
        _ if o.rc => HostListingForm::Connector,
        _ if o.attr && !o.long => HostListingForm::Custom(parse(ATTR_FORMAT)?),
        _ if o.long => HostListingForm::Long,
        _ => match text.filter(|_| !o.wide) {
            Some(text) => HostListingForm::Custom(parse(text)?),
            None => HostListingForm::Table { wide: o.wide, expand: o.expand || o.exceptions },
        },
    };
    Ok(Call {
        names: parsed.operands.iter().map(|n| n.to_string_lossy().into_owned()).collect(),
        nothing: o.nothing(),
        exceptions: o.exceptions,
        res_req: o.res_req.unwrap_or_default(),
        form,
        head: !o.noheader,
        unit: None,
    })
}

impl Call {
    fn request(&self) -> ClientMsg {
        ClientMsg::Hosts { names: self.names.clone(), res_req: self.res_req.clone() }
    }

    fn show(&self, rows: &[HostInfo]) -> String {
        let mut out = String::new();
        match &self.form {
            HostListingForm::Table { wide, expand } => {
                if self.head {
                    table::head(&mut out, *wide);
                }
                let shown = match *expand {
                    true => Cow::Borrowed(rows),
                    false => condensed::rows(rows, &self.names, *wide),
                };
                shown.iter().for_each(|h| table::row(&mut out, h, *wide));
            }
            // asked of LIM, shown by `shared`
            HostListingForm::Shared { .. } => {}
            HostListingForm::Topology { long } => rows.iter().for_each(|h| {
                if *long {
                    long::host(&mut out, h);
                    let word = if h.affinity.is_some() { "Enabled" } else { "Disabled" };
                    out.push_str(&format!(" AFFINITY: {word}\n"));
                }
                let unknown = HostLoad { host: h.name.clone(), ..HostLoad::default() };
                let load = h.load.as_ref().unwrap_or(&unknown);
                let tree = topology::tree_in_use(load, h.affinity.as_deref(), *long);
                out.push_str(&tree);
            }),
            HostListingForm::Gpus => table::gpus(&mut out, rows, self.head),
            HostListingForm::Connector => table::connector(&mut out, rows, self.head),
            HostListingForm::Long => rows.iter().for_each(|h| long::host(&mut out, h)),
            HostListingForm::Custom(f) => {
                if self.head {
                    f.header(&mut out, &fields::FIELDS);
                }
                for h in rows {
                    f.row(&mut out, &fields::FIELDS, |o, c| fields::value(o, c, h, self.unit));
                }
            }
            HostListingForm::Json(f) => {
                let mut json = Json::new("bhosts", "HOSTS");
                for h in rows {
                    let value = |o: &mut String, c: &Column| fields::value(o, c, h, self.unit);
                    f.record(&mut json, &fields::FIELDS, value);
                }
                out = json.finish();
            }
        }
        out
    }
}

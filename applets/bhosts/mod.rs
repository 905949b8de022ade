//! bhosts: the hosts as the batch system sees them (commands.md §bhosts, clients.md rule 17).

mod fields;
mod long;
mod table;

#[cfg(test)]
mod tests;

use argh::{ArgsInfo, FromArgs};
use lsf::cli::client::{self, ClientError};
use lsf::cli::columns::{Column, Format, Json};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::long::clean;
use lsf::cli::site;
use lsf::errln;
use lsf::proto::client::{ClientMsg, HostInfo};
use std::ffi::OsString;

/// What `-json` shows without `-o`: the columns of the default table.
const JSON_FORMAT: &str = "host_name status jl_u max njobs run ssusp ususp rsv";

/// Shows the batch server hosts.
// Some fields are there for the option front and the help alone.
#[allow(dead_code)]
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// wide format: nothing is cut, closed hosts say why
    #[argh(switch, short = 'w')]
    wide: bool,
    /// long format: loads and thresholds
    #[argh(switch, short = 'l')]
    long: bool,
    /// hosts that meet this resource requirement
    #[argh(option, short = 'R', arg_name = "res_req")]
    res_req: Option<String>,
    /// these fields: "field[:[-][width][:unit]] ... [delimiter='c']"
    #[argh(option, short = 'o', arg_name = "format")]
    output: Option<String>,
    /// as JSON
    #[argh(switch, long = "json")]
    json: bool,
    /// no heading
    #[argh(switch, long = "noheader")]
    noheader: bool,
    /// condensed host groups are never used
    #[argh(switch, short = 'X', hidden_help)]
    expand: bool,
    /// no host is ever relinquished
    #[argh(switch, short = 'a', hidden_help)]
    all: bool,
    /// not acted on
    #[argh(switch, short = 's', hidden_help)]
    shared: bool,
    /// not acted on
    #[argh(switch, long = "sl", hidden_help)]
    shared_all: bool,
    /// not acted on
    #[argh(switch, short = 'x', hidden_help)]
    exceptions: bool,
    /// not acted on
    #[argh(switch, hidden_help)]
    alloc: bool,
    /// not acted on
    #[argh(switch, hidden_help)]
    aff: bool,
    /// not acted on
    #[argh(switch, hidden_help)]
    gpu: bool,
    /// hosts or host groups
    #[argh(positional, greedy, arg_name = "host_name | host_group")]
    hosts: Vec<String>,
}

impl Opts {
    /// An option that was given and that nothing acts on.
    fn refused(&self) -> Option<&'static str> {
        [
            ("-s", self.shared),
            ("-sl", self.shared_all),
            ("-x", self.exceptions),
            ("-alloc", self.alloc),
            ("-aff", self.aff),
            ("-gpu", self.gpu),
        ]
        .into_iter()
        .find_map(|(word, given)| given.then_some(word))
    }
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let lsf = site::find().ok().map(|s| s.lsf);
    let format = std::env::var("LSB_BHOSTS_FORMAT").ok();
    let format = format.or_else(|| Some(lsf.as_ref()?.get("LSB_BHOSTS_FORMAT")?.to_string()));
    let call = match plan(&ctx.args, format.as_deref()) {
        Ok(call) => call,
        Err(exit) => return exit.show(ctx),
    };
    let rows = match client::ask(ctx, call.request()) {
        Ok(ClientMsg::HostRows { rows }) => rows,
        other => {
            let e = other.err().unwrap_or(ClientError::Unexpected);
            errln!(ctx, "{}", clean(&e.words()));
            return FAIL;
        }
    };
    let _ = ctx.out.write_all(call.show(&rows).as_bytes());
    0
}

enum Form {
    Table { wide: bool },
    Long,
    Custom(Format),
    Json(Format),
}

/// A call: what to ask, how to show the answer.
struct Call {
    names: Vec<String>,
    res_req: String,
    form: Form,
    head: bool,
}

/// `format`: LSB_BHOSTS_FORMAT.
fn plan(args: &[OsString], format: Option<&str>) -> Result<Call, Exit> {
    let parsed = front::parse::<Opts>("bhosts", args)?;
    let o = parsed.options;
    if let Some(word) = o.refused() {
        return Err(Exit::fail(format_args!("bhosts: option {word} is not supported yet")));
    }
    let parse = |text: &str| Format::parse(text, &fields::FIELDS).map_err(Exit::fail);
    let text = o.output.as_deref().or(format.filter(|f| !f.trim().is_empty()));
    let form = match (o.json, &o.output) {
        (true, _) => Form::Json(parse(text.unwrap_or(JSON_FORMAT))?),
        (false, Some(text)) => Form::Custom(parse(text)?),
        _ if o.long => Form::Long,
        _ => match text.filter(|_| !o.wide) {
            Some(text) => Form::Custom(parse(text)?),
            None => Form::Table { wide: o.wide },
        },
    };
    Ok(Call {
        names: parsed.operands.iter().map(|n| n.to_string_lossy().into_owned()).collect(),
        res_req: o.res_req.unwrap_or_default(),
        form,
        head: !o.noheader,
    })
}

impl Call {
    fn request(&self) -> ClientMsg {
        ClientMsg::Hosts { names: self.names.clone(), res_req: self.res_req.clone() }
    }

    fn show(&self, rows: &[HostInfo]) -> String {
        let mut out = String::new();
        match &self.form {
            Form::Table { wide } => {
                if self.head {
                    table::head(&mut out, *wide);
                }
                rows.iter().for_each(|h| table::row(&mut out, h, *wide));
            }
            Form::Long => rows.iter().for_each(|h| long::host(&mut out, h)),
            Form::Custom(f) => {
                if self.head {
                    f.header(&mut out, &fields::FIELDS);
                }
                for h in rows {
                    f.row(&mut out, &fields::FIELDS, |o, c| fields::FIELDS.value(o, c.field, h));
                }
            }
            Form::Json(f) => {
                let mut json = Json::new("bhosts", "HOSTS");
                for h in rows {
                    let value = |o: &mut String, c: &Column| {
                        fields::FIELDS.value(o, c.field, h);
                    };
                    f.record(&mut json, &fields::FIELDS, value);
                }
                out = json.finish();
            }
        }
        out
    }
}

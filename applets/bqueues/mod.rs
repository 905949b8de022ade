//! bqueues: the queues (bqueues(1)).

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
use lsf::cli::long_format::clean;
use lsf::cli::site;
use lsf::conf::units::SizeUnit;
use lsf::errln;
use lsf::proto::client::{ClientMsg, QueueInfo};
use std::ffi::OsString;

/// The fields of `-json` without `-o`: the columns of the default table.
const JSON_FORMAT: &str = "queue_name priority status max jl_u jl_p jl_h njobs pend run susp";

/// Shows the queues.
// Some fields are there for the option front and the help alone.
#[allow(dead_code)]
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// wide format: names are not cut
    #[argh(switch, short = 'w')]
    wide: bool,
    /// long format
    #[argh(switch, short = 'l')]
    long: bool,
    /// long format, with the shares of users
    #[argh(switch, short = 'r')]
    shares: bool,
    /// queues that this user may use; `all`: every queue
    #[argh(option, short = 'u', arg_name = "user_name | all")]
    user: Option<String>,
    /// queues that can run jobs on this host or host group
    #[argh(option, short = 'm', arg_name = "host_name")]
    host: Option<String>,
    /// the fields to show: "field[:[-][width][:unit]] ... [delimiter='c']"
    #[argh(option, short = 'o', arg_name = "format")]
    output: Option<String>,
    /// output as JSON
    #[argh(switch, long = "json")]
    json: bool,
    /// no heading
    #[argh(switch, long = "noheader")]
    noheader: bool,
    /// accepted for compatibility; slots are always counted
    #[argh(switch)]
    alloc: bool,
    /// the queues
    #[argh(positional, greedy, arg_name = "queue_name")]
    queues: Vec<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let found = site::find().ok();
    let format = site::param(found.as_ref(), "LSB_BQUEUES_FORMAT");
    ctx.readings = Some(front::readings::<Opts>);
    let call = match plan(&ctx.args, format.as_deref()) {
        Ok(call) => call,
        Err(exit) => return exit.show(ctx),
    };
    let rows = match client::ask(ctx, call.request()) {
        Ok(ClientMsg::QueueRows { rows }) => rows,
        other => {
            let e = other.err().unwrap_or(ClientError::Unexpected);
            errln!(ctx, "{}", clean(&e.words()));
            return FAIL;
        }
    };
    let unit = found.map_or(SizeUnit::KB, |s| s.lsf.unit());
    let _ = ctx.out.write_all(call.show(&rows, unit).as_bytes());
    0
}

enum QueueListingForm {
    Table {
        wide: bool,
    },
    /// -r: with the accounts of groups.
    Long {
        all_shares: bool,
    },
    Custom(Format),
    Json(Format),
}

/// A call: what to ask, how to show the answer.
struct Call {
    names: Vec<String>,
    user: String,
    host: String,
    form: QueueListingForm,
    head: bool,
}

/// `format`: LSB_BQUEUES_FORMAT.
fn plan(args: &[OsString], format: Option<&str>) -> Result<Call, Exit> {
    let parsed = front::parse::<Opts>("bqueues", args)?;
    let o = parsed.options;
    let parse = |text: &str| Format::parse(text, &fields::FIELDS).map_err(Exit::fail);
    let plain = !(o.long || o.shares || o.wide);
    let text = o.output.as_deref().or(format);
    let form = match (o.json, &o.output) {
        (true, _) => QueueListingForm::Json(parse(text.unwrap_or(JSON_FORMAT))?),
        (false, Some(text)) => QueueListingForm::Custom(parse(text)?),
        _ if o.long || o.shares => QueueListingForm::Long { all_shares: o.shares },
        _ => match text.filter(|_| plain) {
            Some(text) => QueueListingForm::Custom(parse(text)?),
            None => QueueListingForm::Table { wide: o.wide },
        },
    };
    Ok(Call {
        names: parsed.operands.iter().map(|n| n.to_string_lossy().into_owned()).collect(),
        user: o.user.unwrap_or_default(),
        host: o.host.unwrap_or_default(),
        form,
        head: !o.noheader,
    })
}

impl Call {
    fn request(&self) -> ClientMsg {
        ClientMsg::Queues {
            names: self.names.clone(),
            user: self.user.clone(),
            host: self.host.clone(),
        }
    }

    fn show(&self, rows: &[QueueInfo], unit: SizeUnit) -> String {
        let mut out = String::new();
        match &self.form {
            QueueListingForm::Table { wide } => {
                if self.head {
                    table::head(&mut out, *wide);
                }
                rows.iter().for_each(|q| table::row(&mut out, q, *wide));
            }
            QueueListingForm::Long { all_shares } => rows.iter().enumerate().for_each(|(i, q)| {
                if i > 0 {
                    out.push_str(long::RULE);
                    out.push('\n');
                }
                long::queue(&mut out, q, unit, *all_shares);
            }),
            QueueListingForm::Custom(f) => {
                if self.head {
                    f.header(&mut out, &fields::FIELDS);
                }
                for q in rows {
                    f.row(&mut out, &fields::FIELDS, |o, c| fields::FIELDS.value(o, c.field, q));
                }
            }
            QueueListingForm::Json(f) => {
                let mut json = Json::new("bqueues", "QUEUES");
                for q in rows {
                    let value = |o: &mut String, c: &Column| {
                        fields::FIELDS.value(o, c.field, q);
                    };
                    f.record(&mut json, &fields::FIELDS, value);
                }
                out = json.finish();
            }
        }
        out
    }
}

//! The options of bjobs, and what they come to: a form, a selection, a way to show.

use super::fields::BjobsFields;
use super::listing::{Form, Listing};
use super::show::Show;
use super::table::{Sum, Table};
use argh::{ArgsInfo, FromArgs};
use lsf::cli::clock::Clock;
use lsf::cli::columns::{Format, Json};
use lsf::cli::front::{self, Exit};
use lsf::cli::select;
use lsf::proto::client::{JobSelect, Which};
use std::ffi::OsString;

/// What `-json` shows without `-o`: the columns of the default table.
const JSON_FORMAT: &str = "jobid user stat queue from_host exec_host job_name submit_time";

/// Shows what became of jobs.
// Some fields are there for the option front and the help alone.
#[allow(dead_code)]
#[derive(FromArgs, ArgsInfo)]
pub struct Opts {
    /// wide format: nothing is cut
    #[argh(switch, short = 'w')]
    wide: bool,
    /// long format
    #[argh(switch, short = 'l')]
    long: bool,
    /// long format, lines not broken
    #[argh(switch, long = "-u-f")]
    unformatted: bool,
    /// resource usage after the default columns
    #[argh(switch, short = 'W')]
    usage: bool,
    /// one line an array
    #[argh(switch, short = 'A')]
    arrays: bool,
    /// slots by state
    #[argh(switch, long = "sum")]
    sum: bool,
    /// jobs in all states
    #[argh(switch, short = 'a')]
    all: bool,
    /// finished jobs
    #[argh(switch, short = 'd')]
    done: bool,
    /// pending jobs and why they wait
    #[argh(switch, short = 'p')]
    pend: bool,
    /// as -p
    #[argh(switch, long = "p0", hidden_help)]
    p0: bool,
    /// as -p
    #[argh(switch, long = "p1", hidden_help)]
    p1: bool,
    /// as -p
    #[argh(switch, long = "p2", hidden_help)]
    p2: bool,
    /// as -p
    #[argh(switch, long = "p3", hidden_help)]
    p3: bool,
    /// running jobs
    #[argh(switch, short = 'r')]
    run: bool,
    /// suspended jobs and why
    #[argh(switch, short = 's')]
    susp: bool,
    /// jobs of this user; `all`: of everybody
    #[argh(option, short = 'u', arg_name = "user_name | all")]
    user: Option<String>,
    /// jobs in this queue
    #[argh(option, short = 'q', arg_name = "queue_name")]
    queue: Option<String>,
    /// jobs on this host or host group
    #[argh(option, short = 'm', arg_name = "host_name")]
    host: Option<String>,
    /// jobs of this name; may end in `*`, may name elements
    #[argh(option, short = 'J', arg_name = "job_name")]
    name: Option<String>,
    /// jobs of this project
    #[argh(option, short = 'P', arg_name = "project_name")]
    project: Option<String>,
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
    /// not acted on
    #[argh(option, short = 'G', hidden_help)]
    user_group: Option<String>,
    /// not acted on
    #[argh(option, short = 'g', hidden_help)]
    job_group: Option<String>,
    /// not acted on
    #[argh(option, hidden_help)]
    app: Option<String>,
    /// not acted on
    #[argh(option, hidden_help)]
    sla: Option<String>,
    /// not acted on
    #[argh(option, long = "-jd", hidden_help)]
    description: Option<String>,
    /// not acted on
    #[argh(option, short = 'N', hidden_help)]
    normalise: Option<String>,
    /// not acted on
    #[argh(switch, short = 'x', hidden_help)]
    exceptions: bool,
    /// not acted on
    #[argh(switch, hidden_help)]
    psum: bool,
    /// jobs or elements
    #[argh(positional, greedy, arg_name = "job_ID | \"job_ID[list]\"")]
    jobs: Vec<String>,
}

/// What the site says of listings: lsf.conf, and the environment above it.
pub struct Site {
    format: Option<String>,
    id_width: usize,
    short_hosts: bool,
    hpc: bool,
    /// LSB_BJOBS_CONSISTENT_EXIT_CODE=Y.
    pub consistent: bool,
}

impl Site {
    /// `get` looks a parameter up.
    pub fn new(get: impl Fn(&str) -> Option<String>) -> Self {
        let yes = |name| {
            get(name).is_some_and(|v| matches!(v.trim(), "Y" | "y" | "1" | "yes" | "Yes" | "YES"))
        };
        Site {
            format: get("LSB_BJOBS_FORMAT").filter(|f| !f.trim().is_empty()),
            id_width: if get("LSB_JOBID_DISP_LENGTH").is_some_and(|n| n.trim() == "10") {
                10
            } else {
                7
            },
            short_hosts: yes("LSB_SHORT_HOSTLIST"),
            hpc: yes("LSB_ENABLE_HPC_ALLOCATION"),
            consistent: yes("LSB_BJOBS_CONSISTENT_EXIT_CODE"),
        }
    }
}

impl Opts {
    /// An option that was given and that nothing acts on.
    fn refused(&self) -> Option<&'static str> {
        [
            ("-G", self.user_group.is_some()),
            ("-g", self.job_group.is_some()),
            ("-app", self.app.is_some()),
            ("-sla", self.sla.is_some()),
            ("-Jd", self.description.is_some()),
            ("-N", self.normalise.is_some()),
            ("-x", self.exceptions),
            ("-psum", self.psum),
        ]
        .into_iter()
        .find_map(|(word, given)| given.then_some(word))
    }

    fn form(&self, site: &Site) -> Result<Form, Exit> {
        let long = self.long || self.unformatted;
        let format = |text: &str| Format::parse(text, &BjobsFields).map_err(Exit::fail);
        if let Some(text) = &self.output {
            return Ok(match self.json {
                true => Form::Json(format(text)?, Json::new("bjobs", "JOBS")),
                false => Form::Custom(format(text)?),
            });
        }
        if self.json {
            let text = site.format.as_deref().unwrap_or(JSON_FORMAT);
            return Ok(Form::Json(format(text)?, Json::new("bjobs", "JOBS")));
        }
        Ok(match () {
            _ if self.sum => Form::Sum(Sum::default()),
            _ if self.arrays && long => Form::LongArrays,
            _ if self.arrays => Form::Table(Table::Arrays),
            _ if long => Form::Long,
            _ if self.usage => Form::Table(Table::Usage),
            _ if self.reasons() => Form::Table(Table::Reasons),
            _ if self.wide => Form::Table(Table::Plain),
            _ => match &site.format {
                Some(text) => Form::Custom(format(text)?),
                None => Form::Table(Table::Plain),
            },
        })
    }

    fn pending(&self) -> bool {
        self.pend || self.p0 || self.p1 || self.p2 || self.p3
    }

    /// Only jobs that have reasons are asked for.
    fn reasons(&self) -> bool {
        (self.pending() || self.susp) && !(self.all || self.done || self.run)
    }
}

/// Reads the words of a call.
pub fn plan(args: &[OsString], site: &Site, clock: Clock, now: i64) -> Result<Listing, Exit> {
    let parsed = front::parse::<Opts>("bjobs", args)?;
    let o = parsed.options;
    if let Some(word) = o.refused() {
        return Err(Exit::fail(format_args!("bjobs: option {word} is not supported yet")));
    }
    let ids = select::ids(&parsed.operands).map_err(Exit::fail)?;
    let form = o.form(site)?;
    let which = Which { all: o.all, done: o.done, pend: o.pending(), run: o.run, susp: o.susp };
    let show = Show {
        clock,
        wide: o.wide,
        id_width: site.id_width,
        short_hosts: site.short_hosts,
        hpc: site.hpc,
        unwrapped: o.unformatted,
        now,
    };
    let select = JobSelect {
        ids: ids.ids,
        all: ids.all,
        user: o.user.unwrap_or_default(),
        queue: o.queue.unwrap_or_default(),
        host: o.host.unwrap_or_default(),
        name: o.name.unwrap_or_default(),
        project: o.project.unwrap_or_default(),
    };
    Ok(Listing::new(form, show, !o.noheader, select, which))
}

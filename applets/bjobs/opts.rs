//! The options of bjobs, and what they come to: a form, a selection, a way to show.

use super::fields::{self, BjobsFields};
use super::listing::{Form, Listing, RowFilter};
use super::reasons::PendSum;
use super::show::Show;
use super::stored::StoredRequest;
use super::table::{Sum, TableKind};
use argh::{ArgsInfo, FromArgs};
use lsf::cli::clock::Clock;
use lsf::cli::columns::{self, Format, Json};
use lsf::cli::front::{self, Exit};
use lsf::cli::job_ids;
use lsf::cli::site::means_yes;
use lsf::proto::client::{JobSelect, Which};
use std::ffi::OsString;

/// The fields of `-json` without `-o`: the columns of the default table.
const JSON_FORMAT: &str = "jobid user stat queue from_host exec_host job_name submit_time";

/// Shows the states of jobs.
// Some fields are there for the option front and the help alone.
#[allow(dead_code)]
#[derive(FromArgs, ArgsInfo)]
pub struct Opts {
    /// wide format: names are not cut
    #[argh(switch, short = 'w')]
    wide: bool,
    /// long format
    #[argh(switch, short = 'l')]
    long: bool,
    /// long format, lines not broken
    #[argh(switch, long = "-u-f")]
    unformatted: bool,
    /// the default columns, then project, usage and times
    #[argh(switch, short = 'W')]
    usage: bool,
    /// one line for each array
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
    /// pending jobs, with their pending reasons
    #[argh(switch, short = 'p')]
    pend: bool,
    /// pending jobs, with every reason and the number of its hosts
    #[argh(switch, long = "p0", hidden_help)]
    p0: bool,
    /// pending jobs, with the main reason only
    #[argh(switch, long = "p1", hidden_help)]
    p1: bool,
    /// pending jobs, with the reasons of candidate hosts
    #[argh(switch, long = "p2", hidden_help)]
    p2: bool,
    /// pending jobs, with the reasons of candidate hosts and of other hosts
    #[argh(switch, long = "p3", hidden_help)]
    p3: bool,
    /// pending jobs that are eligible for dispatch
    #[argh(switch, long = "pe")]
    eligible: bool,
    /// pending jobs that are ineligible for dispatch
    #[argh(switch, long = "pi")]
    ineligible: bool,
    /// eligible and ineligible pending jobs, the eligible ones first
    #[argh(switch, long = "pei")]
    both: bool,
    /// a summary of the pending reasons
    #[argh(switch)]
    psum: bool,
    /// running jobs
    #[argh(switch, short = 'r')]
    run: bool,
    /// suspended jobs, with their suspending reasons
    #[argh(switch, short = 's')]
    susp: bool,
    /// jobs of this user; `all`: of all users
    #[argh(option, short = 'u', arg_name = "user_name | all")]
    user: Option<String>,
    /// jobs in this queue
    #[argh(option, short = 'q', arg_name = "queue_name")]
    queue: Option<String>,
    /// jobs on this host or host group
    #[argh(option, short = 'm', arg_name = "host_name")]
    host: Option<String>,
    /// jobs with this name, with or without index; `*` matches any text
    #[argh(option, short = 'J', arg_name = "job_name")]
    name: Option<String>,
    /// jobs of this project
    #[argh(option, short = 'P', arg_name = "project_name")]
    project: Option<String>,
    /// the fields to show: "field[:[-][width][:unit]] ... [delimiter='c']"
    #[argh(option, short = 'o', arg_name = "format")]
    output: Option<String>,
    /// output as JSON
    #[argh(switch, long = "json")]
    json: bool,
    /// no heading
    #[argh(switch, long = "noheader")]
    noheader: bool,
    /// durations in -o as hours:minutes:seconds
    #[argh(switch)]
    hms: bool,
    /// the default columns, then TIME_LEFT
    #[argh(switch, long = "-w-l")]
    time_left: bool,
    /// the default columns, then FINISH_TIME
    #[argh(switch, long = "-w-f")]
    finish: bool,
    /// the default columns, then %COMPLETE
    #[argh(switch, long = "-w-p")]
    complete: bool,
    /// jobs submitted with this user group
    #[argh(option, short = 'G', arg_name = "user_group")]
    user_group: Option<String>,
    /// jobs of this job group
    #[argh(option, short = 'g', arg_name = "job_group")]
    job_group: Option<String>,
    /// jobs of this application profile
    #[argh(option, arg_name = "profile")]
    app: Option<String>,
    /// jobs of this service class
    #[argh(option, arg_name = "service_class")]
    sla: Option<String>,
    /// jobs of this license project
    #[argh(option, long = "-lp", arg_name = "project")]
    license: Option<String>,
    /// jobs submitted for this advance reservation
    #[argh(option, short = 'U', arg_name = "reservation_ID")]
    reservation: Option<String>,
    /// jobs with this description; `*` matches any text
    #[argh(option, long = "-jd", arg_name = "description")]
    description: Option<String>,
    /// jobs that reserve all of these resources
    #[argh(option, arg_name = "resource[,...]")]
    rusage: Option<String>,
    /// jobs with an exception: overrun, underrun or idle
    #[argh(switch, short = 'x')]
    exceptions: bool,
    /// CPU times normalised to this host, host model or CPU factor
    #[argh(option, short = 'N', arg_name = "host | model | factor")]
    normalise: Option<String>,
    /// hosts, even of host groups and compute units that are shown in place of their hosts
    #[argh(switch, short = 'X')]
    expand: bool,
    /// accepted; there is one cluster
    #[argh(switch, hidden_help)]
    cname: bool,
    /// with -l or -UF: the processor units of started jobs
    #[argh(switch)]
    aff: bool,
    /// accepted; no job has GPUs
    #[argh(switch, hidden_help)]
    gpu: bool,
    /// jobs forwarded to other clusters, of which there are none
    #[argh(switch)]
    fwd: bool,
    /// pending jobs with their absolute priority; `-` in queues without APS_PRIORITY
    #[argh(switch)]
    aps: bool,
    /// as -aps, with the weighted factors
    #[argh(switch)]
    prio: bool,
    /// pending jobs with an allocation plan, of which there are none
    #[argh(switch)]
    plan: bool,
    /// jobs of the session scheduler, of which there are none
    #[argh(switch, long = "ss")]
    sessions: bool,
    /// jobs with data requirements, of which there are none
    #[argh(switch)]
    data: bool,
    /// not acted on
    #[argh(switch, hidden_help)]
    bucket: bool,
    /// the environment that the job was submitted with
    #[argh(switch)]
    env: bool,
    /// the script that the job was submitted with
    #[argh(switch)]
    script: bool,
    /// with -l: the host file that the job was submitted with
    #[argh(switch)]
    hostfile: bool,
    /// show the jobs again whenever one of them changes, until all named jobs have ended
    #[argh(switch, long = "watch")]
    watch: bool,
    /// of badmin diagnose: pending reasons whatever CONDENSE_PENDING_REASONS says
    #[argh(switch, long = "wholereasons", hidden_help)]
    whole_reasons: bool,
    /// jobs or elements
    #[argh(positional, greedy, arg_name = "job_ID | \"job_ID[list]\"")]
    jobs: Vec<String>,
}

/// The parameters of listings: lsf.conf, and the environment, which overrides it.
pub struct ListingParams {
    format: Option<String>,
    /// LSB_JOBID_DISP_LENGTH, where it is given.
    id_width: Option<usize>,
    short_hosts: bool,
    hpc: bool,
    short_pids: bool,
    hms: bool,
    year: bool,
    /// LSB_UNIT_FOR_JOBS_DISPLAY.
    unit: Option<char>,
    /// LSB_BJOBS_PENDREASON_LEVEL.
    level: u8,
    /// LSB_BJOBS_CONSISTENT_EXIT_CODE=Y.
    pub consistent: bool,
}

impl ListingParams {
    /// `get` looks a parameter up.
    pub fn new(get: impl Fn(&str) -> Option<String>) -> Self {
        let yes = |name| get(name).is_some_and(|v| means_yes(&v));
        ListingParams {
            format: get("LSB_BJOBS_FORMAT"),
            id_width: get("LSB_JOBID_DISP_LENGTH")
                .and_then(|n| n.trim().parse().ok())
                .filter(|n| matches!(n, 7 | 10)),
            unit: get("LSB_UNIT_FOR_JOBS_DISPLAY").and_then(|u| columns::read_unit(u.trim())),
            short_hosts: yes("LSB_SHORT_HOSTLIST"),
            hpc: yes("LSB_ENABLE_HPC_ALLOCATION"),
            short_pids: get("LSF_HPC_EXTENSIONS")
                .is_some_and(|words| words.split_whitespace().any(|w| w == "SHORT_PIDLIST")),
            hms: yes("LSB_HMS_TIME_FORMAT"),
            year: yes("LSB_DISPLAY_YEAR"),
            level: get("LSB_BJOBS_PENDREASON_LEVEL")
                .and_then(|n| n.trim().parse().ok())
                .filter(|n| *n <= 3)
                .unwrap_or(0),
            consistent: yes("LSB_BJOBS_CONSISTENT_EXIT_CODE"),
        }
    }
}

impl Opts {
    fn form(&self, site: &ListingParams) -> Result<Form, Exit> {
        let long = self.long || self.unformatted;
        let format = |text: &str| {
            let mut format = Format::parse(text, &BjobsFields).map_err(Exit::fail)?;
            for c in format.columns.iter_mut().filter(|c| c.field == fields::JOBID) {
                // never narrower: an ID that is cut names another job
                c.width = c.width.or(site.id_width.filter(|w| *w == 10));
            }
            Ok(format)
        };
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
            _ if self.psum => Form::PendSum(PendSum::default()),
            _ if self.arrays && long => Form::LongArrays,
            _ if self.arrays => Form::Table(TableKind::Arrays),
            _ if long => Form::Long,
            _ if self.usage => Form::Table(TableKind::Usage),
            _ if self.time_left => Form::Table(TableKind::TimeLeft),
            _ if self.finish => Form::Table(TableKind::Finish),
            _ if self.complete => Form::Table(TableKind::Complete),
            _ if self.prio => Form::Table(TableKind::Priorities),
            _ if self.aps => Form::Table(TableKind::Aps),
            _ if self.reasons() => Form::Table(TableKind::Reasons),
            _ if self.wide => Form::Table(TableKind::Plain),
            _ => match &site.format {
                Some(text) => Form::Custom(format(text)?),
                None => Form::Table(TableKind::Plain),
            },
        })
    }

    fn pending(&self) -> bool {
        let levels = self.p0 || self.p1 || self.p2 || self.p3;
        let aps = self.aps || self.prio || self.plan;
        self.pend || levels || aps || self.psum || self.eligible || self.ineligible || self.both
    }

    /// Only jobs that have reasons are asked for.
    fn reasons(&self) -> bool {
        (self.pending() || self.susp) && !(self.all || self.done || self.run)
    }

    /// The level of the pending reasons; the highest of several that are given.
    fn level(&self, site: &ListingParams) -> u8 {
        match () {
            _ if self.p3 => 3,
            _ if self.p2 => 2,
            _ if self.p1 => 1,
            _ if self.p0 => 0,
            _ => site.level,
        }
    }

    /// The conditions for showing a row.
    fn keep(&self) -> RowFilter {
        let only = match (self.eligible, self.ineligible) {
            _ if self.both => None,
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        };
        RowFilter {
            eligible: only,
            parted: self.both || (self.eligible && self.ineligible),
            exceptions: self.exceptions,
            none: self.fwd || self.plan || self.sessions || self.data,
            rusage: self.rusage.as_deref().map_or(Vec::new(), |list| {
                list.split([',', ' ']).filter(|w| !w.is_empty()).map(str::to_string).collect()
            }),
        }
    }

    /// The filters of [`JobSelect::given`].
    fn given(&mut self) -> Vec<(String, String)> {
        [
            ("G", self.user_group.take()),
            ("g", self.job_group.take()),
            ("app", self.app.take()),
            ("sla", self.sla.take()),
            ("Lp", self.license.take()),
            ("Jd", self.description.take()),
            ("U", self.reservation.take()),
        ]
        .into_iter()
        .filter_map(|(option, value)| Some((option.to_string(), value?)))
        .collect()
    }
}

/// The request of -env or -script, with which no other option is allowed.
pub fn stored(args: &[OsString]) -> Result<Option<StoredRequest>, Exit> {
    let parsed = front::parse::<Opts>("bjobs", args)?;
    let o = parsed.options;
    if !o.env && !o.script {
        return Ok(None);
    }
    let mut ids = job_ids::ids(&parsed.operands).map_err(Exit::fail)?.ids;
    match (ids.pop(), ids.is_empty() && args.len() == 2) {
        (Some(id), true) if id.elems.iter().all(|(a, b, _)| a == b) && id.elems.len() < 2 => {
            Ok(Some(StoredRequest { id, script: o.script }))
        }
        _ => {
            let word = if o.env { "-env" } else { "-script" };
            let words = format!("{word} takes one job or element and no other option.");
            Err(front::usage_error::<Opts>("bjobs", &words))
        }
    }
}

/// Reads the words of a call. `factor` gives the CPU factor that -N names.
pub fn plan(
    args: &[OsString],
    site: &ListingParams,
    clock: Clock,
    now: i64,
    factor: impl Fn(&str) -> Result<f64, String>,
) -> Result<Listing, Exit> {
    let parsed = front::parse::<Opts>("bjobs", args)?;
    let mut o = parsed.options;
    if o.bucket {
        return Err(Exit::fail("bjobs: option -bucket is not supported yet"));
    }
    let ids = job_ids::ids(&parsed.operands).map_err(Exit::fail)?;
    let form = o.form(site)?;
    // -N asks for finished jobs, unless jobs are named
    let done = o.done || (o.normalise.is_some() && ids.ids.is_empty());
    let which =
        Which { all: o.all, done, pend: o.pending(), run: o.run, susp: o.susp, exiting: false };
    let show = Show {
        clock: clock.with_year(site.year),
        wide: o.wide,
        id_width: site.id_width.unwrap_or(7),
        short_hosts: site.short_hosts,
        hpc: site.hpc,
        short_pids: site.short_pids,
        unwrapped: o.unformatted,
        host_file: o.hostfile,
        affinity: o.aff,
        hms: o.hms || site.hms,
        unit: site.unit,
        level: o.level(site),
        expand: o.expand,
        whole_reasons: o.whole_reasons,
        host_names: (o.long || o.unformatted) && o.pending(),
        factor: o.normalise.as_deref().map(factor).transpose().map_err(Exit::fail)?,
        now,
    };
    let keep = o.keep();
    let select = JobSelect {
        ids: ids.ids,
        all: ids.all,
        given: o.given(),
        states: Which::default(),
        user: o.user.unwrap_or_default(),
        queue: o.queue.unwrap_or_default(),
        host: o.host.unwrap_or_default(),
        name: o.name.unwrap_or_default(),
        project: o.project.unwrap_or_default(),
    };
    let mut listing = Listing::new(form, show, !o.noheader, select, which, keep);
    listing.watch = o.watch;
    Ok(listing)
}

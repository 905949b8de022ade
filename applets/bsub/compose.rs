//! The whole submission: the options, what is taken along with them, and what esubs change.

use super::caller::{own_environment, request_id};
use super::env::{self, EnvAsk};
use super::opts::BsubOpts;
use super::rejection::Rejection;
use super::source::JobSource;
use super::spec::{self, SubmissionInputs};
use super::stop::Stop;
use super::{binding, esub, hostfile, interactive, resreq, spool};
use jiff::tz::TimeZone;
use lsf::cli::ctx::Ctx;
use lsf::cli::site::LocalSite;
use lsf::cli::tasks::{Tasks, cluster_name};
use lsf::errln;
use lsf::model::ByteStr;
use lsf::model::job::{JobSpec, opt2};
use lsf::proto::client::Submit;

/// The whole submission, as the site's esubs leave it.
pub fn compose(
    ctx: &mut Ctx,
    site: &LocalSite,
    opts: &BsubOpts,
    facts: &SubmissionInputs,
    source: JobSource,
) -> Result<Submit, Stop> {
    let mut spec = spec::build(opts, facts)?;
    if opts.res_req.is_empty() && opts.host_file.is_none() && source.script.is_none() {
        let tasks = facts.tasks.get_or_init(|| Tasks::load(&site.lsf, || cluster_name(site)));
        resreq::of_task(tasks, &source.command, facts.requirement_unit_mb, &mut spec)?;
    }
    for notice in interactive::notices(opts) {
        errln!(ctx, "{notice}");
    }
    for word in opts.ignored() {
        errln!(ctx, "bsub: option {word} is accepted but not acted on yet");
    }
    for what in resreq::not_acted_on(&spec.res_req) {
        errln!(ctx, "bsub: {what} of -R is accepted but not acted on yet");
    }
    if opts.user_limits {
        spool::user_limits(&mut spec);
    }
    if let Some(file) = &opts.host_file {
        hostfile::put(file, &mut spec)?;
    }
    if let Some(file) = &opts.spool_in {
        spool::input(ctx, file, &mut spec)?;
    }
    let mut command = source.command;
    if source.script.is_some() {
        spec.options2 |= opt2::SCRIPT;
    }
    let asked = opts.esub.as_deref().unwrap_or("");
    let changed = match facts.mesub {
        true => esub::run(site, "bsub", asked, &mut spec, &mut command)?,
        false => esub::Changed::default(),
    };
    // a file of ten thousand submissions has it made once
    let env = if opts.env.is_empty() && changed.env.is_empty() {
        facts.env.clone()
    } else {
        let ask = EnvAsk::parse(&opts.env).map_err(|e| Rejection::new(e.to_string()))?;
        ByteStr(env::packed(&esub::with(ask.apply(&own_environment()), changed)))
    };
    let env = interactive::of_terminal(env, &spec);
    facts.binding_told.get_or_init(|| {
        binding::notices(env.as_bytes()).iter().for_each(|text| errln!(ctx, "{text}"));
    });
    if !asked.is_empty() {
        spec.further.esub = asked.into();
    }
    spec.command = ByteStr(command);
    let script = source.script.map(ByteStr).unwrap_or_default();
    say_times(ctx, &spec, &facts.zone);
    Ok(Submit { request: request_id()?, spec, env, script, ..Submit::default() })
}

/// The time that `-b` and `-t` came to, on stderr.
pub fn say_times(ctx: &mut Ctx, spec: &JobSpec, zone: &TimeZone) {
    for (secs, what) in [(spec.begin_time, "scheduled after"), (spec.term_time, "terminated by")] {
        if secs != 0 {
            let mut text = String::new();
            lsf::cli::clock::Clock::of(zone.clone()).full(&mut text, secs);
            errln!(ctx, "Job will be {what} {text}");
        }
    }
}

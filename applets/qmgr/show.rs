//! The listings of `show`.

use super::ask::{Failed, admin};
use crate::qlimit;
use lsf::cli::ctx::Ctx;
use lsf::cli::nqs::{self, parameter, queue_summary};
use lsf::cli::site;
use lsf::conf::load::load_base_lenient;
use lsf::conf::nqs::{apply, retry_words};
use lsf::conf::types::NqsConf;
use lsf::lang::qmgr::{Command, Show, commands};
use lsf::outln;
use lsf::proto::client::{AdminOp, QueueInfo};
use lsf::sys::files::RealFiles;

pub(super) fn show(ctx: &mut Ctx, what: &Show) -> Result<(), Failed> {
    match what {
        Show::Queue(Some(queue)) => {
            let rows = nqs::queues(ctx, vec![queue.clone()])?;
            let counts = nqs::counts(ctx)?;
            for row in &rows {
                let own = counts.get(&row.name).copied().unwrap_or_default();
                let text = one_queue(row, own.total());
                let _ = write!(ctx.out, "{text}");
            }
            Ok(())
        }
        Show::Queue(None) => {
            summary(ctx, false)?;
            summary(ctx, true)
        }
        Show::PipeQueues => summary(ctx, true),
        Show::BatchQueues => summary(ctx, false),
        Show::Parameters => parameters(ctx),
        Show::Limits => {
            let _ = write!(ctx.out, "{}", qlimit::table());
            Ok(())
        }
        Show::Managers => managers(ctx),
        Show::Destinations => {
            for queue in nqs::queues(ctx, Vec::new())? {
                if let Some(to) = parameter(&queue, "NQS_QUEUES") {
                    outln!(ctx, "{} = {to}", queue.name);
                }
            }
            Ok(())
        }
    }
}

fn summary(ctx: &mut Ctx, pipe: bool) -> Result<(), Failed> {
    let rows = nqs::queues(ctx, Vec::new())?;
    let counts = nqs::counts(ctx)?;
    let site = site::find().map_err(|e| Failed(e.to_string()))?;
    let text = queue_summary(&rows, &counts, (pipe, &nqs::request_host(&site)));
    let _ = write!(ctx.out, "{text}");
    Ok(())
}

/// A queue in `NAME = value` lines.
fn one_queue(queue: &QueueInfo, requests: u64) -> String {
    let kind = if parameter(queue, "NQS_QUEUES").is_some() { "pipe" } else { "batch" };
    let mut lines = vec![
        ("QUEUE", queue.name.clone()),
        ("TYPE", kind.to_owned()),
        ("PRIORITY", queue.priority.to_string()),
        ("ENABLED", if queue.open { "yes" } else { "no" }.to_owned()),
        ("STARTED", if queue.active { "yes" } else { "no" }.to_owned()),
        ("RUN_LIMIT", queue.max.map_or("unlimited".to_owned(), |n| n.to_string())),
        ("REQUESTS", requests.to_string()),
    ];
    lines.extend(parameter(queue, "NQS_QUEUES").map(|to| ("DESTINATIONS", to.to_owned())));
    lines.iter().map(|(name, value)| format!("{name} = {value}\n")).collect()
}

/// The definitions as mbatchd has them.
fn definitions(ctx: &mut Ctx) -> Result<NqsConf, Failed> {
    let lines = admin(ctx, AdminOp::Show { what: "nqs".to_owned() })?;
    let text: String = lines.into_iter().map(|l| l.text).collect();
    let known = nqs::queues(ctx, Vec::new())?;
    let mut conf = NqsConf::default();
    for spelled in commands(&text, 1) {
        if let Ok(Command::Define(definition)) = spelled.command {
            let listed: Vec<String> = known
                .iter()
                .map(|q| q.name.clone())
                .filter(|name| !text.contains(&format!("_queue {name} ")))
                .collect();
            apply(&mut conf, definition, &listed).map_err(Failed)?;
        }
    }
    Ok(conf)
}

fn parameters(ctx: &mut Ctx) -> Result<(), Failed> {
    let conf = definitions(ctx)?;
    let default = conf.default_queue.clone().unwrap_or("none".to_owned());
    outln!(ctx, "Default batch_request queue = {default}");
    outln!(ctx, "Default destination_retry time = {} minutes", conf.retry_minutes);
    outln!(ctx, "Default destination_retry wait = {} hours", conf.wait_hours);
    outln!(ctx, "{}", retry_words(&conf));
    let validation = if conf.validation { "file" } else { "no_validation" };
    outln!(ctx, "Validation = {validation}");
    Ok(())
}

fn managers(ctx: &mut Ctx) -> Result<(), Failed> {
    let site = site::find().map_err(|e| Failed(e.to_string()))?;
    let (base, _) = load_base_lenient(&RealFiles, &site.envdir, Some(&site.host));
    for admin in base.map(|base| base.cluster.admins).unwrap_or_default() {
        outln!(ctx, "{admin}:m");
    }
    Ok(())
}

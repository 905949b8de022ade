//! battach: a shell on the host of a running job, for a look at it (battach(1)).
//!
//! The shell is a remote task of the caller's, through res of the job's host as lsrun -S has it, in
//! the job's working directory. Invariant: only the owner of a job is brought to it; the host is
//! one of the job's own.

use argh::{ArgsInfo, FromArgs};
use lsf::cli::client::{self, ClientError};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::job_ids;
use lsf::cli::job_rows::{Cols, JobRow, each_row};
use lsf::cli::long_format::clean;
use lsf::cli::remote::{self, How};
use lsf::cli::site::{self, LocalSite};
use lsf::errln;
use lsf::model::ByteStr;
use lsf::model::job_state::JobState;
use lsf::model::reason::{err, err_text};
use lsf::proto::Msg;
use lsf::proto::client::{ClientMsg, Col, IdSel, JobQuery, JobSelect, Which};
use std::ffi::OsString;
use std::path::Path;

/// Runs a shell on the host of a running job.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// one of the hosts of the job, instead of the first
    #[argh(option, short = 'm', arg_name = "host_name")]
    host: Option<String>,
    /// absolute path of another shell than /bin/sh
    #[argh(option, short = 'L', arg_name = "shell_path")]
    shell: Option<String>,
    /// the job
    #[argh(positional, greedy, arg_name = "job_ID | \"job_ID[index]\"")]
    _jobs: Vec<String>,
}

/// The shell where neither -L nor LSB_BATTACH_DEFAULT_SHELL names one.
const SHELL: &str = "/bin/sh";

/// A running job.
#[derive(Debug, PartialEq, Eq)]
struct Running {
    user: String,
    hosts: Vec<String>,
    cwd: String,
    queue: String,
    idx: i64,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    attach(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn attach(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let Opts { host, shell, .. } = parsed.options;
    if parsed.operands.len() != 1 {
        return Err(front::usage_error::<Opts>(ctx.name, "One job at a time."));
    }
    let ids = job_ids::ids(&parsed.operands).map_err(Exit::fail)?.ids;
    let Some(id) = ids.into_iter().next() else {
        return Err(front::usage_error::<Opts>(ctx.name, "Job ID must be specified."));
    };
    let shell = match shell {
        Some(shell) => OsString::from(shell),
        None => std::env::var_os("LSB_BATTACH_DEFAULT_SHELL").unwrap_or_else(|| SHELL.into()),
    };
    if !Path::new(&shell).is_absolute() {
        let path = clean(&shell.to_string_lossy());
        return Err(Exit::fail(format_args!("{path}: the shell must be an absolute path")));
    }
    let site = site::find().map_err(|e| Exit::fail(e.to_string()))?;
    let about = match id.elems.first() {
        Some((idx, ..)) => format!("Job <{}[{idx}]>", id.job),
        None => format!("Job <{}>", id.job),
    };
    let job = id.job;
    let running = look(ctx, &site, id).map_err(|e| Exit::fail(format_args!("{about}: {e}")))?;
    let host = match host {
        None => running.hosts[0].clone(),
        Some(host) if running.hosts.contains(&host) => host,
        Some(host) => {
            let words = err_text(err::BAD_HOST);
            return Err(Exit::fail(format_args!("{}: {words}", clean(&host))));
        }
    };
    let how = How { pty: true, shell: true, name: "battach", ..How::default() };
    let mut task = remote::task(&site, &[shell], &how).map_err(Exit::fail)?;
    task.cwd = running.cwd.as_str().into();
    task.env = environment(task.env, job, &running);
    ctx.flush();
    match remote::run(&site, &host, task) {
        Ok(ended) => Ok(remote::end(ended)),
        Err(e) => {
            errln!(ctx, "battach: {host}: {e:#}");
            Ok(FAIL)
        }
    }
}

/// The caller's environment with the variables that name the job.
fn environment(env: ByteStr, job: u32, running: &Running) -> ByteStr {
    let mut env = env.0;
    for (name, value) in [
        ("LSB_JOBID", job.to_string()),
        ("LSB_BATCH_JID", job.to_string()),
        ("LSB_JOBINDEX", running.idx.to_string()),
        ("LSB_QUEUE", running.queue.clone()),
    ] {
        env.push(0);
        env.extend_from_slice(format!("{name}={value}").as_bytes());
    }
    env.into()
}

/// The job as it runs, if it is the caller's and does.
fn look(ctx: &mut Ctx, site: &LocalSite, id: IdSel) -> Result<Running, ClientError> {
    let cols =
        Cols::new(&[Col::User, Col::Stat, Col::ExecHosts, Col::ExecCwd, Col::Queue, Col::Idx]);
    let select = JobSelect { ids: vec![id], user: "all".into(), ..JobSelect::default() };
    let which = Which { all: true, ..Which::default() };
    let query = JobQuery::of(select, which, cols.list());
    let ask = Msg::Client(ClientMsg::Jobs(Box::new(query)));
    let (mut client, mut answer) = client::ask_at(site, &ask, ctx.err)?;
    let mut found = Err(err::NO_JOB);
    loop {
        let Msg::Client(ClientMsg::Rows { rows, more }) = answer else {
            return Err(ClientError::Unexpected);
        };
        let take = |row: JobRow<'_, '_>| {
            if found.is_err() {
                found = running(&row);
            }
        };
        each_row(rows.get(), &cols, take).map_err(|_| ClientError::Unexpected)?;
        if !more {
            break;
        }
        answer = client.answer(ctx.err)?;
    }
    let refused = |code| ClientError::Refused(lsf::proto::Refusal::new(code));
    let running = found.map_err(refused)?;
    // mbatchd tells everybody where jobs run; a shell there would be the caller's, not the owner's
    if running.user != client.user() {
        return Err(refused(err::PERMISSION));
    }
    Ok(running)
}

/// A row as a running job, or the number of the reason why it is none.
fn running(row: &JobRow) -> Result<Running, i32> {
    let hosts: Vec<String> = row.hosts(Col::ExecHosts).map(|h| h.0.into_owned()).collect();
    match row.state() {
        Some(JobState::Done | JobState::Exit) => Err(err::JOB_FINISH),
        Some(s) if s.is_pending() || hosts.is_empty() => Err(err::NOT_STARTED),
        _ => Ok(Running {
            user: row.text(Col::User).into_owned(),
            hosts,
            cwd: row.text(Col::ExecCwd).into_owned(),
            queue: row.text(Col::Queue).into_owned(),
            idx: row.int(Col::Idx),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_is_one_to_attach_to_while_it_runs() {
        let cols = Cols::new(&[Col::User, Col::Stat, Col::ExecHosts, Col::ExecCwd, Col::Queue]);
        let of = |text: &str| {
            let mut found = Err(0);
            each_row(text, &cols, |row| found = running(&row)).unwrap();
            found.map(|r| (r.user, r.hosts.join(" "), r.cwd))
        };
        let there = of(r#"[["ann","RUN",[["h2",1],["h1",2]],"/w","q"]]"#);
        assert_eq!(there, Ok(("ann".into(), "h2 h1".into(), "/w".into())));
        assert!(of(r#"[["ann","USUSP",[["h2",1]],"/w","q"]]"#).is_ok());
        assert_eq!(of(r#"[["ann","PEND",[],"","q"]]"#), Err(err::NOT_STARTED));
        assert_eq!(of(r#"[["ann","DONE",[["h2",1]],"/w","q"]]"#), Err(err::JOB_FINISH));
    }
}

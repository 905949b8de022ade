//! bmod: changes pending jobs (bmod(1)). The options are those of bsub, each with a form that
//! resets it (`-Jn`), and `-Z` for the command; the code of bsub reads and checks them. The table
//! of [`SpecField`] lists the fields that can be changed.

use super::bsub::esub;
use super::bsub::opts::BsubOpts;
use super::bsub::rejection::Rejection;
use super::bsub::spec::{self, SubmissionInputs};
use super::{bsub, control};
use argh::{
    ArgsInfo, CommandInfoWithArgs, EarlyExit, FlagInfo, FlagInfoKind, FromArgs, Optionality,
    PositionalInfo,
};
use lsf::cli::client::{self, ClientError};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::long_format::clean;
use lsf::cli::site::LocalSite;
use lsf::cli::{job_ids, site};
use lsf::model::ByteStr;
use lsf::model::aps::ApsSetting;
use lsf::model::job::{JobSpec, opt2};
use lsf::model::reason::{err, err_text};
use lsf::model::specfield::SpecField;
use lsf::proto::client::{ClientMsg, IdSel, Modify};
use lsf::{errln, outln};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::sync::LazyLock;

/// The options of bsub under another head.
struct BmodOpts(BsubOpts);

impl FromArgs for BmodOpts {
    fn from_args(name: &[&str], args: &[&str]) -> Result<Self, EarlyExit> {
        BsubOpts::from_args(name, args).map(BmodOpts)
    }
}

impl ArgsInfo for BmodOpts {
    fn get_args_info() -> CommandInfoWithArgs {
        CommandInfoWithArgs {
            description: "Changes a pending job: each option as for bsub; with an n behind it \
                (-Jn, -Rn) what it set is reset; -Z \"command\" changes the command.",
            positionals: &[PositionalInfo {
                name: "job_ID | \"job_ID[list]\"",
                description: "the job, or elements of an array",
                optionality: Optionality::Greedy,
                hidden: false,
            }],
            flags: &FLAGS,
            ..BsubOpts::get_args_info()
        }
    }
}

/// The options of bsub alone, besides -I: a job is interactive for good, or not, and files of
/// options are about a new job.
const OF_BSUB: [&str; 12] = [
    "---ip",
    "---is",
    "---i-s",
    "---i-sp",
    "---i-ss",
    "---i-x",
    "---x-f",
    "--tty",
    "--json",
    "--yaml",
    "--jsdl",
    "--jsdl--strict",
];

/// The options of bsub, but that -Zs takes the command file, and -Z the command.
static FLAGS: LazyLock<Vec<FlagInfo<'static>>> = LazyLock::new(|| {
    let command = |long, arg_name, description| FlagInfo {
        kind: FlagInfoKind::Option { arg_name },
        optionality: Optionality::Optional,
        long,
        short: None,
        description,
        hidden: false,
    };
    let all = BsubOpts::get_args_info().flags.iter();
    let of_bsub = |f: &FlagInfo| f.short == Some('I') || OF_BSUB.contains(&f.long);
    let others = all.filter(|f| f.long != "---zs" && !of_bsub(f)).map(|f| FlagInfo {
        kind: match f.kind {
            FlagInfoKind::Switch => FlagInfoKind::Switch,
            FlagInfoKind::Option { arg_name } => FlagInfoKind::Option { arg_name },
        },
        optionality: match f.optionality {
            Optionality::Required => Optionality::Required,
            Optionality::Optional => Optionality::Optional,
            Optionality::Repeating => Optionality::Repeating,
            Optionality::Greedy => Optionality::Greedy,
        },
        ..*f
    });
    let own = [
        command("---z", "\"command\"", "the job runs this"),
        command("--aps", "\"system=number\" | \"admin=number\"", "its absolute priority"),
        command("---zs", "\"file [argument ...]\"", "the job gets a copy of this command file"),
    ];
    others.chain(own).collect()
});

/// The request in the words.
#[derive(Default)]
struct ModifyRequest {
    /// The words that bsub's table reads.
    rest: Vec<OsString>,
    /// -Z.
    command: Option<OsString>,
    /// -Zs.
    script: Option<OsString>,
    /// -aps.
    aps: Option<String>,
    /// `-Jn` and the like.
    reset: Vec<SpecField>,
    /// Resets of what nothing acts on.
    ignored: Vec<String>,
}

/// Options that are accepted without being acted on, and so are their resets.
const IGNORED: [&str; 2] = ["nnodes", "alloc_flags"];

/// The field of a word without its dash and its last n.
fn field_of(name: &str) -> Option<SpecField> {
    match name {
        "oo" => Some(SpecField::OutFile),
        "eo" => Some(SpecField::ErrFile),
        "is" => Some(SpecField::InFile),
        "extsched" => Some(SpecField::External),
        // LSF's pages have it both ways
        "cluster" => Some(SpecField::Clusters),
        _ => SpecField::ALL.iter().find(|f| f.word() == name).copied(),
    }
}

/// Takes out what bsub does not know. A word behind an option that takes a value is its value.
fn split(args: &[OsString]) -> Result<ModifyRequest, Exit> {
    let mut asked = ModifyRequest::default();
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let name = text.strip_prefix('-').unwrap_or("");
        let base = name.strip_suffix('n').unwrap_or("");
        if name == "aps" {
            let Some(value) = words.next() else {
                return Err(front::usage_error::<BmodOpts>(
                    "bmod",
                    "option requires a value -- aps",
                ));
            };
            asked.aps = Some(value.to_string_lossy().into_owned());
        } else if name == "Z" || name == "Zs" {
            let Some(command) = words.next() else {
                let why = format!("option requires a value -- {name}");
                return Err(front::usage_error::<BmodOpts>("bmod", &why));
            };
            let of = if name == "Z" { &mut asked.command } else { &mut asked.script };
            *of = Some(command.clone());
        } else if let Some(field) = field_of(base) {
            asked.reset.push(field);
        } else if IGNORED.contains(&base) {
            asked.ignored.push(text.into_owned());
        } else if front::knows::<BmodOpts>(base) {
            return Err(Exit::fail(format_args!("bmod: option {text} is not supported yet")));
        } else {
            asked.rest.push(word.clone());
            if front::takes_value::<BmodOpts>(name) {
                asked.rest.extend(words.next().cloned());
            }
        }
    }
    Ok(asked)
}

/// The fields that the options name.
fn fields(o: &BsubOpts) -> Vec<SpecField> {
    use SpecField::*;
    let given = [
        (Name, o.name.is_some()),
        (Description, o.description.is_some()),
        (Queue, o.queue.is_some()),
        (Project, o.project.is_some()),
        (UserGroup, o.user_group.is_some()),
        (ResReq, !o.res_req.is_empty()),
        (Slots, o.slots.is_some()),
        (Hosts, o.hosts.is_some()),
        (InFile, o.input.is_some() || o.spool_in.is_some()),
        (OutFile, o.out.is_some() || o.out_over.is_some()),
        (ErrFile, o.err.is_some() || o.err_over.is_some()),
        (Depend, o.depend.is_some()),
        (Begin, o.begin.is_some()),
        (Term, o.term.is_some()),
        (RunLimit, o.run_limit.is_some()),
        (CpuLimit, o.cpu_limit.is_some()),
        (MemLimit, o.mem_limit.is_some()),
        (SwapLimit, o.swap_limit.is_some()),
        (CoreLimit, o.core_limit.is_some()),
        (DataLimit, o.data_limit.is_some()),
        (StackLimit, o.stack_limit.is_some()),
        (FileLimit, o.file_limit.is_some()),
        (ProcessLimit, o.process_limit.is_some()),
        (ThreadLimit, o.thread_limit.is_some()),
        (Cwd, o.cwd.is_some()),
        (LoginShell, o.login_shell.is_some()),
        (MailUser, o.mail_user.is_some()),
        (MailEnd, o.mail_end),
        (MailError, o.mail_error),
        (MailBegin, o.mail_begin),
        (Exclusive, o.exclusive),
        (Rerun, o.rerun || o.never_rerun),
        (Priority, o.priority.is_some()),
        (PreExec, o.pre_exec.is_some()),
        (PostExec, o.post_exec.is_some()),
        (Files, !o.copy.is_empty()),
        (Group, o.group.is_some()),
        (App, o.app.is_some()),
        (Sla, o.sla.is_some()),
        (Nlb, o.nlb.is_some()),
        (License, o.license_project.is_some()),
        (Reservation, o.reservation.is_some()),
        (Estimate, o.estimate.is_some()),
        (Requeue, o.requeue.is_some()),
        (Checkpoint, o.checkpoint.is_some()),
        (Orphan, o.orphan),
        (Autoresize, o.autoresize),
        (ResizeCommand, o.resize_command.is_some()),
        (WarnAction, o.warn_action.is_some()),
        (WarnTime, o.warn_time.is_some()),
        (WindowSignal, o.window_signal.is_some()),
        (OutDir, o.out_dir.is_some()),
        (PerHost, o.per_host),
        (PendLimit, o.pend_limit.is_some()),
        (EligibleLimit, o.eligible_limit.is_some()),
        (Migration, o.migrate.is_some()),
        (HostFile, o.host_file.is_some()),
        (UserLimits, o.user_limits),
        (Env, !o.env.is_empty()),
    ];
    given.into_iter().filter_map(|(field, given)| given.then_some(field)).collect()
}

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

/// The words of bsub's checks, about a change.
fn not_modified(why: Rejection) -> Exit {
    Exit::fail(format_args!("{}. Job not modified.", why.words.trim_end_matches('.')))
}

/// Shows the change to the site's programs, and takes over what they make of it.
fn looked_at(
    site: &LocalSite,
    esubs: &str,
    spec: &mut JobSpec,
    fields: &mut Vec<SpecField>,
) -> Result<(), Rejection> {
    let mut shown = JobSpec::default();
    fields.iter().for_each(|field| field.copy(&mut shown, spec));
    let mut command = shown.command.0.clone();
    let mut made = shown.clone();
    esub::run(site, "bmod", esubs, &mut made, &mut command)?;
    made.command = ByteStr(command);
    for &field in SpecField::ALL {
        let mut other = shown.clone();
        field.copy(&mut other, &made);
        if other != shown {
            field.copy(spec, &made);
            fields.extend((!fields.contains(&field)).then_some(field));
        }
    }
    Ok(())
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let asked = split(&ctx.args)?;
    let parsed = front::parse::<BmodOpts>(ctx.name, &asked.rest)?;
    let opts = parsed.options.0;
    let fixed = [("-H", opts.hold), ("-K", opts.wait), ("-pack", opts.pack.is_some())];
    control::refuse(ctx.name, control::given(fixed))?;
    let id = operand(&parsed.operands)?;
    let mut fields = fields(&opts);
    let site = site::find().map_err(|e| Exit::fail(e.to_string()))?;
    let times = opts.begin.is_some() || opts.term.is_some();
    let facts = bsub::facts(&site.lsf, times).map_err(not_modified)?;
    let mut spec = given_spec(ctx, &opts, &facts)?;
    let env = bsub::asked_env(&opts.env).map_err(not_modified)?;
    if let Some(command) = asked.command {
        spec.command = ByteStr(command.into_vec());
        fields.push(SpecField::Command);
    }
    let mut script = ByteStr::default();
    if let Some(command) = asked.script {
        script = spooled(ctx, &command, &mut spec).map_err(not_modified)?;
        fields.push(SpecField::Script);
    }
    if let Some(text) = &asked.aps {
        spec.further.aps = Some(absolute_priority(text)?);
        fields.push(SpecField::AbsolutePriority);
    }
    for field in asked.reset {
        if !fields.contains(&field) {
            field.copy(&mut spec, &JobSpec::default());
            fields.push(field);
        }
    }
    let esubs = opts.esub.as_deref().unwrap_or("");
    looked_at(&site, esubs, &mut spec, &mut fields).map_err(not_modified)?;
    let ignored = asked.ignored.iter().map(String::as_str);
    for word in opts.ignored().into_iter().chain(ignored) {
        errln!(ctx, "bmod: option {word} is accepted but not acted on yet");
    }
    for what in bsub::resreq::not_acted_on(&spec.res_req) {
        errln!(ctx, "bmod: {what} of -R is accepted but not acted on yet");
    }
    bsub::say_times(ctx, &spec, &facts.zone);
    // as it was typed: `29`, `29[1-4]`
    let job = parsed.operands[0].to_string_lossy().into_owned();
    let copy = spec.further.spooled_input.clone();
    let (number, queue) = (id.job, spec.queue.clone());
    let change = Modify { id, spec, fields, script, env };
    let answer = client::ask(ctx, ClientMsg::Modify(Box::new(change)));
    if answer.is_err() {
        bsub::spool::forget(&copy);
    }
    let code = answer.as_ref().err().map_or(0, |e| e.code().unwrap_or(FAIL));
    esub::told(&site, "bmod", esubs, (code == 0).then_some((number, queue.as_str())), code);
    outcome(ctx, &job, answer)
}

/// The value of -aps.
fn absolute_priority(text: &str) -> Result<ApsSetting, Exit> {
    ApsSetting::parse(text).map_err(|fault| {
        use lsf::model::aps::ApsFault;
        let code = match fault {
            ApsFault::Form => err::BAD_APS_VAL,
            ApsFault::Zero => err::APS_ZERO,
            ApsFault::Range => err::APS_RANGE,
        };
        Exit::fail(format_args!("-aps {}: {}. Job not modified.", clean(text), err_text(code)))
    })
}

/// The submission with the options' values, files read and spooled.
fn given_spec(ctx: &mut Ctx, opts: &BsubOpts, facts: &SubmissionInputs) -> Result<JobSpec, Exit> {
    let mut spec = spec::build(opts, facts).map_err(not_modified)?;
    if let Some(file) = &opts.host_file {
        bsub::hostfile::put(file, &mut spec).map_err(not_modified)?;
    }
    if opts.user_limits {
        bsub::spool::user_limits(&mut spec);
    }
    if let Some(file) = &opts.spool_in {
        let refused = |stop: bsub::Stop| stop.rejection().map_or_else(|exit| exit, not_modified);
        bsub::spool::input(ctx, file, &mut spec).map_err(refused)?;
    }
    Ok(spec)
}

/// Says how a change of job `job`, named as it was typed, ended.
fn outcome(ctx: &mut Ctx, job: &str, answer: Result<ClientMsg, ClientError>) -> Result<i32, Exit> {
    match answer {
        Ok(ClientMsg::Controlled { .. }) => {
            outln!(ctx, "Parameters of job <{job}> are being changed");
            Ok(0)
        }
        Ok(_) => Ok(control::unexpected(ctx)),
        Err(e) => {
            let words = e.to_string();
            let words = words.trim_end_matches('.');
            let about = match words == err_text(err::NO_JOB) {
                true => format!("{job}: "),
                false => String::new(),
            };
            errln!(ctx, "{about}{words}. Job not modified.");
            Ok(FAIL)
        }
    }
}

/// The script that a command of -Zs names, which the job then shows.
fn spooled(ctx: &mut Ctx, command: &OsStr, spec: &mut JobSpec) -> Result<ByteStr, Rejection> {
    use std::os::unix::ffi::OsStrExt;
    let words = bsub::words(&command.to_string_lossy()).unwrap_or_default();
    let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    let source = bsub::source::read(ctx, &words, true)?;
    let Some(script) = source.script else {
        let words = "-Zs: the command is not a readable script";
        return Err(Rejection::new(words));
    };
    spec.command = ByteStr(command.as_bytes().to_vec());
    spec.options2 |= opt2::SCRIPT;
    Ok(ByteStr(script))
}

/// One job; what is none is named as LSF names it.
fn operand(operands: &[OsString]) -> Result<IdSel, Exit> {
    if operands.is_empty() {
        return Err(front::usage_error::<BmodOpts>("bmod", "Job ID must be specified."));
    }
    let found = job_ids::ids(&operands[..1]).map(|found| found.ids).unwrap_or_default();
    match (<[IdSel; 1]>::try_from(found), operands.len()) {
        (Ok([id]), 1) => Ok(id),
        _ => {
            let words: Vec<_> = operands.iter().map(|o| o.to_string_lossy()).collect();
            Err(Exit::fail(format_args!("{}: Illegal job ID.", words.join("/"))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn os(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn resets_and_values_are_told_apart() {
        let asked = split(&os(&["-Jn", "-R", "-Rn", "-Z", "-Jn", "-nn", "-n", "4", "29"])).unwrap();
        assert_eq!(asked.reset, [SpecField::Name, SpecField::Slots]);
        assert_eq!(asked.command, Some("-Jn".into()));
        assert_eq!(asked.rest, os(&["-R", "-Rn", "-n", "4", "29"]));
        assert!(split(&os(&["-Z"])).is_err());
    }

    #[test]
    fn the_help_tells_the_options_for_the_command() {
        let info = BmodOpts::get_args_info();
        let takes = |long: &str| match info.flags.iter().find(|f| f.long == long).map(|f| &f.kind) {
            Some(FlagInfoKind::Option { arg_name }) => *arg_name,
            _ => "",
        };
        assert_eq!(takes("---z"), "\"command\"");
        assert_eq!(takes("---zs"), "\"file [argument ...]\"");
        // -Z comes, and what makes a job interactive or names a file of options goes
        assert_eq!(info.flags.len(), BsubOpts::get_args_info().flags.len() + 2 - 13);
        assert!(!info.flags.iter().any(|f| f.short == Some('I') || f.long == "---is"));
    }

    #[test]
    fn every_option_of_bsub_has_its_reset() {
        for (word, field) in [
            ("-oon", SpecField::OutFile),
            ("-eon", SpecField::ErrFile),
            ("-isn", SpecField::InFile),
            ("-cwdn", SpecField::Cwd),
            ("-eptln", SpecField::EligibleLimit),
        ] {
            assert_eq!(split(&os(&[word, "29"])).unwrap().reset, [field], "{word}");
        }
        assert_eq!(split(&os(&["-nnodesn", "29"])).unwrap().ignored, ["-nnodesn"]);
        // none of them is taken for -u, -e, -m, -r or -Z with a value glued to it
        let words = "-uln -envn -extn -extschedn -mign -rncn -Zsn -kn -apsn -gpun -hostfilen -arn \
                     -datan -freqn -networkn -clustern -clustersn";
        for word in words.split_whitespace() {
            let asked = split(&os(&[word, "29"])).unwrap_or_else(|e| panic!("{word}: {}", e.err));
            assert_eq!((asked.reset.len(), asked.rest), (1, os(&["29"])), "{word}");
        }
        for word in ["-Hn", "-Kn", "-packn"] {
            let e = split(&os(&[word, "29"])).err().unwrap_or_else(|| panic!("{word}"));
            assert_eq!(e.err, format!("bmod: option {word} is not supported yet\n"));
        }
        let asked = split(&os(&["-Zs", "./run -x", "29"])).unwrap();
        assert_eq!((asked.script, asked.rest), (Some("./run -x".into()), os(&["29"])));
        assert_eq!(split(&os(&["-Jglued", "29"])).unwrap().rest, os(&["-Jglued", "29"]));
    }

    #[test]
    fn malformed_job_of_bmod_is_named() {
        assert_eq!(operand(&os(&["29"])).unwrap().job, 29);
        let e = operand(&os(&["sleep 6", "29"])).unwrap_err();
        assert_eq!(e.err, "sleep 6/29: Illegal job ID.\n");
        assert!(operand(&[]).is_err());
    }
}

//! bmod: changes pending jobs (commands.md bmod). Its options are those of bsub, each with a form
//! that resets it (`-Jn`), and `-Z` for the command; they are read and checked by bsub's own
//! code. Which can be changed is the table of [`SpecField`].

use super::bsub::esub;
use super::bsub::opts::BsubOpts;
use super::bsub::spec::{self, Rejection};
use super::{bsub, control};
use argh::{ArgsInfo, CommandInfoWithArgs, EarlyExit, FromArgs, Optionality, PositionalInfo};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::{self, Exit};
use lsf::cli::site::Site;
use lsf::cli::{client, select, site};
use lsf::model::ByteStr;
use lsf::model::job::{JobSpec, extra};
use lsf::model::reason::{err, err_text};
use lsf::model::specfield::SpecField;
use lsf::proto::client::{ClientMsg, IdSel, Modify};
use lsf::{errln, outln};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

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
            ..BsubOpts::get_args_info()
        }
    }
}

/// What the words ask for.
struct Asked {
    /// What bsub's table reads.
    rest: Vec<OsString>,
    /// -Z.
    command: Option<OsString>,
    /// `-Jn` and the like.
    reset: Vec<SpecField>,
    /// Resets of what nothing acts on.
    ignored: Vec<String>,
}

/// Options that bmod alone has, of which nothing acts on the reset.
const ONLY_HERE: [&str; 2] = ["aps", "Zs"];

/// Options that are accepted without being acted on, and so are their resets.
const IGNORED: [&str; 3] = ["gpu", "nnodes", "alloc_flags"];

/// What a word without its dash and its last n stands for.
fn field_of(name: &str) -> Option<SpecField> {
    match name {
        "oo" => Some(SpecField::OutFile),
        "eo" => Some(SpecField::ErrFile),
        "is" => Some(SpecField::InFile),
        _ => SpecField::ALL.iter().find(|f| f.word() == name).copied(),
    }
}

/// Takes out what bsub does not know. A word behind an option that takes a value is its value.
fn split(args: &[OsString]) -> Result<Asked, Exit> {
    let mut asked =
        Asked { rest: Vec::new(), command: None, reset: Vec::new(), ignored: Vec::new() };
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let name = text.strip_prefix('-').unwrap_or("");
        let base = name.strip_suffix('n').unwrap_or("");
        if name == "Z" {
            let Some(command) = words.next() else {
                return Err(front::usage_error::<BmodOpts>("bmod", "option requires a value -- Z"));
            };
            asked.command = Some(command.clone());
        } else if let Some(field) = field_of(base) {
            asked.reset.push(field);
        } else if IGNORED.contains(&base) {
            asked.ignored.push(text.into_owned());
        } else if ONLY_HERE.contains(&base) || front::knows::<BmodOpts>(base) {
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
        (License, o.license_project.is_some()),
        (Reservation, o.reservation.is_some()),
        (Estimate, o.estimate.is_some()),
        (Requeue, o.requeue.is_some()),
        (Orphan, o.orphan),
        (WarnAction, o.warn_action.is_some()),
        (WarnTime, o.warn_time.is_some()),
        (WindowSignal, o.window_signal.is_some()),
        (OutDir, o.out_dir.is_some()),
        (PerHost, o.per_host),
        (PendLimit, o.pend_limit.is_some()),
        (EligibleLimit, o.eligible_limit.is_some()),
    ];
    given.into_iter().filter_map(|(field, given)| given.then_some(field)).collect()
}

pub fn run(ctx: &mut Ctx) -> i32 {
    match plan(ctx) {
        Ok(code) => code,
        Err(exit) => exit.show(ctx),
    }
}

/// The words of bsub's checks, about a change.
fn not_modified(why: Rejection) -> Exit {
    Exit::fail(format_args!("{}. Job not modified.", why.words.trim_end_matches('.')))
}

/// Shows the change to the site's programs, and takes over what they make of it.
fn looked_at(
    site: &Site,
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
    let fixed = [
        ("-H", opts.hold),
        ("-K", opts.wait),
        ("-env", !opts.env.is_empty()),
        ("-pack", opts.pack.is_some()),
        ("-ul", opts.user_limits),
        ("-hostfile", opts.host_file.is_some()),
        ("-Zs", opts.spool_command),
    ];
    control::refuse(ctx.name, control::given(fixed))?;
    let id = operand(&parsed.operands)?;
    let mut fields = fields(&opts);
    let site = site::find().map_err(|e| Exit::fail(e.to_string()))?;
    let times = opts.begin.is_some() || opts.term.is_some();
    let facts = bsub::facts(&site.lsf, times).map_err(not_modified)?;
    let mut spec = spec::build(&opts, &facts).map_err(not_modified)?;
    if let Some(file) = &opts.spool_in {
        let refused = |stop: bsub::Stop| stop.rejection().map_or_else(|exit| exit, not_modified);
        bsub::spool::input(ctx, file, &mut spec).map_err(refused)?;
    }
    if let Some(command) = asked.command {
        spec.command = ByteStr(command.into_vec());
        fields.push(SpecField::Command);
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
    bsub::say_times(ctx, &spec, &facts.zone);
    // as it was typed: `29`, `29[1-4]`
    let job = parsed.operands[0].to_string_lossy().into_owned();
    let copy = spec.given(extra::SPOOLED_INPUT).to_string();
    let (number, queue) = (id.job, spec.queue.clone());
    let answer = client::ask(ctx, ClientMsg::Modify(Box::new(Modify { id, spec, fields })));
    let code = answer.as_ref().err().map_or(0, |e| e.code().unwrap_or(FAIL));
    esub::told(&site, "bmod", esubs, (code == 0).then_some((number, queue.as_str())), code);
    match answer {
        Ok(ClientMsg::Controlled { .. }) => {
            outln!(ctx, "Parameters of job <{job}> are being changed");
            Ok(0)
        }
        Ok(_) => Ok(control::unexpected(ctx)),
        Err(e) => {
            bsub::spool::forget(&copy);
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

/// One job; what is none is named as LSF names it.
fn operand(operands: &[OsString]) -> Result<IdSel, Exit> {
    if operands.is_empty() {
        return Err(front::usage_error::<BmodOpts>("bmod", "Job ID must be specified."));
    }
    let found = select::ids(&operands[..1]).map(|found| found.ids).unwrap_or_default();
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
        assert_eq!(split(&os(&["-gpun", "29"])).unwrap().ignored, ["-gpun"]);
        // none of them is taken for -u, -e, -m, -r or -Z with a value glued to it
        for word in ["-uln", "-envn", "-extn", "-mign", "-rncn", "-Zsn", "-kn", "-apsn"] {
            let e = split(&os(&[word, "29"])).err().unwrap_or_else(|| panic!("{word}"));
            assert_eq!(e.err, format!("bmod: option {word} is not supported yet\n"));
        }
        assert_eq!(split(&os(&["-Jglued", "29"])).unwrap().rest, os(&["-Jglued", "29"]));
    }

    #[test]
    fn what_is_no_job_is_named() {
        assert_eq!(operand(&os(&["29"])).unwrap().job, 29);
        let e = operand(&os(&["sleep 6", "29"])).unwrap_err();
        assert_eq!(e.err, "sleep 6/29: Illegal job ID.\n");
        assert!(operand(&[]).is_err());
    }
}

//! bpeek: the output of a job that has not finished (bpeek(1)).
//!
//! The output is read as the caller: here where the job runs on this host, else through res of
//! its host, as lsrun does. Invariant: mbatchd tells where it is only to who may know; whether
//! the file may be read its owner's rights decide.

use super::control::{self, Filters};
use super::lsrun::{self, Call};
use argh::{ArgsInfo, FromArgs};
use lsf::cli::client;
use lsf::cli::ctx::{Ctx, FAIL, os_words};
use lsf::cli::front::{self, Exit};
use lsf::cli::job_ids::place_words;
use lsf::cli::long_format::clean;
use lsf::cli::remote::How;
use lsf::cli::site;
use lsf::errln;
use lsf::model::reason::err;
use lsf::proto::client::{ClientMsg, JobSelect, PeekInfo};
use lsf::sys::files::{regular, regular_of};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Shows what an unfinished job has written.
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// continue to show new output until the job ends
    #[argh(switch, short = 'f')]
    follow: bool,
    /// the newest job on this host or host group
    #[argh(option, short = 'm', arg_name = "host_name")]
    host: Option<String>,
    /// the newest job in this queue
    #[argh(option, short = 'q', arg_name = "queue_name")]
    queue: Option<String>,
    /// the newest job with this name
    #[argh(option, short = 'J', arg_name = "job_name")]
    name: Option<String>,
    /// the job
    #[argh(positional, greedy, arg_name = "job_ID | \"job_ID[index]\"")]
    _jobs: Vec<String>,
}

/// How often a file that is followed is looked at, and every how many looks the job.
const LOOK: Duration = Duration::from_millis(250);
const LOOKS_PER_QUERY: u32 = 8;
/// Bytes copied at a time.
const BUFFER: usize = 64 << 10;

/// Prints the first of the files that there is, whole.
const SHOW: &str = "u=$2; shift 2; for f; do :; done; [ \"$f\" = /dev/null ] && exit 0; \
    for f; do case $f in /tmp/.lsbtmp*) \
    [ \"$(stat -c %u -- \"$f\" 2>/dev/null)\" = \"$u\" ] || continue;; esac; \
    [ -f \"$f\" ] && exec cat -- \"$f\"; done; exit 1";
/// Follows it as long as the process of the first word lives.
const FOLLOW: &str = "p=$1; u=$2; shift 2; for f; do :; done; [ \"$f\" = /dev/null ] && exit 0; \
    for f; do case $f in /tmp/.lsbtmp*) \
    [ \"$(stat -c %u -- \"$f\" 2>/dev/null)\" = \"$u\" ] || continue;; esac; \
    [ -f \"$f\" ] || continue; \
    tail -n +1 -f -- \"$f\" & while [ -d /proc/$p ]; do sleep 0.5; done; \
    sleep 1; kill $!; exit 0; done; exit 1";

pub fn run(ctx: &mut Ctx) -> i32 {
    plan(ctx).unwrap_or_else(|exit| exit.show(ctx))
}

fn plan(ctx: &mut Ctx) -> Result<i32, Exit> {
    let parsed = front::parse_of::<Opts>(ctx)?;
    let Opts { follow, host, queue, name, .. } = parsed.options;
    if parsed.operands.len() > 1 {
        return Err(front::usage_error::<Opts>(ctx.name, "One job at a time."));
    }
    let filters = Filters { name, queue, host, ..Filters::default() };
    let select = control::selection(&parsed.operands, filters)?.unwrap_or_default();
    let info = ask(ctx, &select)?;
    let site = site::find().map_err(|e| Exit::fail(e.to_string()))?;
    let parts = parts(&info, &site.lsf.job_file_tag());
    if site.host == info.host {
        return Ok(here(ctx, &select, &info, parts, follow));
    }
    let mut code = 0;
    for (words, files) in parts {
        let _ = writeln!(ctx.out, "{words}");
        ctx.flush();
        let script = if follow { FOLLOW } else { SHOW };
        let mut argv: Vec<OsString> = vec!["/bin/sh".into(), "-c".into(), script.into()];
        let (pid, uid) = (info.pid.to_string(), info.uid.to_string());
        argv.extend(["bpeek".into(), pid.into(), uid.into()]);
        argv.extend(files.into_iter().map(PathBuf::into_os_string));
        let found = lsrun::chosen(&site, Some(&info.host), None, None);
        let how = How { name: "bpeek", ..How::default() };
        let call = Call { site: site.clone(), argv: &argv, how: &how, verbose: false };
        code = code.max(call.at(ctx, found, false));
    }
    Ok(if code == 0 { 0 } else { FAIL })
}

/// Asks mbatchd where the output is.
fn ask(ctx: &mut Ctx, select: &JobSelect) -> Result<PeekInfo, Exit> {
    let about = match select.ids.first() {
        Some(id) => match id.elems.first() {
            Some((idx, ..)) => format!("Job <{}[{idx}]>", id.job),
            None => format!("Job <{}>", id.job),
        },
        None => String::new(),
    };
    match client::ask(ctx, ClientMsg::Peek(Box::new(select.clone()))) {
        Ok(ClientMsg::Peeked(info)) => Ok(*info),
        Ok(_) => Err(Exit::fail("Batch protocol error")),
        Err(e) if !about.is_empty() => Err(Exit::fail(match e.code() {
            Some(err::NOT_STARTED) => format!("{about} : Not yet started."),
            Some(err::JOB_FINISH) => format!("{about} : Already finished."),
            Some(err::NO_INTERACTIVE) => format!("{about} : {e}"),
            _ => format!("{about}: {e}"),
        })),
        Err(e) if e.code() == Some(err::NO_JOB) => {
            let place = place_words(&select.queue, &select.host);
            Err(Exit::fail(match select.name.as_str() {
                "" => format!("No unfinished job found{place}"),
                name => format!("Job <{}> is not found{place}", clean(name)),
            }))
        }
        Err(e) => Err(Exit::fail(e)),
    }
}

/// The files of a job's output, each part under its heading.
type Parts = Vec<(&'static str, Vec<PathBuf>)>;

/// The heads of the output's parts, each with the files that it may be in, in the order in which
/// they are looked for: what a job keeps until its end is newer than the file that was asked for,
/// whose name comes last. `tag`: the end of the names of files that are kept.
fn parts(info: &PeekInfo, tag: &str) -> Parts {
    let idx = if info.id.idx == 0 { String::new() } else { format!(".{}", info.id.idx) };
    let files = |name: &[u8], ext: &str| {
        let kept = format!("{}.{}{idx}{tag}.{ext}", info.submit_time, info.id.job);
        let below_tmp = kept_below(info.uid).join(&kept);
        let mut all = vec![below_tmp, Path::new(&info.home).join(".lsbatch").join(&kept)];
        if !name.is_empty() {
            let word = |bytes: &[u8]| PathBuf::from(OsString::from_vec(bytes.to_vec()));
            let cwd = Path::new(&info.cwd);
            let dir = cwd.join(word(info.out_dir.as_bytes()));
            // A job without the directory of -outdir has its files in the working directory.
            for dir in
                [(!info.out_dir.is_empty()).then_some(&*dir), Some(cwd)].into_iter().flatten()
            {
                let path = dir.join(word(name));
                // A file in a given directory has a name made of the job's ID.
                all.push(path.join(format!("{}{idx}.{ext}", info.id.job)));
                all.push(path);
            }
        }
        all
    };
    let mut parts = vec![("<< output from stdout >>", files(info.out_file.as_bytes(), "out"))];
    if !info.err_file.is_empty() {
        parts.push(("<< output from stderr >>", files(info.err_file.as_bytes(), "err")));
    }
    parts
}

/// Shows the output of a job on this host.
fn here(ctx: &mut Ctx, select: &JobSelect, info: &PeekInfo, parts: Parts, follow: bool) -> i32 {
    let mut code = 0;
    let mut open = Vec::new();
    for (words, files) in parts {
        let _ = writeln!(ctx.out, "{words}");
        let Some(asked) = files.last() else { continue };
        // what another has put in the user's place below /tmp is passed over
        let fits = |f: &&PathBuf| {
            let owned = |uid| f.metadata().is_ok_and(|m| m.uid() == uid);
            f.is_file() && (!f.starts_with(kept_below(info.uid)) || owned(info.uid))
        };
        match files.iter().find(fits).unwrap_or(asked) {
            path if path.as_os_str() == "/dev/null" => {}
            path => match open_output(path, info).and_then(|f| copied(ctx, f)) {
                Ok(file) => open.push(file),
                Err(e) => {
                    errln!(ctx, "bpeek: {}: {}", path.display(), os_words(&e));
                    code = FAIL;
                }
            },
        }
    }
    if follow {
        follow_all(ctx, select, info, &mut open);
    }
    code
}

/// Opens a file of output. A file that is kept for want of another is its user's: below /tmp others
/// could have put it there.
fn open_output(path: &Path, info: &PeekInfo) -> io::Result<File> {
    match path.starts_with(kept_below(info.uid)) {
        true => regular_of(path, &[info.uid]),
        false => regular(path).map(|(file, _)| file),
    }
}

/// The directory of kept output of a user without a home.
fn kept_below(uid: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/.lsbtmp{uid}"))
}

/// Copies a file up to its present end, and gives it back there.
fn copied(ctx: &mut Ctx, mut file: File) -> io::Result<File> {
    let mut buf = vec![0; BUFFER];
    // Output written meanwhile is shown later, if at all: a job may write faster than we read.
    let mut left = file.metadata()?.len().saturating_sub(file.stream_position()?);
    while left > 0 {
        let want = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        match file.read(&mut buf[..want])? {
            0 => break,
            n => {
                ctx.out.write_all(&buf[..n])?;
                left -= n as u64;
            }
        }
    }
    ctx.out.flush()?;
    Ok(file)
}

/// Follows the files until the job is over, and shows the last output.
fn follow_all(ctx: &mut Ctx, select: &JobSelect, info: &PeekInfo, files: &mut Vec<File>) {
    let mut one = select.clone();
    if one.ids.is_empty() {
        let elems = if info.id.idx == 0 { vec![] } else { vec![(info.id.idx, info.id.idx, 1)] };
        one.ids = vec![lsf::proto::client::IdSel { job: info.id.job, elems }];
    }
    for look in 1.. {
        std::thread::sleep(LOOK);
        let over = look % LOOKS_PER_QUERY == 0 && ask(ctx, &one).is_err();
        let more = std::mem::take(files).into_iter().map(|mut f| {
            // A truncated file is shown from its beginning.
            if f.metadata()?.len() < f.stream_position()? {
                f.seek(SeekFrom::Start(0))?;
            }
            copied(ctx, f)
        });
        *files = more.filter_map(Result::ok).collect();
        if over || files.is_empty() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsf::model::JobRef;

    #[test]
    fn a_file_of_another_s_is_not_taken_for_kept_output() {
        let uid = 4_000_000_000 + std::process::id() % 100_000_000;
        let info = PeekInfo { uid, ..PeekInfo::default() };
        let dir = kept_below(uid);
        std::fs::create_dir(&dir).unwrap();
        let file = dir.join("1.2.out");
        std::fs::write(&file, "forged").unwrap();
        let why = open_output(&file, &info).unwrap_err().to_string();
        assert!(why.starts_with("belongs to uid "), "{why}");
        std::fs::remove_file(&file).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
        assert_eq!(open_output(&file, &info).unwrap_err().to_string(), "not a regular file");
        let other = PeekInfo { uid: uid + 1, ..PeekInfo::default() };
        assert_eq!(open_output(&file, &other).unwrap_err().to_string(), "not a regular file");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn output_of_a_job_is_looked_for_in_each_place() {
        let mut info = PeekInfo {
            id: JobRef { job: 12, idx: 3 },
            submit_time: 17,
            cwd: "/w".into(),
            home: "/home/a".into(),
            uid: 7,
            ..PeekInfo::default()
        };
        let shown_as = |info: &PeekInfo, tag: &str| -> Vec<String> {
            let all = parts(info, tag);
            let files = all.iter().flat_map(|(_, files)| files);
            files.map(|f| f.display().to_string()).collect()
        };
        let shown = |info: &PeekInfo| shown_as(info, "");
        let tagged = ["/tmp/.lsbtmp7/17.12.3-x.out", "/home/a/.lsbatch/17.12.3-x.out"];
        assert_eq!(shown_as(&info, "-x"), tagged);
        let kept = |ext| {
            [format!("/tmp/.lsbtmp7/17.12.3.{ext}"), format!("/home/a/.lsbatch/17.12.3.{ext}")]
        };
        assert_eq!(shown(&info), kept("out"));
        info.out_file = "o".into();
        info.err_file = "/e".into();
        let given = |a: &str, b: &str| [a.to_string(), b.to_string()];
        let [out, err] = [kept("out"), kept("err")];
        let want = [out, given("/w/o/12.3.out", "/w/o"), err, given("/e/12.3.err", "/e")];
        assert_eq!(shown(&info), want.concat());
        info.err_file = "".into();
        info.out_dir = "d".into();
        let [out, _] = [kept("out"), kept("err")];
        let want = [out, given("/w/d/o/12.3.out", "/w/d/o"), given("/w/o/12.3.out", "/w/o")];
        assert_eq!(shown(&info), want.concat());
    }
}

//! Mail about a job, sent by its starter as its user through the site's mail program, which is
//! called as LSF calls it: `-oi`, `-FLSF`, the address; the message on its standard input
//! (LSB_MAILPROG in lsf.conf(5)).

use crate::proto::launch::Mail;
use crate::sys::files::regular;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether the mail program is there to be run.
pub fn possible(program: &[u8]) -> bool {
    let path = Path::new(OsStr::from_bytes(program));
    path.is_absolute() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Sends the message, with the output in `body` below it; where that is larger than the site
/// allows, only where it is kept. Whether the output is in the mail.
///
/// # Errors
/// The program fails, the output cannot be read, or the address is one that the program would take
/// for an option: users choose it (bsub -u), and mbatchd sends mail as well.
pub fn send(mail: &Mail, body: Option<&Path>) -> io::Result<bool> {
    if mail.to.starts_with('-') {
        let why = format!("{}: an address does not begin with a hyphen", mail.to.escape_debug());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    // others may write in its directory
    let file = body.map(|path| Ok::<File, io::Error>(regular(path)?.0)).transpose()?;
    let size = file.as_ref().map_or(Ok(0), |f| f.metadata().map(|m| m.len()))?;
    let kb = (size + mail.text.len() as u64).div_ceil(1024);
    let fits = mail.limit_kb == 0 || kb <= mail.limit_kb;
    let mut child = Command::new(OsStr::from_bytes(&mail.program.0))
        .args(["-oi", "-FLSF", &mail.to])
        .env_clear()
        .env("PATH", super::handover::DEFAULT_PATH)
        .env("LSB_MAILSIZE", if fits { kb.to_string() } else { "-1".into() })
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let wrote = match child.stdin.take() {
        Some(pipe) => write(pipe, mail, file, body.filter(|_| !fits)),
        None => Ok(()),
    };
    let status = child.wait()?;
    wrote?;
    match status.success() {
        true => Ok(fits && body.is_some()),
        false => Err(io::Error::other(format!("{status}"))),
    }
}

fn write(
    mut to: impl Write,
    mail: &Mail,
    file: Option<File>,
    too_large: Option<&Path>,
) -> io::Result<()> {
    to.write_all(&mail.text.0)?;
    match (file, too_large) {
        (_, Some(path)) => {
            writeln!(to, "The output is larger than LSB_MAILSIZE_LIMIT: {}", path.display())
        }
        (Some(mut file), None) => io::copy(&mut file, &mut to).map(|_| ()),
        (None, None) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_that_would_be_an_option_of_the_mail_program_is_refused() {
        let (text, to) = ("text".into(), "-X/tmp/log".into());
        let mail = Mail { program: "/bin/true".into(), to, text, output: false, limit_kb: 0 };
        let why = send(&mail, None).unwrap_err();
        assert_eq!(why.to_string(), "-X/tmp/log: an address does not begin with a hyphen");
        let good = Mail { to: "ann".into(), ..mail };
        // the program may end before it has read anything
        let sent = send(&good, None);
        let broken = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
        assert!(sent.as_ref().err().is_none_or(broken), "{sent:?}");
    }

    #[test]
    fn output_that_somebody_made_a_fifo_is_not_waited_for() {
        let n = u32::from_ne_bytes(crate::sys::random::<4>().unwrap());
        let fifo = std::env::temp_dir().join(format!("lsf-mail-{n}"));
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let (text, to) = ("text".into(), "ann".into());
        let mail = Mail { program: "/bin/cat".into(), to, text, output: true, limit_kb: 0 };
        let (said, heard) = std::sync::mpsc::channel();
        let body = fifo.clone();
        std::thread::spawn(move || said.send(send(&mail, Some(&body)).unwrap_err().to_string()));
        let why = heard.recv_timeout(std::time::Duration::from_secs(60));
        std::fs::remove_file(&fifo).unwrap();
        assert_eq!(why.as_deref(), Ok("not a regular file"));
    }
}

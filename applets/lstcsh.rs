//! lstcsh: the site's tcsh, in which the tasks of the remote list run on other hosts. Document
//! implemented: commands.md, lstcsh.
//!
//! tcsh starts with a home of ours for as long as it reads its start files: ours reads the user's
//! and then makes an alias of each task.

use super::{lsmake, lstasks};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::links::own_binary;
use lsf::cli::version;
use lsf::conf::generate::shell_quoted;
use lsf::errln;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

pub fn run(ctx: &mut Ctx) -> i32 {
    if ctx.args.first().is_some_and(|w| w == "-V") {
        errln!(ctx, "{}", version::line());
        return 0;
    }
    if ctx.args.first().is_some_and(|w| w == "-h") {
        errln!(ctx, "Usage: lstcsh [tcsh options and arguments]");
        return 0;
    }
    ctx.flush();
    shell(ctx).unwrap_or_else(|why| {
        errln!(ctx, "lstcsh: {why}");
        FAIL
    })
}

fn shell(ctx: &Ctx) -> Result<i32, String> {
    let (mut on, mut off) = (String::new(), String::new());
    let lsrun = shell_quoted(&own_binary()?.to_string_lossy()) + " lsrun";
    for (task, req) in &lstasks::lists()?.remote {
        // csh knows names of letters, digits and a few more
        if !task.chars().all(|c| c.is_ascii_alphanumeric() || "_-.+".contains(c)) {
            continue;
        }
        let req = match req.as_str() {
            "" => String::new(),
            req => format!("-R {} ", shell_quoted(req)),
        };
        let line = shell_quoted(&format!("{lsrun} {req}{task}")).replace('!', "\\!");
        on.push_str(&format!("alias {task} {line}\n"));
        off.push_str(&format!("unalias {task}\n"));
    }
    let dir = lsmake::own_directory("lstcsh")?;
    let path = |name: &str| shell_quoted(&dir.join(name).to_string_lossy());
    let home = shell_quoted(&std::env::var("HOME").unwrap_or_default());
    let rc = format!(
        "setenv HOME {home}\nset home = {home}\n\
         if ( -r ~/.tcshrc ) then\nsource ~/.tcshrc\nelse if ( -r ~/.cshrc ) then\n\
         source ~/.cshrc\nendif\nsource {}\n\
         alias lsmode 'if (-r {1}/\\!:1) source {1}/\\!:1'\n",
        path("on"),
        dir.display()
    );
    let files = [(".tcshrc", &rc), ("on", &on), ("remote", &on), ("off", &off), ("local", &off)];
    let written = files.iter().try_for_each(|(name, text)| std::fs::write(dir.join(name), text));
    let ended =
        written.and_then(|()| Command::new("tcsh").args(&ctx.args).env("HOME", &dir).status());
    let _ = std::fs::remove_dir_all(&dir);
    match ended {
        Ok(s) => Ok(s.code().unwrap_or_else(|| 128 + s.signal().unwrap_or(0))),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            Err("tcsh is not installed (Debian: package tcsh)".into())
        }
        Err(e) => Err(format!("tcsh: {}", lsf::sys::words(&e))),
    }
}

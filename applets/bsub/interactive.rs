//! The options of interactive jobs: -I, -Ip, -Is, and those of ssh and X11, which act as these.

use super::opts::BsubOpts;
use super::rejection::Rejection;
use lsf::model::ByteStr;
use lsf::model::job::{JobSpec, opt};
use lsf::model::reason::{err, err_text};
use std::os::unix::ffi::OsStrExt;

/// The options by which a job is interactive, each with its bits.
fn given(opts: &BsubOpts) -> Vec<(&'static str, u32)> {
    let plain = opt::INTERACTIVE;
    let (pty, shell) = (plain | opt::PTY, plain | opt::PTY | opt::PTY_SHELL);
    let all = [
        ("-I", opts.interactive, plain),
        ("-Ip", opts.interactive_pty, pty),
        ("-Is", opts.interactive_shell, shell),
        ("-IS", opts.ssh, plain),
        ("-ISp", opts.ssh_pty, pty),
        ("-ISs", opts.ssh_shell, shell),
        ("-IX", opts.x_window, plain),
    ];
    all.into_iter().filter(|o| o.1).map(|(word, _, bits)| (word, bits)).collect()
}

/// Whether the job is to be interactive.
pub fn asked(opts: &BsubOpts) -> bool {
    !given(opts).is_empty()
}

/// Sets the bits of an interactive job, or says what does not go together with it.
pub fn set(opts: &BsubOpts, spec: &mut JobSpec) -> Result<(), Rejection> {
    let given = given(opts);
    let Some(&(word, bits)) = given.first() else {
        return match opts.tty {
            true => Err(Rejection::new("Option -tty can only be used with an interactive job")),
            false => Ok(()),
        };
    };
    let others = [("-K", opts.wait), ("-k", opts.checkpoint.is_some())];
    let other = others.into_iter().find(|o| o.1).map(|o| o.0);
    if let Some(other) = given.get(1).map(|o| o.0).or(other) {
        let words = format!("Option {word} cannot be combined with option {other}");
        return Err(Rejection::new(words));
    }
    if opts.rerun {
        return Err(Rejection::new(err_text(err::INTERACTIVE_RERUN)));
    }
    spec.options |= bits;
    Ok(())
}

/// An environment for a job that may be on a terminal: the terminal is of the submitter's kind.
pub fn of_terminal(env: ByteStr, spec: &JobSpec) -> ByteStr {
    let mut env = env.0;
    for name in ["TERM", "TERMCAP"].into_iter().filter(|_| spec.options & opt::PTY != 0) {
        let Some(value) = std::env::var_os(name) else { continue };
        let head = [name.as_bytes(), b"="].concat();
        if env.split(|&b| b == 0).any(|entry| entry.starts_with(&head)) {
            continue;
        }
        env.extend_from_slice(&[&head, value.as_bytes(), b"\0"].concat());
    }
    env.into()
}

/// Words about the parts of these options that are not done.
pub fn notices(opts: &BsubOpts) -> Vec<String> {
    let ssh = [("-IS", opts.ssh), ("-ISp", opts.ssh_pty), ("-ISs", opts.ssh_shell)];
    let x11 = [("-IX", opts.x_window), ("-XF", opts.x_forward)];
    let named = |all: &[(&str, bool)], what: &str| -> Vec<String> {
        let given = all.iter().filter(|o| o.1);
        given.map(|o| format!("bsub: option {}: {what}", o.0)).collect()
    };
    let mut all = named(&ssh, "the job is joined through RES, not through ssh");
    all.extend(named(&x11, "X11 is not forwarded"));
    let files = [&opts.out, &opts.out_over, &opts.err, &opts.err_over];
    let to_file = opts.tty && files.iter().any(|file| file.is_some());
    all.extend(named(&[("-tty", to_file)], "output of -o and -e goes to the file alone"));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(f: impl FnOnce(&mut BsubOpts)) -> Result<u32, String> {
        let (mut opts, mut spec) = (BsubOpts::default(), JobSpec::default());
        f(&mut opts);
        set(&opts, &mut spec).map(|()| spec.options).map_err(|r| r.to_string())
    }

    #[test]
    fn each_option_sets_the_bits_of_lsbatch() {
        assert_eq!(bits(|_| {}), Ok(0));
        assert_eq!(bits(|o| o.interactive = true), Ok(0x4000000));
        assert_eq!(bits(|o| o.interactive_pty = true), Ok(0xc000000));
        assert_eq!(bits(|o| o.interactive_shell = true), Ok(0x1c000000));
        assert_eq!(bits(|o| o.ssh_shell = true), Ok(0x1c000000));
        assert_eq!(bits(|o| o.x_forward = true), Ok(0));
    }

    #[test]
    fn options_that_do_not_go_together_are_refused() {
        let words = |other: &str| {
            Err(format!("Option -I cannot be combined with option {other}. Job not submitted."))
        };
        assert_eq!(bits(|o| (o.interactive, o.wait) = (true, true)), words("-K"));
        assert_eq!(bits(|o| (o.interactive, o.interactive_shell) = (true, true)), words("-Is"));
        let rerun = "Interactive job cannot be rerunnable. Job not submitted.";
        assert_eq!(bits(|o| (o.interactive_pty, o.rerun) = (true, true)), Err(rerun.into()));
    }

    #[test]
    fn ssh_and_x11_are_named_as_not_done() {
        let opts = BsubOpts { ssh_pty: true, x_forward: true, ..BsubOpts::default() };
        let want = [
            "bsub: option -ISp: the job is joined through RES, not through ssh",
            "bsub: option -XF: X11 is not forwarded",
        ];
        assert_eq!(notices(&opts), want);
    }

    #[test]
    fn tty_belongs_to_interactive_jobs_and_does_not_show_what_goes_to_a_file() {
        let words = "Option -tty can only be used with an interactive job. Job not submitted.";
        assert_eq!(bits(|o| o.tty = true), Err(words.into()));
        assert_eq!(bits(|o| (o.tty, o.interactive) = (true, true)), Ok(0x4000000));
        let mut opts = BsubOpts { tty: true, interactive: true, ..BsubOpts::default() };
        assert_eq!(notices(&opts), [""; 0]);
        opts.err_over = Some("e".into());
        let want = "bsub: option -tty: output of -o and -e goes to the file alone";
        assert_eq!(notices(&opts), [want]);
    }
}

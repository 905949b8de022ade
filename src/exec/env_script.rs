//! DJOB_ENV_SCRIPT: the script that sets up the environment of a job before its command, and cleans
//! up after it, as its user (lsb.applications(5)).

use crate::model::ByteStr;
use crate::proto::launch::{Cleanup, Ready};

/// The variable of a job that names its script.
const VARIABLE: &str = "LSB_DJOB_ENV_SCRIPT";
/// The time after which a script that cleans up is killed, seconds.
pub const CLEANUP_SECS: u64 = 300;

/// The path of the script that the environment of a job names; empty none. `value`: the value of a
/// variable of that environment.
pub fn path<'a>(value: impl Fn(&str) -> Option<&'a [u8]>) -> ByteStr {
    let named = value(VARIABLE).unwrap_or_default();
    match value("LSF_BINDIR") {
        Some(bindir) if !named.is_empty() && !named.starts_with(b"/") => {
            ByteStr([bindir, b"/", named].concat())
        }
        _ => named.to_vec().into(),
    }
}

/// The script that cleans up after a job, which has run it with `setup`. `variable`: that of the
/// temporary directory of a job beside LSB_JOB_TMPDIR; empty none.
pub fn cleanup(ready: &Ready, variable: &str) -> Option<Box<Cleanup>> {
    let script = ready.env_script.clone();
    let mut env = Vec::new();
    if let Some(made) = &ready.temporary {
        let names = ["LSB_JOB_TMPDIR", variable].into_iter().filter(|name| !name.is_empty());
        for name in names {
            env.extend_from_slice(&[name.as_bytes(), b"=", &made.path.0, b"\0"].concat());
        }
    }
    let cleanup = Cleanup { script, limit_secs: CLEANUP_SECS, env: env.into() };
    (!cleanup.script.is_empty()).then(|| Box::new(cleanup))
}

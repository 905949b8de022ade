//! The variables that a job inherits (bsub(1) -env).
//!
//! An environment is a list of `NAME=value` byte strings; nothing here assumes UTF-8, and the
//! order of the caller's environment is kept. Commands read the process's environment once and
//! hand it in, so that the rules can be tested.

use std::fmt;

/// Variables that never travel: the execution host has its own.
const OWN: [&str; 5] = ["HOME", "PWD", "USER", "TERM", "TERMCAP"];

/// Names, and beginnings of names (marked by a final `*`), that the batch system sets for one
/// job and that mean nothing to the next one.
const INTERNAL: [&str; 33] = [
    "LSB_ACCT_FILE",
    "LSB_AFFINITY_*",
    "LSB_BATCH_JID",
    "LSB_BIND_*",
    "LSB_CHKFILENAME",
    "LSB_CHKPNT_*",
    "LSB_DJOB_*",
    "LSB_EEXEC_*",
    "LSB_EFFECTIVE_RSRCREQ",
    "LSB_ERRORFILE",
    "LSB_EXEC*",
    "LSB_EXIT_*",
    "LSB_HOSTS",
    "LSB_INFILE",
    "LSB_INTERACTIVE",
    "LSB_JOB*",
    "LSB_MAX_NUM_PROCESSORS",
    "LSB_MCPU_HOSTS",
    "LSB_OUTDIR",
    "LSB_OUTPUTFILE",
    "LSB_PROJECT_NAME",
    "LSB_QUEUE",
    "LSB_RESTART",
    "LSB_SUB_*",
    "LSB_SUSP_*",
    "LSB_TASKID",
    "LSB_TRAPSIGS",
    "LSB_UNIXGROUP*",
    "LSF_PM_TASKID",
    "LS_EXEC_T",
    "LS_JOBPID",
    "LS_SUBCWD",
    "RM_CPUTASK*",
];

/// Variables with these prefixes that are options of the user.
const WISHES: [&str; 2] = ["LSB_EXIT_IF_CWD_NOTEXIST", "LSB_JOB_INCLUDE_POSTPROC"];

/// Parameters of a parallel job that are options of the user, too. In a job they are those of that
/// job, and mean nothing to the next one.
const WISHES_OUTSIDE: [&str; 5] = [
    "LSB_DJOB_COMMFAIL_ACTION",
    "LSB_DJOB_ENV_SCRIPT",
    "LSB_DJOB_HB_INTERVAL",
    "LSB_DJOB_RTASK_GONE_ACTION",
    "LSB_DJOB_RU_INTERVAL",
];

/// One variable.
pub type Var = (Vec<u8>, Vec<u8>);

/// The beginnings of all names in OWN and INTERNAL: a variable with another one needs no search.
const HEADS: [&str; 2] = ["LS", "RM_"];

/// Whether the rules let a variable travel when it was not asked for by name.
fn travels(name: &[u8], in_job: bool) -> bool {
    let wished = |wishes: &[&str]| wishes.iter().any(|w| w.as_bytes() == name);
    if wished(&WISHES) || !in_job && wished(&WISHES_OUTSIDE) {
        return true;
    }
    let ours = HEADS.iter().any(|head| name.starts_with(head.as_bytes()));
    !(OWN.iter().any(|o| o.as_bytes() == name) || ours && internal(name))
}

fn internal(name: &[u8]) -> bool {
    INTERNAL.iter().any(|i| match i.strip_suffix('*') {
        Some(head) => name.starts_with(head.as_bytes()),
        None => i.as_bytes() == name,
    })
}

/// A value of `-env` that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadEnv {
    /// The word at fault.
    pub word: String,
}

impl fmt::Display for BadEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: Bad argument for option -env", self.word)
    }
}

/// The value of `-env`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvAsk {
    /// Begin with everything that travels.
    all: bool,
    /// Names to leave out.
    without: Vec<String>,
    /// Names to take from the caller's environment.
    with: Vec<String>,
    /// Names to set.
    set: Vec<(String, String)>,
}

impl EnvAsk {
    /// The value without -env.
    pub fn everything() -> EnvAsk {
        EnvAsk { all: true, ..EnvAsk::default() }
    }

    /// Reads the values of every `-env` given, in order; none at all means `all`.
    pub fn parse(values: &[String]) -> Result<EnvAsk, BadEnv> {
        let mut ask = EnvAsk { all: values.is_empty(), ..EnvAsk::default() };
        for value in values {
            for (i, word) in split(value).into_iter().enumerate() {
                ask.take(&word, i == 0)?;
            }
        }
        Ok(ask)
    }

    fn take(&mut self, word: &str, first: bool) -> Result<(), BadEnv> {
        let bad = || BadEnv { word: word.to_string() };
        match word {
            "all" if first => self.all = true,
            "none" if first => *self = EnvAsk::default(),
            _ => {
                if let Some(name) = word.strip_prefix('~') {
                    self.without.push(checked(name.trim()).ok_or_else(bad)?);
                } else if let Some((name, value)) = word.split_once('=') {
                    let name = checked(name.trim()).ok_or_else(bad)?;
                    self.set.push((name, unquoted(value.trim()).to_string()));
                } else {
                    self.with.push(checked(word).ok_or_else(bad)?);
                }
            }
        }
        Ok(())
    }

    /// The environment to send.
    pub fn apply(&self, caller: &[Var]) -> Vec<Var> {
        let is = |list: &[String], name: &[u8]| list.iter().any(|n| n.as_bytes() == name);
        let in_job = caller.iter().any(|(name, _)| name == b"LSB_JOBID");
        let mut out: Vec<Var> = caller
            .iter()
            .filter(|(name, _)| {
                !is(&self.without, name)
                    && ((self.all && travels(name, in_job)) || is(&self.with, name))
            })
            .cloned()
            .collect();
        for (name, value) in &self.set {
            out.retain(|(n, _)| n != name.as_bytes());
            out.push((name.clone().into_bytes(), value.clone().into_bytes()));
        }
        out
    }
}

/// A variable's name, if the text can be one.
fn checked(name: &str) -> Option<String> {
    let fine = !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control());
    fine.then(|| name.to_string())
}

/// The words between commas; a comma within quotes belongs to its word. Empty words are left out.
fn split(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in text.chars() {
        match (c, quote) {
            (',', None) => words.push(std::mem::take(&mut word)),
            ('\'' | '"', None) => {
                quote = Some(c);
                word.push(c);
            }
            (c, Some(q)) if c == q => {
                quote = None;
                word.push(c);
            }
            (c, _) => word.push(c),
        }
    }
    words.push(word);
    words.iter().map(|w| w.trim().to_string()).filter(|w| !w.is_empty()).collect()
}

/// The text within one pair of quotes, where it has one.
fn unquoted(text: &str) -> &str {
    ['\'', '"'].iter().find_map(|&q| text.strip_prefix(q)?.strip_suffix(q)).unwrap_or(text)
}

/// `NAME=value` records, each ended by a NUL, as the wire and the spool carry them.
pub fn packed(vars: &[Var]) -> Vec<u8> {
    let mut out = Vec::with_capacity(vars.iter().map(|(n, v)| n.len() + v.len() + 2).sum());
    for (name, value) in vars {
        out.extend_from_slice(name);
        out.push(b'=');
        out.extend_from_slice(value);
        out.push(0);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(list: &[&str]) -> Vec<Var> {
        list.iter()
            .map(|v| {
                let (n, v) = v.split_once('=').unwrap();
                (n.into(), v.into())
            })
            .collect()
    }

    fn sent(values: &[&str], caller: &[&str]) -> Vec<String> {
        let values: Vec<String> = values.iter().map(|v| v.to_string()).collect();
        let out = EnvAsk::parse(&values).unwrap().apply(&vars(caller));
        out.iter()
            .map(|(n, v)| format!("{}={}", String::from_utf8_lossy(n), String::from_utf8_lossy(v)))
            .collect()
    }

    #[test]
    fn every_internal_name_begins_as_the_quick_look_expects() {
        for name in INTERNAL {
            assert!(HEADS.iter().any(|head| name.starts_with(head)), "{name}");
        }
    }

    const CALLER: [&str; 12] = [
        "A=1",
        "HOME=/h",
        "PWD=/p",
        "USER=u",
        "TERM=xterm",
        "TERMCAP=x",
        "LSB_JOBID=7",
        "LSB_DJOB_HOSTFILE=/x",
        "LS_SUBCWD=/p",
        "LSB_DEFAULTQUEUE=night",
        "PATH=/bin",
        "LSF_ENVDIR=/e",
    ];

    #[test]
    fn everything_travels_but_what_belongs_to_a_host_or_a_job() {
        let want = ["A=1", "LSB_DEFAULTQUEUE=night", "PATH=/bin", "LSF_ENVDIR=/e"];
        assert_eq!(sent(&[], &CALLER), want);
        assert_eq!(sent(&["all"], &CALLER), want);
        let wishes = ["LSB_EXIT_IF_CWD_NOTEXIST=Y", "LSB_JOB_INCLUDE_POSTPROC=N"];
        assert_eq!(sent(&[], &wishes), wishes);
        // parameters of parallel jobs; in a job they are its own
        let own = ["LSB_DJOB_RTASK_GONE_ACTION=KILLJOB_TASKEXIT", "LSB_DJOB_HB_INTERVAL=5"];
        assert_eq!(sent(&[], &own), own);
        let inside = [&own[..], &["LSB_JOBID=7", "LSB_DJOB_NUMPROC=2"]].concat();
        assert_eq!(sent(&[], &inside), [""; 0]);
        assert_eq!(sent(&["all, LSB_DJOB_HB_INTERVAL"], &inside), own[1..]);
    }

    #[test]
    fn names_are_left_out_taken_and_set() {
        assert_eq!(sent(&["none"], &CALLER), Vec::<String>::new());
        assert_eq!(sent(&["A, TERM, NOSUCH"], &CALLER), ["A=1", "TERM=xterm"]);
        let want = ["LSB_DEFAULTQUEUE=night", "LSF_ENVDIR=/e", "PATH=/new", "W=x y"];
        assert_eq!(sent(&["all, ~A, PATH=/new, W=x y"], &CALLER), want);
        assert_eq!(sent(&["none", "W=1"], &CALLER), ["W=1"]);
        assert_eq!(sent(&["all", "~PATH", "~LSF_ENVDIR"], &["PATH=1", "B=2"]), ["B=2"]);
    }

    #[test]
    fn quoted_commas_do_not_separate_variables() {
        assert_eq!(sent(&["X='a, b',Y=\"c,d\",Z=e=f"], &[]), ["X=a, b", "Y=c,d", "Z=e=f"]);
    }

    #[test]
    fn malformed_variable_name_is_refused() {
        for bad in ["~", "=x", "a b", "~ x y"] {
            let e = EnvAsk::parse(&[bad.to_string()]).unwrap_err();
            assert_eq!(e.to_string(), format!("{bad}: Bad argument for option -env"));
        }
    }

    #[test]
    fn bytes_of_the_environment_are_kept() {
        let v = vec![(b"N\xff".to_vec(), b"\xfe\n".to_vec()), (b"E".to_vec(), vec![])];
        assert_eq!(packed(&EnvAsk::parse(&[]).unwrap().apply(&v)), b"N\xff=\xfe\n\0E=\0");
    }
}

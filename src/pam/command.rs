//! The words of pam(1): its options, and the PJL's command line with or without the TaskStarter
//! among its words.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The options of pam, all of which stand before -g.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PamOptions {
    pub no_table: bool,
    pub verbose: bool,
    /// -n
    pub tasks: Option<usize>,
    /// -m
    pub hosts: Option<Vec<String>>,
    /// -g: how many of the words are the PJL's own, its name counted; `None`: TaskStarter is put
    /// in by the PJL itself.
    pub pjl_words: Option<usize>,
    /// The words behind -g.
    pub words: Vec<OsString>,
    pub help: bool,
    pub version: bool,
}

/// The fault of words that are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordsFault {
    Usage(String),
    /// Words without the usage.
    Words(String),
}

fn usage<T>(words: impl Into<String>) -> Result<T, WordsFault> {
    Err(WordsFault::Usage(words.into()))
}

impl PamOptions {
    /// Reads the words of the command line.
    ///
    /// # Errors
    /// A word is no option, or an argument is missing or wrong.
    pub fn read(args: &[OsString]) -> Result<PamOptions, WordsFault> {
        let mut options = PamOptions::default();
        let mut rest = args;
        while let Some((word, behind)) = rest.split_first() {
            rest = behind;
            match &*word.to_string_lossy() {
                "-h" | "--help" => options.help = true,
                "-V" | "--version" => options.version = true,
                "-t" => options.no_table = true,
                "-v" => options.verbose = true,
                "-n" => {
                    let value = value(&mut rest, "-n")?;
                    let number = value.to_str().and_then(|text| text.parse().ok());
                    options.tasks = match number.filter(|number| *number > 0) {
                        Some(number) => Some(number),
                        None => {
                            return usage(format!("-n {}: not a number of tasks", shown(&value)));
                        }
                    };
                }
                "-m" => {
                    let value = value(&mut rest, "-m")?;
                    let names = value.to_string_lossy();
                    let names: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
                    if names.is_empty() {
                        return usage("-m names no host");
                    }
                    options.hosts = Some(names);
                }
                "-g" => return options.generic(rest),
                vendor @ ("-mpi" | "-auto_place" | "-pvm") => {
                    let text = format!("{vendor}: this build has no vendor MPI; use -g");
                    return Err(WordsFault::Words(text));
                }
                other => return usage(format!("{other}: no option of pam; -g is wanted")),
            }
        }
        match options.help || options.version {
            true => Ok(options),
            false => usage("-g is wanted"),
        }
    }

    fn generic(mut self, rest: &[OsString]) -> Result<PamOptions, WordsFault> {
        let Some((first, behind)) = rest.split_first() else {
            return usage("-g: the PJL is missing");
        };
        let number = first.to_str().filter(|text| is_number(text));
        let Some(text) = number else {
            self.words = rest.to_vec();
            return Ok(self);
        };
        let count = text.parse::<usize>().ok().filter(|count| *count > 0);
        let Some(count) = count else {
            return usage(format!("-g {text}: the PJL has at least one word, its name"));
        };
        if behind.len() <= count {
            let words = behind.len();
            return usage(format!("-g {text}: {words} words follow, and an application is wanted"));
        }
        self.pjl_words = Some(count);
        self.words = behind.to_vec();
        Ok(self)
    }

    /// The command line of the PJL: with the TaskStarter behind the PJL's own words, where they are
    /// counted.
    pub fn pjl(&self, starter: &Starter) -> Vec<OsString> {
        let Some(count) = self.pjl_words else { return self.words.clone() };
        let mut all = self.words[..count].to_vec();
        all.push(starter.program.clone().into());
        all.extend(starter.options.iter().map(OsString::from));
        all.extend_from_slice(&self.words[count..]);
        all
    }
}

/// Whether a word behind -g is meant as a number.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

fn value(rest: &mut &[OsString], option: &str) -> Result<OsString, WordsFault> {
    let Some((word, behind)) = rest.split_first() else {
        return usage(format!("{option}: a word is missing"));
    };
    *rest = behind;
    Ok(word.clone())
}

fn shown(word: &OsStr) -> String {
    String::from_utf8_lossy(word.as_bytes()).escape_debug().to_string()
}

/// The TaskStarter with the options by which it finds its pam.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Starter {
    pub program: String,
    pub options: Vec<String>,
}

impl Starter {
    /// The TaskStarter of LSF_BINDIR `bindir`, which calls pam at this host and port.
    ///
    /// # Errors
    /// A path with a blank, where PJLs would split it.
    pub fn new(
        bindir: &str,
        (host, port): (&str, u16),
        envdir: &str,
        serverdir: &str,
        host_type: &str,
    ) -> Result<Starter, String> {
        let program = format!("{bindir}/TaskStarter");
        let at = format!("{host}:{port}");
        let pairs = [("-p", at.as_str()), ("-c", envdir), ("-s", serverdir), ("-a", host_type)];
        let given = pairs.iter().filter(|(_, value)| !value.is_empty());
        let options: Vec<String> =
            given.flat_map(|(name, value)| [(*name).to_owned(), (*value).to_owned()]).collect();
        let blank = |word: &&String| word.contains(char::is_whitespace);
        match std::iter::once(&program).chain(&options).find(blank) {
            Some(word) => Err(format!("{word}: a path with a blank; a PJL would split it")),
            None => Ok(Starter { program, options }),
        }
    }

    /// The value of LSF_TS_OPTIONS.
    pub fn words(&self) -> String {
        self.options.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<PamOptions, WordsFault> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        PamOptions::read(&words)
    }

    fn starter() -> Starter {
        Starter::new("/lsf/bin", ("hosta", 4711), "/lsf/conf", "/lsf/etc", "LINUX86").unwrap()
    }

    fn line(words: &[OsString]) -> String {
        words.join(OsStr::new(" ")).to_string_lossy().into_owned()
    }

    #[test]
    fn starter_stands_behind_the_counted_words_of_the_pjl() {
        let options = read("-t -v -n 4 -g 2 mpirun -x ./a.out -g 7").unwrap();
        assert_eq!((options.no_table, options.verbose, options.tasks), (true, true, Some(4)));
        let ts = "/lsf/bin/TaskStarter -p hosta:4711 -c /lsf/conf -s /lsf/etc -a LINUX86";
        assert_eq!(line(&options.pjl(&starter())), format!("mpirun -x {ts} ./a.out -g 7"));
        // without a number nothing is put in
        let options = read("-g openmpi_wrapper ./a.out 5").unwrap();
        assert_eq!(line(&options.pjl(&starter())), "openmpi_wrapper ./a.out 5");
        let options = read("-g ./5").unwrap();
        assert_eq!((options.pjl_words, options.words.len()), (None, 1));
    }

    #[test]
    fn words_that_do_not_fit_are_refused_with_the_reason() {
        let fault = |line| match read(line) {
            Err(WordsFault::Usage(words)) => words,
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(fault("-g"), "-g: the PJL is missing");
        assert_eq!(fault("-g 0 a b"), "-g 0: the PJL has at least one word, its name");
        assert_eq!(fault("-g -1 a b"), "-g -1: the PJL has at least one word, its name");
        assert_eq!(fault("-g 2 a b"), "-g 2: 2 words follow, and an application is wanted");
        assert_eq!(fault("-g 1"), "-g 1: 0 words follow, and an application is wanted");
        assert_eq!(fault("-n 0 -g a"), "-n 0: not a number of tasks");
        assert_eq!(fault("-n x -g a"), "-n x: not a number of tasks");
        assert_eq!(fault("-n"), "-n: a word is missing");
        assert_eq!(fault("./a.out"), "./a.out: no option of pam; -g is wanted");
        assert_eq!(fault(""), "-g is wanted");
        let vendor = WordsFault::Words("-mpi: this build has no vendor MPI; use -g".into());
        assert_eq!(read("-mpi mpirun a"), Err(vendor));
        let blank = Starter::new("/a b", ("h", 1), "/c", "/d", "");
        let want = "/a b/TaskStarter: a path with a blank; a PJL would split it";
        assert_eq!(blank, Err(want.to_owned()));
    }
}

//! Lists of exit values as -Q and REQUEUE_EXIT_VALUES have them: `2 30 EXCLUDE(31 99)`,
//! `all ~1 ~2`.

/// Exit values, of which some also exclude the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExitCodes {
    plain: Codes,
    exclude: Codes,
}

/// `all` without the last ones, or the ones named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Codes {
    all: bool,
    named: Vec<u8>,
    not: Vec<u8>,
}

impl Codes {
    fn read(words: &str) -> Option<Codes> {
        let mut codes = Codes::default();
        for word in words.split_whitespace() {
            let number =
                |t: &str| t.parse::<u8>().ok().filter(|_| t.bytes().all(|b| b.is_ascii_digit()));
            match word.strip_prefix('~') {
                None if word.eq_ignore_ascii_case("all") => codes.all = true,
                None => codes.named.push(number(word)?),
                Some(not) => codes.not.push(number(not)?),
            }
        }
        let sense = codes.not.is_empty() || codes.all;
        sense.then_some(codes)
    }

    /// `all` are all failures.
    fn has(&self, code: i32) -> bool {
        let Ok(code) = u8::try_from(code) else { return false };
        self.named.contains(&code) || (self.all && code != 0 && !self.not.contains(&code))
    }
}

impl ExitCodes {
    /// Reads a list; `None`: the text is no such list.
    pub fn parse(text: &str) -> Option<ExitCodes> {
        let mut list = ExitCodes::default();
        let (mut plain, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("EXCLUDE(") {
            let (inner, behind) = after.split_once(')')?;
            let inner = Codes::read(inner)?;
            if inner == Codes::default() {
                return None;
            }
            list.exclude.all |= inner.all;
            list.exclude.named.extend(inner.named);
            list.exclude.not.extend(inner.not);
            plain.push_str(before);
            plain.push(' ');
            rest = behind;
        }
        plain.push_str(rest);
        list.plain = Codes::read(&plain)?;
        (list != ExitCodes::default()).then_some(list)
    }

    /// Reads the exit values of pre-execution commands that exclude the host (lsb.params(5)): 1 to
    /// 255 without the reserved `reserved`; `None`: the text is no such list.
    pub fn of_hosts(text: &str, reserved: u8) -> Option<ExitCodes> {
        let codes = ExitCodes::parse(text)?;
        let failure = |code: &u8| *code != 0 && *code != reserved;
        let fit = codes.exclude == Codes::default() && codes.plain.named.iter().all(failure);
        fit.then_some(codes)
    }

    /// Does a job that ended so go back to the queue?
    pub fn has(&self, code: i32) -> bool {
        self.plain.has(code) || self.excludes(code)
    }

    /// The list excludes the host of the failed attempt for this code.
    pub fn excludes(&self, code: i32) -> bool {
        self.exclude.has(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_what_they_hold() {
        let of = |text: &str| ExitCodes::parse(text).unwrap();
        type Codes = &'static [i32];
        let rows: &[(&str, Codes, Codes, Codes)] = &[
            ("2 30", &[2, 30], &[], &[0, 1, 3]),
            ("all ~1 ~2", &[3, 255, 130], &[], &[0, 1, 2]),
            ("EXCLUDE(20)", &[], &[20], &[0, 2]),
            ("30 EXCLUDE(20 21)", &[30], &[20, 21], &[22]),
            ("all EXCLUDE(all ~3)", &[3], &[4, 5], &[0]),
            ("0", &[0], &[], &[1]),
        ];
        for (text, plain, exclude, not) in rows {
            let list = of(text);
            for code in *plain {
                assert!(list.has(*code) && !list.excludes(*code), "{text} {code}");
            }
            assert!(exclude.iter().all(|c| list.has(*c) && list.excludes(*c)), "{text}");
            assert!(not.iter().all(|c| !list.has(*c)), "{text}");
        }
        for bad in ["", " ", "x", "256", "-1", "+1", "~3", "EXCLUDE()", "EXCLUDE(1", "1 EXCLUDE(y)"]
        {
            assert_eq!(ExitCodes::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn values_that_exclude_a_host_are_failures_without_the_reserved_one() {
        let list = ExitCodes::of_hosts("all ~40", 99).unwrap();
        assert!(list.has(1) && list.has(255) && !list.has(40) && !list.has(0));
        for bad in ["", "0", "1 99", "EXCLUDE(3)", "256", "~3"] {
            assert_eq!(ExitCodes::of_hosts(bad, 99), None, "{bad}");
        }
    }
}

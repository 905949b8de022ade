//! Limits of requests: sizes, times, and what becomes of each option.

use super::opts::CqsubOpts;
use lsf::model::job::JobSpec;
use lsf::model::nqs::{RequestValue, put_attribute};

/// The units of sizes, bytes.
const UNITS: [(&str, f64); 10] = [
    ("b", 1.0),
    ("w", 8.0),
    ("kb", 1_024.0),
    ("kw", 8_192.0),
    ("mb", 1_048_576.0),
    ("mw", 8_388_608.0),
    ("gb", 1_073_741_824.0),
    ("gw", 8_589_934_592.0),
    ("tb", 1_099_511_627_776.0),
    ("tw", 8_796_093_022_208.0),
];

/// A size `n[.m][unit]` in bytes; of `hard,soft` the first counts. `None`: unlimited.
pub fn size(text: &str) -> Result<Option<f64>, String> {
    let hard = text.split(',').next().unwrap_or_default().trim();
    if hard.eq_ignore_ascii_case("unlimited") {
        return Ok(None);
    }
    let digits = hard.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(hard.len());
    let (number, unit) = hard.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let scale = match unit.as_str() {
        "" => Some(1.0),
        unit => UNITS.iter().find(|(word, _)| *word == unit).map(|(_, scale)| *scale),
    };
    let number = number.parse::<f64>().ok().filter(|n| n.is_finite());
    match number.zip(scale) {
        Some((n, scale)) => Ok(Some((n * scale).floor())),
        None => Err(format!(
            "<{text}>: a size is a number with one of the units b w kb kw mb mw gb gw tb tw"
        )),
    }
}

/// A time `[[h:]m:]s[.f]` in seconds; of `hard,soft` the first counts. `None`: unlimited.
pub fn time(text: &str) -> Result<Option<f64>, String> {
    let hard = text.split(',').next().unwrap_or_default().trim();
    if hard.eq_ignore_ascii_case("unlimited") {
        return Ok(None);
    }
    let bad = || format!("<{text}>: a time is [[hours:]minutes:]seconds[.fraction]");
    let parts: Vec<&str> = hard.split(':').collect();
    if parts.len() > 3 {
        return Err(bad());
    }
    let (last, front) = parts.split_last().ok_or_else(bad)?;
    let whole = |part: &&str| part.parse::<u32>().ok();
    let mut seconds = 0.0;
    for part in front {
        seconds = seconds * 60.0 + f64::from(whole(part).ok_or_else(bad)?);
    }
    let plain = !last.is_empty() && last.chars().all(|c| c.is_ascii_digit() || c == '.');
    let last = last.parse::<f64>().ok().filter(|n| plain && n.is_finite()).ok_or_else(bad)?;
    Ok(Some(seconds * 60.0 + last))
}

/// KB, rounded up.
fn kb(bytes: f64) -> u64 {
    (bytes / 1_024.0).ceil() as u64
}

/// Puts the limits of the options into a submission, and their attributes.
pub fn put(opts: &CqsubOpts, spec: &mut JobSpec, attributes: &mut String) -> Result<(), String> {
    let mut read = |option: &str, text: &Option<String>, name: &str, of: Reader| {
        let Some(text) = text else { return Ok(None) };
        let value = of(text).map_err(|why| format!("{option} {why}"))?;
        if let Some(value) = value {
            put_attribute(attributes, name, &RequestValue::Number(value));
        }
        Ok::<_, String>(value)
    };
    let core = read("-lc", &opts.core, "JOB_PPCORESIZE", size)?;
    let data = read("-ld", &opts.data, "JOB_PPDATASIZE", size)?;
    let file = read("-lf", &opts.file, "JOB_PPPFILESIZE", size)?;
    read("-lF", &opts.request_file, "JOB_PRPFILESPACE", size)?;
    let memory = read("-lm", &opts.memory, "JOB_PPMEMSIZE", size)?;
    let request_memory = read("-lM", &opts.request_memory, "JOB_PRMEMSIZE", size)?;
    read("-lQ", &opts.request_quick, "JOB_PRQFILESPACE", size)?;
    let stack = read("-ls", &opts.stack, "JOB_PPSTACKSIZE", size)?;
    let cpu = read("-lt", &opts.cpu, "JOB_PPCPUTIME", time)?;
    let request_cpu = read("-lT", &opts.request_cpu, "JOB_PRCPUTIME", time)?;
    read("-lw", &opts.working_set, "JOB_PPWORKSET", size)?;
    let limits = &mut spec.limits;
    limits.core = core.map(kb);
    limits.data = data.map(kb);
    limits.fsize = file.map(kb);
    limits.stack = stack.map(kb);
    limits.rss = request_memory.or(memory).map(kb);
    limits.cpu = request_cpu.or(cpu).map(|s| s.ceil() as u64);
    Ok(())
}

/// Reads a size or a time.
type Reader = fn(&str) -> Result<Option<f64>, String>;

/// The tape drives: their attributes, and `tape_a=n` for each type.
pub fn tapes(opts: &CqsubOpts, attributes: &mut String) -> Result<Vec<(char, u32)>, String> {
    let mut all = Vec::new();
    for text in &opts.tapes {
        let read = || {
            let (kind, number) = text.split_once('=')?;
            let kind =
                kind.chars().next().filter(|c| kind.len() == 1 && ('a'..='h').contains(c))?;
            Some((kind, number.trim().parse::<u32>().ok()?))
        };
        let (kind, number) = read()
            .ok_or_else(|| format!("-lU <{text}>: a type from a to h and a number are wanted"))?;
        let name = format!("JOB_TAPES_{}", kind.to_ascii_uppercase());
        put_attribute(attributes, &name, &RequestValue::Number(number.into()));
        all.push((kind, number));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_every_unit() {
        for (text, bytes) in [
            ("10kw", 81_920.0),
            ("10mw", 83_886_080.0),
            ("1.5kb", 1_536.0),
            ("7", 7.0),
            ("7b", 7.0),
            ("2w", 16.0),
            ("1MB", 1_048_576.0),
            ("1gb", 1_073_741_824.0),
            ("1gw", 8_589_934_592.0),
            ("1tb", 1_099_511_627_776.0),
            ("1tw", 8_796_093_022_208.0),
            ("4kb,2kb", 4_096.0),
        ] {
            assert_eq!(size(text), Ok(Some(bytes)), "{text}");
        }
        assert_eq!(size("unlimited"), Ok(None));
        for bad in ["10q", "", "kb", "-1", "1..2"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_read_in_seconds() {
        for (text, seconds) in
            [("5", 5.0), ("1:30", 90.0), ("1:00:00.5", 3_600.5), ("100,90", 100.0)]
        {
            assert_eq!(time(text), Ok(Some(seconds)), "{text}");
        }
        assert_eq!(time("unlimited"), Ok(None));
        for bad in ["", "x", "1:2:3:4", "1:-2", "1:", "1e3"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn options_of_the_table_become_attributes_and_limits() {
        let some = |text: &str| Some(text.to_owned());
        let opts = CqsubOpts {
            request_memory: some("10mw"),
            memory: some("1mb"),
            cpu: some("30"),
            file: some("1kb"),
            request_file: some("2kb"),
            tapes: vec!["a=2".into()],
            ..CqsubOpts::default()
        };
        let (mut spec, mut attributes) = (JobSpec::default(), String::new());
        put(&opts, &mut spec, &mut attributes).unwrap();
        assert_eq!(tapes(&opts, &mut attributes), Ok(vec![('a', 2)]));
        assert_eq!(
            attributes,
            "JOB_PPPFILESIZE=1024 JOB_PRPFILESPACE=2048 JOB_PPMEMSIZE=1048576 \
             JOB_PRMEMSIZE=83886080 JOB_PPCPUTIME=30 JOB_TAPES_A=2"
        );
        let l = &spec.limits;
        assert_eq!((l.rss, l.cpu, l.fsize, l.core), (Some(81_920), Some(30), Some(1), None));
    }
}

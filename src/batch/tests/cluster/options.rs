//! A submission by the options of bsub. The real ones are read by the applet, which is not in this
//! package; these are as many as tests of the scheduler need, and an unknown one is a mistake.

use crate::model::job::{JobSpec, opt, opt2};

/// `-q night -n 2,4 -R 'rusage[mem=10]' sleep 5`. The command is `x` where none is given; `-b +60`
/// is a start time in so many seconds; -hostfile takes the text of the file, `h1 2 h2 1`.
pub fn spec(text: &str, now: i64) -> JobSpec {
    let words = words(text);
    let mut words = words.iter().map(String::as_str);
    let mut spec = JobSpec { command: "x".into(), ..JobSpec::default() };
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            let rest: Vec<&str> = std::iter::once(word).chain(words).collect();
            spec.command = rest.join(" ").into();
            break;
        }
        if flag(&mut spec, word) {
            continue;
        }
        let value = words.next().unwrap_or_else(|| panic!("{word} without a value: {text}"));
        option(&mut spec, word, value, now);
    }
    spec
}

/// An option without a value.
fn flag(spec: &mut JobSpec, word: &str) -> bool {
    match word {
        "-x" => spec.options |= opt::EXCLUSIVE,
        "-r" => spec.options |= opt::RERUNNABLE,
        "-I" => spec.options |= opt::INTERACTIVE,
        "-rn" => spec.options2 |= opt2::NEVER_RERUN,
        "-ar" => spec.further.put_text("ar", "Y"),
        "-ti" => spec.further.put_text("ti", "Y"),
        "-H" => spec.options2 |= opt2::HOLD,
        _ => return false,
    }
    true
}

fn option(spec: &mut JobSpec, word: &str, value: &str, now: i64) {
    let number = || value.parse::<u32>().unwrap_or_else(|_| panic!("{word} {value}"));
    match word {
        // several queues are parted by bars
        "-rnc" => spec.further.put_text("rnc", value),
        "-k" => spec.further.put_text("k", value),
        "-wa" | "-wt" | "-We" => spec.further.put_text(&word[1..], value),
        "-q" => spec.queue = value.replace('|', " "),
        "-n" => (spec.min_slots, spec.max_slots) = slots(value),
        "-R" => spec.res_req = value.to_owned(),
        "-m" => spec.hosts = value.split_whitespace().map(str::to_owned).collect(),
        "-i" => spec.in_file = value.into(),
        "-cwd" => {
            spec.cwd = value.into();
            spec.options2 |= opt2::CWD;
        }
        "-M" => spec.limits.rss = Some(u64::from(number())),
        "-nlb" => spec.further.nlb_policy = value.into(),
        "-nlbattr" => spec.further.nlb_attributes = value.into(),
        "-w" => spec.depend = value.to_owned(),
        "-G" => spec.user_group = value.to_owned(),
        "-J" => spec.name = value.to_owned(),
        "-U" => spec.further.reservation = value.into(),
        "-t" => spec.term_time = now + i64::from(number()),
        "-P" => spec.project = value.to_owned(),
        "-Lp" => spec.further.put_text("Lp", value),
        "-W" => spec.limits.run = Some(u64::from(number()) * 60),
        "-c" => spec.limits.cpu = Some(u64::from(number()) * 60),
        "-sp" => spec.priority = number(),
        "-b" => spec.begin_time = now + i64::from(number()),
        // a termination deadline in so many seconds
        "-aps" => spec.further.put_text("aps", value),
        "-g" => spec.further.job_group = value.into(),
        "-E" => spec.pre_exec = value.into(),
        "-app" => spec.further.application = value.into(),
        "-sla" => spec.further.service_class = value.into(),
        "-Q" => spec.further.put_text("Q", value),
        "-mig" => spec.further.put_text("mig", value),
        // the proposals of ~/.lsfhosts, which bsub reads
        "-lsfhosts" => spec.further.put_text("lsfhosts", value),
        "-hostfile" => {
            let slots = value.split_whitespace().skip(1).step_by(2);
            let all = slots.map(|n| n.parse::<u32>().unwrap_or_else(|_| panic!("{value}"))).sum();
            (spec.min_slots, spec.max_slots) = (all, all);
            spec.further.put_text("hostslots", value);
        }
        _ => panic!("unknown option {word}"),
    }
}

/// `4`, `2,4`.
fn slots(value: &str) -> (u32, u32) {
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("-n {value}"));
    match value.split_once(',') {
        Some((min, max)) => (number(min), number(max)),
        None => (number(value), number(value)),
    }
}

/// Words parted by blanks; quotes keep them together.
pub(super) fn words(text: &str) -> Vec<String> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match quote {
            Some(q) if c == q => quote = None,
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_with(String::new);
            }
            None if c.is_whitespace() => all.extend(word.take()),
            _ => word.get_or_insert_with(String::new).push(c),
        }
    }
    assert!(quote.is_none(), "a quote is open: {text}");
    all.extend(word);
    all
}

#[test]
fn options_are_read_as_bsub_reads_them() {
    let spec = spec("-q night -n 2,4 -x -R 'select[mem>1] span[hosts=1]' -b +60 sleep '5'", 100);
    assert_eq!((spec.queue.as_str(), spec.min_slots, spec.max_slots), ("night", 2, 4));
    assert_eq!((spec.res_req.as_str(), spec.begin_time), ("select[mem>1] span[hosts=1]", 160));
    assert_eq!(spec.options, opt::EXCLUSIVE);
    assert_eq!(spec.command.as_bytes(), b"sleep 5");
}

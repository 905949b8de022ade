//! nlbpolicy: which hosts a policy of the load balancer chooses. See nlbpolicy(1).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front;
use lsf::cli::nlb::{NlbLink, NlbServers};
use lsf::conf::names::nearest;
use lsf::conf::nlb_map::NameMaps;
use lsf::model::nlb::Kind;
use lsf::proto::nlb::{AttributeValue, NlbQuery, NlbRow, SortValue};
use lsf::{errln, outln};
use std::ffi::OsString;

/// Exit code where no host meets the policy.
const NO_HOST: i32 = 1;
/// Request attributes begin with this.
const PREFIX: &str = "JOB_";

/// Show the hosts that a policy of the load balancer chooses, best first.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// attributes of the request, by commas: NAME, or NAME=value
    #[argh(option, short = 'a', arg_name = "attribute[=value]")]
    attributes: Vec<String>,
    /// at most so many hosts
    #[argh(option, short = 'c', arg_name = "count")]
    count: Option<String>,
    /// show all that is known of each host, as object data
    #[argh(switch, short = 'd')]
    dump: bool,
    /// a host that is acceptable; all are where none is named
    #[argh(option, short = 'h', arg_name = "host")]
    hosts: Vec<String>,
    /// the policy
    #[argh(option, short = 'p', arg_name = "policy")]
    policy: Option<String>,
    /// the server to ask
    #[argh(option, short = 's', arg_name = "server")]
    server: Option<String>,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    ctx.readings = Some(front::readings::<Options>);
    let args = joined(&ctx.args);
    let options: Options = match front::parse(ctx.name, &args) {
        Ok(parsed) => parsed.options,
        Err(exit) => return exit.show(ctx),
    };
    answer(ctx, options).unwrap_or_else(|words| {
        errln!(ctx, "{}: {words}", ctx.name);
        FAIL
    })
}

/// The words with `-a NAME = value` as one.
fn joined(args: &[OsString]) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::new();
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        let name = out.len() >= 2 && out.get(out.len() - 2).is_some_and(|w| w == "-a");
        match (word == "=" && name, rest.clone().next()) {
            (true, Some(value)) => {
                if let Some(last) = out.last_mut() {
                    last.push("=");
                    last.push(value);
                }
                rest.next();
            }
            _ => out.push(word.clone()),
        }
    }
    out
}

fn answer(ctx: &mut Ctx, options: Options) -> Result<i32, String> {
    let given = attributes(&options.attributes)?;
    let count = match &options.count {
        None => 0,
        Some(text) => {
            let number = text.parse::<u32>().ok().filter(|n| *n >= 1);
            number.ok_or_else(|| format!("-c <{text}>: a whole number from 1 is wanted"))?
        }
    };
    let mut link = NlbServers::find(options.server.as_deref())?.first()?;
    let attributes = known(&mut link, given)?;
    let query = NlbQuery {
        policy: options.policy.clone().unwrap_or_default(),
        attributes,
        hosts: options.hosts,
        count,
        objects: options.dump,
    };
    let (ranking, objects) = link.query(query).map_err(|e| e.words())?;
    if ranking.unknown {
        let asked = options.policy.unwrap_or_default();
        let default = &ranking.policy;
        errln!(ctx, "{}: no policy <{asked}>: the default, <{default}>, is applied", ctx.name);
    }
    for host in &ranking.strangers {
        errln!(ctx, "{}: <{host}> is not known to the NLB server", ctx.name);
    }
    if ranking.rows.is_empty() {
        errln!(ctx, "{}: no host meets the policy <{}>", ctx.name, ranking.policy);
        return Ok(NO_HOST);
    }
    if options.dump {
        let _ = ctx.out.write_all(objects.as_bytes());
    } else {
        for NlbRow { host, value, .. } in &ranking.rows {
            outln!(ctx, "{host} {}", shown(*value));
        }
    }
    Ok(0)
}

fn shown(value: SortValue) -> String {
    match value {
        SortValue::Number(x) => format!("{x:.6}"),
        SortValue::Infinity => "inf".to_owned(),
        SortValue::MinusInfinity => "-inf".to_owned(),
        SortValue::Missing => "-".to_owned(),
    }
}

/// The names and values of `-a`, which may still be numbers or texts.
fn attributes(words: &[String]) -> Result<Vec<(String, Option<String>)>, String> {
    let mut all = Vec::new();
    for part in words.iter().flat_map(|w| w.split(',')) {
        let (name, value) = match part.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim().to_owned())),
            None => (part.trim(), None),
        };
        let job = name.get(..PREFIX.len()).is_some_and(|p| p.eq_ignore_ascii_case(PREFIX));
        if !job {
            return Err(format!("-a <{name}>: request attributes begin with {PREFIX}"));
        }
        all.push((name.to_owned(), value));
    }
    Ok(all)
}

/// The attributes with values of the kinds that the server's map has.
fn known(
    link: &mut NlbLink,
    given: Vec<(String, Option<String>)>,
) -> Result<Vec<(String, AttributeValue)>, String> {
    if given.is_empty() {
        return Ok(Vec::new());
    }
    let maps = link.maps("NLB_JOB")?;
    given.into_iter().map(|(name, value)| typed(&maps, name, value)).collect()
}

fn typed(
    maps: &NameMaps,
    name: String,
    value: Option<String>,
) -> Result<(String, AttributeValue), String> {
    let names = || maps.list().iter().flat_map(|m| m.attributes()).map(|a| a.name.as_str());
    let Some(attribute) = maps.list().iter().find_map(|m| m.named(&name)) else {
        let near = nearest(&name, names());
        let near = near.map(|n| format!("; did you mean <{n}>?")).unwrap_or_default();
        return Err(format!("-a <{name}>: not in the map of NLB_JOB{near}"));
    };
    let value = match (attribute.id.kind, value) {
        (_, None) => AttributeValue::Number(1.0),
        (Kind::Str, Some(text)) => AttributeValue::Text(text),
        (_, Some(text)) => {
            let wanted = "a decimal number is wanted, units expanded to bytes or seconds";
            let number = decimal(&text).ok_or_else(|| format!("-a <{name}={text}>: {wanted}"))?;
            AttributeValue::Number(number)
        }
    };
    Ok((name, value))
}

/// A number in decimal or scientific notation, without a sign and without leading zeroes, which
/// would look octal.
fn decimal(text: &str) -> Option<f64> {
    let octal = text.len() > 1 && text.starts_with('0') && text.as_bytes()[1].is_ascii_digit();
    let first = text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    text.parse::<f64>().ok().filter(|x| first && !octal && x.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decimal_numbers_alone() {
        for (text, value) in
            [("1", 1.0), ("0", 0.0), ("81920", 81920.0), (".5", 0.5), ("3e2", 300.0)]
        {
            assert_eq!(decimal(text), Some(value), "{text}");
        }
        for text in ["", "-1", "+1", "0x10", "010", "10kw", "inf", "nan", "1e999"] {
            assert_eq!(decimal(text), None, "{text}");
        }
    }

    #[test]
    fn attributes_are_read_by_commas_and_as_three_words() {
        let words = |args: &[&str]| {
            let args: Vec<OsString> = args.iter().map(Into::into).collect();
            joined(&args).into_iter().map(|w| w.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(words(&["-a", "JOB_X", "=", "5", "-d"]), ["-a", "JOB_X=5", "-d"]);
        assert_eq!(words(&["-p", "x", "-a", "JOB_X"]), ["-p", "x", "-a", "JOB_X"]);
        let one = attributes(&["JOB_A,job_b=2".into(), "JOB_C = x y".into()]).unwrap();
        let text = |s: &str| Some(s.to_owned());
        let wanted = [("JOB_A", None), ("job_b", text("2")), ("JOB_C", text("x y"))];
        assert_eq!(one, wanted.map(|(n, v)| (n.to_owned(), v)));
        let fault = attributes(&["nastran".into()]).unwrap_err();
        assert_eq!(fault, "-a <nastran>: request attributes begin with JOB_");
    }

    #[test]
    fn attributes_that_the_map_lacks_are_refused_with_the_nearest_name() {
        let maps = NameMaps::shipped();
        let of = |name: &str, value: Option<&str>| {
            typed(&maps, name.into(), value.map(str::to_owned)).map(|(_, v)| v)
        };
        assert_eq!(
            of("JOB_PRMEMSIZ", None).unwrap_err(),
            "-a <JOB_PRMEMSIZ>: not in the map of NLB_JOB; did you mean <JOB_PRMEMSIZE>?"
        );
        assert_eq!(
            of("JOB_PRMEMSIZE", Some("10kw")).unwrap_err(),
            "-a <JOB_PRMEMSIZE=10kw>: a decimal number is wanted, units expanded to bytes or \
             seconds"
        );
        assert_eq!(of("job_reqname", Some("prod7")).unwrap(), AttributeValue::Text("prod7".into()));
        assert_eq!(of("JOB_TAPES_A", None).unwrap(), AttributeValue::Number(1.0));
    }
}

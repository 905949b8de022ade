//! The resource requirement of a submission: several `-R` joined to one text, malformed ones
//! refused. The names of resources are the cluster's affair: a name unknown here may be of any
//! kind, and a requirement that could be right with some kind is left to mbatchd.

use super::rejection::Rejection;
use lsf::cli::tasks::{Tasks, requirement};
use lsf::lang::resreq::{Builtins, ResKind, ResNames, ResReq, ResReqError, Syntax};
use lsf::model::job::{JobSpec, opt};
use lsf::model::sort::sort_by_key;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Most unknown names whose kinds are tried in every combination.
const MAX_GUESSED: usize = 5;

/// The kinds a name can have.
const KINDS: [ResKind; 3] =
    [ResKind::Numeric { increasing: false }, ResKind::String, ResKind::Boolean];

/// Knows the built-in names and takes every other for what the guess says.
#[derive(Default)]
struct Guess {
    /// Unknown names met so far, each with an index into [`KINDS`].
    kinds: RefCell<Vec<(String, usize)>>,
}

impl ResNames for Guess {
    fn kind(&self, name: &str) -> Option<ResKind> {
        if lsf::lang::resreq::alias(name).is_some() {
            return None;
        }
        Builtins.kind(name).or_else(|| {
            let mut kinds = self.kinds.borrow_mut();
            if let Some((_, k)) = kinds.iter().find(|(n, _)| n == name) {
                return Some(KINDS[*k]);
            }
            kinds.push((name.to_string(), 0));
            Some(KINDS[0])
        })
    }
}

impl Guess {
    /// Moves on to the next combination; false when all were tried.
    fn advance(&self) -> bool {
        for (_, kind) in self.kinds.borrow_mut().iter_mut().take(MAX_GUESSED) {
            *kind += 1;
            if *kind < KINDS.len() {
                return true;
            }
            *kind = 0;
        }
        false
    }
}

/// How a text fared.
enum Read {
    Fine(ResReq),
    /// Wrong with every kind tried, but with unknown names in it.
    Doubtful,
    Bad(ResReqError),
}

fn read(texts: &[String], size_unit_mb: f64) -> Read {
    let names = Guess::default();
    let syntax = Syntax { names: &names, size_unit_mb };
    loop {
        match ResReq::parse_many(texts, &syntax) {
            Ok(req) => return Read::Fine(req.unwrap_or_default()),
            Err(_) if names.advance() => {}
            Err(_) if names.kinds.borrow().len() > MAX_GUESSED => return Read::Doubtful,
            Err(e) => return Read::Bad(e),
        }
    }
}

/// The requirement that the list of remote tasks has for a command (lsrtasks(1)).
pub fn of_task(
    tasks: &Tasks,
    command: &[u8],
    unit_mb: f64,
    spec: &mut JobSpec,
) -> Result<(), Rejection> {
    let first = command.split(u8::is_ascii_whitespace).find(|word| !word.is_empty());
    let listed = first.and_then(|name| requirement(tasks, OsStr::from_bytes(name)));
    if let Some(listed) = listed {
        spec.res_req = join(&[listed], unit_mb).map_err(|why| {
            Rejection::new(format!("{}, in the list of remote tasks (lsrtasks)", why.words))
        })?;
        spec.options |= opt::RES_REQ;
    }
    Ok(())
}

/// One text of all `-R` values: selects and rusages add up, of the rest the last one counts.
/// `unit_mb`: what a bare size counts in, MB.
pub fn join(texts: &[String], unit_mb: f64) -> Result<String, Rejection> {
    let bad = || Rejection::new("Bad resource requirement syntax");
    let whole = match read(texts, unit_mb) {
        Read::Bad(_) => {
            // its place is that in the one text that is wrong by itself
            let wrong = |text: &String| match read(std::slice::from_ref(text), unit_mb) {
                Read::Bad(e) => Some(e.place(text)),
                _ => None,
            };
            let place = texts.iter().find_map(wrong);
            return Err(place.map_or_else(bad, |p| Rejection::about(&p, bad().words)));
        }
        Read::Fine(req) => Some(req),
        Read::Doubtful => None,
    };
    if let [text] = texts {
        return Ok(text.trim().to_string());
    }
    let joined = sections(texts);
    match whole {
        // The joined text keeps numbers and units as typed; it must mean the same.
        Some(req) => match joined.map(|j| (read(std::slice::from_ref(&j), unit_mb), j)) {
            Some((Read::Fine(again), j)) if same(&again, &req) => Ok(j),
            _ => Ok(req.to_string()),
        },
        None => joined.ok_or_else(bad),
    }
}

/// Names the parts of a requirement that nothing acts on, one entry each.
pub fn not_acted_on(text: &str) -> Vec<&'static str> {
    // Most requirements have no such part: they are not read a second time.
    if !text.contains("gtile") {
        return Vec::new();
    }
    match read(&[text.to_string()], 1.0) {
        Read::Fine(requirement) => requirement.not_acted_on(),
        Read::Doubtful | Read::Bad(_) => Vec::new(),
    }
}

/// Whether two requirements print alike, parentheses and blanks aside.
fn same(a: &ResReq, b: &ResReq) -> bool {
    let plain = |r: &ResReq| {
        let mut text = r.to_string();
        text.retain(|c| !matches!(c, '(' | ')' | ' '));
        text
    };
    plain(a) == plain(b)
}

/// Joins the sections of several texts; `None` where a text is not made of sections.
fn sections(texts: &[String]) -> Option<String> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for text in texts {
        let mut rest = text.trim();
        let mut first = true;
        while !rest.is_empty() {
            let (name, body, next) = section(rest, first)?;
            first = false;
            rest = next.trim_start();
            match found.iter_mut().find(|(n, _)| *n == name) {
                Some((_, bodies)) => bodies.push(body),
                None => found.push((name, vec![body])),
            }
        }
    }
    let order = |name: &str| usize::from(name != "select");
    sort_by_key(&mut found, |(name, _)| order(name));
    let text = |(name, bodies): &(String, Vec<String>)| match (name.as_str(), bodies.as_slice()) {
        (_, [one]) => format!("{name}[{one}]"),
        ("select", many) => {
            let parts: Vec<String> = many.iter().map(|b| format!("({b})")).collect();
            format!("select[{}]", parts.join(" && "))
        }
        ("rusage", many) => format!("rusage[{}]", many.join(",")),
        (_, many) => format!("{name}[{}]", many.last().map_or("", String::as_str)),
    };
    Some(found.iter().map(text).collect::<Vec<_>>().join(" "))
}

/// The section at the start of `text`: its name, what is between its brackets, what follows. A
/// bare expression at the very beginning is a select section.
fn section(text: &str, first: bool) -> Option<(String, String, &str)> {
    let letters = text.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(text.len());
    if letters > 0 && text[letters..].starts_with('[') {
        let body = &text[letters + 1..];
        let end = body.find(']')?;
        return Some((text[..letters].to_string(), body[..end].trim().into(), &body[end + 1..]));
    }
    if !first {
        return None;
    }
    // The bare expression ends where the word before a bracket begins.
    let end = match text.find('[') {
        Some(bracket) => text[..bracket].rfind(char::is_whitespace)?,
        None => text.len(),
    };
    Some(("select".to_string(), text[..end].trim().to_string(), &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(texts: &[&str]) -> Result<String, String> {
        let texts: Vec<String> = texts.iter().map(|t| t.to_string()).collect();
        join(&texts, 1024.0).map_err(|r| r.to_string())
    }

    #[test]
    fn single_requirement_stays_as_typed() {
        assert_eq!(joined(&[" mem>10  order[ut] "]).unwrap(), "mem>10  order[ut]");
    }

    #[test]
    fn several_texts_add_up() {
        let j = joined(&["mem>10", "select[tmp>5] rusage[mem=2G]", "rusage[tmp=1] span[hosts=1]"]);
        let want = "select[(mem>10) && (tmp>5)] rusage[mem=2G,tmp=1] span[hosts=1]";
        assert_eq!(j.unwrap(), want);
        let j = joined(&["order[ut] span[ptile=2]", "span[hosts=1]"]).unwrap();
        assert_eq!(j, "order[ut] span[hosts=1]");
    }

    #[test]
    fn names_of_the_cluster_are_left_to_it() {
        let fine = ["select[linux]", "select[os=='rhel' && lic>2]", "rusage[lic=1]", "badres>1"];
        for text in fine {
            assert_eq!(joined(&[text]).unwrap(), text);
        }
        let j = joined(&["select[os=='rhel']", "linux"]).unwrap();
        assert_eq!(j, "select[(os=='rhel') && (linux)]");
    }

    #[test]
    fn parts_that_nothing_acts_on_are_named() {
        let named = |text: &str| not_acted_on(text).join(", ");
        assert_eq!(named("affinity[core(1)]"), "");
        assert_eq!(named("cu[type=rack] same[model] span[gtile=1]"), "gtile of section span[]");
        assert_eq!(named("{mem>1} || {mem>2}"), "");
        assert_eq!(named("select[mem>1] rusage[mem=2] span[hosts=1]"), "");
    }

    #[test]
    fn requirements_that_no_cluster_can_read_are_refused() {
        for bad in ["select[", "span[hosts=2]", "select[mem>1] foo[1]", "select[mem>]", "lic>2)"] {
            let e = joined(&[bad]).unwrap_err();
            let place = format!(" of <{bad}>: Bad resource requirement syntax. Job not submitted.");
            assert!(e.ends_with(&place), "{bad}: {e}");
        }
        let e = joined(&["mem>1", "select[mem>1] foo[1]"]).unwrap_err();
        assert!(e.starts_with("foo: unknown section at column 15 of <select[mem>1] foo[1]>: Bad"));
        assert!(joined(&["mem>1", "span[hosts=x]"]).is_err());
    }
}

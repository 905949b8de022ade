//! Job operands of every command: `123`, `123[1-4,6]`, `0`, as the wire carries them.

use super::long_format::clean;
use super::site::LocalSite;
use crate::conf::load::load_lenient;
use crate::lang::jobname::{BadJobId, JobIdSpec};
use crate::proto::client::IdSel;
use crate::sys::files::RealFiles;
use crate::sys::users::UserDatabase;
use std::ffi::OsString;
use std::time::Duration;

/// The jobs that the operands name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ids {
    /// The jobs named.
    pub ids: Vec<IdSel>,
    /// The operand `0` is among them: every job that the other filters let through.
    pub all: bool,
}

/// Reads job operands. One operand may hold several IDs, parted by blanks.
pub fn ids(operands: &[OsString]) -> Result<Ids, BadJobId> {
    let mut out = Ids::default();
    for operand in operands {
        let text = operand.to_string_lossy();
        let words: Vec<&str> = match text.contains('[') {
            true => vec![&text],
            false => text.split_whitespace().collect(),
        };
        if words.is_empty() {
            return Err(BadJobId { text: text.to_string() });
        }
        for word in words {
            match JobIdSpec::parse(word)? {
                JobIdSpec::All => out.all = true,
                JobIdSpec::Job(id) => out.ids.push(sel(id, Vec::new())),
                JobIdSpec::Elements(id, list) => {
                    let elems = list.ranges.iter().map(|r| (r.start, r.end, r.step)).collect();
                    out.ids.push(sel(id, elems));
                }
            }
        }
    }
    Ok(out)
}

/// An ID is at most `jobname::MAX_INDEX`, so it always fits.
fn sel(id: u64, elems: Vec<(u32, u32, u32)>) -> IdSel {
    IdSel { job: u32::try_from(id).unwrap_or(u32::MAX), elems }
}

/// ` in queue <q> and on host/group <h>`: what a search was restricted to.
pub fn place_words(queue: &str, host: &str) -> String {
    let part = |label: &str, name: &str| {
        let name = clean(name);
        (!name.is_empty()).then(|| format!("{label} <{name}>"))
    };
    let parts: Vec<String> =
        [part("in queue", queue), part("on host/group", host)].into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(" {}", parts.join(" and ")) }
}

/// Longest wait for the name service, for one user.
const USER_WAIT: Duration = Duration::from_secs(5);

/// Whether `-u` names nobody: no user of this host's name service, no user group of the cluster.
/// Slow; for when nothing was found.
pub fn nobody(site: &LocalSite, user: &str) -> bool {
    if user.is_empty()
        || user == "all"
        || UserDatabase::default().find_name(user, USER_WAIT).is_some()
    {
        return false;
    }
    let (conf, _) = load_lenient(&RealFiles, &site.envdir, Some(&site.host));
    conf.is_none_or(|c| c.batch.users.groups.iter().all(|g| g.name != user))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Ids, String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        ids(&words).map_err(|e| e.to_string())
    }

    #[test]
    fn job_ids_are_read_in_every_form() {
        let got = read(&["12", "7[1-4, 9]", "3 4", "0"]).unwrap();
        assert!(got.all);
        let want = [
            IdSel { job: 12, elems: vec![] },
            IdSel { job: 7, elems: vec![(1, 4, 1), (9, 9, 1)] },
            IdSel { job: 3, elems: vec![] },
            IdSel { job: 4, elems: vec![] },
        ];
        assert_eq!(got.ids, want);
        assert_eq!(read(&[]).unwrap(), Ids::default());
    }

    #[test]
    fn malformed_job_id_is_named() {
        assert_eq!(read(&["1", "abc"]).unwrap_err(), "abc: Illegal job ID.");
        assert_eq!(read(&[""]).unwrap_err(), ": Illegal job ID.");
        assert_eq!(read(&["5[0]"]).unwrap_err(), "5[0]: Illegal job ID.");
    }
}

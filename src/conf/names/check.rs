//! The names of a file against its table: what is told of a name that is not acted on, of one that
//! is none, and of one that stands in the wrong file (badmin(8), ckconfig).

use super::load_indices::LOAD_INDICES;
use super::moot::why_moot;
use super::name_table::NameTable;
use super::nearest::nearest;
use super::{lsb_applications, lsb_params, lsb_queues, lsb_serviceclasses, lsf_conf, tables};
use crate::conf::diag::{Diags, Pos, Severity};

/// Most places that are named for a name that stands in the wrong one: a name of more of them is a
/// common word.
const PLACES_MAX: usize = 3;

/// Every table there is.
pub fn all() -> Vec<&'static NameTable> {
    let mut list = vec![&lsf_conf::LSF_CONF];
    list.extend(tables::ALL);
    list.extend([&lsb_params::PARAMETERS, &lsb_queues::QUEUE, &lsb_applications::APPLICATION]);
    list.push(&lsb_serviceclasses::SERVICE_CLASS);
    list
}

impl NameTable {
    /// Looks a parameter or column up and tells what is to be told of it. The result is its
    /// documented spelling, or None when it is unknown.
    pub fn check(&self, name: &str, at: &Pos, diags: &mut Diags) -> Option<&'static str> {
        if let Some(known) = self.find(name) {
            match why_moot(known.name) {
                _ if known.acted => {}
                Some(why) => diags.notice(at, format!("{} changes nothing: {why}", known.name)),
                None => diags.not_acted_on(at, known.name),
            }
            return Some(known.name);
        }
        if self.in_family(name) {
            diags.not_acted_on(at, name);
            return None;
        }
        let place = self.right_place(name);
        // Load indices name thresholds of hosts and queues.
        let indices = if matches!(self.section, "Host" | "Queue") { LOAD_INDICES } else { &[] };
        let names = self.names().map(|n| n.name);
        let near = nearest(name, names.chain(indices.iter().copied())).filter(|_| place.is_none());
        let severity = if self.section.is_empty() && near.is_none() {
            Severity::Warning
        } else {
            Severity::Error
        };
        let what = if self.section.is_empty() {
            format!("unknown parameter <{name}>")
        } else {
            format!("unknown keyword <{name}> in section {}", self.section)
        };
        diags.add_near(severity, at, what + &place.unwrap_or_default(), near);
        None
    }

    /// Words for where a name that is unknown here belongs, if there are few such places.
    fn right_place(&self, name: &str) -> Option<String> {
        let mut places: Vec<String> = Vec::new();
        let mut spelling = "";
        for table in all() {
            let Some(known) = table.find(name) else { continue };
            spelling = known.name;
            let place = match table.file == self.file {
                true => format!("section {}", table.section),
                false => table.file.to_owned(),
            };
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let few = (1..=PLACES_MAX).contains(&places.len());
        few.then(|| format!("; {spelling} is a parameter of {}", places.join(" and ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::names::Name;

    #[test]
    fn tables_are_sorted_unique_and_documented() {
        for table in all() {
            let names: Vec<Name> = table.names().collect();
            assert_eq!(names, table.rows, "{}", table.file);
            for pair in names.windows(2) {
                assert!(pair[0].name < pair[1].name, "{}: {}", table.file, pair[1].name);
            }
            for name in names {
                assert!(!name.doc.is_empty() && name.doc.is_ascii(), "{}", name.name);
                assert_eq!(table.find(name.name), Some(name));
                assert_eq!(table.find(&name.name.to_ascii_lowercase()), Some(name));
            }
            assert_eq!(table.find("NO_SUCH_NAME"), None);
        }
    }

    #[test]
    fn lsf_conf_tolerates_what_is_foreign_and_catches_slips() {
        let at = Pos::whole("lsf.conf");
        let mut d = Diags::new();
        let table = &crate::conf::names::lsf_conf::LSF_CONF;
        assert_eq!(table.check("LSF_LOGDIR", &at, &mut d), Some("LSF_LOGDIR"));
        assert!(d.list().is_empty());
        assert_eq!(table.check("OUR_SITE_SCRATCH", &at, &mut d), None);
        assert_eq!(table.check("LSF_LOGDIRR", &at, &mut d), None);
        assert_eq!(table.check("EGO_ANYTHING", &at, &mut d), None);
        let told: Vec<_> = d.list().iter().map(|d| (d.severity, d.near.as_deref())).collect();
        assert_eq!(
            told,
            [
                (Severity::Warning, None),
                (Severity::Error, Some("LSF_LOGDIR")),
                (Severity::Notice, None)
            ]
        );
    }

    /// The severity and the text of what is told of a name.
    fn told(table: &NameTable, name: &str) -> (Severity, String) {
        let mut d = Diags::new();
        assert_eq!(table.check(name, &Pos::whole(table.file), &mut d), None);
        let all = d.into_list();
        assert_eq!(all.len(), 1, "{all:?}");
        (all[0].severity, all[0].to_string())
    }

    #[test]
    fn name_that_stands_in_the_wrong_file_is_told_with_the_right_one() {
        let queue = &lsb_queues::QUEUE;
        for (table, name, want) in [
            (queue, "RTASK_GONE_ACTION", "; RTASK_GONE_ACTION is a parameter of lsb.applications"),
            (queue, "djob_hb_interval", "; DJOB_HB_INTERVAL is a parameter of lsb.applications"),
            (queue, "LSF_LOGDIR", "; LSF_LOGDIR is a parameter of lsf.conf"),
            (queue, "MBD_SLEEP_TIME", "; MBD_SLEEP_TIME is a parameter of lsb.params"),
            (
                &tables::USER,
                "GROUP_MEMBER",
                "; GROUP_MEMBER is a parameter of lsb.hosts and section UserGroup",
            ),
            // a common word
            (&lsb_params::PARAMETERS, "DESCRIPTION", ""),
            (queue, "NO_SUCH_NAME", ""),
        ] {
            let (severity, text) = told(table, name);
            let begin = format!("unknown keyword <{name}> in section {}", table.section);
            assert_eq!(severity, Severity::Error, "{name}");
            assert!(text.contains(&(begin + want)), "{text}");
            assert_eq!(text.contains(" is a parameter of "), !want.is_empty(), "{text}");
        }
        // a site's own variables stay allowed in lsf.conf
        let (severity, text) = told(&lsf_conf::LSF_CONF, "MBD_SLEEP_TIME");
        assert_eq!(severity, Severity::Warning);
        assert!(
            text.ends_with(
                "unknown parameter <MBD_SLEEP_TIME>; MBD_SLEEP_TIME is a parameter of lsb.params"
            ),
            "{text}"
        );
    }

    /// A slip near a name of this table is not taken for the name of another one.
    #[test]
    fn name_that_is_near_a_known_one_is_told_with_that_one() {
        let (_, text) = told(&lsb_queues::QUEUE, "PRIORTIY");
        assert!(text.ends_with("in section Queue; did you mean <PRIORITY>?"), "{text}");
    }
}

//! Copies of the configuration, where hosts have each their own instead of a file system in
//! common: which files every host must have alike, and which of a host's are not so.
//!
//! Each LIM sends a checksum of each of its copies with its beat, the master compares them with
//! its own and tells once of each difference that lasts; a change on its way through the hosts
//! is no difference. Of lsf.conf, which may differ from host to host, only LSF_MASTER_LIST
//! counts. Pure: the files come through [`Files`].

use super::Election;
use crate::conf::BaseConf;
use crate::conf::Files;
use crate::proto::frame::MacKey;

/// Name of a copy as the administrator knows it, and its checksum; empty: there is none.
pub type Copies = Vec<(String, String)>;

/// Most copies taken from one beat.
const MAX_COPIES: usize = 32;
/// Figures of a checksum.
const SUM: usize = 16;

/// Name and path of each file of this host that is compared. lsb.* counts where mbatchd may run.
pub fn files(base: &BaseConf, host: &str) -> Copies {
    let confdir = base.lsf.confdir();
    let cluster = format!("lsf.cluster.{}", base.name);
    let at = |dir: &str, name: &str| (name.to_owned(), format!("{dir}/{name}"));
    let mut files: Copies =
        ["lsf.shared", &cluster, "hosts"].iter().map(|name| at(confdir, name)).collect();
    if Election::new(base).candidates().iter().any(|c| c == host) {
        let dir = base.lsf.batch_confdir(&base.name);
        let batch = ["lsb.params", "lsb.hosts", "lsb.queues", "lsb.users", "lsb.resources"];
        files.extend(batch.iter().map(|name| at(&dir, name)));
    }
    files
}

/// The copies of this host as they are now.
pub fn read(files: &dyn Files, base: &BaseConf, host: &str) -> Copies {
    let sum = |bytes: &[u8]| {
        let mac = MacKey::new(b"lsf-copy-1").of_fields(&[bytes]);
        mac[..SUM / 2].iter().map(|b| format!("{b:02x}")).collect::<String>()
    };
    let of = |(name, path): (String, String)| {
        let sum = files.read(&path).map(|bytes| sum(&bytes)).unwrap_or_default();
        (name, sum)
    };
    let mut copies: Copies = self::files(base, host).into_iter().map(of).collect();
    let masters = base.lsf.master_list().join(" ");
    copies.push(("LSF_MASTER_LIST of lsf.conf".to_owned(), sum(masters.as_bytes())));
    copies
}

/// The files of one host that differ from the master's.
#[derive(Clone, Debug, Default)]
pub struct Differences {
    now: Vec<String>,
    since: u64,
    told: Vec<String>,
}

impl Differences {
    /// The differences that lasted and were reported.
    pub fn told(&self) -> &[String] {
        &self.told
    }

    /// Compares the copies; returns the differences to be reported for the first time and those
    /// that are gone. A difference is reported once it has lasted `grace` microseconds. A host that
    /// sends no list of copies has no difference.
    pub fn compare(
        &mut self,
        ours: &Copies,
        theirs: &Copies,
        mono_us: u64,
        grace: u64,
    ) -> (Vec<String>, Vec<String>) {
        let differs = |(name, sum): &&(String, String)| {
            let same = |(n, s): &(String, String)| n == name && s != sum;
            theirs.iter().take(MAX_COPIES).any(same)
        };
        let now: Vec<String> = ours.iter().filter(differs).map(|(name, _)| name.clone()).collect();
        if now != self.now {
            self.since = mono_us;
            self.now.clone_from(&now);
        }
        let gone: Vec<String> = self.told.iter().filter(|n| !now.contains(n)).cloned().collect();
        self.told.retain(|n| now.contains(n));
        if mono_us.saturating_sub(self.since) < grace {
            return (Vec::new(), gone);
        }
        let new: Vec<String> = now.into_iter().filter(|n| !self.told.contains(n)).collect();
        self.told.extend(new.iter().cloned());
        (new, gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copies(sums: &[(&str, &str)]) -> Copies {
        sums.iter().map(|(n, s)| ((*n).to_owned(), (*s).to_owned())).collect()
    }

    #[test]
    fn only_a_candidate_for_master_tells_of_the_batch_files() {
        use crate::conf::testing::MapFiles;
        use crate::conf::{HostDef, HostTable};
        let mut base = BaseConf { name: "c".into(), ..BaseConf::default() };
        base.hosts = HostTable::new(["h1", "h2"], &[]);
        let server = |name: &str| HostDef { name: name.into(), server: true, ..HostDef::default() };
        base.cluster.hosts = vec![server("h1"), HostDef { server: false, ..server("h2") }];
        let names = |host| read(&MapFiles::default(), &base, host).len();
        assert_eq!((names("h1"), names("h2")), (9, 4));
        let shared = format!("{}/lsf.shared", base.lsf.confdir());
        let of = |text: &str| read(&MapFiles::one(&shared, text), &base, "h2")[0].1.clone();
        assert!(of("a").len() == SUM && of("a") == of("a") && of("a") != of("b"));
        assert_eq!(read(&MapFiles::default(), &base, "h2")[0].1, "");
    }

    #[test]
    fn lasting_difference_of_copies_is_logged_once() {
        let ours = copies(&[("a", "1"), ("b", "2"), ("c", "")]);
        let mut d = Differences::default();
        let none = (Vec::new(), Vec::new());
        // an older LIM, one that is no candidate and has fewer, and one of a version to come
        for theirs in [copies(&[]), copies(&[("a", "1")]), copies(&[("a", "1"), ("x", "9")])] {
            assert_eq!(d.compare(&ours, &theirs, 100, 0), none);
        }
        let theirs = copies(&[("a", "1"), ("b", "3"), ("c", "4")]);
        let both = vec!["b".to_owned(), "c".to_owned()];
        assert_eq!(d.compare(&ours, &theirs, 100, 10), none);
        assert_eq!(d.compare(&ours, &theirs, 109, 10), none);
        assert_eq!(d.compare(&ours, &theirs, 110, 10), (both.clone(), vec![]));
        assert_eq!(d.compare(&ours, &theirs, 120, 10), none);
        assert_eq!(d.told(), both);
        // one is mended, and differs for a moment again
        let mended = copies(&[("a", "1"), ("b", "2"), ("c", "4")]);
        assert_eq!(d.compare(&ours, &mended, 130, 10), (vec![], vec!["b".to_owned()]));
        assert_eq!(d.compare(&ours, &theirs, 131, 10), none);
        assert_eq!(d.compare(&ours, &mended, 132, 10), none);
        assert_eq!(d.told(), ["c"]);
    }
}

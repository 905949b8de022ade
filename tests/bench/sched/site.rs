//! The cluster of the group `sched`: its configuration files as a site would write them, and what
//! its users submit. All of it follows from the size, so that two runs measure the same work.

use super::policies;
use lsf::conf::Files;
use lsf::model::job::JobSpec;
use lsf::proto::lim::{HostFacts, HostLoad};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Job slots and processors of a host.
pub const SLOTS: usize = 32;
/// Jobs that a user submits one after the other with the same options.
pub const CAMPAIGN: usize = 50;
/// The user and the queue of the jobs that hold the slots until they are freed.
pub const OPERATOR: &str = "operator";
/// The directory of the configuration files.
pub const ENVDIR: &str = "/site";
/// The directory of the files of lsbatch, behind it.
const BATCH: &str = "lsbatch/big/configdir";
/// Memory, swap space and disk of a host, MB.
const MEMORY: f32 = 512_000.0;
const SWAP: f32 = 256_000.0;
const DISK: f32 = 2_000_000.0;
/// One host in so many has much memory; one in so many has another processor.
const BIG_MEMORY: usize = 4;
const OTHER_TYPE: usize = 10;
/// Shapes of requirements.
const SHAPES: usize = 8;

/// How large the cluster is.
#[derive(Clone, Copy)]
pub struct Size {
    pub hosts: usize,
    pub pending: usize,
    pub users: usize,
    pub requirements: usize,
    pub queues: usize,
    /// With the policies of [`policies`](super::policies), too.
    pub policies: bool,
}

/// Files in memory.
pub struct SiteFiles(BTreeMap<String, String>);

impl SiteFiles {
    /// The files with another text of one of them; `path` begins behind the directory.
    pub fn with(mut self, path: &str, text: &str) -> SiteFiles {
        self.0.insert(format!("{ENVDIR}/{path}"), text.to_owned());
        self
    }
}

impl Files for SiteFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let text = self.0.get(path).ok_or("No such file or directory")?;
        Ok(text.clone().into_bytes())
    }

    fn exists(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }
}

pub fn host_name(host: usize) -> String {
    format!("node{host:05}")
}

pub fn user_name(user: usize) -> String {
    format!("user{user:04}")
}

fn host_type(host: usize) -> &'static str {
    if host % OTHER_TYPE == OTHER_TYPE - 1 { "AARCH64" } else { "X86_64" }
}

fn booleans(host: usize) -> Vec<&'static str> {
    let ssd = (host.is_multiple_of(2)).then_some("ssd");
    let big_memory = (host % BIG_MEMORY == 1).then_some("bigmem");
    ssd.into_iter().chain(big_memory).collect()
}

impl Size {
    /// Every file of the site.
    pub fn files(&self) -> SiteFiles {
        let batch = format!("{ENVDIR}/{BATCH}");
        let files = SiteFiles(BTreeMap::from([
            (format!("{ENVDIR}/lsf.conf"), lsf_conf()),
            (format!("{ENVDIR}/lsf.shared"), LSF_SHARED.to_owned()),
            (format!("{ENVDIR}/lsf.cluster.big"), self.lsf_cluster()),
            (format!("{batch}/lsb.params"), LSB_PARAMS.to_owned()),
            (format!("{batch}/lsb.hosts"), lsb_hosts()),
            (format!("{batch}/lsb.users"), self.lsb_users()),
            (format!("{batch}/lsb.queues"), self.lsb_queues()),
        ]));
        match self.policies {
            true => files.with(&format!("{BATCH}/lsb.resources"), &policies::limits(self, 1)),
            false => files,
        }
    }

    fn lsf_cluster(&self) -> String {
        let mut text = "Begin ClusterAdmins\nAdministrators = lsfadmin\nEnd ClusterAdmins\n\
            Begin Host\nHOSTNAME model type server RESOURCES\n"
            .to_owned();
        for host in 0..self.hosts {
            let (name, kind) = (host_name(host), host_type(host));
            let _ = writeln!(text, "{name} ! {kind} 1 ({})", booleans(host).join(" "));
        }
        text += "End Host\nBegin ResourceMap\nRESOURCENAME LOCATION\nscratch [default]\n\
            End ResourceMap\n";
        text
    }

    /// Limits of all users, and of some by name.
    fn lsb_users(&self) -> String {
        let mut text = "Begin User\nUSER_NAME MAX_JOBS JL/P\ndefault 150 -\n".to_owned();
        let _ = writeln!(text, "{OPERATOR} {} -", self.hosts * SLOTS);
        for user in (0..self.users).step_by(self.users.div_ceil(20)) {
            let _ = writeln!(text, "{} {} -", user_name(user), 20 + user % 100);
        }
        text += "End User\n";
        if self.policies {
            text += &policies::groups(self);
        }
        text
    }

    /// Queues of different priorities, a few with a limit of their own.
    fn lsb_queues(&self) -> String {
        let mut text = format!(
            "Begin Queue\nQUEUE_NAME = {OPERATOR}\nPRIORITY = 1000\nUSERS = {OPERATOR}\nEnd Queue\n"
        );
        for queue in 0..self.queues {
            let own = match queue % 10 {
                1 => "UJOB_LIMIT = 40\n",
                2 => "QJOB_LIMIT = 100000\n",
                3 => "HJOB_LIMIT = 24\n",
                4 => "PJOB_LIMIT = 0.75\n",
                5 => "RES_REQ = select[maxmem > 1000]\n",
                6 => "r1m = 24.0/48.0\n",
                _ => "",
            };
            let more = match self.policies {
                true => policies::of_queue(self, queue) + policies::THRESHOLDS,
                false => String::new(),
            };
            let (name, priority) = (queue_name(queue), 20 + queue * 7 % self.queues);
            let _ = write!(
                text,
                "Begin Queue\nQUEUE_NAME = {name}\nPRIORITY = {priority}\n{own}{more}End Queue\n"
            );
        }
        text
    }

    pub fn campaigns(&self) -> usize {
        self.pending.div_ceil(CAMPAIGN)
    }

    /// The user and the submission of a campaign; campaigns of one user are not one after the
    /// other.
    pub fn campaign(&self, number: usize) -> (usize, JobSpec) {
        let number = number * 7919 % self.campaigns();
        let (user, turn) = (number % self.users, number / self.users);
        let requirement = (number * 13 + turn) % self.requirements;
        let slots = if requirement % SHAPES == 7 { 2 + requirement as u32 % 7 } else { 1 };
        let spec = JobSpec {
            command: format!("solve case{number}").as_str().into(),
            queue: queue_name((user + turn * 11) % self.queues),
            project: format!("project{}", user % 40),
            res_req: res_req(requirement),
            min_slots: slots,
            max_slots: slots,
            cwd: format!("/home/{}/run{turn}", user_name(user)).as_str().into(),
            home: format!("/home/{}", user_name(user)).as_str().into(),
            ..JobSpec::default()
        };
        (user, spec)
    }
}

pub fn queue_name(queue: usize) -> String {
    format!("queue{queue:02}")
}

/// A requirement of its own for each number, in the shapes that sites use.
fn res_req(number: usize) -> String {
    let (mem, n) = (500 + number * 37 % 3500, number);
    match number % SHAPES {
        0 => format!("rusage[mem={mem}.{n}]"),
        1 => format!("select[mem>{}] rusage[mem={mem}]", mem + n),
        2 => format!("select[type==X86_64 && ncpus>=16] rusage[mem={mem}:duration={}]", 30 + n),
        3 => format!("select[ssd && tmp>{}] order[ut:mem] rusage[tmp=100]", 1000 + n),
        4 => format!("select[r1m<{}.5] rusage[mem={mem},swp={}]", 8 + n, 10 + n % 100),
        5 => format!("select[bigmem && maxmem>{}] rusage[mem={mem}]", 4000 + n),
        6 => format!("select[type==any] rusage[scratch={}]", 1 + n),
        _ => format!("select[mem>{}] span[hosts=1] rusage[mem=100]", 5000 + n),
    }
}

/// A host's first report.
pub fn first_load(host: usize) -> HostLoad {
    let facts = HostFacts {
        host_type: host_type(host).into(),
        model: "DEFAULT".into(),
        cpu_factor: 1.0,
        ncpus: SLOTS as u32,
        nprocs: 2,
        ncores: SLOTS as u32 / 2,
        nthreads: 1,
        max_mem: MEMORY as u64,
        max_swp: SWAP as u64,
        max_tmp: DISK as u64,
        resources: booleans(host).into_iter().map(|name| (name.to_owned(), None)).collect(),
        server: true,
        ..HostFacts::default()
    };
    HostLoad { facts: Some(facts), ..load(host, 1.0) }
}

/// A later report, with this run queue length.
pub fn load(host: usize, run_queue: f32) -> HostLoad {
    let index = [run_queue, run_queue, run_queue, 0.5, 0.0, 10.0, 1.0, 60.0, DISK, SWAP, MEMORY];
    let external = vec![("scratch".to_owned(), "1000000".to_owned())];
    HostLoad { host: host_name(host), index, external, ..HostLoad::default() }
}

fn lsf_conf() -> String {
    format!(
        "LSF_CONFDIR={ENVDIR}\nLSB_CONFDIR={ENVDIR}/lsbatch\nLSF_MASTER_LIST={}\n",
        host_name(0)
    )
}

fn lsb_hosts() -> String {
    format!("Begin Host\nHOST_NAME MXJ\ndefault {SLOTS}\nEnd Host\n")
}

/// A start may follow another on the same host at once; nothing that ends is forgotten meanwhile.
const LSB_PARAMS: &str = "Begin Parameters\nDEFAULT_QUEUE = queue00\nJOB_ACCEPT_INTERVAL = 0\n\
    MAX_JOB_NUM = 1000000\nMAX_JOBID = 99999999\nEnd Parameters\n";

const LSF_SHARED: &str = "Begin Cluster\nClusterName\nbig\nEnd Cluster\n\
    Begin HostType\nTYPENAME\nX86_64\nAARCH64\nEnd HostType\n\
    Begin HostModel\nMODELNAME CPUFACTOR ARCHITECTURE\nDEFAULT 1.0 ()\nEnd HostModel\n\
    Begin Resource\nRESOURCENAME TYPE INTERVAL INCREASING DESCRIPTION\n\
    ssd Boolean () () (Local disk without moving parts)\n\
    bigmem Boolean () () (Much memory)\n\
    scratch Numeric 60 N (Scratch space, GB)\nEnd Resource\n";

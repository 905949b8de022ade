//! Makes a personal cluster: ports, configuration, key, links.

use super::{PersonalDir, at, make_dir, write_file};
use crate::auth::ring::new_key;
use crate::cli::{links, mpi_files};
use crate::conf::generate::{SitePlan, generate};
use crate::model::sort::sort_by_key;
use crate::sys::users::UserDatabase;
use std::fs;
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Ports are taken from here ...
const FIRST_PORT: u16 = 20_000;
/// ... to here, below those that the system hands out by itself.
const LAST_PORT: u16 = 32_000;
/// Ports of one cluster: lim, res, mbatchd, sbatchd, nlbserver.
pub const PORTS: u16 = 5;
/// Blocks tried before giving up.
const TRIES: u32 = 200;
/// Longest LSF_RUNDIR, bytes: socket paths below it must fit into 107.
const MAX_RUNDIR: usize = 70;
/// How long the name service may take to tell who we are.
const NAME_WAIT: Duration = Duration::from_secs(5);

/// The parameters that hold ports, in the order of a block.
pub const PORT_NAMES: [&str; PORTS as usize] =
    ["LSF_LIM_PORT", "LSF_RES_PORT", "LSB_MBD_PORT", "LSB_SBD_PORT", "LSF_NLB_PORT"];

/// Can this port be listened on, for streams and datagrams?
pub fn port_free(addr: IpAddr, port: u16) -> bool {
    TcpListener::bind((addr, port)).is_ok() && UdpSocket::bind((addr, port)).is_ok()
}

/// A block of free ports on all these addresses.
pub fn free_block(addrs: &[IpAddr]) -> Result<u16, String> {
    for _ in 0..TRIES {
        let blocks = (LAST_PORT - FIRST_PORT) / PORTS;
        let base = FIRST_PORT + random(blocks)? * PORTS;
        if addrs.iter().all(|a| (base..base + PORTS).all(|p| port_free(*a, p))) {
            return Ok(base);
        }
    }
    Err(format!("no free ports between {FIRST_PORT} and {LAST_PORT} on {}", list(addrs)))
}

/// The last port of the block that begins with `base` where it is free on all these addresses, else
/// another free one.
pub fn free_port_beside(addrs: &[IpAddr], base: u16) -> Result<u16, String> {
    let beside = base.checked_add(PORTS - 1);
    let free = beside.filter(|p| addrs.iter().all(|a| port_free(*a, *p)));
    free.map_or_else(|| free_block(addrs), Ok)
}

fn list(addrs: &[IpAddr]) -> String {
    addrs.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ")
}

/// A random number below `n`.
fn random(n: u16) -> Result<u16, String> {
    let bytes = crate::sys::random::<4>().map_err(|e| crate::sys::words(&e))?;
    Ok((u32::from_ne_bytes(bytes) % u32::from(n.max(1))) as u16)
}

/// The directories of a cluster.
const DIRS: [&str; 8] = ["conf", "log", "run", "bin", "etc", "lib", "include", "work"];

/// Paths that do not exist before a cluster is created, so that a failed creation leaves nothing.
pub struct Missing {
    /// Directories that are removed with their contents.
    dirs: Vec<PathBuf>,
    /// Parents of the cluster's directory, the deepest first.
    parents: Vec<PathBuf>,
}

impl Missing {
    pub fn of(place: &PersonalDir) -> Missing {
        let gone = |path: &Path| fs::symlink_metadata(path).is_err();
        let own = DIRS.iter().map(|dir| place.top.join(dir)).filter(|dir| gone(dir));
        let above = place.top.ancestors().take_while(|path| gone(path));
        Missing { dirs: own.collect(), parents: above.map(Path::to_path_buf).collect() }
    }

    /// Removes what has come since.
    pub fn remove(&self) {
        self.dirs.iter().for_each(|dir| drop(fs::remove_dir_all(dir)));
        self.parents.iter().for_each(|dir| drop(fs::remove_dir(dir)));
    }
}

/// Writes a new cluster of `hosts` hosts into `place`; `names` are the applets to link.
pub fn create(place: &PersonalDir, hosts: u32, names: &[&str]) -> Result<(), String> {
    let uid = crate::sys::euid();
    let user = UserDatabase::default().find_uid(uid, NAME_WAIT);
    let user = user.ok_or_else(|| format!("user {uid} has no name: a cluster needs one"))?;
    let top = place.top.to_str().ok_or("the directory's name is not UTF-8")?;
    let mut spec = SitePlan::personal(top, &user.name, hosts);
    let nets = hosts.div_ceil(254).min(255) as u16;
    spec.personal = Some((1 + random(256 - nets)?) as u8);
    if let Some(why) = spec.fault() {
        return Err(why);
    }
    if top.len() + "/run".len() > MAX_RUNDIR {
        spec.rundir = short_rundir(uid)?;
    }
    let addrs: Vec<IpAddr> = (1..=hosts).filter_map(|n| spec.address(n).parse().ok()).collect();
    let base = free_block(&addrs)?;
    [spec.lim_port, spec.res_port, spec.mbd_port, spec.sbd_port] =
        [base, base + 1, base + 2, base + 3];
    let short = spec.rundir.clone();
    write(place, &spec, names).inspect_err(|_| {
        if !Path::new(&short).starts_with(&place.top) {
            let _ = fs::remove_dir(&short);
        }
    })
}

/// A run directory with a short name, where the cluster's own is too long for sockets.
fn short_rundir(uid: u32) -> Result<String, String> {
    let suffix = crate::sys::random::<4>().map_err(|e| crate::sys::words(&e))?;
    let path = format!("/tmp/lsf-{uid}-{}", crate::auth::ring::hex(&suffix));
    let made = fs::DirBuilder::new().mode(0o700).create(&path);
    made.map_err(|e| at(Path::new(&path), &e))?;
    Ok(path)
}

fn write(place: &PersonalDir, spec: &SitePlan, names: &[&str]) -> Result<(), String> {
    let logdir = format!("work/{}/logdir", spec.cluster);
    for dir in DIRS.into_iter().chain(["", &logdir]) {
        make_dir(&place.top.join(dir))?;
    }
    let key = place.conf().join("lsf.key");
    if !key.exists() {
        let text = new_key().map_err(|e| at(&key, &e))?;
        write_file(&key, text.as_bytes(), 0o600)?;
    }
    link(place, names)?;
    // lsf.conf comes last: with it the cluster exists
    let mut files = generate(spec);
    sort_by_key(&mut files, |(path, ..)| path == "conf/lsf.conf");
    for (path, text, mode) in files {
        let path = place.top.join(path);
        make_dir(path.parent().unwrap_or(&place.top))?;
        write_file(&path, text.as_bytes(), mode)?;
    }
    Ok(())
}

/// Links the applets to the running binary, in bin and etc: on every `lsf up`, so that the
/// cluster runs what the caller runs.
pub fn link(place: &PersonalDir, names: &[&str]) -> Result<(), String> {
    for dir in ["bin", "etc"] {
        links::install(&place.top.join(dir), names.iter().copied())?;
    }
    mpi_files::write(&place.top)
}

/// Puts a fresh block of ports into lsf.conf and gives its first; the rest stays as it is.
pub fn new_ports(place: &PersonalDir, addrs: &[IpAddr]) -> Result<u16, String> {
    let base = free_block(addrs)?;
    let path: PathBuf = place.conf().join("lsf.conf");
    let text = fs::read_to_string(&path).map_err(|e| at(&path, &e))?;
    write_file(&path, with_ports(&text, base).as_bytes(), 0o644)?;
    Ok(base)
}

fn with_ports(text: &str, base: u16) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let name = line.split('=').next().unwrap_or_default().trim();
        match PORT_NAMES.iter().position(|n| *n == name) {
            Some(i) => out.push_str(&format!("{name}={}", usize::from(base) + i)),
            None => out.push_str(line),
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn a_taken_port_is_seen_both_ways() {
        let tcp = TcpListener::bind((LOOPBACK, 0)).unwrap();
        assert!(!port_free(LOOPBACK, tcp.local_addr().unwrap().port()));
        let udp = UdpSocket::bind((LOOPBACK, 0)).unwrap();
        assert!(!port_free(LOOPBACK, udp.local_addr().unwrap().port()));
        let base = free_block(&[LOOPBACK]).unwrap();
        assert!((FIRST_PORT..LAST_PORT).contains(&base));
    }

    #[test]
    fn ports_are_put_in_their_lines() {
        let text = "# LSF_LIM_PORT=1\nLSF_LIM_PORT=1\n LSB_MBD_PORT = 3\nX=4\nLSB_SBD_PORT=9";
        let want = "# LSF_LIM_PORT=1\nLSF_LIM_PORT=50\nLSB_MBD_PORT=52\nX=4\nLSB_SBD_PORT=53\n";
        assert_eq!(with_ports(text, 50), want);
    }

    #[test]
    fn files_of_a_personal_cluster_are_readable_and_the_owners() {
        use std::os::unix::fs::PermissionsExt;
        let dir = std::env::temp_dir().join(format!("lsf-create-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        let place = PersonalDir { top: dir.clone() };
        assert_eq!(place.exists(), Ok(false));
        create(&place, 3, &["bsub", "lim"]).unwrap();
        assert_eq!(place.exists(), Ok(true));
        let conf = place.read().unwrap();
        let names: Vec<&str> = conf.cluster.hosts.iter().map(|h| h.name.as_str()).collect();
        assert_eq!(names, ["host1", "host2", "host3"]);
        for h in names {
            assert!(conf.hosts.addrs(h)[0].is_loopback());
        }
        assert_eq!(conf.lsf.sbd_port(), conf.lsf.lim_port() + 3);
        let mode = |p: &str| fs::metadata(dir.join(p)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(""), mode("conf/lsf.key"), mode("run")), (0o700, 0o600, 0o700));
        assert!(dir.join("bin/bsub").is_symlink() && dir.join("etc/lim").is_symlink());
        fs::remove_dir_all(&dir).unwrap();
    }
}

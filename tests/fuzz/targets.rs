//! The targets of the fuzzer: each function takes any bytes, must come back soon, must not panic,
//! and checks that a value it has read is read back from its own text. Used by the fuzzer (`make
//! fuzz`) and, with the corpus, by an ordinary test.

use lsf::conf::nlb_map::NameMaps;
use lsf::conf::nlb_objects::read_objects;
use lsf::conf::{Diags, Files, load};
use lsf::lang::depend::{DepExpr, Resolved};
use lsf::lang::jobname::{JobIdSpec, JobName};
use lsf::lang::nlb;
use lsf::lang::resreq::{Builtins, ResReq, Syntax};
use lsf::lang::window::Windows;
use lsf::log::codec::{read_record, write_record};
use lsf::log::recover::{Params, recover};
use lsf::log::simdisk::SimDisk;
use lsf::proto::frame::{Decoder, MAX_FRAME_EARLY, Session, SessionKey, Side};

/// Takes any bytes.
pub type Target = fn(&[u8]);

/// Name and function of each.
pub const TARGETS: [(&str, Target); 6] = [
    ("frame", frame),
    ("conf", conf),
    ("lang", lang),
    ("nlb", nlb),
    ("record", record),
    ("log", log),
];

/// Frames in pieces of any size, unsigned and signed.
pub fn frame(data: &[u8]) {
    let Some((&step, data)) = data.split_first() else { return };
    for signed in [false, true] {
        let mut dec = Decoder::new(MAX_FRAME_EARLY);
        let key = SessionKey::new([8; 32]);
        let mut session =
            if signed { Session::signed(1, &key, Side::Server) } else { Session::local() };
        for piece in data.chunks(usize::from(step) + 1) {
            dec.push(piece);
            loop {
                match dec.take() {
                    Ok(Some(raw)) => {
                        // without the key nothing signed is ever believed
                        let got = session.open_msg(&raw);
                        assert!(!signed || got.is_err());
                    }
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
        }
    }
}

/// Every classic file with this text.
struct Everywhere<'a>(&'a [u8], u8);

impl Files for Everywhere<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let lsf_conf = "LSF_CONFDIR=/c\nLSF_SERVERDIR=/s\nLSB_CONFDIR=/c/lsbatch\n\
                        LSB_SHAREDIR=/w\nLSF_MASTER_LIST=a\n";
        let cluster = "Begin Host\nHOSTNAME model type server RESOURCES\na ! ! 1 ()\nEnd Host\n\
                       Begin ClusterAdmins\nADMINISTRATORS = adm\nEnd ClusterAdmins\n";
        let shared = "Begin Cluster\nClusterName\nc\nEnd Cluster\n";
        let names = [
            "lsf.conf",
            "lsf.shared",
            "lsf.cluster.c",
            "hosts",
            "lsb.params",
            "lsb.hosts",
            "lsb.queues",
            "lsb.users",
            "lsb.resources",
        ];
        let name = path.rsplit('/').next().unwrap_or_default();
        let which = names.iter().position(|n| *n == name);
        if which == Some(usize::from(self.1) % names.len()) || self.1 == 255 {
            return Ok(self.0.to_vec());
        }
        match name {
            "lsf.conf" => Ok(lsf_conf.into()),
            "lsf.cluster.c" => Ok(cluster.into()),
            "lsf.shared" => Ok(shared.into()),
            "lsb.queues" => Ok("Begin Queue\nQUEUE_NAME = q\nEnd Queue\n".into()),
            _ => Err("No such file or directory".into()),
        }
    }
}

/// The first byte chooses the file; the others are its text.
pub fn conf(data: &[u8]) {
    let Some((&which, text)) = data.split_first() else { return };
    let (conf, diags) = load::load(&Everywhere(text, which), "/c");
    let errors = diags.iter().filter(|d| d.severity == lsf::conf::Severity::Error).count();
    assert_eq!(conf.is_none(), errors > 0);
    for d in &diags {
        assert!(!d.to_string().chars().any(|c| c.is_control() && c != '\n'), "{d}");
    }
}

/// The expressions: what is read is written and read again as the same.
pub fn lang(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let syntax = Syntax::new(&Builtins);
    if let Ok(req) = ResReq::parse(text, &syntax) {
        let shown = req.to_string();
        let again = ResReq::parse(&shown, &syntax);
        assert_eq!(again.map(|r| r.to_string()).ok().as_deref(), Some(&shown[..]), "{text:?}");
    }
    let _ = DepExpr::parse(text);
    if let Ok(expr) = Resolved::parse(text) {
        let shown = expr.to_string();
        let again = Resolved::parse(&shown);
        assert_eq!(again.map(|e| e.to_string()).ok().as_deref(), Some(&shown[..]), "{text:?}");
    }
    if let Ok(name) = JobName::parse(text) {
        let shown = name.to_string();
        let again = JobName::parse(&shown);
        assert_eq!(again.map(|n| n.to_string()).ok().as_deref(), Some(&shown[..]), "{text:?}");
    }
    let _ = JobIdSpec::parse(text);
    let _ = Windows::parse(text);
}

/// A record that is read is written as one line that reads as the same.
pub fn record(data: &[u8]) {
    if let Ok(rec) = read_record(data) {
        let mut line = Vec::new();
        write_record(&rec, &mut line);
        if line.is_empty() {
            return;
        }
        assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 1);
        let again = read_record(&line).expect("what we wrote");
        let mut twice = Vec::new();
        write_record(&again, &mut twice);
        assert_eq!(String::from_utf8_lossy(&line), String::from_utf8_lossy(&twice));
    }
}

/// A log directory: lsb.events, and after a line of `=` its checksums.
pub fn log(data: &[u8]) {
    let mark = b"\n====\n";
    let at = data.windows(mark.len()).position(|w| w == mark);
    let (events, sums) = match at {
        Some(at) => (&data[..at], &data[at + mark.len()..]),
        None => (data, &data[..0]),
    };
    let mut disk = SimDisk::new();
    disk.put("lsb.events", events);
    if !sums.is_empty() {
        disk.put("lsb.events.sum", sums);
    }
    let params = |run: &str| Params {
        host: "h".into(),
        boot: "b".into(),
        now: 1_800_000_000,
        run: run.into(),
        ..Params::default()
    };
    if recover(&mut disk, &params("1")).is_ok() {
        // what it left behind is taken again
        assert!(recover(&mut disk, &params("2")).is_ok());
    }
}

/// The files of the load balancer: policies, name maps and object data.
pub fn nlb(data: &[u8]) {
    let file = "file".into();
    let maps = NameMaps::shipped();
    if let Some(policies) = nlb::parse(&file, data, &maps, &mut Diags::new()) {
        let shown = policies.to_string();
        let again = nlb::parse(&file, shown.as_bytes(), &maps, &mut Diags::new());
        assert_eq!(again.as_ref(), Some(&policies), "{shown}");
    }
    if let Some(new) = maps.put(&file, data, &mut Diags::new()) {
        let text: String = new.list().iter().map(|m| m.text()).collect();
        let again = NameMaps::default().put(&file, text.as_bytes(), &mut Diags::new());
        assert_eq!(again.as_ref(), Some(&new), "{text}");
    }
    if let Some(objects) = read_objects(&file, data, &maps, None, &mut Diags::new()) {
        assert!(objects.len() <= data.len());
    }
}

//! mbatchd for real: its machine, its log thread, its configuration.

use super::boot::{Boot, BootError};
use super::shell::{self, Ctl, Host};
use super::wal::Wal;
use crate::batch::Mbd;
use crate::conf;
use crate::model::ByteStr;
use crate::proto::sbd::SbdMsg;
use crate::proto::{Daemon, Effect, Input, Msg};
use crate::sys::files::RealFiles;
use std::path::Path;

struct MbdHost {
    wal: Wal,
    syncing: bool,
    envdir: String,
}

impl Host for MbdHost {
    type M = Mbd;

    fn start(&mut self, _m: &mut Mbd, ctl: &mut Ctl) {
        if let Err(e) = self.wal.start(ctl.remote()) {
            log::error!("lsb.events: {e}");
            ctl.exit(1);
        }
    }

    fn effect(&mut self, _m: &mut Mbd, eff: Effect, ctl: &mut Ctl) {
        match eff {
            Effect::Append(r) => self.wal.append(&r),
            Effect::Account(f) => self.wal.account(&f),
            Effect::Spool { at, data } => self.wal.spool(at, data.0),
            Effect::SendBlob { conn, at } => match self.wal.blob(at) {
                Ok(data) => {
                    let data = ByteStr(data);
                    ctl.send(conn, Msg::Sbd(SbdMsg::Blob { at, data }));
                }
                Err(e) => log::error!("spool {at:?}: {e}"),
            },
            Effect::LoadConfig => {
                let (conf, diags) = conf::load(&RealFiles, &self.envdir);
                let conf = conf.filter(|_| !conf::has_errors(&diags)).map(Box::new);
                ctl.input(Input::Config { conf, diags });
            }
            Effect::Switch { .. } => ctl.input(Input::Switched { ok: false }),
            other => log::error!("mbatchd does not carry out {other:?}"),
        }
    }

    fn end_of_turn(&mut self, _m: &mut Mbd, ctl: &mut Ctl) {
        if !self.syncing
            && let Some(ticket) = ctl.seal()
        {
            self.syncing = true;
            self.wal.submit(ticket);
        }
    }

    fn durable(&mut self, _m: &mut Mbd, _ticket: u64, _ctl: &mut Ctl) {
        self.syncing = false;
    }

    fn stopping(&mut self, _m: &mut Mbd, _code: i32) {
        self.wal.stop();
    }
}

/// Runs mbatchd until it ends; the exit code, or why it could not start.
pub fn run(boot: Boot) -> Result<i32, BootError> {
    serve(boot).map_err(BootError)
}

fn serve(boot: Boot) -> Result<i32, String> {
    let envdir = boot.site.envdir.clone();
    let (conf, diags) = conf::load(&RealFiles, &envdir);
    for d in &diags {
        log::warn!("{d}");
    }
    let Some(conf) = conf.filter(|_| !conf::has_errors(&diags)) else {
        return Err("the configuration has errors; see `badmin ckconfig -v`".to_string());
    };
    let dir = conf.base.lsf.batch_logdir(&conf.base.name).ok_or("LSB_SHAREDIR is not defined")?;
    let (wal, found) = Wal::open(Path::new(&dir)).map_err(|e| format!("{dir}: {e}"))?;
    let mbd = Mbd::new(conf, &boot.host, found);
    let host = MbdHost { wal, syncing: false, envdir };
    shell::run(boot.shell(Daemon::Mbatchd), mbd, host).map_err(|e| e.to_string())
}

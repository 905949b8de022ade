//! The application profiles, compiled (lsb.applications(5)).

use crate::batch::site::preemption::PROTECTION;
use crate::batch::site::requirements::{Names, Req};
use crate::conf::types::ApplicationConf;
use crate::lang::exitcodes::ExitCodes;
use std::collections::HashMap;
use std::rc::Rc;

/// Parameters that say how often jobs go back to their queue.
const RETRIES: [&str; 3] =
    ["MAX_JOB_REQUEUE", "LOCAL_MAX_PREEXEC_RETRY", "LOCAL_MAX_PREEXEC_RETRY_ACTION"];

/// A compiled application profile.
#[derive(Debug)]
pub struct Application {
    pub conf: ApplicationConf,
    /// RES_REQ.
    pub req: Option<Rc<Req>>,
    /// REQUEUE_EXIT_VALUES.
    pub requeue_codes: Option<ExitCodes>,
    /// SUCCESS_EXIT_VALUES.
    pub success_codes: Option<ExitCodes>,
    /// Whether it has limits of its own on returns to the queue.
    pub retries: bool,
    /// Whether it protects jobs from preemption by parameters of its own.
    pub protects: bool,
}

/// The application profiles, in the order of the file.
#[derive(Debug, Default)]
pub struct Applications {
    all: Vec<Application>,
    positions: HashMap<String, usize>,
}

impl Applications {
    pub fn compile(conf: &[ApplicationConf], names: &Names) -> Applications {
        let codes = |text: &Option<String>| text.as_deref().and_then(ExitCodes::parse);
        let compiled = |conf: &ApplicationConf| Application {
            req: conf.res_req.as_deref().and_then(|t| Req::parse(t, names).ok()).map(Rc::new),
            requeue_codes: codes(&conf.requeue_exit_values),
            success_codes: codes(&conf.success_exit_values),
            protects: PROTECTION.iter().any(|name| conf.raw.contains_key(*name)),
            retries: RETRIES.iter().any(|name| conf.raw.contains_key(*name)),
            conf: conf.clone(),
        };
        let all: Vec<Application> = conf.iter().map(compiled).collect();
        let position = |(position, a): (usize, &Application)| (a.conf.name.clone(), position);
        let positions = all.iter().enumerate().map(position).collect();
        Applications { all, positions }
    }

    /// The profile of a name; none: there is none, or the name is empty.
    pub fn get(&self, name: &str) -> Option<&Application> {
        if name.is_empty() {
            return None;
        }
        self.positions.get(name).map(|position| &self.all[*position])
    }

    pub fn iter(&self) -> impl Iterator<Item = &Application> {
        self.all.iter()
    }
}

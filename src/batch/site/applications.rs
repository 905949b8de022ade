//! The application profiles, compiled (lsb.applications(5)).

use crate::conf::types::ApplicationConf;
use std::collections::HashMap;

/// A compiled application profile.
#[derive(Debug)]
pub struct Application {
    pub conf: ApplicationConf,
}

/// The application profiles, in the order of the file.
#[derive(Debug, Default)]
pub struct Applications {
    all: Vec<Application>,
    positions: HashMap<String, usize>,
}

impl Applications {
    pub fn compile(conf: &[ApplicationConf]) -> Applications {
        let all: Vec<Application> =
            conf.iter().map(|conf| Application { conf: conf.clone() }).collect();
        let position = |(position, a): (usize, &Application)| (a.conf.name.clone(), position);
        let positions = all.iter().enumerate().map(position).collect();
        Applications { all, positions }
    }

    /// The profile of a name; none: there is none, or the name is empty.
    pub fn get(&self, name: &str) -> Option<&Application> {
        self.positions.get(name).map(|position| &self.all[*position])
    }

    pub fn iter(&self) -> impl Iterator<Item = &Application> {
        self.all.iter()
    }
}

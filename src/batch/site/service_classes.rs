//! The service classes, compiled (lsb.serviceclasses(5)).

use crate::conf::types::ServiceClassConf;
use std::collections::HashMap;

/// The position of a service class in lsb.serviceclasses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceClassId(u16);

/// The service classes, in the order of the file.
#[derive(Debug, Default)]
pub struct ServiceClasses {
    all: Vec<ServiceClassConf>,
    ids: HashMap<String, ServiceClassId>,
}

impl ServiceClasses {
    pub fn compile(conf: &[ServiceClassConf]) -> ServiceClasses {
        let all: Vec<ServiceClassConf> = conf.iter().take(usize::from(u16::MAX)).cloned().collect();
        let id = |(position, class): (usize, &ServiceClassConf)| {
            (class.name.clone(), ServiceClassId(position as u16))
        };
        let ids = all.iter().enumerate().map(id).collect();
        ServiceClasses { all, ids }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The class of a name; none: there is none, or the name is empty.
    pub fn id(&self, name: &str) -> Option<ServiceClassId> {
        match name.is_empty() {
            true => None,
            false => self.ids.get(name).copied(),
        }
    }

    pub fn get(&self, id: ServiceClassId) -> Option<&ServiceClassConf> {
        self.all.get(usize::from(id.0))
    }

    /// The name of a class; empty where there is none.
    pub fn name(&self, id: ServiceClassId) -> &str {
        self.get(id).map_or("", |class| &class.name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (ServiceClassId, &ServiceClassConf)> {
        self.all.iter().enumerate().map(|(at, class)| (ServiceClassId(at as u16), class))
    }
}

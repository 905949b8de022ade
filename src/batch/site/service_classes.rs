//! The service classes, compiled (lsb.serviceclasses(5)).

use crate::conf::types::{GoalKind, ServiceClassConf};
use crate::lang::window::Windows;
use std::cmp::Reverse;
use std::collections::HashMap;

/// The position of a service class in lsb.serviceclasses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceClassId(u16);

impl ServiceClassId {
    /// The position, from 0.
    pub fn position(self) -> usize {
        usize::from(self.0)
    }
}

/// A goal of a service class that is a number of jobs.
#[derive(Debug)]
pub struct Goal {
    pub kind: GoalKind,
    /// When the goal is active; empty: always.
    pub windows: Windows,
}

/// The service classes, in the order of the file.
#[derive(Debug, Default)]
pub struct ServiceClasses {
    all: Vec<ServiceClassConf>,
    ids: HashMap<String, ServiceClassId>,
    /// The goals of each, in the order of the file.
    goals: Vec<Vec<Goal>>,
    /// The classes with such goals: larger PRIORITY first, then in the order of the file.
    with_goals: Vec<ServiceClassId>,
}

impl ServiceClasses {
    pub fn compile(conf: &[ServiceClassConf]) -> ServiceClasses {
        let all: Vec<ServiceClassConf> = conf.iter().take(usize::from(u16::MAX)).cloned().collect();
        let id = |(position, class): (usize, &ServiceClassConf)| {
            (class.name.clone(), ServiceClassId(position as u16))
        };
        let ids = all.iter().enumerate().map(id).collect();
        let compiled = |class: &ServiceClassConf| {
            let goals = class.goals.iter().map(|goal| Goal {
                kind: goal.kind,
                // the reader of the file has refused windows that are none
                windows: Windows::parse(&goal.window).unwrap_or_default(),
            });
            goals.collect::<Vec<Goal>>()
        };
        let goals: Vec<Vec<Goal>> = all.iter().map(compiled).collect();
        let with = (0..all.len()).filter(|at| !goals[*at].is_empty());
        let mut with_goals: Vec<ServiceClassId> =
            with.map(|at| ServiceClassId(at as u16)).collect();
        with_goals.sort_by_key(|id| Reverse(all[id.position()].priority));
        ServiceClasses { all, ids, goals, with_goals }
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
        self.all.get(id.position())
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The goals of a class that are numbers of jobs.
    pub fn goals(&self, id: ServiceClassId) -> &[Goal] {
        self.goals.get(id.position()).map_or(&[], |goals| goals)
    }

    /// The classes with goals that are numbers of jobs, in the order in which these are served.
    pub fn with_goals(&self) -> &[ServiceClassId] {
        &self.with_goals
    }

    /// The name of a class; empty where there is none.
    pub fn name(&self, id: ServiceClassId) -> &str {
        self.get(id).map_or("", |class| &class.name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (ServiceClassId, &ServiceClassConf)> {
        self.all.iter().enumerate().map(|(at, class)| (ServiceClassId(at as u16), class))
    }
}

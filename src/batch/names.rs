//! Ids of users, queues and hosts. Jobs, counters and the scheduler hold an id; its text is read
//! where something is logged, sent or shown.
//!
//! Ids belong to one process: the log and the wire hold names.

use std::collections::HashMap;
use std::rc::Rc;

/// The id of a name in a [`Table`]: its position there.
pub trait Id: Copy {
    fn from_index(index: usize) -> Self;
    fn index(self) -> usize;
}

macro_rules! id {
    ($name:ident, $of:literal) => {
        #[doc = concat!("The id of ", $of, " within this process.")]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);

        impl $name {
            pub const MIN: $name = $name(0);
            pub const MAX: $name = $name(u32::MAX);
        }

        impl Id for $name {
            fn from_index(index: usize) -> Self {
                $name(index as u32)
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(UserId, "a user");
id!(QueueId, "a queue");
id!(HostId, "a host");

/// Names of one kind by id. Names are never removed: their number is bounded by the users, queues
/// and hosts ever seen in one log.
#[derive(Debug)]
pub struct Table<I> {
    list: Vec<Rc<str>>,
    map: HashMap<Rc<str>, I>,
}

impl<I> Default for Table<I> {
    fn default() -> Self {
        Table { list: Vec::new(), map: HashMap::new() }
    }
}

impl<I: Id> Table<I> {
    /// The id of a name, which gets one if it has none.
    pub fn id(&mut self, name: &str) -> I {
        if let Some(&id) = self.map.get(name) {
            return id;
        }
        let id = I::from_index(self.list.len());
        let name: Rc<str> = name.into();
        self.list.push(name.clone());
        self.map.insert(name, id);
        id
    }
    /// The id of a name that is known.
    pub fn find(&self, name: &str) -> Option<I> {
        self.map.get(name).copied()
    }
    pub fn text(&self, id: I) -> &Rc<str> {
        &self.list[id.index()]
    }
    pub fn len(&self) -> usize {
        self.list.len()
    }
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// The names of users, queues and hosts.
#[derive(Debug, Default)]
pub struct Names {
    pub users: Table<UserId>,
    pub queues: Table<QueueId>,
    pub hosts: Table<HostId>,
}

impl Names {
    pub fn user(&self, id: UserId) -> &Rc<str> {
        self.users.text(id)
    }
    pub fn queue(&self, id: QueueId) -> &Rc<str> {
        self.queues.text(id)
    }
    pub fn host(&self, id: HostId) -> &Rc<str> {
        self.hosts.text(id)
    }
}

//! Ids of users, queues, hosts and resources. Jobs, counters and the scheduler hold an id; its text
//! is read where something is logged, sent or shown.
//!
//! Ids belong to one process: the log and the wire hold names.

use crate::lang::resreq::HOST_NUMBERS;
use crate::model::idmap::IdMap;
use crate::model::reason::SiteResource;
use crate::proto::lim::INDEX_NAMES;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

/// The id of a name in a [`InternedNames`]: its position there.
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
id!(ProjectId, "a project");
id!(ApplicationId, "an application profile");
id!(LicenseProjectId, "a license project");
id!(UserGroupId, "a user group that jobs were submitted with");
id!(ResourceId, "a numeric resource in the configuration that holds");

/// Built-in numbers: their ids come before those of the site's resources.
const BUILT_IN: usize = INDEX_NAMES.len() + HOST_NUMBERS.len();

/// A built-in load index has the id of its position in a load vector; behind these stand the other
/// built-in numbers of a host, and the resources of lsf.shared in their order.
impl ResourceId {
    pub fn of_load_index(position: usize) -> ResourceId {
        ResourceId::from_index(position)
    }
    /// The position in a load vector.
    pub fn load_index(self) -> Option<usize> {
        Some(self.index()).filter(|position| *position < INDEX_NAMES.len())
    }
    pub fn of_site(position: usize) -> ResourceId {
        ResourceId::from_index(BUILT_IN + position)
    }
    /// The resource as a pending reason tells it; none: it is built in.
    pub fn of_reason(self) -> Option<SiteResource> {
        let position = self.index().checked_sub(BUILT_IN)?;
        u32::try_from(position).ok().map(SiteResource)
    }
}

/// Names of one kind by id. Names are never removed: their number is bounded by the users, queues
/// and hosts ever seen in one log.
#[derive(Debug)]
pub struct InternedNames<I> {
    list: Vec<Arc<str>>,
    map: HashMap<Arc<str>, I>,
    /// The ids by the address of the text in `list`, which stays where it is.
    by_address: IdMap<usize, I>,
}

impl<I> Default for InternedNames<I> {
    fn default() -> Self {
        InternedNames { list: Vec::new(), map: HashMap::new(), by_address: IdMap::default() }
    }
}

impl<I: Id> InternedNames<I> {
    /// The id of a name, which gets one if it has none.
    pub fn id(&mut self, name: &str) -> I {
        if let Some(&id) = self.map.get(name) {
            return id;
        }
        let id = I::from_index(self.list.len());
        let name: Arc<str> = name.into();
        self.list.push(name.clone());
        self.by_address.insert(name.as_ptr().addr(), id);
        self.map.insert(name, id);
        id
    }
    /// The id of a name that may be shared with this list: then its text is not read.
    pub fn id_of_shared(&mut self, name: &Arc<str>) -> I {
        match self.by_address.get(&name.as_ptr().addr()) {
            // no two texts are at one address, but one without a byte has any
            Some(&id) if !name.is_empty() => id,
            _ => self.id(name),
        }
    }
    /// The id of a name that is known.
    pub fn find(&self, name: &str) -> Option<I> {
        self.map.get(name).copied()
    }
    pub fn text(&self, id: I) -> &Arc<str> {
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
    users: InternedNames<UserId>,
    queues: InternedNames<QueueId>,
    hosts: InternedNames<HostId>,
}

impl Names {
    /// The id of a user, who gets one where there is none.
    pub fn user_id(&mut self, name: &str) -> UserId {
        self.users.id(name)
    }
    /// The id of a queue, which gets one where there is none.
    pub fn queue_id(&mut self, name: &str) -> QueueId {
        self.queues.id(name)
    }
    /// The id of a host, which gets one where there is none.
    pub fn host_id(&mut self, name: &str) -> HostId {
        self.hosts.id(name)
    }
    /// The id of a host whose name is mostly shared with [`Names::host`].
    pub fn id_of_host(&mut self, name: &Arc<str>) -> HostId {
        self.hosts.id_of_shared(name)
    }
    pub fn find_user(&self, name: &str) -> Option<UserId> {
        self.users.find(name)
    }
    pub fn find_queue(&self, name: &str) -> Option<QueueId> {
        self.queues.find(name)
    }
    pub fn find_host(&self, name: &str) -> Option<HostId> {
        self.hosts.find(name)
    }
    /// Queues that have an id.
    pub fn queue_count(&self) -> usize {
        self.queues.len()
    }
    /// The hosts that have an id.
    pub fn host_ids(&self) -> impl Iterator<Item = HostId> {
        (0..self.hosts.len()).map(HostId::from_index)
    }
    /// Hosts that have an id.
    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }
    pub fn user(&self, id: UserId) -> &Arc<str> {
        self.users.text(id)
    }
    pub fn queue(&self, id: QueueId) -> &Arc<str> {
        self.queues.text(id)
    }
    pub fn host(&self, id: HostId) -> &Arc<str> {
        self.hosts.text(id)
    }
}

/// A value for each host of the cluster, by id, in the order of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostMap<T> {
    by_id: Vec<Option<T>>,
    order: Vec<HostId>,
}

impl<T> Default for HostMap<T> {
    fn default() -> Self {
        HostMap { by_id: Vec::new(), order: Vec::new() }
    }
}

impl<T> HostMap<T> {
    /// Adds a host behind the others; the value of one that is there is replaced.
    pub fn insert(&mut self, id: HostId, value: T) -> Option<T> {
        if self.by_id.len() <= id.index() {
            self.by_id.resize_with(id.index() + 1, || None);
        }
        let before = self.by_id[id.index()].replace(value);
        if before.is_none() {
            self.order.push(id);
        }
        before
    }
    pub fn get(&self, id: HostId) -> Option<&T> {
        self.by_id.get(id.index())?.as_ref()
    }
    pub fn get_mut(&mut self, id: HostId) -> Option<&mut T> {
        self.by_id.get_mut(id.index())?.as_mut()
    }
    pub fn contains(&self, id: HostId) -> bool {
        self.get(id).is_some()
    }
    pub fn len(&self) -> usize {
        self.order.len()
    }
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
    /// The ids in the order of the configuration.
    pub fn ids(&self) -> impl Iterator<Item = HostId> + Clone + '_ {
        self.order.iter().copied()
    }
    /// The id at a position in the order of the configuration.
    pub fn id_at(&self, position: usize) -> Option<HostId> {
        self.order.get(position).copied()
    }
    /// Ids and values in the order of the configuration.
    pub fn iter(&self) -> impl Iterator<Item = (HostId, &T)> + '_ {
        self.order.iter().filter_map(|id| Some((*id, self.get(*id)?)))
    }
    /// The values in the order of the configuration.
    pub fn values(&self) -> impl Iterator<Item = &T> + '_ {
        self.iter().map(|pair| pair.1)
    }
    /// Ids and values in the order of the ids.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (HostId, &mut T)> + '_ {
        let by_id = self.by_id.iter_mut().enumerate();
        by_id.filter_map(|(i, value)| Some((HostId::from_index(i), value.as_mut()?)))
    }
    /// Takes all out, in the order of the configuration.
    pub fn drain(&mut self) -> Vec<(HostId, T)> {
        let mut by_id = std::mem::take(&mut self.by_id);
        let order = std::mem::take(&mut self.order);
        order.into_iter().filter_map(|id| Some((id, by_id[id.index()].take()?))).collect()
    }
}

impl<T> std::ops::Index<HostId> for HostMap<T> {
    type Output = T;
    fn index(&self, id: HostId) -> &T {
        match self.get(id) {
            Some(value) => value,
            None => panic!("host {} is not in the cluster", id.index()),
        }
    }
}

impl<T> std::ops::IndexMut<HostId> for HostMap<T> {
    fn index_mut(&mut self, id: HostId) -> &mut T {
        match self.get_mut(id) {
            Some(value) => value,
            None => panic!("host {} is not in the cluster", id.index()),
        }
    }
}

/// A set of ids, a bit for each.
#[derive(Clone, Debug)]
pub struct IdSet<I> {
    words: Vec<u64>,
    len: usize,
    /// No word before this one has an id: a set of few is gone over in no time.
    first: usize,
    of: PhantomData<I>,
}

/// A set of hosts.
pub type HostSet = IdSet<HostId>;

impl<I> Default for IdSet<I> {
    fn default() -> IdSet<I> {
        IdSet { words: Vec::new(), len: 0, first: 0, of: PhantomData }
    }
}

impl<I: Id + PartialEq> PartialEq for IdSet<I> {
    fn eq(&self, other: &IdSet<I>) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<I: Id + Eq> Eq for IdSet<I> {}

impl<I: Id> IdSet<I> {
    /// Adds one; true if it was not there.
    pub fn insert(&mut self, id: I) -> bool {
        let (word, bit) = (id.index() / 64, 1u64 << (id.index() % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.first = if self.is_empty() { word } else { self.first.min(word) };
        self.len += usize::from(new);
        new
    }
    /// Takes one out; true if it was there.
    pub fn remove(&mut self, id: I) -> bool {
        let there = self.contains(id);
        if there {
            self.words[id.index() / 64] &= !(1u64 << (id.index() % 64));
            self.len -= 1;
        }
        there
    }
    pub fn contains(&self, id: I) -> bool {
        self.words.get(id.index() / 64).is_some_and(|w| w >> (id.index() % 64) & 1 == 1)
    }
    /// Is one of these among them?
    pub fn has_any_of(&self, others: &IdSet<I>) -> bool {
        self.words.iter().zip(&others.words).any(|(own, other)| own & other != 0)
    }
    /// The ids that are in both sets.
    pub fn common_with(&self, other: &IdSet<I>) -> IdSet<I> {
        let words: Vec<u64> = self.words.iter().zip(&other.words).map(|(a, b)| a & b).collect();
        let len = words.iter().map(|word| word.count_ones() as usize).sum();
        IdSet { words, len, first: self.first.max(other.first), of: PhantomData }
    }
    pub fn len(&self) -> usize {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The ids in their order.
    pub fn iter(&self) -> impl Iterator<Item = I> + '_ {
        let words = self.words.iter().enumerate().skip(self.first);
        let ids = words.flat_map(|(i, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
                Some(I::from_index(i * 64 + bit))
            })
        });
        ids.take(self.len)
    }
}

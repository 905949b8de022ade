//! Changes of the slots of a started element: what its users have asked for, and the change that
//! its first execution host is to hear of or has heard of.
//!
//! Invariants: one change is under way at a time; slots that come are the element's as soon as
//! their change begins, and slots that go are until it has ended well; an element keeps a slot of
//! its first execution host.

use crate::batch::state::names::HostId;

/// The changes of the slots of a started element.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resize {
    /// The number of the last change.
    pub number: u32,
    pub under_way: Option<ResizeUnderWay>,
    /// The element asks for no further slots by itself any more.
    pub cancelled: bool,
    pub asked: Option<AskedSlots>,
    /// When the last change failed for which further slots were given, seconds since the epoch;
    /// 0: none did.
    pub failed_at: i64,
    /// When the last change ended well, seconds since the epoch; 0: there was none.
    pub changed_at: i64,
}

/// A change that the first execution host has not told the end of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResizeUnderWay {
    pub number: u32,
    pub grows: bool,
    pub hosts: Vec<(HostId, u32)>,
    /// The notification command; empty: none.
    pub command: String,
    /// The host has begun with it.
    pub accepted: bool,
}

/// The further slots that bresize request asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AskedSlots {
    /// The slots of the element when it has them all.
    pub total: u32,
    /// Fewer are not given at once.
    pub least: u32,
    /// The notification command, where it is not that of the job; empty: none.
    pub command: Option<String>,
}

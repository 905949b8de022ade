//! lsb.resources: its sections as they are written. See lsb.resources(5).

use super::{Pos, RawParams};

/// lsb.resources: its sections, read and kept; acting on them comes later.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchResources {
    /// The sections in the order of the file.
    pub sections: Vec<ResourceSection>,
}

/// One record of a section of lsb.resources.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceSection {
    /// Section name in its documented spelling.
    pub kind: String,
    /// The parameters of the section, or of one row of its table.
    pub params: RawParams,
    /// The beginning of the section in the file.
    pub pos: Pos,
}

//! Every name the configuration files may hold, as data.
//!
//! One row a name: file, section, whether the cluster acts on it, one line of what it says.
//! The readers, the manual pages and the tests use the same rows. A genuine LSF name that is
//! not acted on earns a notice; a name that is not here is an error, or in lsf.conf, where
//! sites keep variables of their own, a warning unless it looks like a slip of the pen.

mod check;
mod load_indices;
pub mod lsb_applications;
pub mod lsb_params;
pub mod lsb_queues;
pub mod lsb_serviceclasses;
pub mod lsf_conf;
mod moot;
mod name_table;
mod nearest;
pub mod tables;

pub use check::all;
pub use load_indices::{LOAD_INDICES, load_index};
pub use name_table::{NOT_ACTED_ON, Name, NameTable};
pub use nearest::nearest;

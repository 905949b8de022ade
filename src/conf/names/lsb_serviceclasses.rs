//! Known names of lsb.serviceclasses: data, checked against the manual pages.
//!
//! See lsb.serviceclasses(5).

use super::name_table::{Name, NameTable, bytes, ends, names, off, on, table, text};

/// Parameters of lsb.serviceclasses.
pub static SERVICE_CLASS: NameTable = table!("lsb.serviceclasses", "ServiceClass", NAMES);

const NAMES: &[Name] = &[
    on(
        "ACCESS_CONTROL",
        "QUEUES[] USERS[] FAIRSHARE_GROUPS[] APPS[] PROJECTS[] LIC_PROJECTS[]; any",
    ),
    on("AUTO_ATTACH", "jobs that may be in the class are put into it: Y/N; N"),
    off("CONSUMER", "EGO consumer"),
    on("CONTROL_ACTION", "VIOLATION_PERIOD[minutes] CMD[command]; none"),
    on("DESCRIPTION", "text shown by bsla"),
    off("EGO_RES_REQ", "EGO resource requirement"),
    on("GOALS", "[GUARANTEE], or [DEADLINE | VELOCITY n | THROUGHPUT n timeWindow(w)] ..."),
    off("MAX_HOST_IDLE_TIME", "seconds before an EGO host is given back"),
    on("NAME", "name of the class"),
    on("PRIORITY", "classes of larger numbers go first; 1"),
    on("USER_GROUP", "users and groups that may use the class; all"),
];

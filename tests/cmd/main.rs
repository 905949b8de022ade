//! One file per command: what it prints, where, and its exit code. The commands are those of a
//! personal cluster started once for the whole program, or, with LSF_TEST_SITE set, of any LSF
//! whose commands are on PATH.

#![allow(clippy::unwrap_used)]

mod acting;
mod aps;
mod bacct;
mod badmin;
mod beside;

mod bhist;
mod bhosts;
mod bjdepinfo;
mod bjobs;
mod bkill;
mod bmig;
mod bmod;
mod bpeek;
mod bqueues;
mod bresize;
mod bresume;
mod brun;
mod bstop;
mod bsub;
mod bswitch;
mod busers;
mod bwait;
mod checkpoints;
mod clients;
mod common;
mod completion;
mod elements;
mod endings;
mod fields;
mod job_files;
mod job_groups;
mod listings;
mod lsadmin;
mod lshosts;
mod lsid;
mod lsload;
mod messages;
mod personal;
mod quiet;
mod refused_operands;
mod rejections;
mod reservations;
#[path = "../cluster/rig.rs"]
mod rig;
mod robust;
mod rules;
mod shipped_file;
mod slot_pools;

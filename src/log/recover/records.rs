//! Reads the records of any log file, for commands and for comparisons with an older log.

use crate::log::codec::read_record;
use crate::log::disk::{Disk, FileId};
use crate::log::record_walk::{PlaceContents, RecordWalker, read_head};
use crate::model::event::Record;
use std::io;

/// Gives every readable record of a log file to `each`, for commands: damage is skipped, texts
/// are as the log has them. `false` from `each` ends it.
pub fn for_each_record(
    disk: &mut dyn Disk,
    name: &str,
    each: &mut dyn FnMut(Record) -> bool,
) -> io::Result<()> {
    let file = disk.open(name, None)?;
    let done = read_records(disk, file, each);
    disk.close(file);
    done
}

fn read_records(
    disk: &mut dyn Disk,
    file: FileId,
    each: &mut dyn FnMut(Record) -> bool,
) -> io::Result<()> {
    let (_, head) = read_head(disk, file)?;
    let limit = disk.len(file)?;
    let mut walker = RecordWalker::new(file, head, limit, Vec::new());
    let mut line = Vec::new();
    while let Some(step) = walker.step(disk, &mut line)? {
        if step.what == PlaceContents::Text
            && let Ok(record) = read_record(&line)
            && !each(record)
        {
            break;
        }
    }
    Ok(())
}

//! The programs that mpirun.lsf(1) needs in a cluster: a wrapper in LSF_BINDIR and an esub in
//! LSF_SERVERDIR for each type of MPI. `lsf up` and `lsfinstall` write them.

use super::personal::{at, write_file};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The types of MPI.
const TYPES: [&str; 6] = ["intelmpi", "mpich", "mpich2", "mpich3", "mvapich", "openmpi"];
/// Each finds its type in the name that it was called by.
const WRAPPER: &str = include_str!("../../conf-examples/mpi/mpi_wrapper");
const ESUB: &str = include_str!("../../conf-examples/mpi/esub.mpi");

/// Writes those that are not there into `bin` and `etc` of a cluster's directory.
///
/// # Errors
/// The file that cannot be written, with the reason.
pub fn write(top: &Path) -> Result<(), String> {
    for name in TYPES {
        let files = [(format!("bin/{name}_wrapper"), WRAPPER), (format!("etc/esub.{name}"), ESUB)];
        for (path, text) in files {
            let path = top.join(path);
            // one of the site's own stays
            if fs::symlink_metadata(&path).is_ok() {
                continue;
            }
            write_file(&path, text.as_bytes(), 0o755)?;
            // whatever the caller's umask
            fs::set_permissions(&path, PermissionsExt::from_mode(0o755))
                .map_err(|e| at(&path, &e))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_and_esubs_are_written_where_none_are() {
        let top = std::env::temp_dir().join(format!("lsf-mpi-files-{}", std::process::id()));
        let _ = fs::remove_dir_all(&top);
        fs::create_dir_all(top.join("bin")).unwrap();
        fs::create_dir_all(top.join("etc")).unwrap();
        fs::write(top.join("bin/mpich_wrapper"), "own").unwrap();
        write(&top).unwrap();
        write(&top).unwrap();
        let read = |path: &str| fs::read_to_string(top.join(path)).unwrap();
        assert_eq!(read("bin/mpich_wrapper"), "own");
        assert_eq!(
            (read("bin/openmpi_wrapper"), read("etc/esub.openmpi")),
            (WRAPPER.into(), ESUB.into())
        );
        let mode = fs::metadata(top.join("etc/esub.mpich")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        fs::remove_dir_all(&top).unwrap();
    }
}

//! Daemons that panic, in the very file that is shipped: their logs hold message, place and trace,
//! which needs the file's symbol names and unwind tables.
//!
//! No input is known to make a daemon panic. So this writes into the code of a running one: its
//! next look at the clock is a jump to where the standard library panics for `None.unwrap()`.

use crate::rig::{Rig, alive, binary, skipped, wait_for};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;

/// The function whose code is written over: every daemon calls it each turn.
const LOOKS_AT_CLOCK: &str = "lsf::sys::now";
/// The function that is jumped to; its argument is a `Location`: file, line and column.
const PANICS: &str = "core::option::unwrap_failed";
/// The place that the panic is said to be at.
const PLACE: (&str, u32, u32) = ("written_by_a_test.rs", 12, 34);

/// Addresses of the functions of the file under test, as its symbol table has them.
fn functions() -> Option<HashMap<String, u64>> {
    let said = Command::new("nm").arg("-C").arg(binary()).output().ok()?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let function = |line: &str| {
        let (address, rest) = line.split_once(' ')?;
        Some((rest.get(2..)?.to_owned(), u64::from_str_radix(address, 16).ok()?))
    };
    Some(text.lines().filter_map(function).collect())
}

/// The address at which the file begins in the memory of a process.
fn base(pid: u32) -> u64 {
    let file = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let first = maps.lines().find(|line| line.ends_with(file.to_str().unwrap())).unwrap();
    u64::from_str_radix(first.split('-').next().unwrap(), 16).unwrap()
}

/// The address of the environment's strings in a process: its program has read them.
fn environment(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // env_start is field 50; behind the name comes field 3
    let mut fields = stat.rsplit(')').next().unwrap().split_whitespace();
    fields.nth(47).unwrap().parse().unwrap()
}

/// Makes a process panic when it looks at the clock.
fn make_panic(pid: u32, functions: &HashMap<String, u64>) -> std::io::Result<()> {
    let at = |name: &str| {
        let own = functions.get(name);
        base(pid) + own.unwrap_or_else(|| panic!("the file has no symbol {name}"))
    };
    let memory = File::options().write(true).open(format!("/proc/{pid}/mem"))?;
    let place = environment(pid).next_multiple_of(8);
    let (file, line, column) = PLACE;
    let mut location = (place + 24).to_le_bytes().to_vec();
    location.extend((file.len() as u64).to_le_bytes());
    location.extend([line, column].map(u32::to_le_bytes).concat());
    location.extend(file.as_bytes());
    location.push(0);
    memory.write_all_at(&location, place)?;
    // mov rdi, place; jmp to the function
    let code = at(LOOKS_AT_CLOCK);
    let mut jump = [vec![0x48, 0xbf], place.to_le_bytes().to_vec(), vec![0xe9]].concat();
    let distance = at(PANICS).wrapping_sub(code + jump.len() as u64 + 4);
    jump.extend((distance as u32).to_le_bytes());
    memory.write_all_at(&jump, code)
}

#[test]
fn daemon_that_panics_logs_message_place_and_trace_and_is_replaced() {
    if cfg!(not(target_arch = "x86_64")) {
        return skipped("panics: the code that is written over is x86-64's");
    }
    let Some(functions) = functions() else { return skipped("panics: no nm (binutils)") };
    let rig = Rig::up("panics", 1);
    rig.ready();
    for daemon in ["lim", "sbatchd", "mbatchd", "launcher"] {
        let pid = rig.pid(daemon, "host1").unwrap();
        if let Err(e) = make_panic(pid, &functions) {
            return skipped(&format!("panics: the memory of a process cannot be written: {e}"));
        }
        wait_for(&format!("{daemon} to panic"), || {
            let mut wakes = rig.cmd("bsub");
            let _ = wakes.env("LSB_NTRIES", "1").args(["-o", "/dev/null", "true"]).output();
            !alive(pid)
        });
        let log = rig.read(&format!("log/{daemon}.log.host1"));
        let lines: Vec<&str> =
            log.lines().filter(|l| l.contains(&format!("[{pid}] ERROR"))).collect();
        let (file, line, column) = PLACE;
        let first = format!(
            "panic in thread main at {file}:{line}:{column}: called `Option::unwrap()` on a `None` value"
        );
        assert!(lines.iter().any(|l| l.ends_with(&first)), "{daemon}: {log}");
        for function in ["lsf::daemon::", "lsf::main"] {
            assert!(lines.iter().any(|l| l.contains(function)), "{daemon}, {function}: {log}");
        }
        // nothing in a personal cluster starts another launcher
        if daemon == "launcher" {
            break;
        }
        wait_for(&format!("{daemon} to be replaced"), || {
            rig.pid(daemon, "host1").is_some_and(|new| new != pid)
        });
        rig.ready();
    }
}

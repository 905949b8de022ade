//! The service under a systemd that is the first process of a container (tests/systemd).

use super::rig::{Said, binary};
use std::process::Command;

#[test]
fn the_service_reloads_restarts_and_stops_under_a_real_systemd() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/systemd/run");
    let out = Command::new("bash").arg(script).env("LSF_TEST_BIN", binary()).output();
    let said = Said::from(out.unwrap());
    print!("{}", said.out);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
}

//! Two runs of the bench side by side. Machines differ and are shared, so what is compared is each
//! figure's ratio to the machine's own limit of its run, where it has one.

use super::table::number;
use serde_json::Value;
use std::fmt::Write;

/// A figure worse by more than this is marked.
const WORSE: f64 = 0.10;

/// The comparison of two files that the bench wrote.
pub fn text(old: &str, new: &str) -> Result<String, String> {
    let read = |path: &str| {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
        serde_json::from_str::<Value>(&text).map_err(|e| format!("{path}: {e}"))
    };
    Ok(table(&read(old)?, &read(new)?))
}

fn table(old: &Value, new: &Value) -> String {
    let commit = |v: &Value| v["commit"].as_str().unwrap_or("?").to_owned();
    let mut out =
        format!("{:<52}{:>14}{:>14}{:>10}\n", "figure", commit(old), commit(new), "better");
    let none = Vec::new();
    let figures = |v: &Value| v["figures"].as_array().unwrap_or(&none).clone();
    let olds = figures(old);
    for figure in figures(new) {
        let name = figure["name"].as_str().unwrap_or_default();
        let Some(was) = olds.iter().find(|f| f["name"] == figure["name"]) else {
            let _ = writeln!(out, "{name:<52}{:>14}{:>14}", "-", shown(&figure));
            continue;
        };
        let _ = write!(out, "{name:<52}{:>14}{:>14}", shown(was), shown(&figure));
        match gain(was, &figure) {
            Some(gain) => {
                let mark = if gain < 1.0 - WORSE { "  worse" } else { "" };
                let _ = writeln!(out, "{:>9}x{mark}", number(gain));
            }
            None => out.push('\n'),
        }
    }
    for was in olds.iter().filter(|f| figures(new).iter().all(|n| n["name"] != f["name"])) {
        let name = was["name"].as_str().unwrap_or_default();
        let _ = writeln!(out, "{name:<52}{:>14}{:>14}", shown(was), "-");
    }
    out
}

fn shown(figure: &Value) -> String {
    let unit = figure["unit"].as_str().unwrap_or_default();
    figure["median"].as_f64().map_or("not reached".into(), |v| format!("{} {unit}", number(v)))
}

/// How many times better the new one is, by ratios where both have one.
fn gain(old: &Value, new: &Value) -> Option<f64> {
    let by = |key: &str| old[key].as_f64().zip(new[key].as_f64());
    let (was, is) = by("ratio").or_else(|| by("median"))?;
    if was <= 0.0 || is <= 0.0 {
        return None;
    }
    Some(if new["more_is_better"] == true { is / was } else { was / is })
}

#[test]
fn figures_are_held_against_their_machines() {
    let run = |rate: f64, limit: f64, name: &str| {
        serde_json::json!({ "commit": name, "figures": [
            { "name": "jobs", "unit": "/s", "median": rate, "ratio": rate / limit,
              "more_is_better": true },
            { "name": "time", "unit": "ms", "median": 4.0, "ratio": null,
              "more_is_better": false },
            { "name": name, "unit": "ms", "median": 1.0, "ratio": null, "more_is_better": false },
        ]})
    };
    // half the rate on a machine of a third the speed is better
    let text = table(&run(100.0, 1000.0, "a"), &run(50.0, 333.3, "b"));
    let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["figure", "a", "b", "better"]);
    assert_eq!(lines[1], ["jobs", "100", "/s", "50.0", "/s", "1.50x"]);
    assert_eq!(lines[2], ["time", "4.00", "ms", "4.00", "ms", "1.00x"]);
    assert_eq!(lines[3], ["b", "-", "1.00", "ms"]);
    assert_eq!(lines[4], ["a", "1.00", "ms", "-"]);
    let text = table(&run(100.0, 1000.0, "a"), &run(80.0, 1000.0, "a"));
    assert!(text.lines().nth(1).unwrap().ends_with("0.80x  worse"), "{text}");
}

//! The figures, as a table for people and as JSON for programs.

use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds; less is better.
    Ms,
    /// Things a second; more is better.
    PerSec,
    /// Megabytes a second; more is better.
    MbPerSec,
    /// Bytes; less is better.
    Bytes,
    /// Percent; less is better.
    Percent,
    /// Percent that is left of a rate; more is better.
    Kept,
}

impl Unit {
    pub fn word(self) -> &'static str {
        match self {
            Unit::Ms => "ms",
            Unit::PerSec => "/s",
            Unit::MbPerSec => "MB/s",
            Unit::Bytes => "bytes",
            Unit::Percent | Unit::Kept => "%",
        }
    }

    pub fn more_is_better(self) -> bool {
        matches!(self, Unit::PerSec | Unit::MbPerSec | Unit::Kept)
    }
}

/// A median with the runs it is of; no runs: not reached.
#[derive(Clone, Debug)]
pub struct Figure {
    pub name: String,
    pub unit: Unit,
    pub runs: Vec<f64>,
}

impl Figure {
    pub fn new(name: impl Into<String>, unit: Unit, runs: Vec<f64>) -> Figure {
        Figure { name: name.into(), unit, runs }
    }

    pub fn median(&self) -> Option<f64> {
        median(&self.runs)
    }

    fn shown(&self) -> String {
        match self.median() {
            Some(value) => format!("{} {}", number(value), self.unit.word()),
            None => "not reached".to_owned(),
        }
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "unit": self.unit.word(),
            "more_is_better": self.unit.more_is_better(),
            "median": self.median(),
            "runs": self.runs,
        })
    }
}

/// A figure beside what the machine itself can do.
pub struct FigureRow {
    pub figure: Figure,
    pub limit: Option<Figure>,
}

#[derive(Default)]
pub struct FigureTable {
    pub rows: Vec<FigureRow>,
    pub limits: Vec<Figure>,
}

impl FigureTable {
    /// Adds a figure beside a limit in the same unit, and says it at once.
    pub fn add(&mut self, figure: Figure, limit: Option<Figure>) {
        let row = FigureRow { figure, limit };
        eprintln!("  {}", line(&row).trim_end());
        self.rows.push(row);
    }

    pub fn limit(&mut self, figure: Figure) -> Figure {
        eprintln!("  {:<52}{:>16}", figure.name, figure.shown());
        self.limits.push(figure.clone());
        figure
    }

    /// The whole table.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{:<52}{:>16}   runs", "the machine itself", "median");
        for l in &self.limits {
            let _ = writeln!(out, "{:<52}{:>16}   {}", l.name, l.shown(), l.runs.len());
        }
        let (what, by) = ("the cluster", "beside the machine's own");
        let _ = writeln!(out, "\n{what:<52}{:>16}   runs   {by}", "median");
        for row in &self.rows {
            let (line, runs) = (line(row), row.figure.runs.len());
            let (figure, beside) = line.split_at(line.len().min(WIDTH));
            let _ = writeln!(out, "{figure}{runs:>7}{}", beside.trim_end());
        }
        out
    }

    pub fn json(&self) -> Value {
        let row = |r: &FigureRow| {
            let mut value = r.figure.json();
            value["limit"] = r.limit.as_ref().map_or(Value::Null, Figure::json);
            value["ratio"] = json!(ratio(r));
            value
        };
        json!({
            "limits": self.limits.iter().map(Figure::json).collect::<Vec<_>>(),
            "figures": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }
}

/// A figure over its limit.
pub fn ratio(row: &FigureRow) -> Option<f64> {
    let limit = row.limit.as_ref().filter(|l| l.unit == row.figure.unit)?.median()?;
    let value = row.figure.median()?;
    (limit > 0.0).then(|| value / limit)
}

fn line(row: &FigureRow) -> String {
    let mut out = format!("{:<52}{:>16}", row.figure.name, row.figure.shown());
    let Some(limit) = &row.limit else { return out };
    let share = match ratio(row) {
        Some(r) if row.figure.unit.more_is_better() => format!("{}% of", number(r * 100.0)),
        Some(r) => format!("{} x", number(r)),
        None => String::new(),
    };
    let _ = write!(out, "   {share:>9} {} ({})", limit.shown(), limit.name);
    out
}

/// Columns of name and median.
const WIDTH: usize = 68;

/// Three figures that matter, thousands apart.
pub fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => {
            let digits = format!("{value:.0}");
            let mut out = String::new();
            for (i, c) in digits.chars().enumerate() {
                if i > 0 && (digits.len() - i) % 3 == 0 {
                    out.push(',');
                }
                out.push(c);
            }
            out
        }
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

pub fn median(runs: &[f64]) -> Option<f64> {
    let mut sorted = runs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mid = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[mid]),
        _ => Some((sorted[mid - 1] + sorted[mid]) / 2.0),
    }
}

pub fn ms(d: Duration) -> f64 {
    d.as_secs_f64() * 1e3
}

#[test]
fn medians_numbers_and_shares() {
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0]), Some(2.5));
    assert_eq!(median(&[]), None);
    assert_eq!(number(1_234_567.2), "1,234,567");
    assert_eq!(
        (number(123.4), number(12.34), number(0.237)),
        ("123".into(), "12.3".into(), "0.24".into())
    );
    let limit = Some(Figure::new("spawn", Unit::Ms, vec![0.5]));
    let row = FigureRow { figure: Figure::new("bsub", Unit::Ms, vec![1.0]), limit };
    assert!(line(&row).ends_with("2.00 x 0.50 ms (spawn)"), "{}", line(&row));
    let row = FigureRow { figure: Figure::new("x", Unit::Ms, vec![]), limit: None };
    assert!(line(&row).ends_with("not reached"));
}

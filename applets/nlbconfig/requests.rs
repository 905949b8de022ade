//! Objects of type NJS: the requests of the cluster, which mbatchd knows and no server stores.

use jiff::tz::TimeZone;
use lsf::cli::ctx::Ctx;
use lsf::cli::job_ids;
use lsf::cli::job_rows::{Cols, JobRow};
use lsf::cli::njs::{self, Positions, values};
use lsf::cli::nqs::{self, RequestState, identifier, job_operand};
use lsf::cli::site;
use lsf::conf::nlb_map::{NameMap, NameMaps};
use lsf::conf::nlb_objects::dump;
use lsf::model::nlb::NJS;
use lsf::model::reason::err;
use lsf::proto::client::{Col, IdSel, JobSelect};

/// Does -t name the type of requests?
pub(super) fn are_meant(object_type: Option<&str>) -> bool {
    object_type.is_some_and(|name| name.eq_ignore_ascii_case("NJS"))
}

/// A line for each request that has not ended.
pub(super) fn names(ctx: &mut Ctx) -> Result<String, String> {
    let host = request_host()?;
    let cols = Cols::new(&[Col::Job, Col::Idx, Col::Stat, Col::PendReasons, Col::Post]);
    let mut found = Vec::new();
    each(ctx, all(), &cols, |row| {
        let at = (row.int(Col::Job), row.int(Col::Idx));
        found.push((at, format!("object NJS ({})\n", identifier(row, &host))));
    })?;
    found.sort();
    Ok(found.into_iter().map(|(_, line)| line).collect())
}

/// Requests as object data: those of these names, or all.
pub(super) fn data(ctx: &mut Ctx, maps: &NameMaps, names: &[String]) -> Result<String, String> {
    let Some(map) = maps.numbered(NJS) else {
        return Err("the server has no name map of type NJS".to_owned());
    };
    let host = request_host()?;
    let mut named: Vec<Vec<IdSel>> = Vec::new();
    for name in names {
        named.push(job_ids::ids(&[job_operand(name)]).map_err(|e| e.to_string())?.ids);
    }
    let positions = njs::positions(ctx, &JobSelect { ids: named.concat(), ..all() });
    let positions = positions.map_err(|e| e.words())?;
    let zone = TimeZone::system();
    if names.is_empty() {
        let texts = objects(ctx, all(), (map, &host, &zone), &positions)?;
        return Ok(texts.concat());
    }
    let mut text = String::new();
    for (name, ids) in names.iter().zip(named) {
        let select = JobSelect { ids, ..all() };
        let texts = objects(ctx, select, (map, &host, &zone), &positions)?;
        if texts.is_empty() {
            return Err(format!("no object <{name}>"));
        }
        text.push_str(&texts.concat());
    }
    Ok(text)
}

fn all() -> JobSelect {
    JobSelect { user: "all".to_owned(), ..JobSelect::default() }
}

fn request_host() -> Result<String, String> {
    let site = site::find().map_err(|e| e.to_string())?;
    Ok(nqs::request_host(&site))
}

fn objects(
    ctx: &mut Ctx,
    select: JobSelect,
    (map, host, zone): (&NameMap, &str, &TimeZone),
    positions: &Positions,
) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    each(ctx, select, &Cols::new(njs::COLS), |row| {
        let at = (row.int(Col::Job), row.int(Col::Idx));
        let values = values(row, host, positions);
        found.push((at, dump(map, &identifier(row, host), &values, zone)));
    })?;
    found.sort();
    Ok(found.into_iter().map(|(_, text)| text).collect())
}

/// Calls `each` for each request that exists for NQS.
fn each(
    ctx: &mut Ctx,
    select: JobSelect,
    cols: &Cols,
    mut each: impl FnMut(&JobRow),
) -> Result<(), String> {
    let existing = |row: &JobRow| {
        if nqs::state(row) != RequestState::Ended {
            each(row);
        }
    };
    match nqs::each_job(ctx, select, cols, existing) {
        Ok(()) => Ok(()),
        Err(e) if e.code() == Some(err::NO_JOB) => Ok(()),
        Err(e) => Err(e.words()),
    }
}

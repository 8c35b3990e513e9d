//! Converts the jobs of mixed tenants: names and numbers, and the options of each source's tables.

use penstock_border::guarded;
use penstock_workloads::WorkloadError;
use penstock_workloads::ipq::{Ipq, TenantJob, TenantQuery, Tenants, Urgency};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};

use super::options::{Given, number};
use super::refused;

/// Query and urgency by name; window, rows of a message and target; the seed and the options of its tables; and
/// the rows of each source.
type Described<'py> = (&'static str, &'static str, u64, u64, u64, u64, Bound<'py, PyDict>, Vec<u64>);

/// Returns the jobs, with the number of rows that each source sends in so many seconds of event time.
#[guarded]
#[pyfunction]
pub fn ipq_tenants<'py>(
    py: Python<'py>,
    seed: &Bound<'_, PyAny>,
    seconds: &Bound<'_, PyAny>,
    options: &Bound<'_, PyMapping>,
) -> PyResult<Vec<Described<'py>>> {
    let mut given = Given::new("the tenants of ipq", number("seed", seed)?, options)?;
    let seconds = number("seconds", seconds)?;
    let mut tenants = Tenants { seed: given.seed, ..Tenants::default() };
    let Tenants { seed: _, latency_sensitive, bulk, sources, bulk_rate, bulk_skew } = &mut tenants;
    given.set(&mut [
        ("latency_sensitive", latency_sensitive),
        ("bulk", bulk),
        ("sources", sources),
        ("bulk_rate", bulk_rate),
        ("bulk_skew", bulk_skew),
    ])?;
    let jobs = py.detach(|| with_rows(&tenants, seconds)).map_err(refused)?;
    jobs.into_iter().map(|(job, rows)| described(py, &job, rows)).collect()
}

fn with_rows(tenants: &Tenants, seconds: u64) -> Result<Vec<(TenantJob, Vec<u64>)>, WorkloadError> {
    let of_job = |job: TenantJob| {
        let ipq = Ipq::new(job.sources.clone())?;
        let sources = 0..job.sources.sources;
        let rows: Result<_, _> = sources.map(|source| ipq.rows_before(source, seconds)).collect();
        Ok((job, rows?))
    };
    tenants.jobs()?.into_iter().map(of_job).collect()
}

fn described<'py>(py: Python<'py>, job: &TenantJob, rows: Vec<u64>) -> PyResult<Described<'py>> {
    let query = match job.query {
        TenantQuery::Ipq1 => "ipq1",
        TenantQuery::Ipq2 => "ipq2",
        TenantQuery::Ipq3 => "ipq3",
        TenantQuery::Ipq4 => "ipq4",
    };
    let urgency = match job.urgency {
        Urgency::LatencySensitive => "latency-sensitive",
        Urgency::Bulk => "bulk",
    };
    let sources = &job.sources;
    let options = PyDict::new(py);
    options.set_item("sources", sources.sources)?;
    options.set_item("rate", sources.rate)?;
    options.set_item("variable", sources.is_variable)?;
    options.set_item("skew", sources.skew)?;
    options.set_item("keys", sources.keys)?;
    Ok((query, urgency, job.window_ms, job.message_rows, job.target_ms, sources.seed, options, rows))
}

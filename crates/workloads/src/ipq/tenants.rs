//! The mix of jobs that the sources feed: latency-sensitive ones next to bulk jobs.

use super::IpqOptions;
use crate::{WorkloadError, bounds};

/// The largest [`Tenants::latency_sensitive`] and [`Tenants::bulk`].
pub const MAX_JOBS: u16 = 1_000;

/// The target of a bulk job: two hours. It is met whenever the job makes progress at all.
const LAX_TARGET_MS: u64 = 2 * 60 * 60 * 1_000;

/// The queries, by the names of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TenantQuery {
    /// Sum of the revenue per key, in tumbling windows.
    Ipq1,
    /// The same, in sliding windows.
    Ipq2,
    /// Counts grouped by the other key.
    Ipq3,
    /// A window join of revenue and logs, then a count.
    Ipq4,
}

/// The kind of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// It must answer soon.
    LatencySensitive,
    /// It has a large volume.
    Bulk,
}

/// One job of the mix, with the sources it reads.
#[derive(Debug, Clone, PartialEq)]
pub struct TenantJob {
    /// What it computes.
    pub query: TenantQuery,
    /// Its kind.
    pub urgency: Urgency,
    /// Length of its windows.
    pub window_ms: u64,
    /// Rows of a message of a source.
    pub message_rows: u64,
    /// Time allowed from the last row of a window to its result.
    pub target_ms: u64,
    /// Its sources. Each job has its own seed, so that no two read the same rows.
    pub sources: IpqOptions,
}

/// The options that define one mix of jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct Tenants {
    /// Two seeds give unrelated data to all jobs.
    pub seed: u64,
    /// Jobs with windows of 1 s, one message of 1000 rows per second and source, and a target of 800 ms.
    pub latency_sensitive: u16,
    /// Jobs with windows of 10 s and a high, variable rate.
    pub bulk: u16,
    /// Sources of each job.
    pub sources: u16,
    /// Rows per second and source of a bulk job, on average.
    pub bulk_rate: u64,
    /// The skew across the sources of a bulk job: [`IpqOptions::skew`].
    pub bulk_skew: u64,
}

impl Default for Tenants {
    fn default() -> Self {
        Self { seed: 7, latency_sensitive: 4, bulk: 8, sources: 8, bulk_rate: 10_000, bulk_skew: 1 }
    }
}

impl Tenants {
    /// Returns the jobs, latency-sensitive ones first. The queries alternate within each kind.
    ///
    /// # Errors
    /// Any option outside its bounds, by name.
    pub fn jobs(&self) -> Result<Vec<TenantJob>, WorkloadError> {
        bounds::within("latency_sensitive", self.latency_sensitive.into(), 0, MAX_JOBS.into())?;
        bounds::within("bulk", self.bulk.into(), 0, MAX_JOBS.into())?;
        bounds::within("bulk_rate", self.bulk_rate, 1, super::MAX_RATE)?;
        bounds::within("bulk_skew", self.bulk_skew, 1, super::MAX_SKEW)?;
        let urgent = (0..self.latency_sensitive).map(|n| self.latency_sensitive_job(n));
        let jobs: Vec<TenantJob> = urgent.chain((0..self.bulk).map(|n| self.bulk_job(n))).collect();
        jobs.iter().try_for_each(|job| job.sources.check())?;
        Ok(jobs)
    }

    fn latency_sensitive_job(&self, n: u16) -> TenantJob {
        TenantJob {
            query: query(n),
            urgency: Urgency::LatencySensitive,
            window_ms: 1_000,
            message_rows: 1_000,
            target_ms: 800,
            sources: IpqOptions {
                seed: self.seed_of(n.into()),
                sources: self.sources,
                ..IpqOptions::default()
            },
        }
    }

    fn bulk_job(&self, n: u16) -> TenantJob {
        // Separate from all latency-sensitive jobs: their number changes nothing here.
        let number = u64::from(MAX_JOBS) + u64::from(n);
        TenantJob {
            query: query(n),
            urgency: Urgency::Bulk,
            window_ms: 10_000,
            message_rows: 1_000,
            target_ms: LAX_TARGET_MS,
            sources: IpqOptions {
                seed: self.seed_of(number),
                sources: self.sources,
                rate: self.bulk_rate,
                is_variable: true,
                skew: self.bulk_skew,
                ..IpqOptions::default()
            },
        }
    }

    fn seed_of(&self, number: u64) -> u64 {
        self.seed.wrapping_add(number)
    }
}

fn query(n: u16) -> TenantQuery {
    [TenantQuery::Ipq1, TenantQuery::Ipq2, TenantQuery::Ipq3, TenantQuery::Ipq4][usize::from(n % 4)]
}

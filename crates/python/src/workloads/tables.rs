//! The workloads and their tables, by name.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use penstock_types::PlanError;
use penstock_workloads::nexmark::NexmarkStream;
use penstock_workloads::{Generator, WorkloadError, cm, ipq, lrb, me, nexmark, nyt, sg, ysb};
use pyo3::PyResult;

use super::choose;
use super::options::{Given, read_options};

/// A table that was opened.
pub(super) struct OpenedTable {
    pub(super) rows: Arc<dyn Generator>,
    /// How many rows there are, if it ends.
    pub(super) end: Option<u64>,
}

impl OpenedTable {
    fn endless(rows: impl Generator + 'static) -> Self {
        Self { rows: Arc::new(rows), end: None }
    }
}

/// Opens a table with the options that were read.
type Recipe = Box<dyn FnOnce() -> Result<OpenedTable, WorkloadError> + Send>;

/// A table of a workload.
#[derive(Clone, Copy)]
pub(super) enum Which {
    Ysb,
    YsbStrings,
    Lrb,
    Nyt,
    Nexmark(NexmarkStream),
    Cm,
    Sg,
    Me,
    IpqRevenue,
    IpqLogs,
}

const WORKLOADS: [(&str, &[(&str, Which)]); 9] = [
    ("ysb", &[("events", Which::Ysb)]),
    ("ysb-strings", &[("events", Which::YsbStrings)]),
    ("lrb", &[("reports", Which::Lrb)]),
    ("nyt", &[("trips", Which::Nyt)]),
    (
        "nexmark",
        &[
            ("person", Which::Nexmark(NexmarkStream::Person)),
            ("auction", Which::Nexmark(NexmarkStream::Auction)),
            ("bid", Which::Nexmark(NexmarkStream::Bid)),
        ],
    ),
    ("cm", &[("events", Which::Cm)]),
    ("sg", &[("readings", Which::Sg)]),
    ("me", &[("readings", Which::Me)]),
    ("ipq", &[("revenue", Which::IpqRevenue), ("logs", Which::IpqLogs)]),
];

/// Returns the table of that name, or an error that names those that exist.
pub(super) fn find(workload: &str, table: &str) -> Result<Which, PlanError> {
    let tables = choose("a workload", workload, &WORKLOADS)?;
    choose(&format!("a table of {workload}"), table, tables)
}

impl Which {
    pub(super) fn schema(self) -> SchemaRef {
        match self {
            Self::Ysb => ysb::schema(),
            Self::YsbStrings => ysb::schema_strings(),
            Self::Lrb => lrb::schema(),
            Self::Nyt => nyt::schema(),
            Self::Nexmark(stream) => stream.schema(),
            Self::Cm => cm::schema(),
            Self::Sg => sg::schema(),
            Self::Me => me::schema(),
            Self::IpqRevenue => ipq::revenue_schema(),
            Self::IpqLogs => ipq::logs_schema(),
        }
    }

    /// Reads the options of the table, all of them.
    pub(super) fn recipe(self, given: &mut Given<'_>) -> PyResult<Recipe> {
        Ok(match self {
            Self::Ysb => {
                let options = ysb_options(given)?;
                Box::new(|| Ok(OpenedTable::endless(ysb::Ysb::new(options)?)))
            }
            Self::YsbStrings => {
                let options = ysb_options(given)?;
                Box::new(|| Ok(OpenedTable::endless(ysb::YsbStrings::new(options)?)))
            }
            Self::Lrb => {
                let options = read_options!(
                    given,
                    lrb::LrbOptions {
                        expressways,
                        minutes,
                        cars_per_second,
                        report_every,
                        accident_every,
                        queries_every,
                        out_of_order_s,
                        late_every
                    }
                );
                Box::new(|| {
                    let lrb = lrb::Lrb::new(options)?;
                    Ok(OpenedTable { end: Some(lrb.rows()), rows: Arc::new(lrb) })
                })
            }
            Self::Nyt => {
                let options = read_options!(
                    given,
                    nyt::NytOptions { rate, step_every_s, out_of_order_ms, late_every, vts_share, hot_share }
                );
                Box::new(|| Ok(OpenedTable::endless(nyt::Nyt::new(options)?)))
            }
            Self::Nexmark(stream) => {
                let options = nexmark_options(given)?;
                Box::new(move || {
                    let nexmark = nexmark::Nexmark::new(options)?;
                    Ok(match stream {
                        NexmarkStream::Person => OpenedTable::endless(nexmark.persons()),
                        NexmarkStream::Auction => OpenedTable::endless(nexmark.auctions()),
                        NexmarkStream::Bid => OpenedTable::endless(nexmark.bids()),
                    })
                })
            }
            Self::Cm => {
                let options = read_options!(
                    given,
                    cm::CmOptions { rate, step_every_s, out_of_order_ms, late_every, jobs, zipf, fail_share }
                );
                Box::new(|| Ok(OpenedTable::endless(cm::Cm::new(options)?)))
            }
            Self::Sg => {
                let options = read_options!(
                    given,
                    sg::SgOptions { rate, step_every_s, out_of_order_ms, late_every, houses, zipf }
                );
                Box::new(|| Ok(OpenedTable::endless(sg::Sg::new(options)?)))
            }
            Self::Me => {
                let options =
                    read_options!(given, me::MeOptions { rate, step_every_s, out_of_order_ms, late_every });
                Box::new(|| Ok(OpenedTable::endless(me::Me::new(options)?)))
            }
            Self::IpqRevenue => {
                let (options, source) = ipq_options(given)?;
                Box::new(move || Ok(OpenedTable::endless(ipq::Ipq::new(options)?.revenue(source)?)))
            }
            Self::IpqLogs => {
                let (options, source) = ipq_options(given)?;
                Box::new(move || Ok(OpenedTable::endless(ipq::Ipq::new(options)?.logs(source)?)))
            }
        })
    }
}

fn ysb_options(given: &mut Given<'_>) -> PyResult<ysb::YsbOptions> {
    Ok(read_options!(
        given,
        ysb::YsbOptions { rate, step_every_s, out_of_order_ms, late_every, zipf, view_share, switch_every_s }
    ))
}

fn nexmark_options(given: &mut Given<'_>) -> PyResult<nexmark::NexmarkOptions> {
    Ok(read_options!(
        given,
        nexmark::NexmarkOptions {
            rate,
            step_every_s,
            first_event_time_ms,
            out_of_order_ms,
            late_every,
            hot_auction_ratio,
            hot_seller_ratio,
            hot_bidder_ratio,
            active_people,
            auctions_in_flight,
            id_lead,
            person_bytes,
            auction_bytes,
            bid_bytes
        }
    ))
}

/// Reads the options, and the number of the source.
fn ipq_options(given: &mut Given<'_>) -> PyResult<(ipq::IpqOptions, u16)> {
    let mut source = 0;
    let options = read_options!(
        given,
        ipq::IpqOptions {
            sources,
            rate,
            is_variable: variable,
            skew,
            keys,
            zipf,
            out_of_order_ms,
            late_every
        },
        source
    );
    Ok((options, source))
}

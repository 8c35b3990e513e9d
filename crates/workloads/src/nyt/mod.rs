//! NYT, the taxi trips of New York: a model of the published data.
//!
//! A row is a trip that has ended. There are [`TAXIS`] taxis; each has one vendor and [`DRIVERS_PER_TAXI`]
//! drivers. The columns, none of them ever null:
//!
//! | column                              | values                                                          |
//! |-------------------------------------|-----------------------------------------------------------------|
//! | `medallion`, `hack_license`         | of the taxi and of its driver, 32 hexadecimal digits             |
//! | `vendor_id`                         | `VTS` or `CMT`                                                   |
//! | `pickup_datetime`                   | `trip_time_in_secs` before the end                               |
//! | `dropoff_datetime`                  | the event time; row r is at [`START_MS`]` + floor(r * 1000 / rate)`, see [`NytOptions`] for steps and disorder |
//! | `trip_time_in_secs`                 | what the distance takes at 7 to 30 miles per hour, more or less  |
//! | `trip_distance`                     | miles: log-normal around 1.8, from 0.07 to 41                    |
//! | `pickup_longitude`, `.._latitude`   | 95 % around 13 centres, 3 % elsewhere in the city, 0.2 % mostly outside the grid, 1.8 % unknown: (0, 0) |
//! | `dropoff_longitude`, `.._latitude`  | in a straight line 1.15 to 1.55 times shorter than the distance; unknown where the start is, and in 0.3 % of the other trips |
//! | `payment_type`                      | `CRD` 54 %, `CSH` 45.4 %, and rarely `NOC`, `UNK`, `DIS`         |
//! | `fare_amount`                       | 2.50, and 0.50 for each unit of distance and time                |
//! | `surcharge`, `mta_tax`              | 0, 0.50 or 1.00; 0.50                                            |
//! | `tip_amount`                        | 10 to 30 % of the above for most card payments, else 0           |
//! | `tolls_amount`                      | 5.33 for three in five trips from 8 miles on, else 0             |
//! | `total_amount`                      | the sum of the five                                              |
//!
//! ```
//! use penstock_workloads::Generator;
//! use penstock_workloads::nyt::{Nyt, NytOptions};
//!
//! let nyt = Nyt::new(NytOptions { seed: 42, ..NytOptions::default() })?;
//! let whole = nyt.generate(0..1_000)?;
//! let tail = nyt.generate(600..1_000)?;
//! assert_eq!(whole.slice(600, 400), tail);
//! # Ok::<(), penstock_workloads::WorkloadError>(())
//! ```

mod amounts;
mod distances;
mod fleet;
mod grid;
mod lanes;
mod options;
mod places;

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, TimestampMillisecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

pub use grid::{GRID_SIDE, HOT_CELL};
pub use options::NytOptions;

use crate::times::RowTimes;
use crate::{Buffers, Generator, WorkloadError};
use amounts::Cashier;
use distances::Distances;
use fleet::Fleet;
use places::TripPlaces;

/// Taxis of the city: as many as there were medallions.
pub const TAXIS: u32 = 13_437;
/// Drivers of each taxi.
pub const DRIVERS_PER_TAXI: u32 = 3;
/// The end of the first trip: the start of 2013.
pub const START_MS: u64 = 1_356_998_400_000;

/// Returns the columns of the trips.
pub fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
        let text = |name: &str| Field::new(name, DataType::Utf8, false);
        let time = |name: &str| Field::new(name, DataType::Timestamp(TimeUnit::Millisecond, None), false);
        let number = |name: &str| Field::new(name, DataType::Float64, false);
        Arc::new(Schema::new(vec![
            text("medallion"),
            text("hack_license"),
            text("vendor_id"),
            time("pickup_datetime"),
            time("dropoff_datetime"),
            Field::new("trip_time_in_secs", DataType::Int64, false),
            number("trip_distance"),
            number("pickup_longitude"),
            number("pickup_latitude"),
            number("dropoff_longitude"),
            number("dropoff_latitude"),
            text("payment_type"),
            number("fare_amount"),
            number("surcharge"),
            number("mta_tax"),
            number("tip_amount"),
            number("tolls_amount"),
            number("total_amount"),
        ]))
    });
    SCHEMA.clone()
}

/// The trips of one set of options. Cheap to clone; each clone makes the same rows.
#[derive(Debug, Clone)]
pub struct Nyt {
    options: NytOptions,
    model: Arc<TripModel>,
}

#[derive(Debug)]
struct TripModel {
    fleet: Fleet,
    times: RowTimes,
    distances: Distances,
    places: TripPlaces,
    cashier: Cashier,
}

impl Nyt {
    /// Creates the data set that `options` describe.
    ///
    /// # Errors
    /// Any option outside its bounds, by name.
    pub fn new(options: NytOptions) -> Result<Self, WorkloadError> {
        options.check()?;
        let model = TripModel {
            fleet: Fleet::new(&options),
            times: RowTimes::new(options.seed, lanes::TIMES, START_MS, options.pace()),
            distances: Distances::new(&options),
            places: TripPlaces::new(&options),
            cashier: Cashier::new(&options),
        };
        Ok(Self { options, model: Arc::new(model) })
    }

    /// Returns the options of this data set.
    pub fn options(&self) -> &NytOptions {
        &self.options
    }
}

impl Generator for Nyt {
    fn schema(&self) -> SchemaRef {
        schema()
    }

    fn check_rows(&self, rows: &Range<u64>) -> Result<(), WorkloadError> {
        self.model.times.check_rows(rows)
    }

    fn fill(&self, rows: Range<u64>, buffers: &mut Buffers) -> RecordBatch {
        let TripModel { fleet, times, distances, places, cashier } = &*self.model;
        let taxis = fleet.taxis(rows.clone());
        let dropoffs = times.column(rows.clone(), buffers);
        let hundredths = distances.hundredths(rows.clone());
        let seconds = distances.seconds(&hundredths, rows.clone(), buffers);
        let pickups =
            buffers.filled(dropoffs.iter().zip(&seconds).map(|(end, seconds)| end - seconds * 1_000));
        let ends = places.ends(&hundredths, rows.clone(), buffers);
        let payments = cashier.payments(rows.clone());
        let amounts = cashier.amounts(&hundredths, &seconds, &payments, rows.clone());

        let time = |times: Vec<i64>| Arc::new(TimestampMillisecondArray::from(times)) as ArrayRef;
        let degrees = |degrees: Vec<f64>| Arc::new(Float64Array::from(degrees)) as ArrayRef;
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(fleet.medallion(&taxis, buffers)),
            Arc::new(fleet.hack_license(&taxis, rows, buffers)),
            Arc::new(fleet.vendor_id(&taxis, buffers)),
            time(pickups),
            time(dropoffs),
            Arc::new(Int64Array::from(seconds)),
            in_hundredths(&hundredths, buffers),
            degrees(ends.pickup_longitude),
            degrees(ends.pickup_latitude),
            degrees(ends.dropoff_longitude),
            degrees(ends.dropoff_latitude),
            Arc::new(Cashier::payment_type(&payments, buffers)),
            in_hundredths(&amounts.fare, buffers),
            in_hundredths(&amounts.surcharge, buffers),
            in_hundredths(&amounts.tax, buffers),
            in_hundredths(&amounts.tip, buffers),
            in_hundredths(&amounts.tolls, buffers),
            in_hundredths(&amounts.total, buffers),
        ];
        RecordBatch::try_new(schema(), arrays)
            .expect("the columns have the types of the schema and one length")
    }
}

fn in_hundredths(values: &[u32], buffers: &mut Buffers) -> ArrayRef {
    Arc::new(Float64Array::from(buffers.filled(values.iter().map(|&value| f64::from(value) / 100.0))))
}

//! The rows of LRB as a struct, and the results of the query.

#![allow(dead_code, reason = "each test file takes what it needs")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use penstock_workloads::Generator;
use penstock_workloads::lrb::{Accident, Lrb, LrbOptions, REPORTS_OF_A_STOP, schema};

use crate::laws::whole;

pub const LAST_FOOT: i64 = 527_999;

pub fn names() -> Vec<String> {
    schema().fields().iter().map(|field| field.name().clone()).collect()
}

/// A row without the columns of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub time: i64,
    pub kind: i64,
    pub vid: i64,
    pub speed: i64,
    pub xway: i64,
    pub lane: i64,
    pub dir: i64,
    pub seg: i64,
    pub pos: i64,
}

impl Row {
    /// Feet in the car's direction.
    pub fn driven(&self) -> i64 {
        if self.dir == 0 { self.pos } else { LAST_FOOT - self.pos }
    }
}

pub fn rows_of(lrb: &Lrb) -> Vec<Row> {
    let mut rows = Vec::new();
    for batch in lrb.batches(0..lrb.rows(), 1 << 16).expect("rows that there are") {
        let columns: Vec<Vec<i64>> = names()[..9].iter().map(|name| whole(&batch, name)).collect();
        rows.extend((0..batch.num_rows()).map(|row| {
            let [time, kind, vid, speed, xway, lane, dir, seg, pos] =
                std::array::from_fn(|nth| columns[nth][row]);
            Row { time, kind, vid, speed, xway, lane, dir, seg, pos }
        }));
    }
    rows
}

pub fn by_car(rows: &[Row]) -> BTreeMap<i64, Vec<Row>> {
    let mut cars: BTreeMap<i64, Vec<Row>> = BTreeMap::new();
    for &row in rows {
        cars.entry(row.vid).or_default().push(row);
    }
    cars
}

/// As many cars as the default has after three hours, in 40 minutes.
pub fn busy() -> LrbOptions {
    LrbOptions { minutes: 40, cars_per_second: 100, ..LrbOptions::default() }
}

pub static BUSY: LazyLock<(Lrb, Vec<Row>)> = LazyLock::new(|| {
    let lrb = Lrb::new(busy()).expect("good options");
    let rows = rows_of(&lrb);
    (lrb, rows)
});

pub type Place = (i64, i64, i64, i64, i64);

/// Returns the results of the query: places, with the ends of the windows in which two or more cars stood there for
/// four reports. Windows are four reports long, and one begins with every report.
pub fn found(rows: &[Row], report_every: i64) -> BTreeMap<Place, BTreeSet<i64>> {
    let mut stops: BTreeMap<(Place, i64, i64), u32> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.kind == 0 && row.speed == 0 && (1..=3).contains(&row.lane)) {
        for end in 1..=4 {
            let window = (row.time.div_euclid(report_every) + end) * report_every;
            let place = (row.xway, row.dir, row.seg, row.lane, row.pos);
            *stops.entry((place, window, row.vid)).or_default() += 1;
        }
    }
    let mut standing: BTreeMap<(Place, i64), u32> = BTreeMap::new();
    for ((place, window, _), stops) in stops {
        *standing.entry((place, window)).or_default() += u32::from(stops >= REPORTS_OF_A_STOP);
    }
    let mut found: BTreeMap<Place, BTreeSet<i64>> = BTreeMap::new();
    for ((place, window), _) in standing.into_iter().filter(|(_, cars)| *cars >= 2) {
        found.entry(place).or_default().insert(window);
    }
    found
}

pub fn place(accident: &Accident) -> Place {
    let Accident { expressway, direction, segment, lane, pos, .. } = *accident;
    (expressway.into(), direction.into(), segment.into(), lane.into(), pos.into())
}

/// Returns cars and their mean speed in each minute and segment, by expressway and direction.
pub fn segments(rows: &[Row]) -> BTreeMap<(i64, i64, i64, i64), (usize, f64)> {
    let mut cars: BTreeMap<_, BTreeMap<i64, (i64, i64)>> = BTreeMap::new();
    for row in rows {
        let car = cars.entry((row.time / 60, row.xway, row.dir, row.seg)).or_default();
        let (speed, reports) = car.entry(row.vid).or_default();
        (*speed, *reports) = (*speed + row.speed, *reports + 1);
    }
    let mean = |cars: BTreeMap<i64, (i64, i64)>| {
        let sum: f64 = cars.values().map(|&(speed, reports)| speed as f64 / reports as f64).sum();
        (cars.len(), sum / cars.len() as f64)
    };
    cars.into_iter().map(|(segment, cars)| (segment, mean(cars))).collect()
}

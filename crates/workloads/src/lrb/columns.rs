//! The columns of a range of rows, filled second by second and road by road.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch};

use super::requests::Request;
use super::road::{Report, Road};
use super::{SEGMENT_FT, schema};
use crate::Buffers;

/// `qid`, `sinit`, `send`, `dow`, `tod` and `day`.
const REQUEST_COLUMNS: usize = 6;

/// Columns under construction.
pub(super) struct ReportColumns {
    first_row: u64,
    pub(super) time: Vec<i64>,
    vid: Vec<i32>,
    speed: Vec<i32>,
    xway: Vec<i32>,
    lane: Vec<i32>,
    dir: Vec<i32>,
    seg: Vec<i32>,
    pos: Vec<i32>,
    // Full from the start, with the values of reports: only requests change them.
    kind: Vec<i32>,
    request: [Vec<i32>; REQUEST_COLUMNS],
}

impl ReportColumns {
    pub(super) fn new(first_row: u64, rows: usize, buffers: &mut Buffers) -> Self {
        let mut column = || buffers.take(rows);
        Self {
            first_row,
            vid: column(),
            speed: column(),
            xway: column(),
            lane: column(),
            dir: column(),
            seg: column(),
            pos: column(),
            time: buffers.take(rows),
            kind: buffers.filled(std::iter::repeat_n(0, rows)),
            request: std::array::from_fn(|_| buffers.filled(std::iter::repeat_n(-1, rows))),
        }
    }

    /// Adds rows of a road in a second: those whose positions among all of them are in `rows`.
    pub(super) fn fill(&mut self, road: &Road, second: u32, rows: Range<usize>) {
        let cars = road.stretch(second).filter(|&car| road.is_on_the_road(car, second));
        let Some(requests) = &road.requests else {
            cars.skip(rows.start)
                .take(rows.len())
                .for_each(|car| self.report(road, road.report(car, second)));
            return;
        };
        let reports = cars.map(|car| road.report(car, second));
        let both = reports.flat_map(|report| {
            let request = requests.with(report.car, report.nth);
            std::iter::once((report, None)).chain(request.map(|request| (report, Some(request))))
        });
        for (report, request) in both.skip(rows.start).take(rows.len()) {
            match request {
                None => self.report(road, report),
                Some(request) => self.request(road, report, request),
            }
        }
    }

    #[inline(always)]
    fn report(&mut self, road: &Road, report: Report) {
        self.time.push(report.time);
        self.vid.push(report.vid);
        self.speed.push(report.speed);
        self.xway.push(road.expressway);
        self.lane.push(report.lane);
        self.dir.push(road.direction);
        self.seg.push(report.pos / SEGMENT_FT);
        self.pos.push(report.pos);
    }

    fn request(&mut self, road: &Road, report: Report, request: Request) {
        let row = self.vid.len();
        self.time.push(report.time);
        self.vid.push(report.vid);
        self.xway.push(if request.of_expressway { road.expressway } else { -1 });
        for place in [&mut self.speed, &mut self.lane, &mut self.dir, &mut self.seg, &mut self.pos] {
            place.push(-1);
        }
        self.kind[row] = request.kind;
        // Distinguished by the number of the row, which has more bits than the column.
        let qid = ((self.first_row + row as u64) & i32::MAX as u64) as i32;
        for (column, value) in self.request.iter_mut().zip([qid].into_iter().chain(request.about)) {
            column[row] = value;
        }
    }

    pub(super) fn into_batch(self) -> RecordBatch {
        let places = [self.vid, self.speed, self.xway, self.lane, self.dir, self.seg, self.pos];
        let numbers = [self.kind].into_iter().chain(places).chain(self.request);
        let time: ArrayRef = Arc::new(Int64Array::from(self.time));
        let numbers = numbers.map(|values| Arc::new(Int32Array::from(values)) as ArrayRef);
        RecordBatch::try_new(schema(), std::iter::once(time).chain(numbers).collect())
            .expect("the columns have the types of the schema and one length")
    }
}

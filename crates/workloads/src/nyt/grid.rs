//! The query's grid: 600 rows from the north, 600 columns from the west.

/// Rows and columns of the grid.
pub const GRID_SIDE: u32 = 600;

/// The cell of [`NytOptions::hot_share`](super::NytOptions::hot_share), as the query numbers it.
pub const HOT_CELL: i64 = (HOT_ROW as i64 - 1) * GRID_SIDE as i64 + HOT_COLUMN as i64;

/// Grand Central: one of the busiest cells even without extra trips.
pub(super) const HOT_ROW: u32 = 322;
pub(super) const HOT_COLUMN: u32 = 313;

pub(super) const CELL_METRES: f64 = 250.0;
const FIRST_LATITUDE: f64 = 41.474_937;
const FIRST_LONGITUDE: f64 = -74.913_583;
pub(super) const METRES_PER_DEGREE_SOUTH: f64 = 111_194.93;
/// The above times the cosine of the latitude of the first cell.
pub(super) const METRES_PER_DEGREE_EAST: f64 = 83_312.300_953_308_6;

/// Returns latitude and longitude of the middle of a cell.
pub(super) fn centre_of(row: u32, column: u32) -> (f64, f64) {
    let metres = |nth: u32| (f64::from(nth) - 1.0) * CELL_METRES;
    (
        FIRST_LATITUDE - metres(row) / METRES_PER_DEGREE_SOUTH,
        FIRST_LONGITUDE + metres(column) / METRES_PER_DEGREE_EAST,
    )
}

//! The jobs of the cluster. All tasks of a job have equal requests, and one user, category and priority.

use super::lanes;
use crate::random::RandomLane;
use crate::shapes::{log_normal, round};

#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    pub(super) id: i64,
    /// Tasks have the numbers `0..tasks`.
    pub(super) tasks: u64,
    pub(super) user: i32,
    pub(super) category: i32,
    pub(super) priority: i32,
    pub(super) cpu: f32,
    pub(super) ram: f32,
    pub(super) disk: f32,
    pub(super) constraints: i32,
}

/// Ids grow with the rank, by up to twice this from one job to the next, so no two are equal.
const FIRST_ID: u64 = 6_250_000_000;
const ID_STEP: u64 = 997;

/// Tasks of the first job; the n-th has one n-th of them.
const MOST_TASKS: u64 = 4_000;
/// Users have the numbers `0..USERS`.
const USERS: u64 = 512;
/// Categories of the first jobs: all four are there from the start. Of the later jobs, 80 in 100 are of the
/// first category, and fewer of each next one.
const FIRST_CATEGORIES: [i32; 4] = [0, 2, 1, 3];
const CATEGORIES: [(i32, u64); 4] = [(0, 80), (2, 14), (1, 4), (3, 2)];
/// Priorities, and their percentage of jobs.
const PRIORITIES: [(i32, u64); 6] = [(2, 60), (0, 24), (9, 8), (1, 4), (8, 3), (10, 1)];
/// Percentage of jobs whose tasks may not share a machine.
const CONSTRAINED: u64 = 64;
/// Percentage of jobs that request disk space.
const WITH_DISK: u64 = 5;

impl Job {
    /// Creates the job with this rank; the first is the busiest.
    pub(super) fn new(seed: u64, rank: u64) -> Self {
        let lane = |lane| RandomLane::new(seed, lane);
        let category = FIRST_CATEGORIES.get(rank as usize).copied();
        // Thousandths of the capacity of the largest machine.
        let asks = |of: RandomLane, median, octaves| {
            let thousandths = round(log_normal(of.bits(rank), median, octaves)).clamp(1, 500);
            thousandths as f32 / 1_000.0
        };
        let disk = lane(lanes::DISK);
        let thousandths = 1 + disk.below(rank, 100) % 3;
        Self {
            id: (FIRST_ID + rank * ID_STEP + lane(lanes::JOB_ID).below(rank, ID_STEP)) as i64,
            tasks: 1 + MOST_TASKS / (rank + 1),
            user: lane(lanes::USER).below(rank, USERS) as i32,
            category: category.unwrap_or_else(|| among(&CATEGORIES, lane(lanes::CATEGORY).below(rank, 100))),
            priority: among(&PRIORITIES, lane(lanes::PRIORITY).below(rank, 100)),
            cpu: asks(lane(lanes::CPU), 25.0, 1.2),
            ram: asks(lane(lanes::RAM), 25.0, 1.5),
            disk: if disk.below(rank, 100) < WITH_DISK { thousandths as f32 / 1_000.0 } else { 0.0 },
            constraints: i32::from(lane(lanes::CONSTRAINTS).below(rank, 100) < CONSTRAINED),
        }
    }
}

/// Returns the value selected by this draw below 100.
fn among(shares: &[(i32, u64)], draw: u64) -> i32 {
    let mut end = 0;
    for &(value, share) in shares {
        end += share;
        if draw < end {
            return value;
        }
    }
    unreachable!("the shares of a list add up to 100")
}

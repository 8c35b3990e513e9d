//! The traffic of LRB: plausible movements of cars, queues upstream of accidents, and accidents where they were
//! planned and nowhere else.

use crate::expressways;

use std::collections::BTreeSet;

use expressways::{BUSY, Place, Row, busy, by_car, found, place, rows_of, segments};
use penstock_workloads::lrb::{Accident, Lrb, LrbOptions, REPORTS_OF_A_STOP, SEGMENT_FT};
use proptest::prelude::*;

const FPS_PER_MPH: f64 = 5_280.0 / 3_600.0;

#[test]
fn cars_enter_report_in_time_and_leave() {
    for report_every in [10, 20, 30, 60] {
        let lrb = Lrb::new(LrbOptions { report_every, cars_per_second: 30, ..busy() }).unwrap();
        let mut left = 0;
        for (vid, reports) in by_car(&rows_of(&lrb)) {
            let (first, last) = (reports[0], reports[reports.len() - 1]);
            for two in reports.windows(2) {
                assert_eq!(two[1].time - two[0].time, report_every as i64, "car {vid}");
                assert_eq!((two[0].xway, two[0].dir), (two[1].xway, two[1].dir), "car {vid}");
            }
            assert_eq!(first.lane, 0, "car {vid}");
            // A car that stays to the end of the data is on a travel lane, unless it leaves right there.
            let stays = last.time + report_every as i64 >= 2_400;
            assert!(last.lane == 4 || stays, "car {vid}: {last:?}");
            left += u64::from(last.lane == 4);
            let between = &reports[1..reports.len() - usize::from(last.lane == 4)];
            assert!(between.iter().all(|row| (1..=3).contains(&row.lane)), "car {vid}");
        }
        assert!(left > 1_000, "{left} cars left");
    }
}

#[test]
fn cars_move_forward_and_as_fast_as_they_say() {
    let free = Lrb::new(LrbOptions { accident_every: 0, ..busy() }).unwrap();
    for reports in by_car(&rows_of(&free)).values() {
        assert!(reports[1..].iter().all(|row| (43..=70).contains(&row.speed)), "{reports:?}");
        assert!((40..=44).contains(&reports[0].speed));
        for (nth, two) in reports.windows(2).enumerate() {
            let way = (two[1].driven() - two[0].driven()) as f64;
            let told = (two[0].speed + two[1].speed) as f64 / 2.0 * 30.0 * FPS_PER_MPH;
            // Two mph off and one foot of rounding; at its entry a car speeds up early in the interval.
            let slack = if nth == 0 { 550.0 } else { 92.0 };
            assert!((way - told).abs() < slack, "{way} ft, by its speed {told}: {two:?}");
        }
    }
    for reports in by_car(&BUSY.1).values() {
        for two in reports.windows(2) {
            let way = two[1].driven() - two[0].driven();
            assert!((0..=3_000).contains(&way), "{way} ft: {two:?}");
            assert!(way > 0 || two[0].speed == 0, "a car stands still and reports a speed: {two:?}");
            assert!(way == 0 || two[0].speed > 0 || two[1].speed > 0, "{way} ft at speed 0: {two:?}");
        }
    }
}

#[test]
fn cars_change_lanes_and_use_all_of_them() {
    let mut lanes = [0u64; 5];
    for row in &BUSY.1 {
        lanes[row.lane as usize] += 1;
    }
    let travelling = lanes[1] + lanes[2] + lanes[3];
    for lane in &lanes[1..4] {
        let share = *lane as f64 / travelling as f64;
        assert!((0.3..0.37).contains(&share), "{lanes:?}");
    }
    let cars = by_car(&BUSY.1);
    let changes = |reports: &[Row]| {
        reports[1..].windows(2).filter(|two| two[0].lane != two[1].lane && two[1].lane != 4).count()
    };
    assert!(cars.values().any(|reports| changes(reports) > 2));
}

#[test]
fn arrivals_grow_evenly_to_the_peak() {
    let mut entered = [0u64; 4];
    let mut entered_at = [0u64; 100];
    for row in BUSY.1.iter().filter(|row| row.lane == 0) {
        entered[(row.time / 600) as usize] += 1;
        entered_at[(row.driven() / i64::from(SEGMENT_FT)) as usize] += 1;
    }
    // 100 cars per second arrive after three hours: after t seconds there were 100 * t * t / 21,600.
    for (quarter, &count) in entered.iter().enumerate() {
        let expected = 100.0 * 360_000.0 * (2 * quarter + 1) as f64 / 21_600.0;
        assert!((count as f64 - expected).abs() <= 4.0, "{count}, expected {expected}");
    }
    // A car enters before the last segment, and in early segments more often.
    assert!(entered_at[0] > entered_at[50] && entered_at[50] > entered_at[90] && entered_at[99] == 0);
}

#[test]
fn traffic_is_dense_and_slow_upstream_of_accidents_only() {
    let (lrb, rows) = &*BUSY;
    let is_slow = |&(_, &(cars, speed)): &(&_, &(usize, f64))| cars > 50 && speed < 40.0;
    let cells = segments(rows);
    let slow: Vec<_> = cells.iter().filter(is_slow).map(|(segment, _)| *segment).collect();
    assert!(slow.len() > 100, "{} of {} segments and minutes are slow", slow.len(), cells.len());
    let behind = |accident: &Accident, dir: i64, seg: i64| {
        let before =
            if dir == 0 { i64::from(accident.segment) - seg } else { seg - i64::from(accident.segment) };
        (i64::from(accident.direction) == dir).then_some(before)
    };
    for &(minute, _, dir, seg) in &slow {
        let explained = |accident: &Accident| {
            let slow_s = accident.first - 60..accident.last + 481;
            behind(accident, dir, seg).is_some_and(|before| (0..=7).contains(&before))
                && (slow_s.contains(&(minute * 60)) || slow_s.contains(&(minute * 60 + 59)))
        };
        // An accident that the end cuts short is not in the plan, but its queue may be visible.
        assert!(lrb.accidents().iter().any(explained) || minute >= 37, "{minute}, {dir}, {seg}");
    }
    // Tolls are waived up to four segments upstream of an accident: some must be due further back.
    let further = |&&(minute, _, dir, seg): &&(i64, i64, i64, i64)| {
        let near = |accident: &Accident| {
            let live = accident.first - 60..accident.last + 120;
            behind(accident, dir, seg).is_some_and(|before| (0..5).contains(&before))
                && live.contains(&(minute * 60))
        };
        !lrb.accidents().iter().any(near)
    };
    assert!(slow.iter().filter(further).count() > 30);

    let free = Lrb::new(LrbOptions { accident_every: 0, ..busy() }).unwrap();
    assert!(free.accidents().is_empty());
    let cells = segments(&rows_of(&free));
    assert!(cells.values().any(|&(cars, _)| cars > 50));
    assert_eq!(cells.iter().filter(is_slow).count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_query_finds_the_planned_accidents_and_no_others(
        seed: u64,
        minutes in 12..30u64,
        cars_per_second in 20..60u64,
        report_every in prop_oneof![Just(10u64), Just(20), Just(30)],
        accident_every in 60..600u64,
    ) {
        // Also where the end of the data cuts an accident short.
        let options =
            LrbOptions { seed, minutes, cars_per_second, report_every, accident_every, ..LrbOptions::default() };
        let lrb = Lrb::new(options).unwrap();
        let planned: BTreeSet<Place> = lrb.accidents().iter().map(place).collect();
        prop_assert_eq!(planned.len(), lrb.accidents().len());
        let found: BTreeSet<Place> = found(&rows_of(&lrb), report_every as i64).into_keys().collect();
        prop_assert_eq!(planned, found);
    }
}

#[test]
fn only_the_two_cars_of_each_accident_stand_still() {
    let (lrb, rows) = &*BUSY;
    let accidents = lrb.accidents();
    assert!(accidents.len() >= 4, "{accidents:?}");
    assert!(accidents.windows(2).all(|two| two[0].first <= two[1].first));
    let mut in_accidents = BTreeSet::new();
    for accident in &accidents {
        assert_eq!(accident.segment, accident.pos / SEGMENT_FT);
        assert!((1..=3).contains(&accident.lane));
        let there = |row: &&Row| place(accident) == (row.xway, row.dir, row.seg, row.lane, row.pos);
        let standing = rows.iter().filter(there).filter(|row| row.speed == 0);
        let stops = by_car(&standing.copied().collect::<Vec<Row>>());
        let vehicles: BTreeSet<i64> = accident.vehicles.iter().map(|&vid| vid.into()).collect();
        assert_eq!(stops.keys().copied().collect::<BTreeSet<i64>>(), vehicles);
        for (vid, reports) in stops {
            assert!(reports.len() >= REPORTS_OF_A_STOP as usize);
            assert!(reports.windows(2).all(|two| two[1].time - two[0].time == 30), "consecutive reports");
            // No report of a stop is missing from the time in which both stand still, and none follows it.
            let (first, last) = (reports[0].time, reports[reports.len() - 1].time);
            assert!(first < accident.first + 30 && first > accident.first - 90, "{accident:?}: {vid}");
            assert!(last <= accident.last && last > accident.last - 30, "{accident:?}: {vid}");
            in_accidents.insert(vid);
        }
    }
    // Accidents that the end of the data cuts short are neither planned nor visible.
    let late = |row: &Row| row.time > 2_400 - 4 * 30 - 90;
    assert!(rows.iter().all(|row| row.speed > 0 || in_accidents.contains(&row.vid) || late(row)));
}

#[test]
fn an_accident_is_planned_from_the_minute_in_which_it_can_be_found() {
    for seed in 0..6 {
        let options = |minutes| LrbOptions { seed, minutes, cars_per_second: 10, ..LrbOptions::default() };
        let rows = rows_of(&Lrb::new(options(40)).unwrap());
        let standing: Vec<Row> = rows.into_iter().filter(|row| row.speed == 0).collect();
        for minutes in 1..=40 {
            let end = standing.partition_point(|row| row.time < minutes as i64 * 60);
            let found: BTreeSet<Place> = found(&standing[..end], 30).into_keys().collect();
            let lrb = Lrb::new(options(minutes)).unwrap();
            let planned: BTreeSet<Place> = lrb.accidents().iter().map(place).collect();
            assert_eq!(planned, found, "seed {seed}, {minutes} minutes");
        }
    }
}

#[test]
fn windows_of_the_query_cover_the_time_both_cars_stand() {
    for (report_every, minute) in [(30, 60), (20, 40), (10, 20)] {
        let lrb = Lrb::new(LrbOptions { report_every, cars_per_second: 40, ..busy() }).unwrap();
        let found = found(&rows_of(&lrb), report_every as i64);
        for accident in lrb.accidents() {
            let ends = &found[&place(&accident)];
            let (first, last) = (ends.first().unwrap(), ends.last().unwrap());
            let half = minute / 2;
            assert!(*first <= accident.first + 3 * minute, "{accident:?}: {ends:?}");
            assert!(*last >= accident.last - half && *last <= accident.last + half, "{accident:?}: {ends:?}");
            assert_eq!(ends.len() as i64, (last - first) / half + 1, "no window between is left out");
        }
    }
}

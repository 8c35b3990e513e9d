//! The public promises of the NEXMark data set: the same rows for any request, options that change only their own
//! columns, and checksums that fix the data.

use crate::auction_house;
use crate::laws;

use auction_house::{EVENTS, any_options, any_stream, batches, events, generate, table};
use laws::{any_split_is_the_same, checksum, described, share, text, whole};
use penstock_workloads::nexmark::{
    MAX_COUNT, MAX_EVENT_BYTES, MAX_FIRST_EVENT_TIME_MS, MAX_LATE_MS, MAX_OUT_OF_ORDER_MS, Nexmark,
    NexmarkOptions, NexmarkStream, rows_of,
};
use penstock_workloads::{Generator, MAX_BATCH_ROWS, WorkloadError};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_split_gives_the_same_rows(
        options in any_options(),
        of in any_stream(),
        start in prop_oneof![0..10_000u64, 0..1u64 << 40],
        rows in 0..1_000u64,
        batch_rows in 1..400u64,
        cut in 0.0..=1.0,
    ) {
        let nexmark = Nexmark::new(options).unwrap();
        match of {
            NexmarkStream::Person => any_split_is_the_same(&nexmark.persons(), start, rows, batch_rows, cut),
            NexmarkStream::Auction => any_split_is_the_same(&nexmark.auctions(), start, rows, batch_rows, cut),
            NexmarkStream::Bid => any_split_is_the_same(&nexmark.bids(), start, rows, batch_rows, cut),
        }
    }

    #[test]
    fn times_stay_within_the_disorder_asked_for(
        options in any_options(),
        of in any_stream(),
        start in 0..1u64 << 40,
    ) {
        let options = NexmarkOptions { step_every_s: 0, ..options };
        let (reach, late) = (options.out_of_order_ms as i64, options.late_every > 0);
        let (rate, first) = (u128::from(options.rate), options.first_event_time_ms);
        let batch = generate(&Nexmark::new(options).unwrap(), of, start, start + 300).unwrap();
        for (row, time) in (start..).zip(whole(&batch, "date_time")) {
            let event = of.event(row).unwrap();
            let nominal = first + (u128::from(event) * 1_000 / rate) as i64;
            let earliest = nominal - reach - if late { MAX_LATE_MS as i64 } else { 0 };
            prop_assert!((earliest..=nominal + reach).contains(&time), "event {event}: {time}");
        }
        if of == NexmarkStream::Auction {
            let opened = whole(&batch, "date_time").into_iter();
            prop_assert!(opened.zip(whole(&batch, "expires")).all(|(opened, expires)| opened < expires));
        }
    }

    #[test]
    fn rows_are_counted_as_they_come(events in 0..10_000u64) {
        let counts = NexmarkStream::ALL.map(|stream| rows_of(stream, events));
        prop_assert_eq!(counts.iter().sum::<u64>(), events);
        for (stream, rows) in NexmarkStream::ALL.into_iter().zip(counts) {
            prop_assert!(stream.event(rows).unwrap() >= events);
            prop_assert!(rows == 0 || stream.event(rows - 1).unwrap() < events);
        }
    }
}

#[test]
fn the_schemas_are_those_of_the_benchmark() {
    assert_eq!(
        described(&NexmarkStream::Person.schema()),
        [
            "id Int64",
            "name Utf8",
            "email_address Utf8",
            "credit_card Utf8",
            "city Utf8",
            "state Utf8",
            "date_time Timestamp(ms)",
            "extra Utf8"
        ]
    );
    assert_eq!(
        described(&NexmarkStream::Auction.schema()),
        [
            "id Int64",
            "item_name Utf8",
            "description Utf8",
            "initial_bid Int64",
            "reserve Int64",
            "date_time Timestamp(ms)",
            "expires Timestamp(ms)",
            "seller Int64",
            "category Int64",
            "extra Utf8"
        ]
    );
    assert_eq!(
        described(&NexmarkStream::Bid.schema()),
        [
            "auction Int64",
            "bidder Int64",
            "price Int64",
            "channel Utf8",
            "url Utf8",
            "date_time Timestamp(ms)",
            "extra Utf8"
        ]
    );
    assert_eq!(NexmarkStream::ALL.map(NexmarkStream::name), ["person", "auction", "bid"]);
}

#[test]
fn the_streams_share_the_events_1_to_3_to_46() {
    assert_eq!(NexmarkStream::ALL.map(|stream| rows_of(stream, EVENTS)), [2_000, 6_000, 92_000]);
    assert_eq!(NexmarkStream::ALL.map(|stream| rows_of(stream, 53)), [2, 5, 46]);
    let nexmark = Nexmark::new(NexmarkOptions { rate: 1_000, ..NexmarkOptions::default() }).unwrap();
    // A millisecond between events shows which event a row is.
    for stream in NexmarkStream::ALL {
        let batch = generate(&nexmark, stream, 0, rows_of(stream, 500)).unwrap();
        let expected: Vec<i64> = (0..500)
            .filter(|event| match event % 50 {
                0 => stream == NexmarkStream::Person,
                1..=3 => stream == NexmarkStream::Auction,
                _ => stream == NexmarkStream::Bid,
            })
            .collect();
        assert_eq!(whole(&batch, "date_time"), expected);
    }
}

#[test]
fn jitter_and_lateness_come_as_asked() {
    let behind = |options: NexmarkOptions| -> Vec<i64> {
        let batch = table(NexmarkOptions { rate: 1_000, ..options }, NexmarkStream::Bid);
        whole(&batch, "date_time")
            .iter()
            .zip(events(NexmarkStream::Bid))
            .map(|(time, e)| e as i64 - time)
            .collect()
    };
    let moved = behind(NexmarkOptions { out_of_order_ms: 50, ..NexmarkOptions::default() });
    for distance in [-50, -1, 0, 50] {
        let count = moved.iter().filter(|&&by| by == distance).count();
        assert!((730..1_095).contains(&count), "{distance}: {count}, expected 911");
    }
    let late = behind(NexmarkOptions { late_every: 100, ..NexmarkOptions::default() });
    let late: Vec<i64> = late.into_iter().filter(|&by| by != 0).collect();
    assert!((740..1_100).contains(&late.len()), "{} late rows, expected 920", late.len());
    assert!(late.iter().all(|by| (1..=MAX_LATE_MS as i64).contains(by)));
    assert!(late.iter().any(|&by| by < 1_000) && late.iter().any(|&by| by > 59_000));
    assert!(behind(NexmarkOptions { late_every: 1, ..NexmarkOptions::default() }).iter().all(|&by| by > 0));
}

#[test]
fn an_option_leaves_the_other_columns_alone() {
    let plain = NexmarkOptions::default;
    let times = &["person date_time", "auction date_time", "auction expires", "bid date_time"][..];
    let cases: [(NexmarkOptions, &[&str]); 14] = [
        (NexmarkOptions { rate: 12, ..plain() }, times),
        (NexmarkOptions { rate: 10_000, step_every_s: 1, ..plain() }, times),
        (NexmarkOptions { first_event_time_ms: -5_000, ..plain() }, times),
        (NexmarkOptions { out_of_order_ms: 50, ..plain() }, times),
        (NexmarkOptions { late_every: 7, ..plain() }, times),
        (NexmarkOptions { hot_auction_ratio: 3, ..plain() }, &["bid auction"]),
        (NexmarkOptions { hot_seller_ratio: 2, ..plain() }, &["auction seller"]),
        (NexmarkOptions { hot_bidder_ratio: 2, ..plain() }, &["bid bidder"]),
        (NexmarkOptions { active_people: 10, ..plain() }, &["auction seller", "bid bidder"]),
        (NexmarkOptions { auctions_in_flight: 30_000, ..plain() }, &["auction expires", "bid auction"]),
        (NexmarkOptions { id_lead: 10, ..plain() }, &["auction seller", "bid auction", "bid bidder"]),
        (NexmarkOptions { person_bytes: 300, ..plain() }, &["person extra"]),
        (NexmarkOptions { auction_bytes: 300, ..plain() }, &["auction extra"]),
        (NexmarkOptions { bid_bytes: 300, ..plain() }, &["bid extra"]),
    ];
    let usual = NexmarkStream::ALL.map(|stream| table(plain(), stream));
    for (options, expected) in cases {
        let mut changed = Vec::new();
        for (stream, usual) in NexmarkStream::ALL.into_iter().zip(&usual) {
            let other = table(options.clone(), stream);
            for (field, (one, two)) in
                stream.schema().fields().iter().zip(usual.columns().iter().zip(other.columns()))
            {
                if one != two {
                    changed.push(format!("{} {}", stream.name(), field.name()));
                }
            }
        }
        assert_eq!(changed, expected, "{options:?}");
    }
    // Where a row refers to a hot one under both ratios, or to no hot one under both, it refers to the same.
    let (two, four) =
        (&usual[2], table(NexmarkOptions { hot_auction_ratio: 4, ..plain() }, NexmarkStream::Bid));
    let pairs: Vec<(i64, i64)> = whole(two, "auction").into_iter().zip(whole(&four, "auction")).collect();
    let same = share(&pairs, |(one, other)| one == other);
    assert!(same > 0.74, "{same}");
}

#[test]
fn bad_options_are_refused_by_name() {
    let message = |options: NexmarkOptions| Nexmark::new(options).unwrap_err().to_string();
    let plain = NexmarkOptions::default;
    let most = 1_000_000_000;
    assert_eq!((most, MAX_EVENT_BYTES), (MAX_COUNT, 16_384));
    let cases = [
        (NexmarkOptions { rate: 0, ..plain() }, "rate must be between 1 and 9223372036854775807, got 0"),
        (
            NexmarkOptions { out_of_order_ms: MAX_OUT_OF_ORDER_MS + 1, ..plain() },
            "out_of_order_ms must be between 0 and 31536000000, got 31536000001",
        ),
        (
            NexmarkOptions { first_event_time_ms: MAX_FIRST_EVENT_TIME_MS + 1, ..plain() },
            "first_event_time_ms must be between -4611686018427387903 and 4611686018427387903, got \
             4611686018427387904",
        ),
        (
            NexmarkOptions { first_event_time_ms: i64::MIN, ..plain() },
            "first_event_time_ms must be between -4611686018427387903 and 4611686018427387903, got \
             -9223372036854775808",
        ),
        (
            NexmarkOptions { hot_auction_ratio: 0, ..plain() },
            "hot_auction_ratio must be between 1 and 1000000000, got 0",
        ),
        (
            NexmarkOptions { hot_seller_ratio: 0, ..plain() },
            "hot_seller_ratio must be between 1 and 1000000000, got 0",
        ),
        (
            NexmarkOptions { hot_bidder_ratio: 0, ..plain() },
            "hot_bidder_ratio must be between 1 and 1000000000, got 0",
        ),
        (
            NexmarkOptions { active_people: 0, ..plain() },
            "active_people must be between 1 and 1000000000, got 0",
        ),
        (
            NexmarkOptions { auctions_in_flight: most + 1, ..plain() },
            "auctions_in_flight must be between 0 and 1000000000, got 1000000001",
        ),
        (
            NexmarkOptions { id_lead: most + 1, ..plain() },
            "id_lead must be between 0 and 1000000000, got 1000000001",
        ),
        (
            NexmarkOptions { person_bytes: 16_385, ..plain() },
            "person_bytes must be between 0 and 16384, got 16385",
        ),
        (
            NexmarkOptions { auction_bytes: 16_385, ..plain() },
            "auction_bytes must be between 0 and 16384, got 16385",
        ),
        (NexmarkOptions { bid_bytes: 16_385, ..plain() }, "bid_bytes must be between 0 and 16384, got 16385"),
    ];
    for (options, expected) in cases {
        assert_eq!(message(options), expected);
    }
}

#[test]
fn rows_past_the_last_event_or_time_are_refused() {
    let fast = Nexmark::new(NexmarkOptions { rate: i64::MAX as u64, ..NexmarkOptions::default() }).unwrap();
    for stream in NexmarkStream::ALL {
        // Of the ids that remain after the last whole epoch, the bids have the last.
        let end = rows_of(stream, u64::MAX) + u64::from(stream == NexmarkStream::Bid);
        assert_eq!(generate(&fast, stream, end - 10, end).unwrap().num_rows(), 10);
        let overflow = WorkloadError::EventsOverflow { stream: stream.name(), row: end };
        assert_eq!(generate(&fast, stream, end - 10, end + 1).unwrap_err(), overflow);
        let message = overflow.to_string();
        assert_eq!(
            message,
            format!("row {end} of {} comes after the last event id, {}", stream.name(), u64::MAX)
        );
    }

    // At one event per millisecond, the last one whose time fits, and the first whose time does not.
    let first = MAX_FIRST_EVENT_TIME_MS;
    let slow = NexmarkOptions {
        rate: 1_000,
        first_event_time_ms: first,
        out_of_order_ms: 3,
        ..NexmarkOptions::default()
    };
    let nexmark = Nexmark::new(slow.clone()).unwrap();
    let room = (i64::MAX - first - 3) as u64;
    for stream in NexmarkStream::ALL {
        // An auction's end must fit as well: at most twice the time of 1,666 events.
        let events = room + 1 - if stream == NexmarkStream::Auction { 3_334 } else { 0 };
        let end = rows_of(stream, events);
        assert!(generate(&nexmark, stream, end - 10, end).is_ok());
        let error = generate(&nexmark, stream, end - 10, end + 1).unwrap_err();
        let overflow = WorkloadError::EventTimeOverflow { event: stream.event(end).unwrap(), rate: 1_000 };
        assert_eq!(error, overflow);
        assert_eq!(batches(&nexmark, stream, end - 10, end + 1, 5).unwrap_err(), overflow);
        assert!(
            overflow
                .to_string()
                .ends_with("at 1000 events per second it does not fit 64 bits of milliseconds")
        );
    }
    // There is no lower limit.
    let early = NexmarkOptions {
        first_event_time_ms: -MAX_FIRST_EVENT_TIME_MS,
        out_of_order_ms: MAX_OUT_OF_ORDER_MS,
        late_every: 1,
        ..NexmarkOptions::default()
    };
    assert!(whole(&table(early, NexmarkStream::Bid), "date_time").iter().all(|&time| time < i64::MIN / 3));
}

#[test]
fn batches_hold_what_their_offsets_can_count() {
    let widest = NexmarkOptions {
        auction_bytes: MAX_EVENT_BYTES,
        bid_bytes: MAX_EVENT_BYTES,
        ..NexmarkOptions::default()
    };
    let (plain, wide) = (Nexmark::new(NexmarkOptions::default()).unwrap(), Nexmark::new(widest).unwrap());
    assert_eq!(
        (plain.bids().max_batch_rows(), plain.persons().max_batch_rows()),
        (MAX_BATCH_ROWS, 8_947_848)
    );
    for stream_of in [NexmarkStream::Auction, NexmarkStream::Bid] {
        assert_eq!(
            generate(&wide, stream_of, 0, 109_226).unwrap_err().to_string(),
            "rows of one batch must be between 0 and 109225, got 109226"
        );
        assert_eq!(
            batches(&wide, stream_of, 0, 10, 109_226).unwrap_err().to_string(),
            "batch_rows must be between 1 and 109225, got 109226"
        );
    }
    let batch = generate(&wide, NexmarkStream::Bid, 0, 500).unwrap();
    let longest = text(&batch, "extra").into_iter().map(str::len).max().unwrap();
    assert!((19_000..=i32::MAX as usize / 109_225).contains(&longest), "{longest}");
}

#[test]
fn empty_ranges_give_empty_data() {
    let nexmark = Nexmark::new(NexmarkOptions { rate: 1, ..NexmarkOptions::default() }).unwrap();
    for of in NexmarkStream::ALL {
        for (start, end) in [(5, 5), (u64::MAX, u64::MAX), (9, 3)] {
            let batch = generate(&nexmark, of, start, end).unwrap();
            assert_eq!((batch.num_rows(), batch.schema()), (0, of.schema()));
            assert!(batches(&nexmark, of, start, end, 10).unwrap().is_empty());
        }
    }
}

/// WORKLOAD-3: if this fails, the data set has changed, and every published figure with it.
#[test]
fn the_data_set_never_changes() {
    let everything = NexmarkOptions {
        seed: 42,
        rate: 3_000,
        step_every_s: 0,
        first_event_time_ms: -1_000,
        out_of_order_ms: 50,
        late_every: 20,
        hot_auction_ratio: 3,
        hot_seller_ratio: 3,
        hot_bidder_ratio: 3,
        active_people: 100,
        auctions_in_flight: 50,
        id_lead: 10,
        person_bytes: 150,
        auction_bytes: 250,
        bid_bytes: 80,
    };
    let sums = |options: &NexmarkOptions, start: u64| {
        let nexmark = Nexmark::new(options.clone()).unwrap();
        NexmarkStream::ALL.map(|stream| checksum(&generate(&nexmark, stream, start, start + 1_000).unwrap()))
    };
    assert_eq!(
        sums(&NexmarkOptions::default(), 0),
        [0x0388_78B4_EE34_D519, 0xCAB3_A422_4636_44B2, 0x75B4_CBEC_F3CF_2DA4]
    );
    assert_eq!(
        sums(&NexmarkOptions::default(), 1 << 40),
        [0xCF12_EC6A_E759_9128, 0xF193_CC89_7176_1284, 0x9A1E_E52D_BDF3_DD3C]
    );
    assert_eq!(
        sums(&NexmarkOptions { seed: 42, ..NexmarkOptions::default() }, 0),
        [0x921F_4B03_7D91_8EDF, 0xC94E_762C_0F3E_D0A3, 0x0574_0B39_3C9B_0052]
    );
    assert_eq!(sums(&everything, 0), [0x225C_C4CD_F3AB_9A54, 0xF4F1_F5C9_1180_C6FD, 0x090A_3747_7E28_CD3C]);

    let bids = table(NexmarkOptions::default(), NexmarkStream::Bid);
    let row = ["auction", "bidder", "price", "date_time"].map(|name| whole(&bids, name)[1]);
    assert_eq!(row, [1_000, 1_000, 10_610, 0]);
    assert_eq!(text(&bids, "channel")[1], "channel-3734");
    let url = "https://www.nexmark.com/cied/ltk/byn/item.htm?query=1&channel_id=884473856";
    assert_eq!(text(&bids, "url")[1], url);
    let persons = table(NexmarkOptions::default(), NexmarkStream::Person);
    let row = ["name", "email_address", "credit_card", "city", "state"].map(|name| text(&persons, name)[1]);
    assert_eq!(row, ["Greta Ito", "uxv@jnue.com", "6853 4494 4856 8455", "San Diego", "OR"]);
}

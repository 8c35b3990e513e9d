//! The values of NEXMark rows: references to earlier rows, hot ones as often as requested, prices by their law, and
//! texts as promised.

use crate::auction_house;
use crate::laws;

use std::collections::{HashMap, HashSet};

use auction_house::{EVENTS, FIRST_ID, any_options, events, generate, table};
use laws::{close, share, text, whole};
use penstock_workloads::nexmark::{Nexmark, NexmarkOptions, NexmarkStream, rows_of};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn references_are_to_what_came_before(options in any_options(), start in prop_oneof![0..200u64, 0..1u64 << 40]) {
        // With a lead, up to that many ids later.
        let lead = options.id_lead as i64;
        let active = options.active_people as i64;
        let in_flight = options.auctions_in_flight as i64;
        let nexmark = Nexmark::new(options).unwrap();
        let newest_person = |event: u64| (event / 50) as i64;
        let person_is_known = |id: i64, event: u64| {
            let (id, newest) = (id - FIRST_ID, newest_person(event));
            let is_hot = id == newest / 100 * 100 || id == newest / 100 * 100 + 1;
            id >= 0 && id <= newest + lead && (id > newest - active || is_hot)
        };

        let auctions = generate(&nexmark, NexmarkStream::Auction, start, start + 300).unwrap();
        let sellers = whole(&auctions, "seller").into_iter();
        for (row, (id, seller)) in (start..).zip(whole(&auctions, "id").into_iter().zip(sellers)) {
            let event = NexmarkStream::Auction.event(row).unwrap();
            prop_assert_eq!(id, row as i64 + FIRST_ID);
            prop_assert!(person_is_known(seller, event), "event {event} is of seller {seller}");
        }
        let bids = generate(&nexmark, NexmarkStream::Bid, start, start + 300).unwrap();
        let bidders = whole(&bids, "bidder").into_iter();
        for (row, (auction, bidder)) in (start..).zip(whole(&bids, "auction").into_iter().zip(bidders)) {
            let event = NexmarkStream::Bid.event(row).unwrap();
            prop_assert!(person_is_known(bidder, event), "event {event} is by bidder {bidder}");
            let (auction, newest) = (auction - FIRST_ID, rows_of(NexmarkStream::Auction, event) as i64 - 1);
            prop_assert!(auction >= 0 && auction <= newest + lead, "event {event} is on auction {auction}");
            prop_assert!(auction >= newest - in_flight || auction == newest / 100 * 100, "{auction} of {newest}");
        }
    }
}

#[test]
fn hot_ones_come_as_often_as_asked() {
    // Some references that are not hot still hit the hot one: they are drawn from all.
    for ratio in [1, 2, 4, 10] {
        let expected = 1.0 - 1.0 / ratio as f64;
        let options = NexmarkOptions {
            hot_auction_ratio: ratio,
            hot_seller_ratio: ratio,
            hot_bidder_ratio: ratio,
            ..NexmarkOptions::default()
        };
        let (auctions, bids) =
            (table(options.clone(), NexmarkStream::Auction), table(options, NexmarkStream::Bid));
        let is_hot = |ids: Vec<i64>, of: NexmarkStream, hot: fn(i64) -> i64| {
            let pairs: Vec<(i64, u64)> = ids.into_iter().zip(events(of)).collect();
            share(&pairs, |&(id, event)| id - FIRST_ID == hot(event as i64))
        };
        let shares = [
            is_hot(whole(&bids, "auction"), NexmarkStream::Bid, |event| (event / 50 * 3 + 2) / 100 * 100),
            is_hot(whole(&bids, "bidder"), NexmarkStream::Bid, |event| {
                let first = event / 5_000 * 100;
                first + i64::from(event / 50 > first)
            }),
            is_hot(whole(&auctions, "seller"), NexmarkStream::Auction, |event| event / 5_000 * 100),
        ];
        for hot in shares {
            assert!((hot - expected).abs() < 0.025, "1 in {ratio}: {shares:?}");
        }
    }
}

#[test]
fn those_that_are_not_hot_are_uniform_over_the_newest() {
    let options = NexmarkOptions {
        hot_auction_ratio: 1,
        hot_seller_ratio: 1,
        hot_bidder_ratio: 1,
        active_people: 200,
        id_lead: 10,
        ..NexmarkOptions::default()
    };
    let (auctions, bids) =
        (table(options.clone(), NexmarkStream::Auction), table(options, NexmarkStream::Bid));
    let behind = |ids: Vec<i64>, of: NexmarkStream, newest: fn(i64) -> i64, reach: i64| {
        let mut counts: HashMap<i64, u32> = HashMap::new();
        for (id, event) in ids.into_iter().zip(events(of)) {
            // Later, there are more than enough.
            if event > 20_000 {
                *counts.entry(newest(event as i64) - (id - FIRST_ID)).or_default() += 1;
            }
        }
        let all: u32 = counts.values().sum();
        let expected = f64::from(all) / (reach + 10) as f64;
        for distance in -10..reach {
            let count = f64::from(*counts.get(&distance).unwrap_or(&0));
            assert!((count - expected).abs() < 6.0 * expected.sqrt(), "{distance}: {count}, not {expected}");
        }
        assert_eq!(counts.len() as i64, reach + 10);
    };
    behind(whole(&bids, "auction"), NexmarkStream::Bid, |event| event / 50 * 3 + 2, 101);
    behind(whole(&bids, "bidder"), NexmarkStream::Bid, |event| event / 50, 200);
    behind(whole(&auctions, "seller"), NexmarkStream::Auction, |event| event / 50, 200);
}

#[test]
fn prices_are_uniform_in_their_logarithms() {
    let auctions = table(NexmarkOptions::default(), NexmarkStream::Auction);
    let bids = table(NexmarkOptions::default(), NexmarkStream::Bid);
    let above: Vec<i64> = whole(&auctions, "reserve")
        .iter()
        .zip(whole(&auctions, "initial_bid"))
        .map(|(reserve, bid)| reserve - bid)
        .collect();
    for prices in [whole(&bids, "price"), whole(&auctions, "initial_bid"), above] {
        let mut sorted = prices;
        sorted.sort_unstable();
        // The largest distance to the law, after Kolmogorov: below 2 / sqrt(n) but for one data set in 1500.
        let most = 2.0 / (sorted.len() as f64).sqrt();
        for (nth, &price) in sorted.iter().enumerate() {
            assert!((100..=100_000_000).contains(&price), "{price}");
            let below = (price as f64 / 100.0).log10() / 6.0;
            let expected = nth as f64 / sorted.len() as f64;
            // Prices near 100 are far apart: a rounded one has a three-thousandth of all draws.
            assert!((below - expected).abs() < most + 0.000_4, "{price} is number {nth} of {}", sorted.len());
        }
    }
}

#[test]
fn persons_are_written_as_promised() {
    let batch = table(NexmarkOptions::default(), NexmarkStream::Person);
    assert!(whole(&batch, "id").iter().zip(FIRST_ID..).all(|(&id, expected)| id == expected));
    let distinct = |name: &str| text(&batch, name).into_iter().collect::<HashSet<_>>();
    assert_eq!(distinct("state"), HashSet::from(["AZ", "CA", "ID", "OR", "WA", "WY"]));
    assert_eq!((distinct("city").len(), distinct("name").len()), (10, 99));
    let local = share(&text(&batch, "state"), |state| ["OR", "ID", "CA"].contains(state));
    close("OR, ID or CA", local, 0.5, 0.06);
    for name in text(&batch, "name") {
        assert!(name.split(' ').count() == 2 && name.split(' ').all(|part| part.len() > 2), "{name}");
    }
    for address in text(&batch, "email_address") {
        let (mailbox, domain) = address.split_once('@').expect("an address");
        let domain = domain.strip_suffix(".com").expect("of a company");
        assert!((3..=6).contains(&mailbox.len()) && (3..=4).contains(&domain.len()), "{address}");
        assert!(mailbox.bytes().chain(domain.bytes()).all(|byte| byte.is_ascii_lowercase()), "{address}");
    }
    for card in text(&batch, "credit_card") {
        let groups: Vec<&str> = card.split(' ').collect();
        assert!(groups.len() == 4 && groups.iter().all(|group| group.len() == 4), "{card}");
        assert!(groups.concat().bytes().all(|byte| byte.is_ascii_digit()), "{card}");
    }
    assert!(distinct("credit_card").len() as u64 > rows_of(NexmarkStream::Person, EVENTS) - 3);
}

#[test]
fn auctions_are_written_as_promised() {
    let batch = table(NexmarkOptions { rate: 10_000, ..NexmarkOptions::default() }, NexmarkStream::Auction);
    for category in 10..15 {
        let found = share(&whole(&batch, "category"), |&c| c == category);
        close("a category", found, 0.2, 0.03);
    }
    for (name, longest) in [("item_name", 19), ("description", 99)] {
        let lengths: HashSet<usize> = text(&batch, name).into_iter().map(str::len).collect();
        assert_eq!(lengths, (3..=longest).collect(), "{name}");
        let written = |byte: u8| byte.is_ascii_lowercase() || byte == b' ';
        assert!(text(&batch, name).iter().all(|text| text.bytes().all(written) && text.trim() == *text));
    }
    // A hundred new auctions take 1,666 events: 166.6 ms.
    let open =
        whole(&batch, "expires").into_iter().zip(whole(&batch, "date_time")).map(|(end, start)| end - start);
    let open: Vec<i64> = open.collect();
    let mean = open.iter().sum::<i64>() as f64 / open.len() as f64;
    assert!((mean - 167.0).abs() < 6.0, "{mean}");
    assert!(open.iter().all(|open| (1..=334).contains(open)));
}

#[test]
fn bids_come_through_channels() {
    let batch = table(NexmarkOptions::default(), NexmarkStream::Bid);
    let mut urls: HashMap<&str, &str> = HashMap::new();
    for (channel, url) in text(&batch, "channel").into_iter().zip(text(&batch, "url")) {
        assert_eq!(*urls.entry(channel).or_insert(url), url, "{channel}");
    }
    let is_hot = |channel: &str| ["Google", "Facebook", "Baidu", "Apple"].contains(&channel);
    let channels = text(&batch, "channel");
    close("hot channels", share(&channels, |channel| is_hot(channel)), 0.5, 0.01);
    close("Apple", share(&channels, |&channel| channel == "Apple"), 0.125, 0.01);
    assert!((9_800..=10_004).contains(&urls.len()), "{}", urls.len());

    let mut ids = HashSet::new();
    for (channel, url) in &urls {
        let parts: Vec<&str> = url.split('/').collect();
        assert_eq!(parts[..3], ["https:", "", "www.nexmark.com"]);
        assert!(parts.len() == 7 && parts[3..6].iter().all(|part| (3..=4).contains(&part.len())), "{url}");
        assert!(parts[6].starts_with("item.htm?query=1"), "{url}");
        if let Some((_, id)) = url.split_once("&channel_id=") {
            assert!(!is_hot(channel) && ids.insert(id.parse::<u32>().expect("a number")));
        }
        if !is_hot(channel) {
            let number: u32 = channel.strip_prefix("channel-").expect("its name").parse().expect("a number");
            assert!(number < 10_000);
        }
    }
    assert!((ids.len() as f64 / urls.len() as f64 - 0.9).abs() < 0.015, "{}", ids.len());
}

#[test]
fn rows_are_filled_up_to_the_size_asked_for() {
    let mean = |options: &NexmarkOptions, of: NexmarkStream| {
        let batch = table(options.clone(), of);
        let lengths: Vec<usize> = text(&batch, "extra").into_iter().map(str::len).collect();
        assert!(
            text(&batch, "extra").iter().all(|extra| extra.bytes().all(|byte| byte.is_ascii_lowercase()))
        );
        let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
        if of == NexmarkStream::Bid && mean > 0.0 {
            // A fifth more or less.
            let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
            assert!(*least as f64 > mean * 0.78 && (*most as f64) < mean * 1.22, "{least} to {most}");
            // No two have the same letters.
            assert_eq!(text(&batch, "extra").into_iter().collect::<HashSet<_>>().len(), lengths.len());
        }
        mean
    };
    let plain = NexmarkOptions::default();
    close("bid", mean(&plain, NexmarkStream::Bid), 67.5, 0.5);
    // Name, address, card, city and state are 53 bytes long on average.
    close("person", mean(&plain, NexmarkStream::Person), 139.0, 2.0);
    // An item name and a description are 62 bytes long on average.
    close("auction", mean(&plain, NexmarkStream::Auction), 389.5, 2.0);
    let long = NexmarkOptions { bid_bytes: 1_032, ..NexmarkOptions::default() };
    close("long bid", mean(&long, NexmarkStream::Bid), 999.5, 3.0);
    let none =
        NexmarkOptions { person_bytes: 0, auction_bytes: 48, bid_bytes: 32, ..NexmarkOptions::default() };
    assert_eq!(NexmarkStream::ALL.map(|stream| mean(&none, stream)), [0.0; 3]);
}

#[test]
fn columns_are_independent() {
    let batch = table(NexmarkOptions::default(), NexmarkStream::Bid);
    let mut cells = [0u32; 9];
    let (prices, auctions, channels) =
        (whole(&batch, "price"), whole(&batch, "auction"), text(&batch, "channel"));
    let hot = |event: u64| (event / 50 * 3 + 2) as i64 / 100 * 100 + FIRST_ID;
    for (row, event) in events(NexmarkStream::Bid).enumerate() {
        let price = ((prices[row] as f64 / 100.0).log10() / 2.0) as usize;
        let channel = usize::from(channels[row].starts_with("channel-"));
        let auction = usize::from(auctions[row] == hot(event));
        cells[price.min(2) * 3 + channel + auction] += 1;
    }
    // Neither, one or both, in each third of the prices.
    for (cell, count) in cells.iter().enumerate() {
        let expected = 92_000.0 / 3.0 * [0.25, 0.5, 0.25][cell % 3];
        assert!((f64::from(*count) / expected - 1.0).abs() < 0.05, "{cells:?}");
    }
}

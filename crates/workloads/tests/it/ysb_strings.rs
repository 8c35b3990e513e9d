//! The public promises of the text variant of YSB: it has the rows of the variant with numbers, each number with one
//! name of its own.

use crate::laws;

use std::collections::HashMap;

use arrow_array::RecordBatch;
use laws::{checksum, text, whole};
use penstock_workloads::Generator;
use penstock_workloads::ysb::{Ysb, YsbOptions, YsbStrings, campaigns, campaigns_strings, schema_strings};
use proptest::prelude::*;

const ROWS: u64 = 50_000;

fn both(options: YsbOptions) -> (RecordBatch, RecordBatch) {
    let numbers = Ysb::new(options.clone()).expect("good options");
    let texts = YsbStrings::new(options).expect("good options");
    (laws::rows(&numbers, 0..ROWS), laws::rows(&texts, 0..ROWS))
}

/// Asserts that a number always has the same name and a name always refers to the same number.
fn one_name_each<'a>(numbers: &[i64], names: &[&'a str]) -> HashMap<i64, &'a str> {
    let (mut name_of, mut number_of) = (HashMap::new(), HashMap::new());
    for (&number, &name) in numbers.iter().zip(names) {
        assert_eq!(*name_of.entry(number).or_insert(name), name);
        assert_eq!(*number_of.entry(name).or_insert(number), number);
    }
    name_of
}

fn is_uuid(name: &str) -> bool {
    name.len() == 36
        && name.bytes().enumerate().all(|(n, byte)| match n {
            8 | 13 | 18 | 23 => byte == b'-',
            14 => byte == b'4',
            19 => b"89ab".contains(&byte),
            _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
        })
}

proptest! {
    #[test]
    fn any_split_gives_the_same_rows(
        seed: u64,
        zipf in prop_oneof![Just(0.0), 0.1..3.0],
        out_of_order_ms in 0..50u64,
        switch_every_s in 0..10u64,
        start in prop_oneof![0..10_000u64, 0..1u64 << 40],
        rows in 0..1_000u64,
        batch_rows in 1..300u64,
        cut in 0.0..=1.0,
    ) {
        let options =
            YsbOptions { seed, rate: 100, zipf, out_of_order_ms, switch_every_s, ..YsbOptions::default() };
        laws::any_split_is_the_same(&YsbStrings::new(options).unwrap(), start, rows, batch_rows, cut);
    }
}

#[test]
fn the_schema_has_text_for_all_but_the_time() {
    let described = [
        "event_time Timestamp(ms)",
        "user_id Utf8",
        "page_id Utf8",
        "ad_id Utf8",
        "ad_type Utf8",
        "event_type Utf8",
        "ip Utf8",
    ];
    assert_eq!(laws::described(&schema_strings()), described);
}

#[test]
fn rows_are_those_of_the_numbers() {
    let options = YsbOptions { zipf: 0.5, out_of_order_ms: 50, late_every: 10, ..YsbOptions::default() };
    let (numbers, texts) = both(options);
    assert_eq!(numbers.column_by_name("event_time"), texts.column_by_name("event_time"));
    for (name, values) in [("user_id", 100), ("page_id", 100), ("ad_id", 1_000)] {
        let names = one_name_each(&whole(&numbers, name), &text(&texts, name));
        assert_eq!(names.len(), values, "{name}");
        assert!(names.values().all(|name| is_uuid(name)));
    }
    let words = |column: &str, expected: &[&str]| {
        let names = one_name_each(&whole(&numbers, column), &text(&texts, column));
        assert!((0..).zip(expected).all(|(number, name)| names[&number] == *name), "{names:?}");
        assert_eq!(names.len(), expected.len());
    };
    words("ad_type", &["banner", "modal", "sponsored-search", "mail", "mobile"]);
    words("event_type", &["view", "click", "purchase"]);
    for (ip, dotted) in whole(&numbers, "ip").into_iter().zip(text(&texts, "ip")) {
        assert_eq!(dotted, std::net::Ipv4Addr::from(ip as u32).to_string());
    }
}

#[test]
fn kinds_of_things_share_no_names() {
    let (_, texts) = both(YsbOptions::default());
    let table = campaigns_strings(7);
    let mut names: Vec<&str> =
        ["user_id", "page_id", "ad_id"].iter().flat_map(|name| text(&texts, name)).collect();
    names.extend(text(&table, "campaign_id"));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 100 + 100 + 1_000 + 100);
}

#[test]
fn names_do_not_depend_on_the_seed() {
    let (numbers, texts) = both(YsbOptions::default());
    let (other_numbers, other_texts) = both(YsbOptions { seed: 8, ..YsbOptions::default() });
    let names = one_name_each(&whole(&numbers, "ad_id"), &text(&texts, "ad_id"));
    assert_eq!(names, one_name_each(&whole(&other_numbers, "ad_id"), &text(&other_texts, "ad_id")));
}

#[test]
fn campaigns_are_those_of_the_numbers() {
    let (numbers, texts) = both(YsbOptions::default());
    let names = one_name_each(&whole(&numbers, "ad_id"), &text(&texts, "ad_id"));
    let (table, table_texts) = (campaigns(7), campaigns_strings(7));
    let ads = one_name_each(&whole(&table, "ad_id"), &text(&table_texts, "ad_id"));
    assert_eq!(ads, names);
    let campaigns = one_name_each(&whole(&table, "campaign_id"), &text(&table_texts, "campaign_id"));
    assert_eq!(campaigns.len(), 100);
    assert!(campaigns.values().all(|name| is_uuid(name)));
}

#[test]
fn options_and_ranges_are_checked_as_for_the_numbers() {
    let bad = YsbOptions { view_share: 2.0, ..YsbOptions::default() };
    assert_eq!(YsbStrings::new(bad.clone()).unwrap_err(), Ysb::new(bad).unwrap_err());
    let slow = YsbOptions { rate: 1, ..YsbOptions::default() };
    laws::times_that_do_not_fit_are_refused(&YsbStrings::new(slow).unwrap());
}

/// WORKLOAD-3: if this fails, the data set has changed, and every published figure with it.
#[test]
fn the_data_set_never_changes() {
    let sum = |options: YsbOptions| checksum(&YsbStrings::new(options).unwrap().generate(0..1_000).unwrap());
    assert_eq!(sum(YsbOptions::default()), 0x5D29_3006_9108_510F);
    assert_eq!(
        sum(YsbOptions { seed: 42, zipf: 1.0, out_of_order_ms: 50, ..YsbOptions::default() }),
        0x1D9F_E426_6CA8_213F
    );
    assert_eq!(checksum(&campaigns_strings(7)), 0x8C3D_41E1_40DE_7A74);
}

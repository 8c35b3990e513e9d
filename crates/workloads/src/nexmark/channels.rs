//! The origin of bids: a channel and its URL.
//!
//! There are 10,004 of them, and their URLs depend on the seed alone. They are written once; a bid copies its own from
//! there.

use arrow_array::ArrayRef;

use super::lanes;
use super::text::{AsciiColumn, sequence};
use crate::Buffers;
use crate::random::RandomLane;

/// The channels of every other bid.
const HOT: [&str; 4] = ["Google", "Facebook", "Baidu", "Apple"];
/// All others: `channel-0` and so on.
const OTHERS: u64 = 10_000;
/// Of this many bids all but one have a hot channel.
const HOT_RATIO: u64 = 2;
/// Of this many channels that are not hot, all but one have an id in their URL.
const ID_RATIO: u64 = 10;

/// The names and the URLs, first those of the hot channels.
#[derive(Debug)]
pub(super) struct Channels {
    seed: u64,
    names: AsciiColumn,
    urls: AsciiColumn,
}

impl Channels {
    pub(super) fn new(seed: u64) -> Self {
        let channels = HOT.len() + OTHERS as usize;
        let buffers = &mut Buffers::default();
        let (mut names, mut urls) =
            (AsciiColumn::new(channels, 12, buffers), AsciiColumn::new(channels, 72, buffers));
        let has_id = RandomLane::new(seed, lanes::HAS_CHANNEL_ID);
        for (channel, name) in (0..).zip(HOT) {
            names.push(name.as_bytes());
            names.end_row();
            push_page(&mut urls, seed, channel);
            urls.end_row();
        }
        for number in 0..OTHERS {
            let channel = HOT.len() as u64 + number;
            names.push(b"channel-");
            names.push(number.to_string().as_bytes());
            names.end_row();
            push_page(&mut urls, seed, channel);
            if has_id.below(channel, ID_RATIO) > 0 {
                // Reversing the bits spreads ids out and keeps them distinct.
                let id = (number as u32).reverse_bits() >> 1;
                urls.push(b"&channel_id=");
                urls.push(id.to_string().as_bytes());
            }
            urls.end_row();
        }
        Self { seed, names, urls }
    }

    /// Returns the columns `channel` and `url` of these bids.
    pub(super) fn columns(&self, events: &[u64], buffers: &mut Buffers) -> [ArrayRef; 2] {
        let lane = |lane| RandomLane::new(self.seed, lane);
        let (is_hot, hot) = (lane(lanes::CHANNEL_IS_HOT), lane(lanes::HOT_CHANNEL));
        let other = lane(lanes::CHANNEL);
        let mut names = AsciiColumn::new(events.len(), 12, buffers);
        let mut urls = AsciiColumn::new(events.len(), 72, buffers);
        for &event in events {
            let channel = if is_hot.below(event, HOT_RATIO) > 0 {
                hot.below(event, HOT.len() as u64)
            } else {
                HOT.len() as u64 + other.below(event, OTHERS)
            };
            names.push(self.names.row(channel as usize));
            names.end_row();
            urls.push(self.urls.row(channel as usize));
            urls.end_row();
        }
        [names.finish(), urls.finish()]
    }
}

/// Writes the page of a channel, in three folders of 3 or 4 letters.
fn push_page(urls: &mut AsciiColumn, seed: u64, channel: u64) {
    let lengths = sequence(RandomLane::new(seed, lanes::FOLDER_LENGTH), channel);
    let folders = sequence(RandomLane::new(seed, lanes::FOLDER), channel);
    urls.push(b"https://www.nexmark.com/");
    for folder in 0..3 {
        urls.push_letters(sequence(folders, folder), 3 + lengths.below(folder, 2));
        urls.push(b"/");
    }
    urls.push(b"item.htm?query=1");
}

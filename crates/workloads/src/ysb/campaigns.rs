//! The assignment of ads to campaigns: the table in which the query looks ads up.

use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use super::columns::LANE_CAMPAIGNS;
use super::{ADS, ADS_PER_CAMPAIGN};
use crate::random::RandomLane;

/// Returns the campaign of each ad, by ad id: the ads are shuffled by the seed, then dealt out ten to a campaign.
pub fn campaign_of_ads(seed: u64) -> Vec<i64> {
    let lane = RandomLane::new(seed, LANE_CAMPAIGNS);
    let mut campaigns: Vec<i64> = (0..ADS).map(|place| i64::from(place / ADS_PER_CAMPAIGN)).collect();
    for last in (1..campaigns.len()).rev() {
        let other = lane.below(last as u64, last as u64 + 1) as usize;
        campaigns.swap(last, other);
    }
    campaigns
}

/// Returns the campaign table of a seed: `ad_id` and `campaign_id`, 1000 rows, ordered by ad.
pub fn campaigns(seed: u64) -> RecordBatch {
    let number = |name: &str| Field::new(name, DataType::Int64, false);
    let schema = Schema::new(vec![number("ad_id"), number("campaign_id")]);
    let ads = Int64Array::from_iter_values(0..i64::from(ADS));
    let campaigns = Int64Array::from(campaign_of_ads(seed));
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(ads), Arc::new(campaigns)])
        .expect("two columns of numbers, one row per ad")
}

//! The closest match to a misspelt name.

/// Returns the candidate that `wanted` was most likely meant to be, if any is close enough to suggest.
///
/// Letter case does not count, and neither does a swap of two neighbours; beyond that about a third of the letters may
/// differ.
pub fn closest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    let allowed = wanted.chars().count().max(3).div_ceil(3);
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let columns = ["event_time", "event_type", "ad_id", "user_id"];
        assert_eq!(closest("evnt_type", columns), Some("event_type"));
        assert_eq!(closest("AD_ID", columns), Some("ad_id"));
        assert_eq!(closest("da_id", columns), Some("ad_id"));
    }

    #[test]
    fn keeps_quiet_when_nothing_is_near() {
        assert_eq!(closest("temperature", ["event_time", "ad_id"]), None);
        assert_eq!(closest("x", []), None);
    }
}

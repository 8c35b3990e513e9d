//! Key groups: the parts of keyed state, spread over workers and moved between them.

/// Number of key groups.
pub const KEY_GROUPS: usize = 256;

/// The number of a key group.
pub type KeyGroup = u8;

/// A set of key groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyGroups([u64; KEY_GROUPS / 64]);

impl KeyGroups {
    /// The empty set.
    pub const NONE: Self = Self([0; KEY_GROUPS / 64]);
    /// Every group.
    pub const ALL: Self = Self([u64::MAX; KEY_GROUPS / 64]);

    /// Returns the set of one group.
    pub fn one(group: KeyGroup) -> Self {
        let mut groups = Self::NONE;
        groups.insert(group);
        groups
    }

    /// Adds a group.
    pub fn insert(&mut self, group: KeyGroup) {
        self.0[usize::from(group) / 64] |= 1 << (group % 64);
    }

    /// Returns true if the group is in the set.
    #[inline]
    pub fn contains(self, group: KeyGroup) -> bool {
        self.0[usize::from(group) / 64] >> (group % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in() {
        let mut groups = KeyGroups::one(3);
        groups.insert(255);
        let held: Vec<KeyGroup> = (0..=255).filter(|&group| groups.contains(group)).collect();
        assert_eq!(held, [3, 255]);
        assert!((0..=255).all(|group| KeyGroups::ALL.contains(group) && !KeyGroups::NONE.contains(group)));
    }
}

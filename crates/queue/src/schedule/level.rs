//! How urgent a ready task is.

/// Levels of urgency.
pub const LEVELS: usize = 8;

/// How urgent a ready task is. Level 0 is the most urgent one, so a smaller level runs first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(u8);

impl Level {
    /// The most urgent level.
    pub const FIRST: Self = Self(0);
    /// The least urgent level.
    pub const LAST: Self = Self(LEVELS as u8 - 1);

    /// Returns the level of that number, unless it is [`LEVELS`] or more.
    pub const fn new(number: u8) -> Option<Self> {
        if number <= Self::LAST.0 { Some(Self(number)) } else { None }
    }

    /// Returns its number, below [`LEVELS`].
    pub const fn number(self) -> usize {
        self.0 as usize
    }

    /// Returns all levels, the most urgent one first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..LEVELS as u8).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_eight_levels_and_the_first_is_the_most_urgent() {
        assert_eq!(Level::all().count(), LEVELS);
        assert!(Level::all().is_sorted() && Level::FIRST < Level::LAST);
        assert_eq!((Level::new(7), Level::new(8)), (Some(Level::LAST), None));
    }
}

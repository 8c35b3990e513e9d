//! Which rows of columnar state are meant.

/// Some ids, in order.
#[derive(Clone, Copy, Debug)]
pub enum Pick<'a> {
    /// All from the first to the second, without the second.
    Range(usize, usize),
    /// These.
    List(&'a [u32]),
}

impl Pick<'_> {
    /// How many ids.
    pub fn len(self) -> usize {
        match self {
            Self::Range(from, to) => to - from,
            Self::List(ids) => ids.len(),
        }
    }

    /// Whether there is no id.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Appends what `value` gives for each id. Which form the ids have is asked once.
    #[inline]
    pub fn extend<T>(self, out: &mut Vec<T>, value: impl Fn(usize) -> T) {
        match self {
            Self::Range(from, to) => out.extend((from..to).map(value)),
            Self::List(ids) => out.extend(ids.iter().map(|&id| value(id as usize))),
        }
    }

    /// Whether `holds` is true for every id.
    #[inline]
    pub fn all(self, mut holds: impl FnMut(usize) -> bool) -> bool {
        match self {
            Self::Range(from, to) => (from..to).all(holds),
            Self::List(ids) => ids.iter().all(|&id| holds(id as usize)),
        }
    }
}

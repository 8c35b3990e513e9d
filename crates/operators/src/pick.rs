//! Selects rows of columnar state.

/// Some ids, in order.
#[derive(Clone, Copy, Debug)]
pub enum Pick<'a> {
    /// A range from the first, without the second.
    Range(usize, usize),
    /// These.
    List(&'a [u32]),
}

impl Pick<'_> {
    /// Returns the number of ids.
    pub fn len(self) -> usize {
        match self {
            Self::Range(from, to) => to - from,
            Self::List(ids) => ids.len(),
        }
    }

    /// Returns true if there is no id.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Appends `value` of each id. The form of the ids is tested once.
    #[inline]
    pub fn extend<T>(self, out: &mut Vec<T>, value: impl Fn(usize) -> T) {
        match self {
            Self::Range(from, to) => out.extend((from..to).map(value)),
            Self::List(ids) => out.extend(ids.iter().map(|&id| value(id as usize))),
        }
    }

    /// Returns true if `holds` is true for every id.
    #[inline]
    pub fn all(self, mut holds: impl FnMut(usize) -> bool) -> bool {
        match self {
            Self::Range(from, to) => (from..to).all(holds),
            Self::List(ids) => ids.iter().all(|&id| holds(id as usize)),
        }
    }
}

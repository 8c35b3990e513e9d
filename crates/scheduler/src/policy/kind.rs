//! The policies that an engine can be started with: the one list of their names.

use std::fmt;

use super::{Policy, adaptive, fcfs, rr};

/// A policy by its name.
#[derive(Clone, Copy)]
pub struct PolicyKind {
    name: &'static str,
    make: fn() -> Box<dyn Policy>,
}

/// A policy with no past.
fn new<P: Policy + Default + 'static>() -> Box<dyn Policy> {
    Box::<P>::default()
}

impl PolicyKind {
    const ALL: [Self; 3] = [
        Self { name: adaptive::NAME, make: new::<adaptive::Adaptive> },
        Self { name: fcfs::NAME, make: new::<fcfs::Fcfs> },
        Self { name: rr::NAME, make: new::<rr::Rr> },
    ];

    /// Every policy under the name that users write. The first one is the default.
    pub const NAMES: [(&'static str, Self); Self::ALL.len()] = {
        let mut names = [("", Self::ALL[0]); Self::ALL.len()];
        let mut index = 0;
        while index < names.len() {
            names[index] = (Self::ALL[index].name, Self::ALL[index]);
            index += 1;
        }
        names
    };

    /// Returns the name that users write.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Makes the policy, with no past.
    pub fn make(self) -> Box<dyn Policy> {
        (self.make)()
    }
}

impl Default for PolicyKind {
    fn default() -> Self {
        Self::ALL[0]
    }
}

impl PartialEq for PolicyKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for PolicyKind {}

impl fmt::Debug for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PolicyKind").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_knows_the_name_that_it_is_listed_under_and_lists_its_parameters() {
        for (name, kind) in PolicyKind::NAMES {
            let mut policy = kind.make();
            assert_eq!((policy.name(), kind.name()), (name, name));
            for parameter in policy.parameters() {
                policy.set(parameter.name, parameter.value).expect("its own value is one that it takes");
                assert!(!parameter.about.is_empty());
            }
            let names =
                |policy: &dyn Policy| policy.parameters().iter().map(|it| it.name).collect::<Vec<_>>();
            let mut unique = names(&*policy);
            unique.sort_unstable();
            unique.dedup();
            assert_eq!(unique.len(), names(&*policy).len(), "{name}");
        }
    }

    #[test]
    fn names_tell_kinds_apart() {
        let [(_, first), .., (_, last)] = PolicyKind::NAMES;
        assert!(first == PolicyKind::default() && first != last);
    }
}

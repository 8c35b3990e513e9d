//! A policy by its name.

use std::fmt;

use super::{POLICIES, ParameterError, Policy, Value};

/// A policy that an engine can be started with.
#[derive(Clone, Copy)]
pub struct PolicyKind {
    name: &'static str,
    make: fn() -> Box<dyn Policy>,
}

impl PolicyKind {
    /// Every policy under the name that users write. The first one is the default.
    pub const NAMES: [(&'static str, Self); POLICIES.len()] = {
        let mut names = [("", POLICIES[0]); POLICIES.len()];
        let mut index = 0;
        while index < names.len() {
            names[index] = (POLICIES[index].name, POLICIES[index]);
            index += 1;
        }
        names
    };

    /// Names a policy and its constructor.
    pub(super) const fn new(name: &'static str, make: fn() -> Box<dyn Policy>) -> Self {
        Self { name, make }
    }

    /// Returns the name that users write.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Makes the policy, with no past.
    pub fn make(self) -> Box<dyn Policy> {
        (self.make)()
    }

    /// Makes the policy, with no past and with those parameters.
    ///
    /// # Errors
    /// As [`Policy::set`].
    pub fn make_with(self, parameters: &[(&str, Value)]) -> Result<Box<dyn Policy>, ParameterError> {
        let mut policy = self.make();
        for (name, value) in parameters {
            policy.set(name, *value)?;
        }
        Ok(policy)
    }
}

impl Default for PolicyKind {
    fn default() -> Self {
        POLICIES[0]
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
    fn a_policy_is_made_with_parameters_or_not_at_all() {
        for (_, kind) in PolicyKind::NAMES {
            let Some(first) = kind.make().parameters().first().copied() else { continue };
            let made = kind.make_with(&[(first.name, first.value)]).expect("its own value");
            assert_eq!(made.parameters(), kind.make().parameters());
            assert!(kind.make_with(&[(first.name, first.value), ("nothing", first.value)]).is_err());
        }
    }

    #[test]
    fn names_tell_kinds_apart() {
        let [(_, first), .., (_, last)] = PolicyKind::NAMES;
        assert!(first == PolicyKind::default() && first != last);
    }
}

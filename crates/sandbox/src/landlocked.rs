//! What does Landlock forbid? Opening files, binding or connecting ports, and signalling other
//! processes.

use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, PathBeneath, PathFd, PathFdError,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};

/// Everything that Landlock supports is handled, and no rule allows anything but reading files
/// below `readable`. Older kernels support less: seccomp forbids what they lack.
pub(crate) fn restrict(readable: Option<&Path>) -> Result<(), String> {
    let readable = readable.map(PathFd::new).transpose().map_err(|error: PathFdError| error.to_string())?;
    let restricted = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V5))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(ABI::V5)))
        .and_then(|rules| rules.scope(Scope::from_all(ABI::V6)))
        .and_then(Ruleset::create)
        .and_then(|rules| match readable {
            Some(folder) => rules.add_rule(PathBeneath::new(folder, AccessFs::ReadFile)),
            None => Ok(rules),
        })
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(|error| error.to_string())?;
    match restricted.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => {
            Err("this kernel does not have it, or does not have it enabled".to_owned())
        }
    }
}

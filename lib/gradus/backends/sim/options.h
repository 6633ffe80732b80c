// Reads sim::Options from the environment.
#pragma once
#include <gradus/runtime/sim.h>

namespace gradus::sim {

/// The defaults with what the environment says; throws E-ENVIRONMENT naming variable, value and what it may
/// be.
Options options_from_environment();
/// Throws E-ARG, naming the field, unless every one is in its range.
void check(const Options& options);

}  // namespace gradus::sim

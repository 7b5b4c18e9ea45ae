// The names of traits in listings of ops and in patterns.
#pragma once

#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/export.h>

#include <span>

namespace tapedeck TAPEDECK_API {

struct TraitName {
  Trait trait;
  const char* name;
};

std::span<const TraitName> trait_names();  // every trait once

}  // namespace TAPEDECK_API

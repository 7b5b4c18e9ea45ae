#include <tapedeck/engine/ir/trait_names.h>

namespace tapedeck {

namespace {

constexpr TraitName kTraits[] = {{kElementwise, "elementwise"},
                                 {kCheap, "cheap"},
                                 {kView, "view"},
                                 {kRandom, "random"},
                                 {kEffect, "effect"},
                                 {kAnyStrides, "any_strides"},
                                 {kMatrixStrides, "matrix_strides"},
                                 {kDeclaredTypes, "declared_types"},
                                 {kNoGradient, "no_gradient"},
                                 {kZeroCost, "zero_cost"},
                                 {kPlanOnly, "plan_only"},
                                 {kNativeHalf, "native_half"},
                                 {kLowPrecision, "low_precision"},
                                 {kFullPrecision, "full_precision"},
                                 {kCopy, "copy"},
                                 {kConversion, "conversion"},
                                 {kBroadcast, "broadcast"},
                                 {kOwnSegment, "own_segment"},
                                 {kSampleTypes, "sample_types"},
                                 {kHostCall, "host_call"},
                                 {kTiled, "tiled"}};

}  // namespace

std::span<const TraitName> trait_names() { return kTraits; }

}  // namespace tapedeck

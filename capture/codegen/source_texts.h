// The texts that every generated kernel begins with. CMake copies them into the library (embed.cmake): the two texts of this
// folder, and the headers of kernels/ with the scalar functors, without their includes.
#pragma once

namespace tapedeck::codegen {

extern const char* const k_prelude;      // prelude.in
extern const char* const k_lanes;        // lanes.in
extern const char* const k_scalar;       // kernels/scalar.h
extern const char* const k_half;         // kernels/half.h
extern const char* const k_functions;    // kernels/scalar_functions.h
extern const char* const k_activations;  // kernels/scalar_activations.h
extern const char* const k_losses;       // kernels/loss_scalar.h

}  // namespace tapedeck::codegen

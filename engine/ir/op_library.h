// Ops from outside: a shared library that holds op blocks and their kernels, loaded while the program runs.
//
//     const tapedeck::Op cube{.name = "acme.cube", .doc = "x * x * x", .traits = tapedeck::kElementwise, ..., .kernels =
//     {cube_kernel}}; extern "C" void tapedeck_register_ops() { tapedeck::register_op(cube); }
//
// The library links to libtapedeck.so, so it shares the one registry: its ops are recorded, printed, planned, replayed and
// differentiated like ours. A name with a dot keeps it apart from ops to come. It stays loaded for the whole process.
#pragma once

#include <tapedeck/kernels/export.h>

#include <string>

namespace tapedeck TAPEDECK_API {

// Loads the library and calls its tapedeck_register_ops(). Loading it again does nothing. Throws FileError if it cannot be
// loaded or has no such function, and what register_op throws. Thread safe.
void load_ops(const std::string& path);

}  // namespace TAPEDECK_API

// TAPEDECK_API marks the namespace blocks whose declarations libtapedeck.so exports. The library is built with hidden
// visibility, so that kernels and internals stay private.
#pragma once

#define TAPEDECK_API __attribute__((visibility("default")))

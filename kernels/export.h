// What libtapedeck.so exports: everything declared in a namespace block that says TAPEDECK_API. The library is built with
// hidden visibility; kernels and internals stay inside.
#pragma once

#define TAPEDECK_API __attribute__((visibility("default")))

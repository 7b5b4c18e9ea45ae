// The ops of this room that have a kernel for the device (kernel_table.cpp).
#pragma once

// clang-format off
#define TAPEDECK_CUDA_CREATION(X, W) X(uniform, in_f32) X(normal, in_f32) X(dropout, in_f32) X(rng_next, in_f32)
// clang-format on

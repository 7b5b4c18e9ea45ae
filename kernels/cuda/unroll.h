// Hints to nvcc about loops, calls and registers. Other compilers see nothing of them.
#pragma once

// TAPEDECK_UNROLLED stands in front of a loop of few fixed steps, whose variables are to lie in registers. A loop after
// TAPEDECK_ROLLED stays a loop. A function with TAPEDECK_DEVICE_CALL is called, not inlined: a long function in an unrolled
// loop would exist many times. TAPEDECK_TWO_BLOCKS lets two blocks of 256 threads fit a multiprocessor, so a thread gets at
// most 128 registers. TAPEDECK_TWO_SMALL_BLOCKS does so for blocks of 128 threads, which may have 255.
#ifdef __CUDACC__
#define TAPEDECK_UNROLLED _Pragma("unroll")
#define TAPEDECK_UNROLLED_BY_2 _Pragma("unroll 2")
#define TAPEDECK_ROLLED _Pragma("unroll 1")
#define TAPEDECK_DEVICE_CALL __device__ __noinline__
#define TAPEDECK_TWO_BLOCKS __launch_bounds__(256, 2)
#define TAPEDECK_TWO_SMALL_BLOCKS __launch_bounds__(128, 2)
#else
#define TAPEDECK_UNROLLED
#define TAPEDECK_UNROLLED_BY_2
#define TAPEDECK_ROLLED
#define TAPEDECK_DEVICE_CALL inline
#define TAPEDECK_TWO_BLOCKS
#define TAPEDECK_TWO_SMALL_BLOCKS
#endif

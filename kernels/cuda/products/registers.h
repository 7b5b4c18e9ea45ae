// What the kernels of the products tell nvcc about registers. Other compilers see nothing of it.
#pragma once

#ifdef __CUDACC__
#define TAPEDECK_UNROLLED _Pragma("unroll")
#define TAPEDECK_UNROLLED_BY_2 _Pragma("unroll 2")
#define TAPEDECK_NOT_UNROLLED _Pragma("unroll 1")
// Two blocks of 256 threads are to fit a multiprocessor, so a thread gets at most 128 registers.
#define TAPEDECK_TWO_BLOCKS __launch_bounds__(256, 2)
#else
#define TAPEDECK_UNROLLED
#define TAPEDECK_UNROLLED_BY_2
#define TAPEDECK_NOT_UNROLLED
#define TAPEDECK_TWO_BLOCKS
#endif

// The pooling kernels of the device (pool.inl).
#include <tapedeck/kernels/cuda/pooling/pool.inl>

// The kernels of this room for the device: one call of nvcc, because its start costs as much as a small family.
#include <tapedeck/kernels/cuda/reduction/argmax.inl>
#include <tapedeck/kernels/cuda/reduction/reduce.inl>
#include <tapedeck/kernels/cuda/reduction/statistics.inl>

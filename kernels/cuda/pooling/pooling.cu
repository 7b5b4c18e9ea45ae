// The kernels of this room for the device: one call of nvcc, because its start costs as much as a small family.
#include <tapedeck/kernels/cuda/pooling/adaptive.inl>
#include <tapedeck/kernels/cuda/pooling/interpolate.inl>
#include <tapedeck/kernels/cuda/pooling/pool.inl>

// The kernels of this room for the device: one call of nvcc, because its start costs as much as a small family.
#include <tapedeck/kernels/cuda/creation/choose.inl>
#include <tapedeck/kernels/cuda/creation/create.inl>
#include <tapedeck/kernels/cuda/creation/random.inl>

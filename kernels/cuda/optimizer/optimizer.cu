// The kernels of this room for the device: one call of nvcc, because its start costs as much as a small family.
#include <tapedeck/kernels/cuda/optimizer/gradients.inl>
#include <tapedeck/kernels/cuda/optimizer/grouped.inl>
#include <tapedeck/kernels/cuda/optimizer/updates.inl>

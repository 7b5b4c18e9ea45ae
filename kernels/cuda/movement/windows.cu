// Compiles the pads, roll and the triangles for the device.
#include <tapedeck/kernels/cuda/movement/windows.inl>

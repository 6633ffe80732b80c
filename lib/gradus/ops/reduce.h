#pragma once
#include <gradus/tensor/tensor.h>
namespace gradus { Tensor sum_to_size(const Tensor&, const Shape&); }

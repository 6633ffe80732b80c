// Files of tensors: save_safetensors(path, model.state_dict()), checkpoints, NumPy arrays.
#pragma once
#include <gradus/io/checkpoint.h>
#include <gradus/io/environment_json.h>
#include <gradus/io/npy.h>
#include <gradus/io/safetensors.h>

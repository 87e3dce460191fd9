// Plimsoll: a tensor runtime that trains and runs models inside a memory budget you set.
// This is the one header programs include.
#pragma once

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/dtype.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/half.h"
#include "plimsoll/base/shape.h"

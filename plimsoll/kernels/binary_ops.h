// The binary operations: PLIMSOLL_BINARY(name, element types, result type, value for elements a and b of type T).
// Adding one touches this file only: the enumeration and every loop are made from it. No include guard: it is a list.
//
// Types are Numbers (i32, i64, f32, f64), Floats (f32, f64), All (those and bool); the result is T or Bool.
PLIMSOLL_BINARY(add, Numbers, T, wrap_add(a, b))
PLIMSOLL_BINARY(subtract, Numbers, T, wrap_subtract(a, b))
PLIMSOLL_BINARY(multiply, Numbers, T, wrap_multiply(a, b))
PLIMSOLL_BINARY(divide, Numbers, T, divide_or_floor(a, b))  // Integers floor; by zero they give 0.
PLIMSOLL_BINARY(floor_divide, Numbers, T, floor_quotient(a, b))
PLIMSOLL_BINARY(modulo, Numbers, T, floor_modulo(a, b))  // The divisor's sign; integers by zero give 0.
PLIMSOLL_BINARY(power, Numbers, T, power_of(a, b))       // Integers wrap; negative exponents truncate towards zero.
PLIMSOLL_BINARY(minimum, All, T, (b < a || b != b) && a == a ? b : a)
PLIMSOLL_BINARY(maximum, All, T, (b > a || b != b) && a == a ? b : a)  // NaN if either is.
PLIMSOLL_BINARY(squared_difference, Numbers, T, wrap_multiply(wrap_subtract(a, b), wrap_subtract(a, b)))
PLIMSOLL_BINARY(leaky_relu, Floats, T, a > T(0) ? a : a * b)  // b is the slope.
PLIMSOLL_BINARY(relu_grad, Floats, T, a > T(0) ? b : T(0))    // a: input or output, b: the output's gradient.
PLIMSOLL_BINARY(tanh_grad, Floats, T, b*(T(1) - a * a))       // a: the output.
PLIMSOLL_BINARY(sigmoid_grad, Floats, T, b*(a*(T(1) - a)))    // a: the output.
PLIMSOLL_BINARY(equal, All, Bool, a == b)
PLIMSOLL_BINARY(not_equal, All, Bool, a != b)
PLIMSOLL_BINARY(less, All, Bool, a < b)
PLIMSOLL_BINARY(less_equal, All, Bool, a <= b)
PLIMSOLL_BINARY(greater, All, Bool, a > b)
PLIMSOLL_BINARY(greater_equal, All, Bool, a >= b)
PLIMSOLL_BINARY(logical_and, All, Bool, (a != T(0)) & (b != T(0)))
PLIMSOLL_BINARY(logical_or, All, Bool, (a != T(0)) | (b != T(0)))
PLIMSOLL_BINARY(logical_xor, All, Bool, (a != T(0)) != (b != T(0)))

// The dtypes: S_x is how an element is stored, X_x what it is computed in; LOAD_x and STORE_x convert.
// Half precision is computed in float, as on the CPU; OpenCL has no bfloat16, which is a float's upper half.

#ifdef HAS_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define S_float64 double
#define X_float64 double
#define LOAD_float64(p, i) ((p)[i])
#define STORE_float64(v, p, i) ((p)[i] = (v))
#define W_float64 double
#define W_float32 double
#define W_float16 double
#define W_bfloat16 double
#else
#define W_float32 float
#define W_float16 float
#define W_bfloat16 float
#endif

#define S_bool uchar
#define X_bool int
#define LOAD_bool(p, i) ((p)[i] != 0)
#define STORE_bool(v, p, i) ((p)[i] = (v) != 0)
#define W_bool int

#define S_uint8 uchar
#define S_uint16 ushort
#define S_uint32 uint
#define S_uint64 ulong
#define S_int8 char
#define S_int16 short
#define S_int32 int
#define S_int64 long
#define S_float32 float
#define X_uint8 uchar
#define X_uint16 ushort
#define X_uint32 uint
#define X_uint64 ulong
#define X_int8 char
#define X_int16 short
#define X_int32 int
#define X_int64 long
#define X_float32 float
#define W_uint8 ulong
#define W_uint16 ulong
#define W_uint32 ulong
#define W_uint64 ulong
#define W_int8 long
#define W_int16 long
#define W_int32 long
#define W_int64 long
#define LOAD_uint8(p, i) ((p)[i])
#define LOAD_uint16(p, i) ((p)[i])
#define LOAD_uint32(p, i) ((p)[i])
#define LOAD_uint64(p, i) ((p)[i])
#define LOAD_int8(p, i) ((p)[i])
#define LOAD_int16(p, i) ((p)[i])
#define LOAD_int32(p, i) ((p)[i])
#define LOAD_int64(p, i) ((p)[i])
#define LOAD_float32(p, i) ((p)[i])
#define STORE_uint8(v, p, i) ((p)[i] = (v))
#define STORE_uint16(v, p, i) ((p)[i] = (v))
#define STORE_uint32(v, p, i) ((p)[i] = (v))
#define STORE_uint64(v, p, i) ((p)[i] = (v))
#define STORE_int8(v, p, i) ((p)[i] = (v))
#define STORE_int16(v, p, i) ((p)[i] = (v))
#define STORE_int32(v, p, i) ((p)[i] = (v))
#define STORE_int64(v, p, i) ((p)[i] = (v))
#define STORE_float32(v, p, i) ((p)[i] = (v))

// A complex number is a pair; what the pair's own arithmetic does not give computes on the host.
#define S_complex64 float2
#define X_complex64 float2
#define LOAD_complex64(p, i) ((p)[i])
#define STORE_complex64(v, p, i) ((p)[i] = (v))
#ifdef HAS_DOUBLE
#define S_complex128 double2
#define X_complex128 double2
#define LOAD_complex128(p, i) ((p)[i])
#define STORE_complex128(v, p, i) ((p)[i] = (v))
#endif

#define S_float16 half
#define X_float16 float
#define LOAD_float16(p, i) vload_half((i), (p))
#define STORE_float16(v, p, i) vstore_half_rte((float)(v), (i), (p))

#define S_bfloat16 ushort
#define X_bfloat16 float
#define LOAD_bfloat16(p, i) as_float((uint)(p)[i] << 16)
#define STORE_bfloat16(v, p, i) ((p)[i] = upper_half((float)(v)))

// Round to the nearest bfloat16, ties to even; a nan stays one.
ushort upper_half(float value) {
    uint bits = as_uint(value);
    if (isnan(value)) return (ushort)((bits >> 16) | 0x40);
    return (ushort)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define S(dtype) JOIN(S_, dtype)
#define X(dtype) JOIN(X_, dtype)
#define W(dtype) JOIN(W_, dtype)
#define LOAD(dtype) JOIN(LOAD_, dtype)
#define STORE(dtype) JOIN(STORE_, dtype)

// Where the elements of up to four arrays of one shape are; the first is the result.
#define DIMS 16
typedef struct {
    long count;
    long ndim;
    long shape[DIMS];
    long stride[4][DIMS];
    long offset[4];
} Layout;

// The place in array `which` of element `n`, counted row by row.
long place(const Layout *layout, int which, long n) {
    long found = layout->offset[which];
    for (int d = (int)layout->ndim - 1; d >= 0; --d) {
        found += n % layout->shape[d] * layout->stride[which][d];
        n /= layout->shape[d];
    }
    return found;
}

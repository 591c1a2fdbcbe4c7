// Products of matrices, a stack of them: a work item computes a block of 4 by 4 elements.

typedef struct {
    long rows, columns, inner;
    long a_row, a_inner, b_inner, b_column;
} Sizes;

__kernel void matmul(const Layout batch, const Sizes sizes, __global S(A) *r,
                     __global const S(A) *pa, __global const S(A) *pb) {
    const long row = 4 * get_global_id(1), column = 4 * get_global_id(0), n = get_global_id(2);
    if (row >= sizes.rows || column >= sizes.columns) return;
    const long ia = place(&batch, 1, n), ib = place(&batch, 2, n);
    long rows[4], columns[4];
    X(A) total[4][4];
    for (int i = 0; i < 4; ++i) {
        rows[i] = ia + min(row + i, sizes.rows - 1) * sizes.a_row;
        columns[i] = ib + min(column + i, sizes.columns - 1) * sizes.b_column;
        for (int j = 0; j < 4; ++j) total[i][j] = 0;
    }
    for (long k = 0; k < sizes.inner; ++k) {
        X(A) a[4], b[4];
        for (int i = 0; i < 4; ++i) {
            a[i] = LOAD(A)(pa, rows[i] + k * sizes.a_inner);
            b[i] = LOAD(A)(pb, columns[i] + k * sizes.b_inner);
        }
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) total[i][j] += a[i] * b[j];
    }
    const long start = n * sizes.rows * sizes.columns;
    for (int i = 0; i < 4 && row + i < sizes.rows; ++i)
        for (int j = 0; j < 4 && column + j < sizes.columns; ++j)
            STORE(A)(total[i][j], r, start + (row + i) * sizes.columns + column + j);
}

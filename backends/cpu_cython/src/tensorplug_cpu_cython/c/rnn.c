#include "rnn.h"

#include "parallel.h"
#include "vmath.h"

/* Four (or three) rows of gates are read side by side: `a` is the input's part, `b` the state's. */
#define CELLS(S, T)                                                                                    \
    static void lstm_##S(const tp_rnn *c, int threads) {                                              \
        TP_PARALLEL(c->n, threads, begin, end, {                                                       \
            for (ptrdiff_t r = begin; r < end; r++) {                                                  \
                const ptrdiff_t h = c->h;                                                              \
                const T *a = (const T *)c->in[0] + r * c->step[0], *b = (const T *)c->in[1] + r * c->step[1]; \
                const T *cell = (const T *)c->in[2] + r * c->step[2];                                  \
                T *hidden = (T *)c->out[0] + r * h, *state = (T *)c->out[1] + r * h;                   \
                INDEPENDENT for (ptrdiff_t j = 0; j < h; j++) {                                        \
                    const T i = m_sigmoid_##S(a[j] + b[j]), f = m_sigmoid_##S(a[h + j] + b[h + j]);    \
                    const T g = m_tanh_##S(a[2 * h + j] + b[2 * h + j]);                               \
                    const T o = m_sigmoid_##S(a[3 * h + j] + b[3 * h + j]);                            \
                    const T next = f * cell[j] + i * g;                                                \
                    state[j] = next;                                                                   \
                    hidden[j] = o * m_tanh_##S(next);                                                  \
                }                                                                                      \
            }                                                                                          \
        });                                                                                            \
    }                                                                                                  \
    static void gru_##S(const tp_rnn *c, int threads) {                                               \
        TP_PARALLEL(c->n, threads, begin, end, {                                                       \
            for (ptrdiff_t row = begin; row < end; row++) {                                            \
                const ptrdiff_t h = c->h;                                                              \
                const T *a = (const T *)c->in[0] + row * c->step[0], *b = (const T *)c->in[1] + row * c->step[1]; \
                const T *hidden = (const T *)c->in[2] + row * c->step[2];                              \
                T *next = (T *)c->out[0] + row * h;                                                    \
                INDEPENDENT for (ptrdiff_t j = 0; j < h; j++) {                                        \
                    const T r = m_sigmoid_##S(a[j] + b[j]), z = m_sigmoid_##S(a[h + j] + b[h + j]);    \
                    const T n = m_tanh_##S(a[2 * h + j] + r * b[2 * h + j]);                           \
                    next[j] = n + z * (hidden[j] - n);                                                 \
                }                                                                                      \
            }                                                                                          \
        });                                                                                            \
    }

/* What comes in of a cell's results may come from two sides: from outside, and from the next step. */
#define LSTM_BACKWARD(name, S, T, hidden, state)                                                       \
    static void name##_##S(const tp_rnn *c, int threads) {                                             \
        TP_PARALLEL(c->n, threads, begin, end, {                                                       \
            for (ptrdiff_t r = begin; r < end; r++) {                                                  \
                const ptrdiff_t h = c->h;                                                              \
                const T *a = (const T *)c->in[0] + r * c->step[0], *b = (const T *)c->in[1] + r * c->step[1]; \
                const T *cell = (const T *)c->in[2] + r * c->step[2];                                  \
                const T *g_hidden = (const T *)c->in[3] + r * c->step[3];                              \
                const T *g_state = (const T *)c->in[4] + r * c->step[4];                               \
                const T *ended = (const T *)c->in[5] + r * c->step[5];                                 \
                const T *next_hidden = (const T *)c->in[6] + r * c->step[6];                           \
                const T *next_state = (const T *)c->in[7] + r * c->step[7];                            \
                (void)next_hidden, (void)next_state;                                                   \
                T *gates = (T *)c->out[0] + r * 4 * h, *g_cell = (T *)c->out[1] + r * h;               \
                INDEPENDENT for (ptrdiff_t j = 0; j < h; j++) {                                        \
                    const T i = m_sigmoid_##S(a[j] + b[j]), f = m_sigmoid_##S(a[h + j] + b[h + j]);    \
                    const T g = m_tanh_##S(a[2 * h + j] + b[2 * h + j]);                               \
                    const T o = m_sigmoid_##S(a[3 * h + j] + b[3 * h + j]);                            \
                    const T shown = m_tanh_##S(ended[j]);                                              \
                    const T of_hidden = hidden, total = (state) + of_hidden * o * (1 - shown * shown); \
                    gates[j] = total * g * i * (1 - i);                                                \
                    gates[h + j] = total * cell[j] * f * (1 - f);                                      \
                    gates[2 * h + j] = total * i * (1 - g * g);                                        \
                    gates[3 * h + j] = of_hidden * shown * o * (1 - o);                                \
                    g_cell[j] = total * f;                                                             \
                }                                                                                      \
            }                                                                                          \
        });                                                                                            \
    }

#define GRU_BACKWARD(name, S, T, given)                                                                \
    static void name##_##S(const tp_rnn *c, int threads) {                                             \
        TP_PARALLEL(c->n, threads, begin, end, {                                                       \
            for (ptrdiff_t row = begin; row < end; row++) {                                            \
                const ptrdiff_t h = c->h;                                                              \
                const T *a = (const T *)c->in[0] + row * c->step[0], *b = (const T *)c->in[1] + row * c->step[1]; \
                const T *hidden = (const T *)c->in[2] + row * c->step[2];                              \
                const T *g = (const T *)c->in[3] + row * c->step[3];                                   \
                const T *next = (const T *)c->in[4] + row * c->step[4];                                \
                const T *direct = (const T *)c->in[5] + row * c->step[5];                              \
                (void)next, (void)direct;                                                              \
                T *gates = (T *)c->out[0] + row * 3 * h, *own = (T *)c->out[1] + row * 3 * h;          \
                T *g_hidden = (T *)c->out[2] + row * h;                                                \
                INDEPENDENT for (ptrdiff_t j = 0; j < h; j++) {                                        \
                    const T r = m_sigmoid_##S(a[j] + b[j]), z = m_sigmoid_##S(a[h + j] + b[h + j]);    \
                    const T n = m_tanh_##S(a[2 * h + j] + r * b[2 * h + j]);                           \
                    const T total = given, g_new = total * (1 - z) * (1 - n * n);                      \
                    const T g_reset = g_new * b[2 * h + j] * r * (1 - r);                              \
                    const T g_update = total * (hidden[j] - n) * z * (1 - z);                          \
                    gates[j] = own[j] = g_reset;                                                       \
                    gates[h + j] = own[h + j] = g_update;                                              \
                    gates[2 * h + j] = g_new;                                                          \
                    own[2 * h + j] = g_new * r;                                                        \
                    g_hidden[j] = total * z;                                                           \
                }                                                                                      \
            }                                                                                          \
        });                                                                                            \
    }

#define BACKWARD(S, T)                                                                                 \
    LSTM_BACKWARD(lstm_backward, S, T, g_hidden[j], g_state[j])                                        \
    LSTM_BACKWARD(lstm_step_backward, S, T, g_hidden[j] + next_hidden[j], g_state[j] + next_state[j])  \
    GRU_BACKWARD(gru_backward, S, T, g[j])                                                             \
    GRU_BACKWARD(gru_step_backward, S, T, g[j] + (next[j] + direct[j]))

CELLS(F32, float)
CELLS(F64, double)
BACKWARD(F32, float)
BACKWARD(F64, double)

#define BOTH(name) {name##_F32, name##_F64}

const tp_rnn_kernels LEVEL(tp_rnn_table) = {
    BOTH(lstm), BOTH(lstm_backward), BOTH(lstm_step_backward), BOTH(gru), BOTH(gru_backward), BOTH(gru_step_backward)};

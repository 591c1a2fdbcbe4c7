/* What recurrent cells do with their gates. Rows lie `step` elements apart; results are contiguous. */
#ifndef TENSORPLUG_CELLS_H
#define TENSORPLUG_CELLS_H

#include "level.h"

enum { TP_CELL_INPUTS = 8, TP_CELL_OUTPUTS = 3 };

typedef struct {
    const void *in[TP_CELL_INPUTS];
    ptrdiff_t step[TP_CELL_INPUTS];
    void *out[TP_CELL_OUTPUTS];
    ptrdiff_t n, h;
} tp_rnn;

typedef void (*tp_rnn_loop)(const tp_rnn *cell, int threads);

/* Inputs: gates, own, cell or hidden; for the gradients then the results' gradients, and the LSTM's state. Among all
   steps of a layer, then the gradients from the next step: of hidden and cell, or the GRU's two parts. */
typedef struct {
    tp_rnn_loop lstm[2], lstm_backward[2], lstm_step_backward[2], gru[2], gru_backward[2], gru_step_backward[2];
} tp_rnn_kernels;

TP_DECLARE(const tp_rnn_kernels, tp_rnn_table);

#endif

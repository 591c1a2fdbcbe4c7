/* Gradients put where the maxima of one type T were; included by pooling_max.c for float and double. */

static int OF(gradient)(const tp_pool *p, const void *g_, const int64_t *places, void *o_) {
    const T *g = g_;
    T *o = o_;
    const ptrdiff_t plane = p->size[0] * p->size[1] * p->size[2], results = p->where[0] * p->where[1] * p->where[2];
    const ptrdiff_t channels = p->channels;
    int outside = 0;
    if (!p->channels_last) {
        TP_PARALLEL(p->samples * channels, p->threads, begin, end, {
            int wrong = 0;
            for (ptrdiff_t k = begin; k < end; k++) {
                const T *from = g + k * results;
                const int64_t *at = places + k * results;
                T *to = o + k * plane;
                for (ptrdiff_t i = 0; i < results; i++) {
                    if ((uint64_t)at[i] < (uint64_t)plane) to[at[i]] += from[i];
                    else wrong = 1;
                }
            }
            if (wrong) outside = 1;
        });
        return outside;
    }
    /* A channel is one thread's alone, so that no two write to the same place. */
    const ptrdiff_t blocks = (channels + 15) / 16;
    TP_PARALLEL(p->samples * blocks, p->threads, begin, end, {
        int wrong = 0;
        for (ptrdiff_t k = begin; k < end;) {
            const ptrdiff_t sample = k / blocks;
            const ptrdiff_t behind = end < (sample + 1) * blocks ? end : (sample + 1) * blocks;
            const ptrdiff_t first = k % blocks * 16;
            ptrdiff_t last = (behind - sample * blocks) * 16;
            if (last > channels) last = channels;
            T *to = o + sample * plane * channels;
            for (ptrdiff_t i = 0; i < results; i++) {
                const ptrdiff_t from = (sample * results + i) * channels;
                for (ptrdiff_t c = first; c < last; c++) {
                    if ((uint64_t)places[from + c] < (uint64_t)plane) to[places[from + c] * channels + c] += g[from + c];
                    else wrong = 1;
                }
            }
            k = behind;
        }
        if (wrong) outside = 1;
    });
    return outside;
}

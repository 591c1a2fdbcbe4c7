// How the driver finds a kernel, the sizes of its arguments, and calls it.
namespace hosted {
template <typename F> struct Caller;
template <typename... A> struct Caller<void (*)(A...)> {
    static constexpr size_t sizes[] = {sizeof(A)..., 0};
    static constexpr int count = sizeof...(A);
    template <void (*kernel)(A...)> static void call(void** arguments) {
        each<kernel>(arguments, std::index_sequence_for<A...>());
    }
    template <void (*kernel)(A...), size_t... I> static void each(void** arguments, std::index_sequence<I...>) {
        kernel(*(std::remove_const_t<A>*)arguments[I]...);
    }
};
}  // namespace hosted
#define HOSTED_EXPORT(symbol, waits, ...)                                                            \
    extern "C" const hosted::Kernel hosted_##symbol = {                                              \
        hosted::Caller<decltype(&__VA_ARGS__)>::call<__VA_ARGS__>, hosted::Caller<decltype(&__VA_ARGS__)>::sizes, \
        hosted::Caller<decltype(&__VA_ARGS__)>::count, waits};
